"""A plan told, in sums, runs, one line, a text and JSON values; and carried out. How plans are come by is for `tests/properties/`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import Action, ContextWindow, ContextWindowManager, Decision, Plan, Reason
from session.items import FunctionCall, FunctionCallOutput, Message, MessageCategory
from session.parts import Document, Image, Text
from session.session import Session
from tests.support.engine import (
    ActionTotals,
    Cut,
    Run,
    action_totals,
    changed,
    cleared,
    goal_of,
    headline,
    image_placeholder,
    output_placeholder,
    runs,
)

SYSTEM, CONTEXT, DIALOG, OUTPUT = MessageCategory


def decision(
    item_id: str, action: Action, before: int, after: int, *, category: MessageCategory = OUTPUT, what: str = "Read output", **more: object
) -> Decision:
    reason = {Action.KEEP: Reason.FITS, Action.TRUNCATE: Reason.LAST_RESORT, Action.REPLACE_IMAGES: Reason.TOO_MANY_IMAGES}
    return Decision(item_id, what, category, action, reason.get(action, Reason.OVER_BUDGET), before, after, **more)  # type: ignore[arg-type]


PLAN = Plan(
    (
        decision("s", Action.KEEP, 10, 10, category=SYSTEM, what="system message"),
        decision("a", Action.CLEAR, 900, 20),
        decision("b", Action.KEEP, 5, 5, category=DIALOG, what="user message"),
        decision("c", Action.CLEAR, 700, 20),
        decision("d", Action.DROP, 40, 0, category=DIALOG, what="reasoning"),
        decision("e", Action.DROP, 60, 0, category=DIALOG, what="reasoning"),
        decision("f", Action.REPLACE_IMAGES, 300, 50, category=CONTEXT, what="user message", images=(1, 2)),
        decision("g", Action.TRUNCATE, 1_000, 400, cut=Cut(150, 100, 400)),
    ),
    budget=500,
    overhead_before=7,
    overhead=27,
)


def test_what_a_plan_comes_to() -> None:
    assert (PLAN.before, PLAN.after, PLAN.freed, PLAN.over_budget) == (3_022, 532, 2_490, True)
    assert [entry.item_id for entry in PLAN.changes] == list("acdefg")
    assert [entry.item_id for entry in PLAN.culprits] == list("gfacsb")
    assert (len(PLAN), [entry.item_id for entry in PLAN]) == (8, list("sabcdefg"))
    exactly = replace(PLAN, budget=532)
    assert not exactly.over_budget


def test_items_that_no_request_contains_are_in_no_total() -> None:
    """A summary in the log replaces them, or they answer no call. With or without a trim, they are not sent."""
    replaced, orphan = (
        replace(decision(name, Action.DROP, tokens, 0), reason=reason)
        for name, tokens, reason in (("x", 5_000, Reason.COMPACTED), ("y", 300, Reason.ORPHAN))
    )
    plan = replace(PLAN, decisions=(replaced, *PLAN.decisions, orphan))
    assert (plan.before, plan.after, plan.freed) == (PLAN.before, PLAN.after, PLAN.freed)
    assert ([entry.item_id for entry in plan.never_sent], plan.trims) == (["x", "y"], PLAN.changes)
    assert action_totals(plan) == action_totals(PLAN)
    assert [run.kinds for run in runs(plan)] == [run.kinds for run in runs(PLAN)]
    assert str(plan).splitlines()[:3] == [
        str(PLAN).splitlines()[0],
        "  1 item (5,000 tokens) replaced by a summary in the log",
        "  1 tool output (300 tokens) has no call in the log",
    ]
    assert (plan.to_dict()["never_sent"], plan.to_dict()["never_sent_tokens"]) == (2, 5_300)


def test_tallies_go_from_the_gravest_action_and_the_lowest_category() -> None:
    assert action_totals(PLAN) == [
        ActionTotals(Action.DROP, DIALOG, 2, 100, 0),
        ActionTotals(Action.CLEAR, OUTPUT, 2, 1_600, 40),
        ActionTotals(Action.TRUNCATE, OUTPUT, 1, 1_000, 400),
        ActionTotals(Action.REPLACE_IMAGES, CONTEXT, 1, 300, 50),
        ActionTotals(Action.KEEP, DIALOG, 1, 5, 5),
        ActionTotals(Action.KEEP, SYSTEM, 1, 10, 10),
    ]
    assert [entry.freed for entry in action_totals(PLAN)] == [100, 1_560, 600, 250, 0, 0]


def test_like_changes_are_one_run_across_what_is_kept() -> None:
    assert runs(PLAN) == [
        Run(Action.CLEAR, OUTPUT, Reason.OVER_BUDGET, 2, 4, (("Read output", 2),), 1_600, 40),
        Run(Action.DROP, DIALOG, Reason.OVER_BUDGET, 5, 6, (("reasoning", 2),), 100, 0),
        Run(Action.REPLACE_IMAGES, CONTEXT, Reason.TOO_MANY_IMAGES, 7, 7, (("user message", 1),), 300, 50),
        Run(Action.TRUNCATE, OUTPUT, Reason.LAST_RESORT, 8, 8, (("Read output", 1),), 1_000, 400),
    ]
    assert runs(Plan(PLAN.decisions[:1], budget=1, overhead_before=0, overhead=0)) == []


@pytest.mark.parametrize("difference", [{"action": Action.DROP}, {"category": DIALOG}, {"reason": Reason.OVER_SHARE}])
def test_a_run_ends_where_the_action_the_category_or_the_reason_is_another(difference: dict[str, object]) -> None:
    first = decision("a", Action.CLEAR, 9, 1)
    other = replace(first, item_id="b", **difference)  # type: ignore[arg-type]
    assert [(run.first, run.last) for run in runs(replace(PLAN, decisions=(first, first, other)))] == [(1, 2), (3, 3)]


@pytest.mark.parametrize(
    ("kinds", "what"),
    [
        ((("Read output", 1),), "Read output"),
        ((("Read output", 1_200),), "1,200 Read outputs"),
        ((("Read output", 2), ("Bash output", 1)), "2 Read outputs, 1 Bash output"),
        ((("reasoning", 3), ("summary", 2)), "3 reasoning, 2 summaries"),
        ((("a", 4), ("b", 3), ("c", 2), ("d", 1), ("e", 1)), "4 as, 3 bs, 2 cs, 2 more"),
        ((("a\nb", 1),), "a b"),
    ],
)
def test_a_run_names_its_three_most_frequent_kinds(kinds: tuple[tuple[str, int], ...], what: str) -> None:
    run = Run(Action.CLEAR, OUTPUT, Reason.OVER_SHARE, 1, 9, kinds, 10, 5)
    assert (run.what, run.text) == (what, f"cleared {what}")
    assert replace(run, action=Action.REPLACE_IMAGES).text == f"images replaced in {what}"
    assert replace(run, action=Action.REPLACE_REFUSED).text == f"refused parts replaced in {what}"
    assert run.items == sum(count for _, count in kinds)


def test_kinds_of_a_run_come_most_frequent_first() -> None:
    names = ("Bash output", "Read output", "Read output")
    (run,) = runs(
        replace(PLAN, decisions=tuple(decision(str(position), Action.CLEAR, 9, 1, what=name) for position, name in enumerate(names)))
    )
    assert run.kinds == (("Read output", 2), ("Bash output", 1))


def test_places_are_those_of_the_log_counted_from_one() -> None:
    run = Run(Action.CLEAR, OUTPUT, Reason.OVER_SHARE, 1_000, 1_000, (("a", 1),), 10, 5)
    assert run.places == "1,000"
    assert replace(run, last=2_000).places == "1,000-2,000"


def test_the_text() -> None:
    assert str(PLAN).splitlines() == [
        "6 of 8 items changed (2 dropped, 2 cleared, 1 truncated, 1 with images replaced): 3,022 -> 532 tokens of 500",
        "  items 2-4: cleared 2 Read outputs (over budget): 1,600 -> 40 tokens",
        "  items 5-6: dropped 2 reasoning (over budget): 100 -> 0 tokens",
        "  item 7: images replaced in user message (newer images take its place): 300 -> 50 tokens",
        "  item 8: truncated Read output (the rest of the request leaves too little room): 1,000 -> 400 tokens",
        "  over budget by 32 tokens; the largest of what is kept:",
        "    Read output g: 400 tokens (the rest of the request leaves too little room)",
        "    user message f: 50 tokens (newer images take its place)",
        "    Read output a: 20 tokens (over budget)",
    ]
    assert headline(PLAN) == str(PLAN).splitlines()[0]


def test_the_text_of_a_plan_that_changes_nothing() -> None:
    plan = Plan(
        tuple(decision(f"i{position}", Action.KEEP, 2, 2) for position in range(1_000)), budget=3_000, overhead_before=0, overhead=0
    )
    assert str(plan) == "none of 1,000 items changed: 2,000 tokens of 3,000"


def test_names_from_outside_cannot_act_on_a_terminal() -> None:
    told = str(replace(PLAN, decisions=(decision("i\x1b[2J", Action.TRUNCATE, 900, 800, what="\x1b[31mRead output"),)))
    assert "\x1b" not in told
    assert "Read output" in told


def test_values_are_json_and_hold_every_decision() -> None:
    plan = replace(PLAN, decisions=(PLAN.decisions[6], PLAN.decisions[7]))
    assert json.loads(json.dumps(plan.to_dict())) == {
        "budget": 500,
        "definitions": [],
        "before": 1_307,
        "after": 477,
        "freed": 830,
        "over_budget": False,
        "protected": 0,
        "smallest_budget": 100,
        "overhead_before": 7,
        "overhead": 27,
        "items": 2,
        "changed": 2,
        "state_note": 0,
        "never_sent": 0,
        "never_sent_tokens": 0,
        "decisions": [
            {
                "id": "f",
                "what": "user message",
                "category": "CONTEXT",
                "action": "replace images",
                "reason": "newer images take its place",
                "before": 300,
                "after": 50,
                "images": [1, 2],
                "refused": [],
                "superseded_by": None,
                "cut": None,
                "restores": None,
                "lines": None,
            },
            {
                "id": "g",
                "what": "Read output",
                "category": "SYSTEM_OUTPUT",
                "action": "truncate",
                "reason": "the rest of the request leaves too little room",
                "before": 1_000,
                "after": 400,
                "images": [],
                "refused": [],
                "superseded_by": None,
                "cut": {"head": 150, "tail": 100, "between": []},
                "restores": None,
                "lines": None,
            },
        ],
    }


# Carrying it out

IMAGE = Image(url="https://example.org/a.png", width=30, height=20)


def test_a_cleared_output_says_what_it_was_and_that_it_is_marked() -> None:
    output = FunctionCallOutput("Read", ("x" * 1_234, "yy"), "c", id="o", extra={"mine": 1})
    done = cleared(output)
    assert done.output == (Text("[Read output taken out: 1,236 characters; recall id o]"),)
    assert done.extra == {"mine": 1, "context_window": "cleared"}
    assert replace(done, output=output.output, extra=output.extra) == output


@pytest.mark.parametrize(
    ("content", "size"),
    [
        ("", "0 characters"),
        (("abc", IMAGE), "3 characters, 1 image"),
        ((IMAGE, IMAGE, Document(text="d"), Document(text="e")), "2 images, 2 documents"),
        ((Document(text="d"),), "1 document"),
    ],
)
def test_a_placeholder_tells_the_size_of_what_it_stands_for(content: object, size: str) -> None:
    output = FunctionCallOutput("t", content, "c", id="o")  # type: ignore[arg-type]
    assert output_placeholder(output) == f"[t output taken out: {size}; recall id o]"


@pytest.mark.parametrize(
    ("image", "told"),
    [
        (IMAGE, "[image 30x20 https://example.org/a.png taken out; recall id m#1]"),
        (Image(path="shots/1.png"), "[image shots/1.png taken out; recall id m#1]"),
        (Image(path="p", width=1, height=2), "[image 1x2 p taken out; recall id m#1]"),
        (Image(file_id="f", width=3), "[image taken out; recall id m#1]"),
        (Image(file_id="f", height=3), "[image taken out; recall id m#1]"),
    ],
)
def test_an_image_placeholder_tells_its_size_and_where_it_was(image: Image, told: str) -> None:
    assert image_placeholder(Message("user", ("look", image), id="m"), 1, image) == told


def test_images_are_replaced_where_they_stand() -> None:
    message = Message("user", ("a", IMAGE, "b", IMAGE), id="m", extra={"mine": 1})
    done = changed(message, (1,), None)
    assert isinstance(done, Message)
    assert done.content == (Text("a"), Text(image_placeholder(message, 1, IMAGE)), Text("b"), IMAGE)
    assert done.extra == {"mine": 1, "context_window": "images replaced"}
    assert changed(message, (0,), None).extra["context_window"] == "images replaced"  # a text is no image


def test_a_cut_takes_the_middle_of_all_texts_together() -> None:
    output = FunctionCallOutput("Read", ("abcdef", IMAGE, "ghijkl"), "c", id="o", extra={"mine": 1})
    done = changed(output, (1,), Cut(2, 3, 99))
    assert isinstance(done, FunctionCallOutput)
    marker = "\n[8 characters taken out here; recall id o]\n"
    assert done.output == (Text(f"ab{marker}jkl"), Text(image_placeholder(output, 1, IMAGE)))
    assert (done.extra["mine"], done.extra["context_window"]) == (1, "truncated")


# Limits


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 2 * 10**6))
def test_a_goal_is_between_the_target_and_what_calls_for_the_trim(limit: int, part: int, protected: int) -> None:
    target = limit * part // 10**6
    goal = goal_of(limit, target, protected)
    assert target <= goal <= limit
    assert goal <= goal_of(limit, target, protected + 1) or protected + 1 >= limit


def test_where_little_may_go_only_what_must_goes() -> None:
    """A system prompt and the last turn fill most of the budget: no target that cannot be reached empties the rest."""
    session = Session([Message("system", "s" * 596)])
    for turn in range(16):
        session.append(FunctionCall("read", "{}", f"c{turn}"))
        session.append(FunctionCallOutput("read", "o" * 41, f"c{turn}"))
        session.append(Message("user", "more"))
    plan = ContextWindowManager(token_counter=len, context_window=ContextWindow(max_tokens=900)).plan_session(session)
    assert plan.after <= 900
    assert sum(entry.action is Action.KEEP for entry in plan) == 13  # down to 585 it were the 4 that are protected


def test_a_late_answer_changes_the_decision_about_its_call_long_after_that_has_left_the_frontier() -> None:
    manager, session = ContextWindowManager(context_window=ContextWindow(max_tokens=10_000), token_counter=len), Session()
    session.add_message("user", "go")
    call = session.add_function_call("read", {})
    for number in range(3):
        session.add_message("user", f"question {number}")
        session.add_message("assistant", "answer")
        plan = manager.plan_session(session)
    assert plan.decisions[1].reason is Reason.WAITING
    session.append(FunctionCallOutput("read", "content", call.call_id, pinned=True))
    session.add_message("user", "another question")
    session.add_message("assistant", "answer")
    later = manager.plan_session(session)
    assert later.decisions[1].reason is Reason.PINNED
    assert later.decisions[3:5] == plan.decisions[3:5]
    assert later.overhead_before < plan.overhead_before  # no converter has to answer the call
    assert later == ContextWindowManager(context_window=ContextWindow(max_tokens=10_000), token_counter=len).plan_session(session)
