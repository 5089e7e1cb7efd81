"""Which items stand or fall together; what a response is; where the model was called. No budgets, no tokens.

A *response* is a run of reasoning, assistant messages and calls of one agent (summaries are not the model's answer).
A *tool unit* is a response's reasoning, its calls and their outputs; in a response without calls, reasoning and the text
after it are a unit; every other item is one of its own. An output belongs to the last unanswered call before it with its
call id; an output without one is an *orphan*.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from .items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from .parts import Image
from .session import Session

PRIORITY = tuple(MessageCategory)
"""Categories in falling priority; a category's *rank* is its place here."""
RANK = {category: rank for rank, category in enumerate(PRIORITY)}
SYSTEM, CONTEXT, DIALOG, SYSTEM_OUTPUT = range(len(PRIORITY))

NONE = -1

KIND_OTHER, KIND_SILENT, KIND_USER, KIND_REASONING, KIND_CALL, KIND_OUTPUT, KIND_ORPHAN = range(7)
"""What an item is, as far as units go. Silent ones never are a message of their own: system messages, handoffs, blank ones."""
FREE, SUMMARY, HELD = range(3)
"""Whether trims may touch an item: they may; not, but a later summary may replace it; never (SYSTEM, pinned)."""


def is_answer(item: Item) -> bool:
    """Whether the item is part of a response."""
    if isinstance(item, Message):
        return item.role == "assistant" and not item.is_summary
    return isinstance(item, FunctionCall) or isinstance(item, Reasoning)  # noqa: SIM101 - a tuple costs a third more, for every item


def is_summary(item: Item) -> bool:
    """Whether the item stands for earlier ones."""
    return isinstance(item, Compaction) or (isinstance(item, Message) and item.is_summary)


def _is_blank(message: Message) -> bool:
    return all(not isinstance(part, Image) and part.text is not None and not part.text.strip() for part in message.content)


class Grouping:
    """The units of a log, learned one item at a time, in O(1) amortised.

    The arrays go by position in the log. A unit is known by its *head*, the position of its first item.

    Attributes:
        head: The unit an item is in.
        following: The next position of the same unit, or -1.
        last: By head: the position that completed the unit so far. It is the unit's age.
        rank: The category an item counts for, which is its unit's, as a rank in `PRIORITY`.
        kind: What the item is, as far as units go: one of the `KIND_` numbers.
        answered: 1 for a call with an output.
        own: Whether trims may touch the item: FREE, SUMMARY or HELD.
        held: By head: the highest of its items'.
        kept: Positions that trims may not touch, a later summary aside.
        firm: Positions that more than their category keeps: pinned items, and summaries in SYSTEM.
        response: Where the response that the item is in began, or -1.
        starts: The positions at which responses begin.
        last_call: By head: the last call of a tool unit.
        last_answered: The call that was answered last, or -1. An orphan leaves it as it was.
    """

    def __init__(self) -> None:
        self.head = array("q")
        self.following = array("q")
        self.last = array("q")
        self.rank = bytearray()
        self.kind = bytearray()
        self.answered = bytearray()
        self.own = bytearray()
        self.held = bytearray()
        self.kept = array("q")
        self.firm: set[int] = set()
        self.response = array("q")
        self.starts: list[int] = []
        self.in_response = False
        self.last_call: dict[int, int] = {}
        self.last_answered = NONE
        self._waiting: dict[str, list[int]] = {}  # unanswered calls by call id, oldest first
        self._user = NONE
        self._context_user = NONE
        self._agent: str | None = None
        self._calls = NONE  # the tool unit of the response that the log ends in
        self._thought = NONE  # its reasoning that waits for a text

    def __len__(self) -> int:
        return len(self.head)

    def starts_response(self, item: Item, breaks: bool = False) -> bool:
        """Whether the item, appended now, would begin a response: the end of the log is then a request point."""
        return is_answer(item) and (breaks or not self.in_response or item.agent_id != self._agent)

    @property
    def open_response(self) -> int:
        """Where the response that the log ends in began, or -1."""
        return self.starts[-1] if self.in_response else NONE

    @property
    def last_user(self) -> int:
        """The last user message, or -1. One of category CONTEXT counts only where there is no other."""
        return self._user if self._user != NONE else self._context_user

    @property
    def frontier(self) -> int:
        """Where the last response began; before any response, the last user message. The frontier is all from there
        on and the last user message."""
        if self.starts:
            return self.starts[-1]
        return self.last_user if self.last_user != NONE else len(self)

    def waiting_call(self, call_id: str) -> int:
        """Return the position of the call that an output with this call id would answer, or -1."""
        calls = self._waiting.get(call_id)
        return calls[-1] if calls else NONE

    def members(self, head: int) -> Iterator[int]:
        """The positions of a unit, in order."""
        place = head
        while place != NONE:
            yield place
            place = self.following[place]

    def feed(self, item: Item, breaks: bool = False) -> list[tuple[int, int]]:
        """Takes the next item of the log.

        Args:
            item: The item.
            breaks: Whether it begins a response of its own in any case.

        Returns:
            Earlier positions whose rank this item changed, each with the rank it had.
        """
        here = len(self.head)
        rank = RANK[item.category]
        own = HELD if rank == SYSTEM or item.pinned else FREE
        if own == FREE and is_summary(item):
            own = SUMMARY
        elif own == HELD and (item.pinned or is_summary(item)):
            self.firm.add(here)
        if own != FREE:
            self.kept.append(here)
        self.head.append(here)
        self.following.append(NONE)
        self.last.append(here)
        self.rank.append(rank)
        self.kind.append(KIND_OTHER)
        self.answered.append(0)
        self.own.append(own)
        self.held.append(own)
        if not is_answer(item):
            self.in_response = False
            self.response.append(NONE)
            if isinstance(item, FunctionCallOutput):
                self._feed_output(item, here)
            elif isinstance(item, Message) and item.role == "user":
                self.kind[here] = KIND_SILENT if _is_blank(item) else KIND_USER
                if rank == CONTEXT:
                    self._context_user = here
                else:
                    self._user = here
            elif isinstance(item, AgentHandoff | AgentConfigUpdate) or (isinstance(item, Message) and item.role in ("system", "developer")):
                self.kind[here] = KIND_SILENT
            return []
        if breaks or not self.in_response or item.agent_id != self._agent:
            self.starts.append(here)
            self._calls = self._thought = NONE
        self.response.append(self.starts[-1])
        self.in_response = True
        self._agent = item.agent_id
        if isinstance(item, FunctionCall):
            return self._feed_call(item, here, rank)
        if isinstance(item, Reasoning):
            self.kind[here] = KIND_REASONING
            if self._calls != NONE:
                self._join(here, self._calls)
            elif self._thought != NONE:
                self._join(here, self._thought)
            else:
                self._thought = here
            return []
        if self._calls != NONE or self._thought == NONE:
            return []
        unit, self._thought = self._thought, NONE
        moved = self._rerank(unit, rank)
        self._join(here, unit)
        return moved

    def _feed_output(self, item: FunctionCallOutput, here: int) -> None:
        calls = self._waiting.get(item.call_id)
        if not calls:
            self.kind[here] = KIND_ORPHAN
            return
        call = calls.pop()
        if not calls:
            del self._waiting[item.call_id]
        self.kind[here] = KIND_OUTPUT
        self.answered[call] = 1
        self.last_answered = call
        self._join(here, self.head[call])

    def _feed_call(self, item: FunctionCall, here: int, rank: int) -> list[tuple[int, int]]:
        self.kind[here] = KIND_CALL
        self._waiting.setdefault(item.call_id, []).append(here)
        if self._calls != NONE:  # parallel calls have one category: the highest of theirs
            moved = self._rerank(self._calls, min(rank, self.rank[self._calls]))
            self._join(here, self._calls)
            self.last_call[self._calls] = here
            return moved
        # The first call of its response: the reasoning before it joins it, and the texts stand alone.
        start = self.starts[-1]
        thoughts = [place for place in range(start, here) if self.kind[place] == KIND_REASONING]
        moved = [(place, self.rank[place]) for place in thoughts if self.rank[place] != rank]
        for place in range(start, here):
            self.head[place] = self.last[place] = place
            self.following[place] = NONE
            self.held[place] = self.own[place]
        self._calls, *others = [*thoughts, here]
        self.rank[self._calls] = rank
        self.last_call[self._calls] = here
        for place in others:
            self._join(place, self._calls)
        return moved

    def _join(self, place: int, unit: int) -> None:
        self.following[self.last[unit]] = place
        self.last[unit] = place
        self.head[place] = unit
        self.rank[place] = self.rank[unit]
        if self.own[place] > self.held[unit]:  # noqa: PLR1730 - `max` takes four times as long, for every item
            self.held[unit] = self.own[place]

    def _rerank(self, unit: int, rank: int) -> list[tuple[int, int]]:
        before = self.rank[unit]
        if before == rank:
            return []
        moved = [(place, before) for place in self.members(unit)]
        for place, _ in moved:
            self.rank[place] = rank
        return moved


@dataclass(frozen=True, slots=True)
class Unit:
    """Items that stand or fall together.

    Attributes:
        positions: Where they are in the log, in order.
        category: What they count for, together.
    """

    positions: tuple[int, ...]
    category: MessageCategory


def grouping(session: Session) -> Grouping:
    """The units of the whole log, as they are learned."""
    groups = Grouping()
    breaks = session.response_breaks
    for item in session.items:
        groups.feed(item, item.id in breaks)
    return groups


def units(session: Session) -> list[Unit]:
    """The units of the log, in order of their first items."""
    groups = grouping(session)
    return [Unit(tuple(groups.members(place)), PRIORITY[groups.rank[place]]) for place in range(len(groups)) if groups.head[place] == place]


def request_points(session: Session) -> list[int]:
    """Positions before which the model was called: where responses begin, and the end where the log does not end in one."""
    groups = grouping(session)
    return [*groups.starts, *([] if groups.in_response else [len(groups)])]


def frontier(session: Session) -> list[int]:
    """Positions of what the model is about to read and what that answers: the last response, the last user message, and
    everything after the last response."""
    groups = grouping(session)
    first = groups.frontier
    user = [groups.last_user] if NONE < groups.last_user < first else []
    return [*user, *range(first, len(groups))]
