"""`RecallMixin`: the tool by which a model asks for what a view has lost, of adapters and of what `manage` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conversation_tracker import ConversationTracker


class RecallMixin:
    """The `recall` method of adapters. Its docstring is the description of a tool that a model sees."""

    _conversations: ConversationTracker[Any]

    def recall(self, id: str = "", from_line: int = 0, lines: int = 0, query: str = "") -> str:
        """Gives back content that was taken out of this conversation to save space, by the recall id that its placeholder names.

        Of a long content you get a page, and can ask for others. A query finds lines in all that was said so far.

        Args:
            id: The recall id.
            from_line: The first line to show of a long content, from 1.
            lines: The number of lines to show; as many as there is room for by default.
            query: Words to find, or a text as it stands, instead of an id.
        """
        return self._conversations.recall(id, from_line=from_line, lines=lines, query=query)
