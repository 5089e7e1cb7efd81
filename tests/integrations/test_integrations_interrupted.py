"""Interrupted calls of an adapter: whenever it happens, the conversation is still remembered, with its trims and refusals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from context_window import ContextOverflowError, ContextWindow, ContextWindowManager, CountingError, PartRefusedError, PromptTooLongError
from context_window.integrations.conversation_tracker import ConversationTracker
from session.errors import FormatError
from session.items import Item
from session.session import Session
from tests.support.counting import Letters
from tests.support.lines import Line, LineAdapter, talk

REFUSAL = PromptTooLongError("prompt is too long", 400)
MOMENTS = ["items", "digest", "count", "refusal", "shown"]
SOON = 0.05


class Interruption:
    """Interrupts a call: runs `then` once, when the call reaches the moment `at`."""

    def __init__(self) -> None:
        self.at, self.then = "", self.nothing
        self.ended = False

    def nothing(self) -> None: ...

    def __call__(self, moment: str) -> None:
        if self.at == moment:
            self.at = ""
            self.then()
            self.ended = True


class _InterruptedAdapter(LineAdapter):
    def __init__(self, interruption: Interruption) -> None:
        super().__init__()
        self._interruption = interruption

    @property
    def is_message_whole_response(self) -> bool:  # type: ignore[override]
        self._interruption("pick")
        return True

    def digest(self, message: Line) -> bytes:
        self._interruption("digest")
        return super().digest(message)

    def items(self, message: Line, ids: Iterator[str]) -> list[Item]:
        self._interruption("items")
        if message.who == "noise":
            raise FormatError("messages", "noise")
        items = super().items(message, ids)
        return [*items, "no item"] if message.who == "half" else items  # type: ignore[list-item]


class _InterruptedCounter(Letters):
    def __init__(self, interruption: Interruption) -> None:
        super().__init__()
        self._interruption = interruption

    def count_text(self, text: str) -> int:
        self._interruption("count")
        return super().count_text(text)


class _InterruptedManager(ContextWindowManager):
    """Reaches `refusal` when it accepts one. After a view is made, the next message that is picked for it is the moment `shown`."""

    interruption: Interruption

    def accept_refusal(self, session: Session, refusal: PromptTooLongError | PartRefusedError) -> bool:
        accepted = super().accept_refusal(session, refusal)
        self.interruption("refusal")
        return accepted

    async def aprocess_session(self, session: Session) -> Session:
        view = await super().aprocess_session(session)
        if self.interruption.at == "shown":
            self.interruption.at = "pick"
        return view


class Conversation:
    """A conversation that was trimmed and then refused once. The next call passes the messages returned last."""

    def __init__(self, **window: Any) -> None:
        self.interruption = Interruption()
        self.manager = _InterruptedManager(
            token_counter=_InterruptedCounter(self.interruption), context_window=ContextWindow(max_tokens=1_000, **window)
        )
        self.manager.interruption = self.interruption
        self.adapter: ConversationTracker[Line] = ConversationTracker(self.manager, _InterruptedAdapter(self.interruption))
        messages = self.adapter.fit(talk("a", 10))
        self.id = next(line.text for line in messages if "taken out" in line.text).partition("recall id ")[2].rstrip("]")
        self.shown = self.adapter.fit(talk("a", 10), refusal=REFUSAL)

    def assert_continues_like(self, other: Conversation, *lines: Line) -> None:
        """It continues like `other`, which was not interrupted."""
        assert self.adapter.recall(self.id).startswith("found a")
        messages = [*self.shown, *lines]
        expected = other.adapter.fit(messages)
        assert self.adapter.fit(messages) == expected
        assert expected != Conversation().fit_by_new_tracker(messages)
        assert len(self.adapter._remembered._last_use) == 1

    def fit_by_new_tracker(self, messages: list[Line]) -> list[Line]:
        """Return the messages that a new adapter would send."""
        return ConversationTracker(self.manager, LineAdapter()).fit(messages)


SORRY = [Line("model", "Sorry."), Line("user", "So? " + "y" * 300), Line("model", "z" * 300), Line("user", "And?")]


def test_a_conversation_continues_after_an_overflow() -> None:
    conversation, big = Conversation(strict=True, clamp_messages=False), Line("user", "x" * 2_000)
    with pytest.raises(ContextOverflowError):
        conversation.adapter.fit([*conversation.shown, big])
    with pytest.raises(ContextOverflowError):
        asyncio.run(conversation.adapter.afit([*conversation.shown, big]))
    conversation.assert_continues_like(Conversation(), big, *SORRY)


def test_an_unreadable_message_changes_nothing() -> None:
    conversation = Conversation()
    for _ in range(2):
        with pytest.raises(FormatError):
            conversation.adapter.fit([*conversation.shown, Line("model", "Well."), Line("noise", "")])
    conversation.assert_continues_like(Conversation(), *SORRY)


def test_a_half_appended_conversation_can_only_be_recalled() -> None:
    conversation = Conversation()
    with pytest.raises(FormatError):
        conversation.adapter.fit([*conversation.shown, Line("half", "Well.")])
    assert conversation.adapter.recall(conversation.id).startswith("found a")
    assert conversation.adapter.fit([*conversation.shown, *SORRY]) == Conversation().fit_by_new_tracker([*conversation.shown, *SORRY])


def test_a_refusal_that_removes_nothing_changes_nothing() -> None:
    conversation, other = Conversation(), Conversation()
    for each in (conversation, other):
        while True:
            try:
                each.shown = each.adapter.fit(each.shown, refusal=REFUSAL)
            except PromptTooLongError:
                break
    conversation.assert_continues_like(other, *SORRY)


@pytest.mark.parametrize("at", [moment for moment in MOMENTS if moment != "shown"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError], ids=lambda error: error.__name__)
def test_an_exception_at_any_moment_keeps_the_conversation(at: str, error: type[BaseException]) -> None:
    conversation, other = Conversation(), Conversation()
    refused = [REFUSAL] if at == "refusal" else []
    new_lines = [] if refused else [Line("model", "Well.")]

    def fails() -> None:
        raise error

    conversation.interruption.at, conversation.interruption.then = at, fails
    with pytest.raises((error, CountingError)):
        conversation.adapter.fit([*conversation.shown, *new_lines], refusal=next(iter(refused), None))
    assert not conversation.interruption.at
    if refused:
        other.adapter.fit(other.shown, refusal=REFUSAL)
    conversation.assert_continues_like(other, *new_lines, *SORRY)


@pytest.mark.parametrize("ends", [True, False], ids=["the loop ends", "the loop goes on"])
@pytest.mark.parametrize("at", MOMENTS)
def test_a_cancel_at_any_moment_keeps_the_conversation(at: str, ends: bool) -> None:
    """The call ends with its thread: no other call gets the conversation before that."""
    conversation, other = Conversation(), Conversation()
    refused = REFUSAL if at == "refusal" else None
    new_lines = [] if refused else [Line("model", "Well.")]

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(conversation.adapter.afit([*conversation.shown, *new_lines], refusal=refused))

        def cancels() -> None:
            for _ in range(2):
                loop.call_soon_threadsafe(task.cancel)
                time.sleep(SOON)

        conversation.interruption.at, conversation.interruption.then = at, cancels
        with pytest.raises(asyncio.CancelledError):
            await task
        if not ends:
            assert conversation.interruption.ended
            compare()

    def compare() -> None:
        if refused is not None:
            other.adapter.fit(other.shown, refusal=refused)
        conversation.assert_continues_like(other, *new_lines, *SORRY)

    asyncio.run(scene())
    if ends:
        compare()


@pytest.mark.parametrize("at", MOMENTS)
def test_an_event_loop_that_ends_during_a_call_keeps_the_conversation(at: str) -> None:
    """`asyncio.run` cancels the remaining tasks when it ends."""
    conversation, other, begun = Conversation(), Conversation(), asyncio.Event()
    refused = REFUSAL if at == "refusal" else None
    new_lines = [] if refused else [Line("model", "Well.")]

    async def scene() -> None:
        loop = asyncio.get_running_loop()

        def tells() -> None:
            loop.call_soon_threadsafe(begun.set)
            time.sleep(SOON)

        conversation.interruption.at, conversation.interruption.then = at, tells
        tasks.append(asyncio.ensure_future(conversation.adapter.afit([*conversation.shown, *new_lines], refusal=refused)))
        await asyncio.wait_for(begun.wait(), 10)

    tasks: list[asyncio.Future[list[Line]]] = []
    asyncio.run(scene())
    assert tasks[0].cancelled()
    if refused is not None:
        other.adapter.fit(other.shown, refusal=refused)
    conversation.assert_continues_like(other, *new_lines, *SORRY)


def test_a_failure_in_a_cancelled_call_is_silent_and_keeps_the_conversation() -> None:
    conversation, contexts = Conversation(), list[object]()

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: contexts.append(context))
        task = asyncio.ensure_future(conversation.adapter.afit([*conversation.shown, Line("model", "Well.")]))

        def fails() -> None:
            loop.call_soon_threadsafe(task.cancel)
            time.sleep(SOON)
            raise OSError

        conversation.interruption.at, conversation.interruption.then = "count", fails
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert contexts == []
    conversation.assert_continues_like(Conversation(), Line("model", "Well."), *SORRY)
