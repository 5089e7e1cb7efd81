"""Which items belong together, what a response is, and where the model was called. No budgets, no tokens. The code cites the rules.

Problem. A provider refuses an output without its call, reasoning without the call it led to, or one of two parallel calls without the
other. So items must be kept or dropped in groups, and a log grows one item at a time: what belongs together is known only later.

Example. Positions of a log, with its responses and units:

    0 user   1 reasoning   2 text   3 call a   4 call b   5 output b   6 user   7 output a   8 text
             |------- response at 1 --------|                                                | response at 8
    units: {0}  {1, 3, 4, 5, 7}  {2}  {6}  {8}

When item 3 comes in, reasoning 1 leaves the unit with text 2 that it had formed until then, and joins the calls. Output 7 comes late and
completes the unit, so the unit is younger than message 6.

1. A response is a run of reasoning, assistant messages and calls of one agent. Summaries are not part of a response. A saved log may
   name items that begin a new response although this rule alone would continue the old one (`breaks`).
2. A tool unit is a response's reasoning, its calls and their outputs. In a response without calls, reasoning and the text after it are a
   unit. Every other item is a unit by itself.
3. An output belongs to the last unanswered call before it with its call id. An output without one is an orphan and belongs to nothing.
4. A unit is known by its head, the position of its first item. It is as old as the last item that joined it.
5. A unit has one category. For parallel calls it is the highest among them; reasoning takes that of its calls or text.
6. An item is free, a summary (only a later summary may replace it), or held (never touched: SYSTEM and pinned items). A unit is protected
   as strongly as the most protected of its items.
7. The model was called just before each response, and at the end of a log that does not end in a response: the request points. The
   frontier is what the model is about to read, and the response before it: the last user message, the last response and everything
   after it. Before the first response it is the last user message and everything after it.
8. A log needs a closing line if a request with it would end in the model's turn, although the log does not end in a response: after its
   last response, which has text and no calls, come only late outputs, which a request shows right after their calls, silent items, and
   orphans, and summaries of role assistant. A summary that a view shows earlier (`is_moved`) and an orphan do not speak there, but the
   log goes on: in the view, the answer before it ends a request (`ends`).
9. Instructions are system and developer messages, and config updates with instructions. Messages add to the system prompt. An update
   replaces earlier instructions: those of its agent and of no agent; all of them if it has no agent, or if the last handoff before it is
   to its agent. It replaces no pinned ones. Replaced instructions are not sent, and no view has them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from .identity import is_digest
from .items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from .parts import Image

PRIORITY = tuple(MessageCategory)
"""Categories in falling priority. The rank of a category is its index."""
RANK = {category: rank for rank, category in enumerate(PRIORITY)}
SYSTEM, CONTEXT, DIALOG, SYSTEM_OUTPUT = range(len(PRIORITY))

NONE = -1


class ReadableLog(Protocol):
    """A session, as the code that only reads it sees it."""

    @property
    def items(self) -> Sequence[Item]:
        """The items in order."""

    @property
    def response_breaks(self) -> frozenset[str]:
        """As `Session.response_breaks`."""

    @property
    def request_ends(self) -> frozenset[str]:
        """As `Session.request_ends`."""

    @property
    def settled(self) -> int:
        """As `Session.settled`."""

    def position(self, id: str) -> int | None:
        """Return the position of the item with this id, or None."""

    def get_by_id(self, id: str) -> Item | None:
        """Return the item with this id, or None."""


KIND_OTHER, KIND_SILENT, KIND_USER, KIND_REASONING, KIND_CALL, KIND_OUTPUT, KIND_ORPHAN, KIND_NOTICE = range(8)
"""Kinds of items, as far as units depend on them. Silent items never become a message: system messages, config updates, blank messages. A
notice is sent in the user's voice, but is not the user's message: a handoff, or a digest of earlier items."""
FREE, SUMMARY, HELD = range(3)
"""Degrees of protection from trims, the weakest first (rule 6)."""


def is_answer(item: Item) -> bool:
    """True if the item is part of a response."""
    if isinstance(item, Message):
        return item.role == "assistant" and not item.is_summary
    return isinstance(item, FunctionCall) or isinstance(item, Reasoning)  # noqa: SIM101 - a tuple takes a third longer, for every item


def is_summary(item: Item) -> bool:
    """True if the item stands for earlier ones."""
    return isinstance(item, Compaction) or (isinstance(item, Message) and item.is_summary)


def prompt_text(item: Item) -> str | None:
    """Return the instructions that the item gives (rule 9); None if it gives none."""
    if isinstance(item, Message):
        return item.text if item.role in ("system", "developer") else None
    return item.instructions if isinstance(item, AgentConfigUpdate) else None


def is_blank(message: Message) -> bool:
    """True if the message has no images, no files, and no text but white space."""
    return all(not isinstance(part, Image) and part.text is not None and not part.text.strip() for part in message.content)


class Grouping:
    """The units of a log that grows, in O(1) amortised per item.

    The arrays are indexed by position in the log. A unit is known by its head, the position of its first item.

    Attributes:
        head: The head of the item's unit.
        next_member: The next position of the same unit, or -1.
        last: By head, the last position that joined the unit: its age.
        rank: The rank of the unit's category.
        kind: The kind of the item: one of the `KIND_` numbers.
        answered: 1 for a call with an output.
        protection: FREE, SUMMARY or HELD.
        unit_protection: By head, the strongest protection in the unit.
        protected: Positions that are not FREE.
        always_protected: Positions protected by more than their category: pinned items, and summaries in SYSTEM.
        response: The position at which the item's response began, or -1.
        response_starts: The positions at which responses begin.
        in_response: True if the log ends in a response.
        last_call: By head, the last call of a tool unit.
        last_answered: The call that was answered last, or -1. An orphan does not change it.
        user_messages: The positions of the user's messages, without those of category CONTEXT.
        is_followed: True if an item follows the last response; True before the first.
        is_turn_open: True if the log's last response has text and no calls, and no other text follows it.
        replaced: Positions of instructions that a config update replaced, in the order in which that happened (rule 9).
    """

    def __init__(self) -> None:
        self.head = array("q")
        self.next_member = array("q")
        self.last = array("q")
        self.rank = bytearray()
        self.kind = bytearray()
        self.answered = bytearray()
        self.protection = bytearray()
        self.unit_protection = bytearray()
        self.protected = array("q")
        self.always_protected: set[int] = set()
        self.response = array("q")
        self.response_starts: list[int] = []
        self.in_response = False
        self.last_call: dict[int, int] = {}
        self.last_answered = NONE
        self.user_messages = array("q")
        self.is_followed = True
        self.is_turn_open = False
        self.replaced: list[int] = []
        self._instructions: dict[str | None, list[int]] = {}  # by agent: positions of those that an update may replace
        self._handed_to: str | None = None  # the agent that the last handoff is to
        self._open_calls: dict[str, list[int]] = {}  # by call id: unanswered calls, oldest first
        self._last_user = NONE
        self._last_context_user = NONE
        self._agent: str | None = None
        self._tool_unit = NONE  # of the response that the log ends in
        self._thought = NONE  # the reasoning of that response which belongs to no call and no text yet

    def __len__(self) -> int:
        return len(self.head)

    def starts_response(self, item: Item, breaks: bool = False) -> bool:
        """True if the item, appended now, would begin a response: the end of the log is then a request point (rules 1 and 7)."""
        return is_answer(item) and (breaks or not self.in_response or item.agent_id != self._agent)

    @property
    def last_user(self) -> int:
        """The position of the last user message, or -1. One of category CONTEXT counts only if there is no other."""
        return self._last_user if self._last_user != NONE else self._last_context_user

    @property
    def frontier(self) -> int:
        """The first position of the frontier (rule 7). The last user message belongs to the frontier too, even if it is earlier."""
        if self.response_starts:
            return self.response_starts[-1]
        return self.last_user if self.last_user != NONE else len(self)

    @property
    def needs_closing(self) -> bool:
        """True if a converter adds a closing line at the end (rule 8). Everything that this depends on is in the frontier."""
        return self.is_turn_open and self.is_followed

    @property
    def unanswered_calls(self) -> list[int]:
        """The positions of calls without an output."""
        return [position for calls in self._open_calls.values() for position in calls]

    def members(self, head: int) -> Iterator[int]:
        """Yield the positions of a unit, in order."""
        position = head
        while position != NONE:
            yield position
            position = self.next_member[position]

    def feed(self, item: Item, breaks: bool = False, *, ends: bool = False, is_moved: bool = False) -> list[tuple[int, int]]:
        """Take the next item of the log.

        Args:
            item: The item.
            breaks: True if it begins a response of its own in any case.
            ends: True if it is an answer after which a request ended, as if a silent item followed.
            is_moved: True if it is a summary that a request shows earlier.

        Returns:
            Earlier positions whose rank this item changed, each with its old rank.
        """
        position = len(self.head)
        rank = RANK[item.category]
        self._append(item, position, rank)
        if not is_answer(item):
            self.in_response = False
            self.response.append(NONE)
            self._feed_other(item, position, rank, is_moved=is_moved)
            return []
        if breaks or not self.in_response or item.agent_id != self._agent:
            self.response_starts.append(position)
            self.is_followed = self.is_turn_open = False
            self._tool_unit = self._thought = NONE
        self.response.append(self.response_starts[-1])
        self.in_response = True
        self._agent = item.agent_id
        reranked = self._feed_answer(item, position, rank)
        if ends:
            self.in_response = False
            self.is_followed = True
        return reranked

    def _feed_answer(self, item: Item, position: int, rank: int) -> list[tuple[int, int]]:
        """Take an item of the response that the log ends in."""
        if isinstance(item, FunctionCall):
            return self._feed_call(item, position, rank)
        if isinstance(item, Reasoning):
            self._feed_reasoning(position)
            return []
        if isinstance(item, Message) and not is_blank(item):
            self.is_turn_open = self._tool_unit == NONE
        if self._tool_unit != NONE or self._thought == NONE:
            return []
        unit, self._thought = self._thought, NONE
        reranked = self._rerank(unit, rank)
        self._join(position, unit)
        return reranked

    def _append(self, item: Item, position: int, rank: int) -> None:
        """Extend the arrays by an item that is a unit by itself, for now."""
        protection = HELD if rank == SYSTEM or item.pinned else FREE
        if protection == FREE and is_summary(item):
            protection = SUMMARY
        elif protection == HELD and (item.pinned or is_summary(item)):
            self.always_protected.add(position)
        if protection != FREE:
            self.protected.append(position)
        self.head.append(position)
        self.next_member.append(NONE)
        self.last.append(position)
        self.rank.append(rank)
        self.kind.append(KIND_OTHER)
        self.answered.append(0)
        self.protection.append(protection)
        self.unit_protection.append(protection)

    def _feed_other(self, item: Item, position: int, rank: int, *, is_moved: bool) -> None:
        """Take an item that is not part of a response."""
        if isinstance(item, FunctionCallOutput):
            self._feed_output(item, position)
        elif is_digest(item):
            self.kind[position] = KIND_NOTICE
            self.is_turn_open = False
        elif isinstance(item, Message) and item.role == "user":
            self.kind[position] = KIND_SILENT if is_blank(item) else KIND_USER
            self.is_turn_open = self.is_turn_open and self.kind[position] == KIND_SILENT
            if rank == CONTEXT:
                self._last_context_user = position
            else:
                self._last_user = position
                self.user_messages.append(position)
        elif isinstance(item, AgentHandoff):
            self.kind[position] = KIND_NOTICE
            self.is_turn_open = False
            self._handed_to = item.to_agent
        elif isinstance(item, AgentConfigUpdate) or (isinstance(item, Message) and item.role in ("system", "developer")):
            self.kind[position] = KIND_SILENT
            self._feed_instructions(item, position)
        elif isinstance(item, Compaction):
            self.is_turn_open = self.is_turn_open and (is_moved or not item.summary.strip())
        self.is_followed = True

    def _feed_instructions(self, item: Message | AgentConfigUpdate, position: int) -> None:
        """Take an item that may change the system prompt (rule 9)."""
        if isinstance(item, AgentConfigUpdate):
            if item.instructions is None:
                return
            if item.agent_id in (None, self._handed_to):
                replaced, self._instructions = [*self._instructions.values()], {}
            else:
                replaced = [self._instructions.pop(agent, []) for agent in (None, item.agent_id)]
            self.replaced += sorted(earlier for positions in replaced for earlier in positions)
        if not item.pinned:
            self._instructions.setdefault(item.agent_id, []).append(position)

    def _feed_reasoning(self, position: int) -> None:
        self.kind[position] = KIND_REASONING
        if self._tool_unit != NONE:
            self._join(position, self._tool_unit)
        elif self._thought != NONE:
            self._join(position, self._thought)
        else:
            self._thought = position

    def _feed_output(self, item: FunctionCallOutput, position: int) -> None:
        calls = self._open_calls.get(item.call_id)
        if not calls:
            self.kind[position] = KIND_ORPHAN
            return
        call = calls.pop()
        if not calls:
            del self._open_calls[item.call_id]
        self.kind[position] = KIND_OUTPUT
        self.answered[call] = 1
        self.last_answered = call
        self._join(position, self.head[call])

    def _feed_call(self, item: FunctionCall, position: int, rank: int) -> list[tuple[int, int]]:
        self.kind[position] = KIND_CALL
        self._open_calls.setdefault(item.call_id, []).append(position)
        self.is_turn_open = False  # its output follows
        if self._tool_unit != NONE:  # rule 5
            reranked = self._rerank(self._tool_unit, min(rank, self.rank[self._tool_unit]))
            self._join(position, self._tool_unit)
            self.last_call[self._tool_unit] = position
            return reranked
        # The first call of its response: the reasoning before it joins it, and each text becomes a unit by itself.
        start = self.response_starts[-1]
        thoughts = [member for member in range(start, position) if self.kind[member] == KIND_REASONING]
        reranked = [(member, self.rank[member]) for member in thoughts if self.rank[member] != rank]
        for member in range(start, position):
            self.head[member] = self.last[member] = member
            self.next_member[member] = NONE
            self.unit_protection[member] = self.protection[member]
        self._tool_unit, *later = [*thoughts, position]
        self.rank[self._tool_unit] = rank
        self.last_call[self._tool_unit] = position
        for member in later:
            self._join(member, self._tool_unit)
        return reranked

    def _join(self, position: int, unit: int) -> None:
        self.next_member[self.last[unit]] = position
        self.last[unit] = position
        self.head[position] = unit
        self.rank[position] = self.rank[unit]
        if self.protection[position] > self.unit_protection[unit]:  # noqa: PLR1730 - `max` takes four times as long, for every item
            self.unit_protection[unit] = self.protection[position]

    def _rerank(self, unit: int, rank: int) -> list[tuple[int, int]]:
        """Give the unit another rank, and return its positions with their old rank if that changes anything."""
        old_rank = self.rank[unit]
        if old_rank == rank:
            return []
        reranked = [(position, old_rank) for position in self.members(unit)]
        for position, _ in reranked:
            self.rank[position] = rank
        return reranked


@dataclass(frozen=True, slots=True)
class Unit:
    """Items that are kept or dropped together: their positions in the log, in order, and the category that all of them count for."""

    positions: tuple[int, ...]
    category: MessageCategory


def grouping(session: ReadableLog) -> Grouping:
    """Return the grouping of the whole log."""
    groups = Grouping()
    breaks, ends = session.response_breaks, session.request_ends
    for item in session.items:
        groups.feed(item, item.id in breaks, ends=item.id in ends)
    return groups


def prompts_in_force(items: Sequence[Item]) -> list[int]:
    """Return the positions of the instructions that no config update replaced (rule 9), in order."""
    groups = Grouping()
    for item in items:
        groups.feed(item)
    replaced = set(groups.replaced)
    return [position for position, item in enumerate(items) if position not in replaced and prompt_text(item) is not None]


def units(session: ReadableLog) -> list[Unit]:
    """Return the units of the log, in order of their first items."""
    groups = grouping(session)
    heads = [position for position, head in enumerate(groups.head) if head == position]
    return [Unit(tuple(groups.members(head)), PRIORITY[groups.rank[head]]) for head in heads]


def request_points(session: ReadableLog) -> list[int]:
    """Return the positions before which the model was called: the starts of responses, and the end if the log does not end in one."""
    groups = grouping(session)
    return [*groups.response_starts, *([] if groups.in_response else [len(groups)])]


def frontier(session: ReadableLog) -> list[int]:
    """Return the positions of the frontier (rule 7), in order."""
    groups = grouping(session)
    first = groups.frontier
    user = [groups.last_user] if NONE < groups.last_user < first else []
    return [*user, *range(first, len(groups))]
