"""Adapters whose call breaks off, at whatever moment: the conversation is remembered, with what was taken and what was refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from context_window import ContextOverflowError, ContextWindow, ContextWindowManager, CountingError, PartRefusedError, PromptTooLongError
from context_window.integrations.conversations import Conversations
from session.errors import FormatError
from session.items import Item
from session.session import Session
from tests.support.counting import Letters
from tests.support.lines import Line, Lines, talk

REFUSAL = PromptTooLongError("prompt is too long", 400)
MOMENTS = ["items", "digest", "count", "refusal", "shown"]
SOON = 0.05


class Snag:
    """Where a call is to break off: `then` is called once, when it has come to `at`."""

    def __init__(self) -> None:
        self.at, self.then = "", self.nothing
        self.ended = False

    def nothing(self) -> None: ...

    def __call__(self, here: str) -> None:
        if self.at == here:
            self.at = ""
            self.then()
            self.ended = True


class _Lines(Lines):
    def __init__(self, snag: Snag) -> None:
        self._snag = snag

    def digest(self, message: Line) -> bytes:
        self._snag("digest")
        return super().digest(message)

    def items(self, message: Line, ids: Iterator[str]) -> list[Item]:
        self._snag("items")
        if message.who == "noise":
            raise FormatError("messages", "noise")
        found = super().items(message, ids)
        return [*found, "no item"] if message.who == "half" else found  # type: ignore[list-item]


class _Letters(Letters):
    def __init__(self, snag: Snag) -> None:
        super().__init__()
        self._snag = snag

    def count_text(self, text: str) -> int:
        self._snag("count")
        return super().count_text(text)


class _Manager(ContextWindowManager):
    """It comes to `refusal` where one is accepted, and tells when a view is made: what follows are the messages that show it."""

    snag: Snag

    def accept_refusal(self, session: Session, refusal: PromptTooLongError | PartRefusedError) -> bool:
        accepted = super().accept_refusal(session, refusal)
        self.snag("refusal")
        return accepted

    async def aprocess_session(self, session: Session) -> Session:
        view = await super().aprocess_session(session)
        if self.snag.at == "shown":
            self.snag.at = "digest"
        return view


class Talk:
    """A conversation of which something was taken, and whose budget a refusal has lowered, asked about as it was shown last."""

    def __init__(self, *, strict: bool = False) -> None:
        self.snag = Snag()
        self.manager = _Manager(token_counter=_Letters(self.snag), context_window=ContextWindow(max_tokens=1_000, strict=strict))
        self.manager.snag = self.snag
        self.adapter: Conversations[Line] = Conversations(self.manager, _Lines(self.snag))
        shown = self.adapter.fit(talk("a", 10))
        self.id = next(line.text for line in shown if "taken out" in line.text).partition("recall id ")[2].rstrip("]")
        self.shown = self.adapter.fit(talk("a", 10), refusal=REFUSAL)

    def goes_on_as(self, other: Talk, *lines: Line) -> None:
        """It is remembered as the other is, which nothing befell."""
        assert self.adapter.recall(self.id).startswith("found a")
        messages = [*self.shown, *lines]
        expected = other.adapter.fit(messages)
        assert self.adapter.fit(messages) == expected
        assert expected != Talk().manager_alone(messages)
        assert len(self.adapter._order) == 1
        assert set(self.adapter._known.values()) == set(self.adapter._order)

    def manager_alone(self, messages: list[Line]) -> list[Line]:
        """What an adapter that knows of nothing shows of them."""
        return Conversations(self.manager, Lines()).fit(messages)


SORRY = [Line("model", "Sorry."), Line("user", "So? " + "y" * 300), Line("model", "z" * 300), Line("user", "And?")]


def test_after_an_overflow_the_conversation_goes_on() -> None:
    one, big = Talk(strict=True), Line("user", "x" * 2_000)
    with pytest.raises(ContextOverflowError):
        one.adapter.fit([*one.shown, big])
    with pytest.raises(ContextOverflowError):
        asyncio.run(one.adapter.afit([*one.shown, big]))
    one.goes_on_as(Talk(), big, *SORRY)


def test_a_message_that_cannot_be_read_is_as_if_it_had_not_come() -> None:
    one = Talk()
    for _ in range(2):
        with pytest.raises(FormatError):
            one.adapter.fit([*one.shown, Line("model", "Well."), Line("noise", "")])
    one.goes_on_as(Talk(), *SORRY)


def test_one_that_is_left_half_appended_is_there_to_be_recalled_and_no_more() -> None:
    one = Talk()
    with pytest.raises(FormatError):
        one.adapter.fit([*one.shown, Line("half", "Well.")])
    assert one.adapter.recall(one.id).startswith("found a")
    assert one.adapter.fit([*one.shown, *SORRY]) == Talk().manager_alone([*one.shown, *SORRY])


def test_a_refusal_by_which_nothing_can_be_taken_leaves_it_as_it_was() -> None:
    one, other = Talk(), Talk()
    for each in (one, other):
        while True:
            try:
                each.shown = each.adapter.fit(each.shown, refusal=REFUSAL)
            except PromptTooLongError:
                break
    one.goes_on_as(other, *SORRY)


@pytest.mark.parametrize("at", [moment for moment in MOMENTS if moment != "shown"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError], ids=lambda error: error.__name__)
def test_whatever_is_raised_at_whatever_moment(at: str, error: type[BaseException]) -> None:
    one, other = Talk(), Talk()
    refused = [REFUSAL] if at == "refusal" else []
    more = [] if refused else [Line("model", "Well.")]

    def fails() -> None:
        raise error

    one.snag.at, one.snag.then = at, fails
    with pytest.raises((error, CountingError)):
        one.adapter.fit([*one.shown, *more], refusal=next(iter(refused), None))
    assert not one.snag.at
    if refused:
        other.adapter.fit(other.shown, refusal=REFUSAL)
    one.goes_on_as(other, *more, *SORRY)


@pytest.mark.parametrize("ends", [True, False], ids=["the loop ends", "the loop goes on"])
@pytest.mark.parametrize("at", MOMENTS)
def test_a_cancel_at_whatever_moment(at: str, ends: bool) -> None:
    """The call is over when its thread is: nobody is handed the conversation while that has it."""
    one, other = Talk(), Talk()
    refused = REFUSAL if at == "refusal" else None
    more = [] if refused else [Line("model", "Well.")]

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(one.adapter.afit([*one.shown, *more], refusal=refused))

        def cancels() -> None:
            for _ in range(2):
                loop.call_soon_threadsafe(task.cancel)
                time.sleep(SOON)

        one.snag.at, one.snag.then = at, cancels
        with pytest.raises(asyncio.CancelledError):
            await task
        if not ends:
            assert one.snag.ended
            compare()

    def compare() -> None:
        if refused is not None:
            other.adapter.fit(other.shown, refusal=refused)
        one.goes_on_as(other, *more, *SORRY)

    asyncio.run(scene())
    if ends:
        compare()


@pytest.mark.parametrize("at", MOMENTS)
def test_a_loop_that_ends_while_a_call_is_at_work(at: str) -> None:
    """`asyncio.run` cancels what is left, and leaves with it."""
    one, other, begun = Talk(), Talk(), asyncio.Event()
    refused = REFUSAL if at == "refusal" else None
    more = [] if refused else [Line("model", "Well.")]

    async def scene() -> None:
        loop = asyncio.get_running_loop()

        def tells() -> None:
            loop.call_soon_threadsafe(begun.set)
            time.sleep(SOON)

        one.snag.at, one.snag.then = at, tells
        tasks.append(asyncio.ensure_future(one.adapter.afit([*one.shown, *more], refusal=refused)))
        await asyncio.wait_for(begun.wait(), 10)

    tasks: list[asyncio.Future[list[Line]]] = []
    asyncio.run(scene())
    assert tasks[0].cancelled()
    if refused is not None:
        other.adapter.fit(other.shown, refusal=refused)
    one.goes_on_as(other, *more, *SORRY)


def test_what_fails_in_a_call_that_is_cancelled_is_told_nobody_and_the_conversation_stays() -> None:
    one, told = Talk(), list[object]()

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        task = asyncio.ensure_future(one.adapter.afit([*one.shown, Line("model", "Well.")]))

        def fails() -> None:
            loop.call_soon_threadsafe(task.cancel)
            time.sleep(SOON)
            raise OSError

        one.snag.at, one.snag.then = "count", fails
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert told == []
    one.goes_on_as(Talk(), Line("model", "Well."), *SORRY)
