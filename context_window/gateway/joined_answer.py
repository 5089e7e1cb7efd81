"""`JoinedAnswer`: one answer to the client, made of the upstream's answers of one or more rounds. Each wire format implements it.

1. A round ends with an answer. If all it calls is the recall tool, and it was not cut off, the next round sends the request again with the
   answer and the results. The first round's request is the client's, with the tool in it.
2. The client sees the blocks of all rounds in one answer, without the calls of the recall tool. It gets events as they come. Only what ends
   a round waits until it is known that no other round follows, and what a hidden call could make invalid waits until the next block begins.
3. If the model calls the client's tools as well, the client gets these calls and the recall is dropped: the exchange cannot be continued
   without the client's results, and its history will not have the call.
4. Usage is that of the last round, with the output tokens of all rounds. Assistants compare prompt tokens with the model's window to decide
   when to summarise. A sum of prompts that all begin alike would make them do that at half of it. The provider bills each round.
5. An answer in which nothing is hidden is passed on byte for byte.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from ..recall import NAME, Provider
from .events import StreamEvent, event_of
from .wire_format import Json

NO_TEXT = "[The answer ended with a request for removed content, which was not answered.]"
"""The text of an answer that has nothing left: an empty one would be refused in the client's next request."""

LARGEST_ANSWER = 32 * 1024 * 1024
"""Bytes of an answer, in all rounds, that are kept to be joined. A larger one is passed on as it comes, without recalls."""
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What an answer can raise that is not of the provider's form."""

Result: TypeAlias = tuple[str, bool]
"""The result of a recall: its text, and True if it is an error."""


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """A tool call in an answer.

    Attributes:
        name: The tool.
        arguments: Its arguments, as JSON text or as an object.
    """

    name: str
    arguments: str | Mapping[str, Any]

    @property
    def is_recall(self) -> bool:
        """True if it calls the recall tool."""
        return self.name == NAME


class JoinedAnswer(ABC):
    """One answer to the client. Events of a stream go to `read`, a whole answer to `add`. At a round's end comes `next_round` or `end`.

    Attributes:
        provider: The form of the recall tool.
        has_failed: True if the upstream has reported an error in its stream, the stream has ended too early, or the answer cannot be read.
            No round follows, and what the upstream has sent is passed on.
        is_too_large: True if the answer has more than `LARGEST_ANSWER` bytes. Then it has failed, too.
    """

    provider: ClassVar[Provider]

    def __init__(self) -> None:
        self.has_failed = self.is_too_large = False
        self._size = 0
        self._answers: list[Json] = []
        self._hides = False  # True once something was hidden, so that events are no longer the upstream's
        self._events: list[Json] = []
        self._last: list[StreamEvent] = []  # what ends the round

    def add(self, answer: Json) -> None:
        """Add the whole answer of a round."""
        try:
            has_recall = any(call.is_recall for call in self.calls(answer))
            self.joined([*self._answers, answer])
        except UNREADABLE:
            self.has_failed = True
        else:
            self._answers.append(answer)
            self._hides = self._hides or has_recall

    def read(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Read an event and yield those for the client: every event as it came once the answer is too large, and nothing was hidden."""
        self._size += len(event.raw)
        if self._size > LARGEST_ANSWER:
            if not self._hides:
                yield from (*self.waiting(), event)
            self.is_too_large = self.has_failed = True
            self._events.clear()
            return
        if event.data is None:
            yield from self._ending(event)
            return
        self._events.append(event.data)
        if event.data.get("error") or event.data.get("type") == "error":
            self.has_failed = True
        try:
            events = list(self.visible(event))
        except UNREADABLE:
            self.has_failed = True
            events = [] if self._hides else [*self.waiting(), event]
        yield from events

    def finish_round(self) -> None:
        """Join the round's events to an answer. The stream has ended."""
        events, self._events = self._events, []
        try:
            answer = None if self.has_failed else self.whole(events)
        except UNREADABLE:
            answer = None
        if answer is None:
            self.has_failed = True
        else:
            self.add(answer)

    @property
    def recalls(self) -> list[AnswerCall]:
        """The recall calls that must be answered before the answer can go on; none if it is complete, or cannot be read."""
        if self.has_failed or not self._answers or self.is_cut_off(self._answers[-1]):
            return []
        calls = self.calls(self._answers[-1])
        return calls if all(call.is_recall for call in calls) else []

    @property
    def is_changed(self) -> bool:
        """True if the client's answer is not the upstream's."""
        return self._hides

    def next_round(self, body: Json, results: Sequence[Result]) -> Json:
        """Return the request of the next round.

        Args:
            body: The request of this round.
            results: The result of each of `recalls`.
        """
        self._last = []
        self.begin_round()
        return self.follow_up(body, self._answers[-1], results)

    def end(self) -> Iterator[StreamEvent]:
        """Yield the events that end the answer."""
        yield from self.waiting()
        if self.has_failed or not self._hides:
            yield from self._last
        elif self._answers:
            try:
                events = list(self.last_events(self._last, self.joined(self._answers)))
            except UNREADABLE:
                events = self._last
            yield from events

    def whole_answer(self) -> Json:
        """Return the client's answer, of all rounds."""
        return self.joined(self._answers)

    def _ending(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Pass on an event that ends a round, or keep it until it is known whether another round follows."""
        if self._hides:
            self._last.append(event)
        else:
            yield event

    # By format

    @classmethod
    @abstractmethod
    def with_tool(cls, body: Json, definition: Json) -> Json | None:
        """Return the request with the recall tool; None if it cannot have it, or has no tools of its own.

        A request without tools may be for a model that takes none.
        """

    @abstractmethod
    def calls(self, answer: Json) -> list[AnswerCall]:
        """Return the calls of an answer that somebody must answer."""

    @abstractmethod
    def is_cut_off(self, answer: Json) -> bool:
        """True if the model did not end the answer itself, so that its last call may be incomplete."""

    @abstractmethod
    def follow_up(self, body: Json, answer: Json, results: Sequence[Result]) -> Json:
        """Return the request that continues after an answer whose calls are all recalls."""

    @abstractmethod
    def joined(self, answers: Sequence[Json]) -> Json:
        """Return the answers as one, without recalls."""

    @abstractmethod
    def whole(self, events: Sequence[Json]) -> Json | None:
        """Return the answer that was streamed in these events; None if it broke off."""

    @abstractmethod
    def visible(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Yield the events for the client. What ends the round goes to `_ending`."""

    @abstractmethod
    def last_events(self, held: Sequence[StreamEvent], answer: Json) -> Iterator[StreamEvent]:
        """Yield the events that end an answer with hidden calls.

        Args:
            held: The upstream's events that end the last round.
            answer: The whole answer.
        """

    @abstractmethod
    def begin_round(self) -> None:
        """Prepare for the events of another round."""

    def waiting(self) -> Iterator[StreamEvent]:
        """Yield the events that wait for others, which do not come, or cannot be read. Nothing waits in most formats."""
        yield from ()

    def error_event(self, error: Json) -> StreamEvent:
        """Return an error of the upstream, or of ours in its form, as an event of a stream that has begun."""
        return event_of(error)


def total_usage(usages: Iterable[object], written: Sequence[str], total: str = "") -> Json:
    """Return the last usage, with the output of all.

    Args:
        usages: The usage of each round.
        written: Fields for output tokens. Details are added up, too.
        total: The field for input and output together.
    """
    *earlier, last = [usage if isinstance(usage, dict) else {} for usage in usages]
    result = dict(last)
    for usage in earlier:
        for name in written:
            if name in usage:
                result[name] = _sum(result.get(name), usage[name])
            if total in result and isinstance(usage.get(name), int):
                result[total] += usage[name]
    return result


def _sum(first: Any, second: Any) -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        return {name: _sum(first.get(name), second.get(name)) for name in {**first, **second}}
    return first + second if isinstance(first, int) and isinstance(second, int) else second if first is None else first


def first_choice(value: object) -> Json:
    """Return the first object of a list; an empty one if there is none."""
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}
