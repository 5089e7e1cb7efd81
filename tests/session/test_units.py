"""Units, responses, request points and the frontier: an example for each sentence, and a slow twin for everything else."""

from typing import Any, cast

import pytest
from hypothesis import example, given

from session import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    MessageCategory,
    Reasoning,
    Session,
)
from session.items import Item
from session.units import (
    FREE,
    HELD,
    KIND_CALL,
    KIND_NOTICE,
    KIND_ORPHAN,
    KIND_OTHER,
    KIND_OUTPUT,
    KIND_REASONING,
    KIND_SILENT,
    KIND_USER,
    NONE,
    PRIORITY,
    RANK,
    SUMMARY,
    Grouping,
    frontier,
    grouping,
    is_answer,
    is_summary,
    request_points,
    units,
)
from tests.support import twin
from tests.support.strategies import sessions

SYSTEM, CONTEXT, DIALOG, SYSTEM_OUTPUT = MessageCategory


def log(spelled: str, *, breaks: tuple[int, ...] = ()) -> Session:
    """A session spelled in short words.

    `s` system, `u` user, `f` context file, `a` assistant, `t` thought, `c1` call 1, `o1` its output, `h` handoff, `g` config update,
    `z` compaction, `m` summary message. A `/b` behind one makes it an item of agent b; `!` that it is pinned; `=X` gives the category
    with this initial: S, C, D or O.
    """
    items = [_item(word) for word in spelled.split()]
    session = Session(items)
    session.restore_seams(frozenset(items[position].id for position in breaks), 0)
    return session


def _item(word: str) -> Item:
    word, _, agent = word.partition("/")
    pinned = word.endswith("!")
    word, _, initial = word.removesuffix("!").partition("=")
    base: dict[str, Any] = {"agent_id": agent or None, "pinned": pinned}
    if initial:
        base["category"] = {"S": SYSTEM, "C": CONTEXT, "D": DIALOG, "O": SYSTEM_OUTPUT}[initial]
    kind, number = word[0], word[1:]
    roles = {"s": "system", "u": "user", "a": "assistant"}
    if kind in roles:
        return Message(cast(Any, roles[kind]), "text", **base)
    match kind:
        case "f":
            return Message("user", "file", **{"category": CONTEXT, **base})
        case "m":
            return Message("assistant", "summary", extra={"summary": True}, **base)
        case "t":
            return Reasoning("thought", **base)
        case "c":
            return FunctionCall("f", "{}", number, **base)
        case "o":
            return FunctionCallOutput("f", "out", number, **base)
        case "h":
            return AgentHandoff("b", **base)
        case "g":
            return AgentConfigUpdate("brief", **base)
    assert kind == "z"
    return Compaction("summary", **base)


def grouped(spelled: str, *, breaks: tuple[int, ...] = ()) -> list[list[int]]:
    """The units of more than one item."""
    return [list(unit.positions) for unit in units(log(spelled, breaks=breaks)) if len(unit.positions) > 1]


# A response is a run of reasoning, assistant messages and calls of one agent


@pytest.mark.parametrize(
    ("spelled", "starts"),
    [
        ("", []),
        ("s u", []),
        ("u a", [1]),
        ("u t a c1 t a", [1]),
        ("u a u a", [1, 3]),
        ("u c1 o1 c2 o2 a", [1, 3, 5]),
        ("u a a/b a", [1, 2, 3]),
        ("u a s a", [1, 3]),
        ("u a h a", [1, 3]),
        ("u a g a", [1, 3]),
        ("u a o9 a", [1, 3]),
        ("u m a", [2]),
        ("u a m a", [1, 3]),
        ("u a z a", [1, 3]),
    ],
)
def test_where_responses_begin(spelled: str, starts: list[int]) -> None:
    assert grouping(log(spelled)).response_starts == starts


def test_a_break_begins_a_response_although_the_item_before_belongs_to_one() -> None:
    assert grouping(log("u t a c1 a", breaks=(2, 4))).response_starts == [1, 2, 4]
    assert grouping(log("u a", breaks=(0, 1))).response_starts == [1]


def test_summaries_are_not_the_models_answer() -> None:
    assert [is_answer(_item(word)) for word in ("t", "c1", "a", "m", "z", "u", "s", "o1", "h", "g")] == [True] * 3 + [False] * 7
    assert [is_summary(_item(word)) for word in ("m", "z", "a", "u", "t", "c1")] == [True] * 2 + [False] * 4


# A tool unit is a response's reasoning, its calls and their outputs


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("u t c1 o1", [[1, 2, 3]]),
        ("u c1 o1", [[1, 2]]),
        ("u c1 c2 o2 o1", [[1, 2, 3, 4]]),
        ("u t c1 t c2 o1 o2", [[1, 2, 3, 4, 5, 6]]),
        ("u t a c1 o1", [[1, 3, 4]]),  # its texts stand alone
        ("u t a t c1 a o1", [[1, 3, 4, 6]]),
        ("u c1 t a o1", [[1, 2, 4]]),  # reasoning after the calls too
        ("u c1 u o1", [[1, 3]]),  # an output that comes late
        ("u c1 o1 c2 o2", [[1, 2], [3, 4]]),  # two steps stay two
        ("u t c1 t/b c2/b o1 o2", [[1, 2, 5], [3, 4, 6]]),
        ("u t", []),
    ],
)
def test_tool_units(spelled: str, expected: list[list[int]]) -> None:
    assert grouped(spelled) == expected


def test_a_break_parts_units() -> None:
    assert grouped("u t c1 t c2 o1 o2", breaks=(3,)) == [[1, 2, 5], [3, 4, 6]]


# In a response without calls, reasoning and the text after it are a unit


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("u t a", [[1, 2]]),
        ("u t t a", [[1, 2, 3]]),
        ("u t a a", [[1, 2]]),
        ("u t a t a", [[1, 2], [3, 4]]),
        ("u t a t", [[1, 2]]),
        ("u t t", [[1, 2]]),
        ("u a t", []),
        ("u t u a", []),
        ("u t a/b", []),
        ("s u f h g z m a", []),  # every other item is one of its own
    ],
)
def test_units_without_calls(spelled: str, expected: list[list[int]]) -> None:
    assert grouped(spelled) == expected


# An output belongs to the last unanswered call before it with its call id; one without is an orphan


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("c1 o1 u c1 o1", {1: 0, 4: 3}),
        ("c1 u c1 o1 o1", {3: 2, 4: 0}),
        ("c1 o1 o1", {1: 0, 2: NONE}),
        ("o1 c1", {0: NONE}),
        ("c1 o2", {1: NONE}),
        ("c1 c1 o1 o1 o1", {2: 1, 3: 0, 4: NONE}),
    ],
)
def test_an_output_belongs_to_a_call(spelled: str, expected: dict[int, int]) -> None:
    groups = Grouping()
    found = {}
    for position, item in enumerate(log(spelled).items):
        groups.feed(item)
        if isinstance(item, FunctionCallOutput):
            found[position] = groups.last_answered if groups.kind[position] == KIND_OUTPUT else NONE
            assert groups.kind[position] in {KIND_OUTPUT, KIND_ORPHAN}
    assert found == expected
    assert [position for position, answered in enumerate(groups.answered) if answered] == sorted(set(expected.values()) - {NONE})


# What a unit counts for


@pytest.mark.parametrize(
    ("spelled", "position", "category"),
    [
        ("u t c1 o1", 1, SYSTEM_OUTPUT),  # its calls' category
        ("u t=C c1 o1=C", 3, SYSTEM_OUTPUT),
        ("u t c1=C c2 o1 o2", 1, CONTEXT),  # the highest, where they differ
        ("u c1 c2=D o1 o2", 1, DIALOG),
        ("u t=C a", 1, DIALOG),  # its text's
        ("u t a=C", 1, CONTEXT),
        ("u t=C t a", 2, DIALOG),
        ("u t=C t", 2, CONTEXT),  # the first thought's
    ],
)
def test_a_unit_counts_for_one_category(spelled: str, position: int, category: MessageCategory) -> None:
    session = log(spelled)
    unit = next(unit for unit in units(session) if position in unit.positions)
    assert unit.category is category
    ranks = grouping(session).rank
    assert {PRIORITY[ranks[member]] for member in unit.positions} == {category}


def test_text_that_leaves_its_thought_for_a_call_keeps_its_own_category() -> None:
    groups = grouping(log("u t a=C c1 o1"))
    assert [PRIORITY[rank] for rank in groups.rank] == [DIALOG, SYSTEM_OUTPUT, CONTEXT, SYSTEM_OUTPUT, SYSTEM_OUTPUT]


def test_protection_of_items_and_units() -> None:
    groups = grouping(log("s a! m z m! c1 o1! a=S"))
    assert list(groups.protection) == [HELD, HELD, SUMMARY, SUMMARY, HELD, FREE, HELD, HELD]
    assert groups.unit_protection[5] == HELD  # the call's unit has a pinned output
    assert FREE < SUMMARY < HELD


@pytest.mark.parametrize(("spelled", "thought", "text"), [("u t! a c1", HELD, FREE), ("u t a! c1", FREE, HELD), ("u t a!", HELD, HELD)])
def test_a_pinned_item_holds_the_unit_that_it_is_in_now(spelled: str, thought: int, text: int) -> None:
    groups = grouping(log(spelled))
    assert (groups.unit_protection[groups.head[1]], groups.unit_protection[groups.head[2]]) == (thought, text)


def test_kinds_of_items() -> None:
    session = log("s u f a t c1 o1 o1 h g z m")
    expected = [KIND_SILENT, KIND_USER, KIND_USER, KIND_OTHER, KIND_REASONING, KIND_CALL, KIND_OUTPUT, KIND_ORPHAN]
    assert list(grouping(session).kind) == [*expected, KIND_NOTICE, KIND_SILENT, KIND_OTHER, KIND_OTHER]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("", KIND_SILENT),
        (" \n\t", KIND_SILENT),
        ([], KIND_SILENT),
        ([" ", Image(url="u")], KIND_USER),
        (".", KIND_USER),
        ([Document(text=" \n")], KIND_SILENT),
        ([Document(url="u")], KIND_USER),
    ],
    ids=range(7),
)
def test_a_blank_user_message_is_silent(content: Any, kind: int) -> None:
    assert list(grouping(Session([Message("user", content)])).kind) == [kind]


# Request points and the frontier


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("", [0]),
        ("s u", [2]),
        ("u a", [1]),
        ("u a u", [1, 3]),
        ("u t c1 o1", [1, 4]),
        ("u c1 o1 a u a/b a", [1, 3, 5, 6]),
        ("a", [0]),
    ],
)
def test_the_model_was_called_before_each_response_and_at_an_end_that_is_none(spelled: str, expected: list[int]) -> None:
    assert request_points(log(spelled)) == expected


def test_the_end_is_not_a_request_point_in_the_middle_of_a_response() -> None:
    groups = Grouping()
    told = []
    for item in log("u t a c1 o1 a/b").items:
        told.append(groups.starts_response(item))
        groups.feed(item)
    assert told == [False, True, False, False, False, True]


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("", []),
        ("s", []),
        ("s u", [1]),
        ("s u u", [2]),
        ("s u a", [1, 2]),
        ("u a u c1 o1", [2, 3, 4]),
        ("u a u c1 o1 c2 o2", [2, 5, 6]),
        ("u a f a", [0, 3]),  # context is no user message
        ("f a f a", [2, 3]),  # unless there is no other
        ("u c1 u s", [1, 2, 3]),
        ("u a f u", [1, 2, 3]),
        ("a a", [0, 1]),
    ],
)
def test_the_frontier_is_the_last_response_the_last_user_message_and_all_after(spelled: str, expected: list[int]) -> None:
    assert frontier(log(spelled)) == expected


# Everything else


@given(sessions(max_steps=12))
@example(log("u t a t a=C c1 u c1 t! o1 o1 o1"))
@example(log("u t a! c1"))
@example(log("u t=C t a=S c1=D t c2=C o2! h t c1 o1 o1", breaks=(2, 4)))
def test_units_learned_item_by_item_are_those_of_the_slow_twin_at_every_prefix(session: Session) -> None:
    items, breaks = list(session.items), session.response_breaks
    groups = Grouping()
    for length, item in enumerate(items, start=1):
        before = list(groups.rank)
        begins = groups.starts_response(item, item.id in breaks)
        moved = groups.feed(item, item.id in breaks)
        assert len(groups) == length
        assert begins == (length - 1 in groups.response_starts)
        assert sorted(moved) == [(position, rank) for position, rank in enumerate(before) if groups.rank[position] != rank]
        _agrees(groups, items[:length], breaks)


def _agrees(groups: Grouping, items: list[Item], breaks: frozenset[str]) -> None:
    expected = twin.unit_of(items, breaks)
    found = twin.responses(items, breaks)
    answers = twin.answers(items)
    starts = {position: response[0] for response in found for position in response}
    for position, item in enumerate(items):
        unit = expected[position]
        head = groups.head[position]
        assert list(groups.members(head)) == unit
        assert (head, groups.last[head]) == (unit[0], unit[-1])
        assert groups.rank[position] == RANK[twin.category_of(items, unit)]
        assert groups.unit_protection[head] == max(groups.protection[member] for member in unit)
        held = item.category is SYSTEM or item.pinned
        assert groups.protection[position] == (HELD if held else SUMMARY if twin.is_summary(item) else FREE)
        assert groups.response[position] == starts.get(position, NONE)
        assert bool(groups.answered[position]) == (position in answers.values())
        assert (groups.kind[position] == KIND_ORPHAN) == (position in answers and answers[position] is None)
        assert (groups.kind[position] == KIND_OUTPUT) == (answers.get(position) is not None)
        assert (groups.kind[position] == KIND_CALL) == isinstance(item, FunctionCall)
        assert (groups.kind[position] == KIND_REASONING) == isinstance(item, Reasoning)
    assert groups.response_starts == [response[0] for response in found]
    assert groups.in_response == (bool(found) and found[-1][-1] == len(items) - 1)
    slow = twin.Twin(items, breaks, cast(Any, None), length=len(items))
    first = groups.frontier
    last_user = [groups.last_user] if NONE < groups.last_user < first else []
    assert {*last_user, *range(first, len(items))} == slow.frontier()


@given(sessions(max_steps=12))
def test_the_functions_over_whole_sessions_equal_the_twin(session: Session) -> None:
    items, breaks = list(session.items), session.response_breaks
    slow = twin.unit_of(items, breaks)
    heads = [position for position in range(len(items)) if slow[position][0] == position]
    assert [list(unit.positions) for unit in units(session)] == [slow[head] for head in heads]
    assert [unit.category for unit in units(session)] == [twin.category_of(items, slow[head]) for head in heads]
    found = twin.responses(items, breaks)
    ends_in_one = bool(found) and found[-1][-1] == len(items) - 1
    assert request_points(session) == [response[0] for response in found] + ([] if ends_in_one else [len(items)])
    assert set(frontier(session)) == twin.Twin(items, breaks, cast(Any, None), length=len(items)).frontier()
    assert frontier(session) == sorted(frontier(session))


class Counted(bytearray):
    """Kinds that count how often they are looked up."""

    reads = 0

    def __getitem__(self, key: Any) -> Any:
        self.reads += 1
        return super().__getitem__(key)


def test_items_before_the_first_call_are_visited_once_and_not_at_every_call() -> None:
    groups = Grouping()
    kinds = groups.kind = Counted()
    for item in [_item(word) for word in ("t", "a") * 500] + [_item(f"c{number}") for number in range(500)]:
        groups.feed(item)
    assert len(list(groups.members(0))) == 1_000
    assert kinds.reads <= 2_000
