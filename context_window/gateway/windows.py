"""`Windows`: fits conversations. Holds one manager for each kind of request: a model, its tools, its options."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import is_
from threading import Lock
from typing import Any

from ..decision.plan import Plan
from ..integrations.conversation_tracker import ConversationTracker
from ..integrations.past_refusals import RefusalMemory
from ..manager import ContextWindowManager
from ..model_errors import PromptTooLongError
from ..models.names import family
from ..requests.anthropic_request import allowed_tokens
from ..settings.context_window import ContextWindow
from ..usage.view_figures import ViewFigures
from .cache_marks import cache_seconds, marked_again, without_marks
from .openai_responses import ResponsesWire
from .own_refusals import OwnRefusals
from .shared_refusals import RefusalsOfKind
from .wire_format import Json, MessageFormat, RequestConversation

IDLE_SECONDS = 300.0
"""Default of the seconds without a request after which a conversation is forgotten: as long as Anthropic's cache remembers it by default.
After that the provider has to read it as a whole again, too."""
LARGEST_ROOM = 60_000
"""Characters that the results of recalls may have in one answer at most: some 15,000 tokens."""
KINDS = 64
"""Kinds of requests that are remembered: the most recently used ones."""
UNFIT: tuple[type[Exception], ...] = (Exception,)
"""What can be raised while a conversation is read and fitted: errors, and faults of ours of any kind. None may stop an assistant."""


class Windows:
    """Fits conversations to a window. Thread-safe."""

    def __init__(
        self, window: ContextWindow, refusals: RefusalMemory | None = None, *, are_frozen: bool = False, mends_whole: bool = False
    ) -> None:
        """
        Args:
            window: The limits and the policy of every conversation. Without a strategy, they are trimmed with `Extract()`. Without a
                `largest_output`, outputs come as they are: what fits is sent byte for byte. The task and the user's newest words are left
                alone: what does not fit without them cannot be fitted.
            refusals: Refused prompts that several workers share. Default: those that this object has seen.
            are_frozen: True if nobody changes a message or a tool after it was passed.
            mends_whole: True to mend what fits too, and to refuse results that answer no call, as `ConversationTracker` does.
        """
        largest_output = 1 if window.largest_output is None else window.largest_output
        self._window = replace(
            window.with_extract(),
            max_tokens="auto" if window.max_tokens is None else window.max_tokens,
            largest_output=largest_output,
            keep_first_message=True,
            clamp_messages=False,
            strict=True,
        )
        self._refusals = refusals or OwnRefusals()
        self._are_frozen = are_frozen
        self._mends_whole = mends_whole
        self._lock = Lock()
        self._trackers: OrderedDict[bytes, ConversationTracker[Json]] = OrderedDict()

    def fit(
        self,
        wire: MessageFormat,
        conversation: RequestConversation,
        refusal: PromptTooLongError | None = None,
        on_view: Callable[[str, ViewFigures], object] | None = None,
    ) -> list[Json] | None:
        """Return the messages of the view; None if it is the whole conversation, so that the client's own bytes can be sent.

        Args:
            wire: The conversation's wire format.
            conversation: A request's conversation.
            refusal: The upstream's refusal of the messages returned last for this conversation. Smaller ones are returned now.
            on_view: Called with an id of the conversation and the figures of its view.

        Raises:
            UnknownModelError: The model's window is unknown, and no limit was set.
            SessionError: A message cannot be read.
            ContextOverflowError: What must be kept does not fit.
            ContextWindowError: The conversation cannot be fitted for another reason, or a refused one cannot become smaller.
        """
        bare = without_marks(conversation.messages)
        tracker = self._tracker_for(wire, conversation)
        seconds = cache_seconds(conversation.messages) if self._window.max_tokens == "auto" else None
        messages = tracker.fit(bare, system=conversation.system, refusal=refusal, on_view=on_view, cache_seconds=seconds)
        if not messages or (len(messages) == len(bare) and all(map(is_, messages, bare))):
            return None
        return marked_again(conversation.messages, bare, messages)

    def note_count(self, wire: MessageFormat, conversation: RequestConversation, figures: ViewFigures, tokens: int) -> None:
        """Learn from the provider's count of a view that was sent, if it shows that later ones would go above the budget.

        A small view shows little, and a window that is chosen by prices needs no exact count.

        Args:
            wire: The conversation's wire format.
            conversation: A request's conversation.
            figures: The figures of the view that was sent for it.
            tokens: The provider's count of it.
        """
        tracker = self._tracker_for(wire, conversation)
        allowed = allowed_tokens(tracker.budget, figures.tokens, tokens)
        if self._window.max_tokens == "auto" or 2 * tokens < tracker.budget or 50 * allowed > 49 * figures.budget:
            return
        tracker.note_count(without_marks(conversation.messages), tokens, system=conversation.system)

    def recalled(self, wire: MessageFormat, conversation: RequestConversation, arguments: str | Mapping[str, Any]) -> tuple[str, bool]:
        """Return the result of a recall call, as text, and True if it is an error. An image or a document is only named.

        Args:
            wire: The conversation's wire format.
            conversation: The conversation of the request that the call answers.
            arguments: The call's arguments.

        Raises:
            SessionError: A message cannot be read.
        """
        tracker = self._tracker_for(wire, conversation)
        result = tracker.recalled(without_marks(conversation.messages), arguments, system=conversation.system)
        return result.text, result.is_error

    def plan(self, wire: MessageFormat, conversation: RequestConversation) -> tuple[Plan, dict[str, int]]:
        """Return what the view of a conversation leaves out, and by the id of an item the index of its message.

        Args:
            wire: The conversation's wire format.
            conversation: The conversation.
        """
        return self._tracker_for(wire, conversation).plan(without_marks(conversation.messages), system=conversation.system)

    def room(self, wire: MessageFormat, conversation: RequestConversation) -> int:
        """Return the characters that the results of recalls may have in one answer: about an eighth of the budget, or a set amount."""
        return min(self._tracker_for(wire, conversation).budget // 2, LARGEST_ROOM)

    def forget_idle(self, seconds: float) -> int:
        """Forget the conversations that had no request for this number of seconds, and return their number.

        A view is the same with nothing remembered.
        """
        with self._lock:
            trackers = list(self._trackers.values())
        return sum(tracker.forget_idle(seconds) for tracker in trackers)

    def _tracker_for(self, wire: MessageFormat, conversation: RequestConversation) -> ConversationTracker[Json]:
        key = _kind_of(wire, conversation)
        with self._lock:
            tracker = self._trackers.get(key)
            if tracker is None:
                tracker = self._trackers[key] = ConversationTracker(
                    self._manager_for(wire, conversation),
                    wire.adapter,
                    names_ids=conversation.recall_tool is not None,
                    are_frozen=self._are_frozen,
                    continues_views=False,
                    mends_whole=self._mends_whole,
                    refuses_lost=self._mends_whole,
                    refusals=RefusalsOfKind(self._refusals, key + repr(self._window).encode()),
                )
            self._trackers.move_to_end(key)
            if len(self._trackers) > KINDS:
                self._trackers.popitem(last=False)
        return tracker

    def _manager_for(self, wire: MessageFormat, conversation: RequestConversation) -> ContextWindowManager:
        window = self._window
        if window.output_reserve is None and conversation.output_tokens is not None:
            window = replace(window, output_reserve=conversation.output_tokens)
        tools = conversation.tools if conversation.recall_tool is None else [*conversation.tools, conversation.recall_tool]
        is_responses = isinstance(wire, ResponsesWire) and family(conversation.model) == "openai"
        name = f"responses/{conversation.model}" if is_responses else conversation.model  # a PDF costs less there
        return ContextWindowManager(name, context_window=window, tools=tools, options=conversation.options)


def _kind_of(wire: MessageFormat, conversation: RequestConversation) -> bytes:
    """Return a hash of all that decides a view, except the system prompt and the messages."""
    kind = [type(wire).__name__, conversation.model, conversation.output_tokens, conversation.options, conversation.tools]
    return hashlib.sha256(json.dumps([*kind, conversation.recall_tool], default=str).encode()).digest()
