"""Outputs that are large for the window are shortened when they come."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, ContextWindow, ContextWindowManager, Decision, Reason, Session, Shares, ToolRule
from context_window.counting.item_tokens import Measurer
from context_window.decision.tool_rules import RECALL
from session.items import FunctionCall, FunctionCallOutput, MessageCategory
from tests.support.counting import Letters
from tests.support.engine import Engine, Limits
from tests.support.extracting import coded_sessions
from tests.support.harness import copy_of, exact, trim
from tests.support.strategic import decided, decided_by, strategies
from tests.support.strategies import limits, without_compactions
from tests.support.twin import answers, as_call, cost, responses

SHARES = Shares().exact
PARTS = st.sampled_from((None, Fraction(1, 20), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)))


def bounds_of(data: st.DataObject, tokens: int) -> Limits:
    """Limits under which large outputs are shortened, for a log with this number of tokens."""
    bounds = data.draw(limits(tokens))
    rule = data.draw(st.sampled_from(({}, {}, {"read": ToolRule(largest_output=1)}, {"bash": ToolRule(largest_output=0.3)})))
    return replace(bounds, output_part=data.draw(PARTS), tool_rules={**bounds.tool_rules, **rule})


@given(st.data())
def test_twin(data: st.DataObject) -> None:
    """outputs are shortened as the slow form, written from the prose, shortens them; the rest is decided as ever"""
    log = data.draw(coded_sessions(max_steps=8))
    strategy = data.draw(strategies())
    bounds = decided_by(strategy, bounds_of(data, sum(map(cost, log.items))))
    one_shot = data.draw(st.booleans())
    outcome = trim(log, bounds) if one_shot else Engine(log, bounds).process(log)
    twin = decided(log, exact(bounds) if one_shot else bounds, strategy, one_shot=one_shot)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()
    event(f"shortened: {any(decision.reason is Reason.LARGE_OUTPUT for decision in outcome.plan)}")


@given(st.data())
def test_a_large_output_is_small_from_its_first_request_on(data: st.DataObject) -> None:
    """an output costs at most its part of the budget in the first request that has it, unless its ends alone cost more, and stays in that
    form; what was recalled, what a rule keeps and what is not large stay whole"""
    full_log = without_compactions(data.draw(coded_sessions(max_steps=20)))
    recalls = data.draw(st.sampled_from((2, 3, 100)))
    items = [
        replace(item, name=RECALL) if isinstance(item, FunctionCall) and position % recalls == 0 else item
        for position, item in enumerate(full_log.items)
    ]
    full_log = Session(items, id="s")
    budget = 2**40
    most = data.draw(st.integers(60, 600))
    rules = data.draw(st.sampled_from(({}, {"edit": ToolRule("never")}, {"bash": ToolRule(largest_output=1)})))
    bounds = Limits(budget, budget, budget, SHARES, output_part=Fraction(most, budget), tool_rules=rules, images_max=2**40)
    log = copy_of(full_log)
    engine, final = Engine(log, bounds), dict[str, Decision]()
    for item in full_log.items:
        before = engine.process(log).plan
        log.append(item)
        if (runs := responses(list(log.items), log.response_breaks)) and runs[-1][0] == len(log) - 1:
            final |= {decision.item_id: decision for decision in before if decision.action is not Action.DROP}
        outcome = engine.process(log)
        calls = answers(list(log.items))
        for position, decision in enumerate(outcome.plan):
            output, call = log.items[position], calls.get(position)
            if not isinstance(output, FunctionCallOutput) or call is None:
                continue
            if (earlier := final.get(output.id)) is not None:
                assert (decision.action, decision.cut) == (earlier.action, earlier.cut)
                continue
            name = as_call(log.items[call]).name
            is_held = output.pinned or output.category is MessageCategory.SYSTEM
            is_whole = is_held or decision.before <= most or name == RECALL or name in rules
            smallest = Measurer(Letters()).truncated(output, 0).tokens
            assert decision.action is Action.KEEP if is_whole else decision.after <= max(most, min(smallest, decision.before))
            event(f"{'whole' if is_whole else 'shortened'}")
        assert sum(map(cost, outcome.view.items)) == sum(decision.after for decision in outcome.plan)


def test_an_error_in_a_long_output_is_in_view_and_any_line_is_one_recall_away() -> None:
    """an output of 20,000 lines is shown as its first, last and most valuable lines from its first request on; the rest is behind recall"""
    log = Session()
    log.add_message("user", "Why does tests/test_rows.py fail?")
    lines = [f"tests/test_rows.py::test_row_{number} PASSED [{number // 200} %]" for number in range(20_000)]
    lines[9_876] = "E   ParseError: no quarter in src/ledger/rows.py:218"
    call = log.add_function_call("bash", {"command": "pytest -v"})
    log.add_function_output("bash", "\n".join(lines), call.call_id)
    bare = ContextWindowManager(context_window=ContextWindow(max_tokens=10**6))
    assert bare.process_session(log).items == log.items
    with_recall = ContextWindowManager(context_window=ContextWindow(max_tokens=10**6), tools=[bare.recall_tool("anthropic").definition])
    asked = ContextWindowManager(context_window=ContextWindow(max_tokens=200_000, largest_output=0.01))
    for manager, most in ((with_recall, 100_000), (asked, 2_000)):
        view = manager.process_session(log)
        output = view.items[-1]
        assert isinstance(output, FunctionCallOutput)
        assert lines[9_876] in output.text
        assert output.text.startswith(lines[0])
        assert output.text.endswith(lines[-1])
        plan = manager.plan_session(log)
        assert plan.decisions[-1].after <= most
        assert plan.decisions[-1].reason is Reason.LARGE_OUTPUT
    tool = asked.recall_tool("anthropic")
    assert lines[12_345] in tool.handle(log, {"id": log.items[-1].id, "from_line": 12_346}).text
