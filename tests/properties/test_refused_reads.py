"""What an assistant refuses to show again is put back, if the view lacks it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import Action, ContextWindow, ContextWindowManager, Extract, FunctionCall, FunctionCallOutput, Session
from session.parts import Text
from tests.support.engine import Engine
from tests.support.strategic import decided, decided_by, strategies
from tests.support.strategies import chosen_limits, sessions
from tests.support.twin import answers, cost, fold

NOTICES = (
    "File unchanged since last read. The content from the earlier Read tool_result in this conversation is still current.",
    "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead.",
)


def with_notices(data: st.DataObject, log: Session) -> Session:
    """The log with reads of three files. Where a file was read before, the assistant may refuse to show it."""
    items = [
        replace(item, name="Read", arguments=json.dumps({"file_path": f"f{position % 3}"})) if isinstance(item, FunctionCall) else item
        for position, item in enumerate(log.items)
    ]
    seen: set[str] = set()
    for position, call in answers(items).items():
        output = items[position]
        made = None if call is None else items[call]
        assert isinstance(output, FunctionCallOutput)
        if isinstance(made, FunctionCall):
            if made.arguments in seen and data.draw(st.integers(0, 2)):
                items[position] = replace(output, output=(Text(data.draw(st.sampled_from(NOTICES))),))
            seen.add(made.arguments)
    session = Session(items, id="s")
    session.restore_seams(log.response_breaks, 0)
    return session


@given(st.data())
def test_twin(data: st.DataObject) -> None:
    """the engine puts back what the slow form does"""
    log = with_notices(data, data.draw(sessions(max_steps=16)))
    bounds = data.draw(chosen_limits(sum(map(cost, log.items))))
    outcome, twin = Engine(log, bounds).process(log), fold(log, bounds)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()
    event(f"put back: {bool(twin.restored)}")


@given(st.data())
def test_twin_with_a_strategy(data: st.DataObject) -> None:
    """the same, whatever strategy trims, and with outputs that are shortened when they come"""
    log = with_notices(data, data.draw(sessions(max_steps=10)))
    strategy = data.draw(strategies())
    bounds = decided_by(strategy, data.draw(chosen_limits(sum(map(cost, log.items)))))
    bounds = replace(bounds, output_part=data.draw(st.sampled_from((None, Fraction(1, 4)))))
    outcome, twin = Engine(log, bounds).process(log), decided(log, bounds, strategy)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()


def test_no_read_is_blind() -> None:
    """in each request in which the assistant refuses a second read, the view has the file's text; once"""
    texts = {f"src/f{number}.py": "\n".join(f"value_{number}_{line} = {line}" for line in range(60)) for number in range(4)}
    extracts = ContextWindow(max_tokens=6_000, strategy=Extract())
    for window in (
        ContextWindow(max_tokens=6_000),
        extracts,
        replace(extracts, largest_output=0.9),
        replace(extracts, largest_output=0.15),
    ):
        is_shortened = window.largest_output == 0.15
        manager, log, restored = ContextWindowManager(token_counter=len, context_window=window), Session(), 0
        log.add_message("user", "Mend the files.")
        read: set[str] = set()
        seen: set[str] = set()
        for step in range(40):
            path = f"src/f{step * step % 4}.py"
            call = log.add_function_call("Read", {"file_path": path})
            log.add_function_output("Read", NOTICES[step % 2] if path in read else texts[path], call.call_id)
            read.add(path)
            view = manager.process_session(log)
            shown = [item.text for item in view.items if isinstance(item, FunctionCallOutput)]
            assert texts[path] in shown or (is_shortened and path not in seen)
            seen.add(path)
            plan = manager.plan_session(log)
            restored += sum(decision.action is Action.RESTORE for decision in plan)
            assert shown.count(texts[path]) == 1 or is_shortened
            log.add_message("assistant", f"I have read {path}. " + "Next. " * 20)
            log.add_message("user", "Go on. " * 10)
        assert restored > 3
