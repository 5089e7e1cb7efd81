"""`RecallMixin`: the tool by which a framework's model asks for what a view has lost."""

from __future__ import annotations

from typing import Any

from .conversation_tracker import ConversationTracker


class RecallMixin:
    """The `recall` method of adapters. Its docstring is the description of a tool that a model sees."""

    _conversations: ConversationTracker[Any]

    def recall(self, id: str) -> str:
        """Gives back content that was taken out of this conversation to save space, by the recall id that its placeholder names.

        Args:
            id: The recall id.
        """
        return self._conversations.recall(id)
