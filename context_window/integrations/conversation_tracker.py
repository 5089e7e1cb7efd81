"""`ConversationTracker`: keeps a framework's conversations as sessions, so that a view costs only the new messages and prompts stay stable.

It finds the conversation that a list of messages continues, appends the new messages, and returns the messages to send. How these are
picked is in `view_messages.py`; how a framework's messages are read is up to its `MessageAdapter`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Generic, TypeVar

from session.errors import FormatError
from session.items import FunctionCallOutput, Item, Message, copy_with
from session.providers.mended_items import mended_items
from session.session import Session
from session.summarizers import Summarizer
from session.units import is_answer

from ..decision.plan import Plan
from ..errors import ArgumentError, RecallError, warn
from ..loop.background_loop import run_blocking
from ..manager import ContextWindowManager
from ..model_errors import PromptTooLongError
from ..recall import Recalled
from ..requests.client_errors import model_error
from ..strategies import summarize_of
from ..threads import in_thread
from ..tools import Tool, tool_texts
from ..usage.view_figures import ViewFigures
from ..validation import as_whole, check_amount
from .message_adapter import MessageAdapter
from .message_hashes import EMPTY_HASH, MessageHashes, extend_hash, hash_messages
from .past_refusals import PastRefusal, RefusalMemory, continues, count_now, pause_now, refusal_now, refusals_of, start_of
from .pauses import PAUSE, Pauses
from .remembered import RememberedConversations
from .tracked_conversation import ConversationCalls, TrackedConversation, item_ids
from .view_messages import mends_of, view_messages

M = TypeVar("M")

REMEMBERED = 64
"""Default number of conversations that a tracker remembers: the most recently used ones."""


class ConversationTracker(Generic[M]):
    """Keeps each of a framework's conversations as one session that grows.

    A list of messages that begins like a remembered one continues that conversation. This also works if the framework has stored the
    trimmed list. Any other list starts a new conversation. The same list gives the same view in any process, unless a summary was written:
    it is remembered with the conversation. Thread-safe.
    """

    def __init__(
        self,
        manager: ContextWindowManager,
        adapter: MessageAdapter[M],
        *,
        remembered: int = REMEMBERED,
        names_ids: bool = True,
        are_frozen: bool = False,
        continues_views: bool = True,
        mends_whole: bool = True,
        refuses_lost: bool = False,
        refusals: RefusalMemory | None = None,
    ) -> None:
        """
        Args:
            manager: The manager that makes the views.
            adapter: The framework's adapter.
            remembered: Conversations to remember.
            names_ids: True if placeholders name ids to recall by. False if the model has no tool for that.
            are_frozen: True if nobody changes a message after it was passed, and returned messages are not passed again.
            continues_views: False if a list that was returned is a conversation of its own, when it is passed: views then depend on the
                list alone. True where a framework may store it and go on with it.
            mends_whole: False if a conversation goes out as it is where it fits, whatever a provider would refuse in it. True to leave out
                blank messages and results that answer no call, and give calls without a result an error. Each is warned of.
            refuses_lost: True if a result that answers no call is an error.
            refusals: Refused prompts that several processes share, so that they return the same views.

        Raises:
            ArgumentError: `manager` is not a `ContextWindowManager`, or `remembered` is not a whole number of at least 1.
        """
        if not isinstance(manager, ContextWindowManager):
            raise ArgumentError("manager", manager, "pass a ContextWindowManager")
        self._manager = manager
        self._adapter = adapter
        self._names_ids = names_ids
        self._are_frozen = are_frozen
        self._continues_views = continues_views and not are_frozen
        self._mends_whole = mends_whole
        self._refuses_lost = refuses_lost
        self._refusals = refusals
        self._remembered = RememberedConversations[M](check_amount("remembered", remembered, least=1))
        self._pauses = Pauses()
        self._tools: list[str] = []

    def fit(
        self,
        messages: Sequence[M],
        *,
        system: str = "",
        tools: Iterable[Tool] = (),
        refusal: Exception | None = None,
        llm: Summarizer | None = None,
        on_view: Callable[[str, ViewFigures], object] | None = None,
        cache_seconds: float | None = None,
    ) -> list[M]:
        """Return the messages to send.

        Args:
            messages: The whole conversation. Neither the list nor a message is changed.
            system: The system prompt, if it is sent outside the messages.
            tools: The tool definitions of the request.
            refusal: The exception that the model's client raised for the messages returned last. The new ones are smaller.
            llm: Asks the model in use for a summary, if one is due and the window has no other summariser.
            on_view: Called with the session's id and the figures of the view. The id is that of all conversations that begin alike.
            cache_seconds: Seconds that the provider's cache remembers a request, if a later one is to be trimmed further; None otherwise.

        Raises:
            ContextOverflowError: The protected items alone exceed the budget, and the window is `strict`.
            Exception: `refusal` itself, if it is not about the prompt's length or nothing can be taken out.
        """
        too_long = _as_prompt_too_long(refusal)
        tracked = self._check_out(messages, system, tools, is_refused=refusal is not None, cache_seconds=cache_seconds)
        try:
            if refusal is not None and too_long is not None:
                self._accept_refusal(tracked, too_long, refusal)
            elif self._may_compact(llm):
                run_blocking(self._manager.compact_if_due(tracked.session, llm))
            to_send = self._messages_for(tracked, self._manager.process_session(tracked.session))
            if on_view is not None and (figures := self._manager.latest_view(tracked.session)) is not None:
                on_view(tracked.session.id, figures)
            return to_send
        finally:
            self._remembered.put(tracked)

    async def afit(
        self,
        messages: Sequence[M],
        *,
        system: str = "",
        tools: Iterable[Tool] = (),
        refusal: Exception | None = None,
        llm: Summarizer | None = None,
    ) -> list[M]:
        """`fit` for async callers: work is done in threads. A cancelled caller waits until the current step has finished."""
        too_long = _as_prompt_too_long(refusal)
        checked_out: list[TrackedConversation[M]] = []  # filled by the thread, so that a cancellation cannot lose the conversation
        try:
            await in_thread(lambda: checked_out.append(self._check_out(messages, system, tools, is_refused=refusal is not None)))
            (tracked,) = checked_out
            if refusal is not None and too_long is not None:
                await in_thread(partial(self._accept_refusal, tracked, too_long, refusal))
            elif self._may_compact(llm):
                await self._manager.compact_if_due(tracked.session, llm)
            view = await self._manager.aprocess_session(tracked.session)
            return await in_thread(lambda: self._messages_for(tracked, view))
        finally:
            for tracked in checked_out:  # empty if the checkout failed
                self._remembered.put(tracked)

    def recall(self, id: str = "", *, from_line: int = 0, lines: int = 0, query: str = "") -> str:
        """Return content that was taken out of a conversation, as text. An image or a document is only named.

        `query` finds it in the whole conversation, instead of an id. Raises RecallError if no remembered conversation has it.
        """
        arguments = {"id": id, "from_line": from_line, "lines": lines, "query": query}
        tool = self._manager.recall_tool("anthropic")
        for tracked in self._remembered.latest:
            recalled = tool.handle(tracked.session, arguments)
            if not recalled.is_error:
                return recalled.text
        raise RecallError(id or query, "no conversation that is remembered has it; placeholders name the ids there are")

    def recalled(self, messages: Sequence[M], arguments: str | Mapping[str, Any], *, system: str = "") -> Recalled:
        """Return the result of a call of the recall tool. It depends on the conversation alone, not on the memory."""
        tracked = self._check_out(messages, system, ())
        try:
            return self._manager.recall_tool("anthropic").handle(tracked.session, arguments)
        finally:
            self._remembered.put(tracked)

    def plan(self, messages: Sequence[M], *, system: str = "") -> tuple[Plan, dict[str, int]]:
        """Return what the view of a conversation leaves out, and by the id of an item the index of its message."""
        tracked = self._check_out(messages, system, ())
        try:
            places = {item.id: index for index, items in enumerate(tracked.items) for item in items}
            return self._manager.plan_session(tracked.session), places
        finally:
            self._remembered.put(tracked)

    @property
    def budget(self) -> int:
        """Tokens that a request may cost."""
        return self._manager.total_budget

    def note_count(self, messages: Sequence[M], tokens: int, *, system: str = "") -> None:
        """Keep the provider's count of the request that `fit` returned for a conversation: later views allow for it."""
        if self._refusals is None:
            return
        system_hash = hashlib.sha256(system.encode(errors="replace")).digest()
        hashes = hash_messages(self._adapter, messages, [tracked.received for tracked in self._remembered.latest]).hashes
        start = start_of(system_hash, hashes)
        if (count := count_now(hashes, self._refusals.known(start) or (), tokens)) is not None:
            self._refusals.add(start, count)

    def _may_compact(self, llm: Summarizer | None) -> bool:
        window = self._manager.context_window
        return window.compaction and (llm is not None or window.summary_llm is not None or summarize_of(window.strategy) is not None)

    def _check_out(
        self,
        messages: Sequence[M],
        system: str,
        tools: Iterable[Tool],
        *,
        is_refused: bool = False,
        cache_seconds: float | None = None,
    ) -> TrackedConversation[M]:
        """Return the conversation of these messages, brought up to date. No other caller gets it until it is put back."""
        self._count_tools(tools)
        system_hash = hashlib.sha256(system.encode(errors="replace")).digest()
        known = [tracked.received for tracked in self._remembered.latest if tracked.system_hash == system_hash] if self._are_frozen else []
        received = hash_messages(self._adapter, messages, known)
        known_count, tracked = self._remembered.take(received.hashes, system_hash)
        refusals = self._refusals_of(received, system_hash, known_count, tracked, is_refused=is_refused)
        if cache_seconds is not None and self._refusals is not None and not is_refused:
            start = start_of(system_hash, received.hashes)
            is_late = self._pauses.note_request(start, cache_seconds)
            if is_late and (pause := pause_now(received.hashes, refusals)) is not None:
                self._refusals.add(start, pause)
                refusals.append(pause)
        if tracked is not None and not continues(refusals, tracked.refusals, known_count):
            known_count, tracked = 0, None  # made again
        if tracked is None:
            session_id = hashlib.sha256(received.hashes[min(1, len(messages))] + system_hash).hexdigest()[:12]
            tracked = TrackedConversation(Session(id=session_id), system_hash)
            if system:
                tracked.session.append(Message("system", system, id="system", created_at=0.0))
        try:
            appended = known_count
            for refusal in refusals[len(tracked.refusals) :]:
                self._append_messages(tracked, received, appended, refusal.length_before)
                appended = refusal.length_before
                if refusal.is_pause:
                    tracked.now += PAUSE
                elif refusal.is_count:
                    self._manager.accept_count(tracked.session, refusal.tokens or 0)
                else:
                    self._manager.accept_refusal(tracked.session, refusal.error())
                tracked.refusals.append(refusal)
            self._append_messages(tracked, received, appended, len(messages))
        except BaseException:
            if known_count:
                self._remembered.put(tracked)
            raise
        return tracked

    def _refusals_of(
        self, received: MessageHashes, system_hash: bytes, known_count: int, tracked: TrackedConversation[M] | None, *, is_refused: bool
    ) -> list[PastRefusal]:
        """Return the refused prompts of a conversation, in their order. A log that was refused just now first accepts that."""
        accepted = [] if tracked is None else tracked.refusals
        is_list = tracked is None or tracked.messages_hash == received.hashes[known_count]
        if self._refusals is None or not is_list or (is_refused and tracked is not None):
            return list(accepted)
        return refusals_of(self._refusals, start_of(system_hash, received.hashes), received.hashes, accepted)

    def _count_tools(self, tools: Iterable[Tool]) -> None:
        definitions = tool_texts(tools)
        if definitions and definitions != self._tools:
            self._manager.count_tools(definitions)
            self._tools = definitions

    def _append_messages(self, tracked: TrackedConversation[M], received: MessageHashes, start: int, end: int) -> None:
        """Append some of the messages. Appends nothing if one of them cannot be read."""
        messages_hash, calls = tracked.messages_hash, tracked.calls.copy()
        new_items: list[list[Item]] = []
        for index in range(start, end):
            message = received.messages[index]
            messages_hash = extend_hash(messages_hash, received.digests[index])
            items = self._adapter.items(message, item_ids(messages_hash))
            if not items:
                raise FormatError("messages", f"a {type(message).__name__} became no item")
            read = self._completed(items, calls, f"messages[{index}]")
            new_items.append([copy_with(item, created_at=tracked.now) for item in read] if tracked.now else read)
        tracked.keys = set()  # if an interrupt leaves the log half appended, nobody continues it, but recall still works
        for items in new_items:
            self._append(tracked.session, items)
        if received.hashes[start] == tracked.messages_hash:
            tracked.messages[:] = received.messages[:start]  # equal in content; the framework may have loaded them again
        tracked.messages += received.messages[start:end]
        tracked.items += new_items
        tracked.messages_hash, tracked.calls = messages_hash, calls
        tracked.received = received
        tracked.keys = {(tracked.system_hash, received.hashes[end]), (tracked.system_hash, messages_hash)}

    def _completed(self, items: list[Item], calls: ConversationCalls, where: str) -> list[Item]:
        """Return the items of the next message with ids of their calls.

        Raises FormatError if a result answers no call that waits for one, and `refuses_lost`.
        """
        if not self._mends_whole:
            return list(map(calls.complete, items))
        if self._adapter.is_message_whole_response and not any(isinstance(item, FunctionCallOutput) for item in items):
            calls.unanswered.clear()  # results stand right after their calls
            calls.waiting.clear()
        completed = []
        for item in items:
            read = item
            if isinstance(item, FunctionCallOutput) and not (item.call_id or item.name or self._adapter.id_field or calls.unanswered):
                read = Message("user", item.output, id=item.id, created_at=item.created_at)  # smolagents says so that it could read no call
            if fault := calls.fault(read, self._adapter.id_field, are_ids_unique=self._adapter.are_ids_unique):
                if self._refuses_lost:
                    raise FormatError(where, fault)
                if isinstance(read, FunctionCallOutput):
                    warn(f"{where} was left out: {fault}")
            completed.append(calls.complete(read))
        return completed

    def _append(self, session: Session, items: list[Item]) -> None:
        """Append one message's items. Two assistant messages in a row stay two responses if the framework means them so."""
        last = session.items[-1] if session.items else None
        is_new_response = last is not None and self._adapter.is_message_whole_response and is_answer(last) and is_answer(items[0])
        for item in items:
            session.append(item)
        if is_new_response:
            session.restore_seams(session.response_breaks | {items[0].id}, 0)

    def _accept_refusal(self, tracked: TrackedConversation[M], refusal: PromptTooLongError, error: Exception) -> None:
        if not self._manager.accept_refusal(tracked.session, refusal):
            raise error
        hashes = tracked.received.hashes
        if self._refusals is None or tracked.messages_hash != hashes[-1]:
            return
        past = refusal_now(hashes, tracked.refusals, as_whole(refusal.tokens), as_whole(refusal.limit))
        if past is not None:
            tracked.refusals.append(past)
            self._refusals.add(start_of(tracked.system_hash, hashes), past)

    def _messages_for(self, tracked: TrackedConversation[M], view: Session) -> list[M]:
        """Return the messages that show the view. If the framework may store them, the conversation is found by them from now on."""
        items = mended_items(view)
        messages = view_messages(self._adapter, tracked, view, items, names_ids=self._names_ids, mends_whole=self._mends_whole)
        if self._mends_whole and (mends := mends_of(tracked, view, items)):
            warn(mends)
        if self._continues_views:
            digests = dict(zip(map(id, tracked.received.messages), tracked.received.digests, strict=True))
            returned = [digests.get(id(message)) or self._adapter.digest(message) for message in messages]
            tracked.keys.add((tracked.system_hash, reduce(extend_hash, returned, EMPTY_HASH)))
        return messages

    def forget_idle(self, seconds: float) -> int:
        """Forget the conversations that had no request for this number of seconds, and return their number."""
        return self._remembered.forget_idle(seconds)


def _as_prompt_too_long(error: Exception | None) -> PromptTooLongError | None:
    """Return the refusal that an error reports; None for None. Raise the error if it is not about the prompt's length."""
    refusal = error if error is None or isinstance(error, PromptTooLongError) else model_error(error)
    if error is not None and not isinstance(refusal, PromptTooLongError):
        raise error
    return refusal if isinstance(refusal, PromptTooLongError) else None
