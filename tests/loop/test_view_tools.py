"""Tools with which a model says what it still needs, and what their wishes do to its views."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import (
    Action,
    Compaction,
    ContextWindow,
    ContextWindowManager,
    FunctionCall,
    FunctionCallOutput,
    Session,
    ToolRule,
    run_turn,
)
from context_window.decision.tool_rules import KEEP, RELEASE
from context_window.view_tools import compaction_wish, view_tools
from session.removed import short_id
from tests.support.compacting import SHORT
from tests.support.engine import Engine
from tests.support.strategies import limits, sessions
from tests.support.stubs import AnthropicStub, Call, Say
from tests.support.stubs.clients import anthropic_client
from tests.support.twin import cost, fold


@given(st.data())
def test_no_wish_breaks_a_guarantee(data: st.DataObject) -> None:
    """pin and release, within the same guarantees: a view with wishes is the slow form's, and fits as one without them does"""
    log = Session(id="s")
    for item in data.draw(sessions(max_steps=16)).items:
        log.append(replace(item, arguments=json.dumps({"path": f"f{len(log) % 4}"})) if isinstance(item, FunctionCall) else item)
        outputs = [item for item in log.items if isinstance(item, FunctionCallOutput)]
        if isinstance(item, FunctionCallOutput) and data.draw(st.booleans()):
            what = data.draw(st.sampled_from([*(short_id(output.id) for output in outputs), "f0", "f1", "f2", "f3", "none"]))
            name = data.draw(st.sampled_from((KEEP, RELEASE)))
            call = FunctionCall(name, json.dumps({"what": what}), f"w{len(log)}", id=f"wish{len(log)}")
            log.append(call)
            log.append(FunctionCallOutput(name, "Noted.", call.call_id, is_error=data.draw(st.integers(0, 9)) == 9, id=f"noted{len(log)}"))
    bounds = data.draw(limits(sum(map(cost, log.items))))
    bounds = replace(bounds, tool_rules=bounds.tool_rules or {"none": ToolRule()})
    outcome, twin = Engine(log, bounds).process(log), fold(log, bounds)
    assert list(outcome.view.items) == twin.view()
    assert outcome.total == twin.total()
    event(f"kept: {any(twin.kept(position) and twin.wish(position) == KEEP for position in range(len(log)))}")


def files(count: int) -> Session:
    log = Session()
    log.add_message("user", "Look at the files.")
    for number in range(count):
        call = log.add_function_call("read_file", {"path": f"src/f{number}.py"})
        log.add_function_output("read_file", f"line of {number} " * 90, call.call_id)
    return log


def wish(log: Session, name: str, what: str) -> None:
    call = log.add_function_call(name, {"what": what})
    log.add_function_output(name, "Noted.", call.call_id)


def test_a_kept_file_stays_and_a_released_one_goes_first() -> None:
    log = files(6)
    wish(log, KEEP, "src/f0.py")
    wish(log, RELEASE, "f4.py")
    log.add_message("user", "Go on. " * 30)
    assert cleared(log, 6_000) == ["src/f4.py"]
    assert cleared(log, 2_200) == [f"src/f{number}.py" for number in range(1, 6)]
    wish(log, RELEASE, short_id(log.items[2].id))
    log.add_message("user", "And on.")
    assert cleared(log, 4_800) == ["src/f0.py", "src/f4.py"]


def cleared(log: Session, budget: int) -> list[str]:
    """The files whose results the view has cleared."""
    manager = ContextWindowManager(token_counter=len, context_window=ContextWindow(max_tokens=budget, target_ratio=1.0))
    gone = {decision.item_id for decision in manager.plan_session(log, one_shot=True).trims if decision.action is Action.CLEAR}
    calls = {item.call_id: item for item in log.items if isinstance(item, FunctionCall)}
    outputs = [item for item in log.items if isinstance(item, FunctionCallOutput) and item.id in gone]
    return [json.loads(calls[output.call_id].arguments)["path"] for output in outputs]


def test_a_model_keeps_releases_and_compacts() -> None:
    """The tools of a turn: what they answer, and the summary that comes before the next request."""
    steps: Iterator[list[Any]] = iter(
        [
            [Call("keep_in_view", {"what": "src/f0.py"}), Call("release_from_view", {"what": "nothing"})],
            [Call("compact_conversation", {"keep": "the names of the files"})],
            [Say("Done.")],
        ]
    )

    def script(request: Mapping[str, Any]) -> list[Any]:
        return [Say(SHORT)] if "Sum up the conversation" in str(request["messages"][-1]) else next(steps)

    log = files(8)
    log.add_message("assistant", "I have looked.")
    with AnthropicStub(script) as stub, anthropic_client(stub) as client:
        from context_window import AnthropicModel

        model = AnthropicModel(client, "claude-opus-5", max_tokens=500)
        manager = ContextWindowManager("claude-opus-5", context_window=ContextWindow(max_tokens=100_000, keep_recent_turns=1))
        result = asyncio.run(run_turn(log, "Go on.", model=model, tools=view_tools(log), manager=manager))
    assert result.text == "Done."
    outputs = [item.text for item in log.items if isinstance(item, FunctionCallOutput)][8:]
    assert outputs[0] == "1 result will stay."
    assert "no result is about 'nothing'" in outputs[1]
    assert outputs[2] == "It will be summed up with the names of the files before you go on."
    asked = [request for request in stub.requests if "Sum up the conversation" in str(request["messages"][-1])]
    assert len(asked) == 1
    assert "keep this in full detail: the names of the files" in str(asked[0]["messages"][-1])
    assert [type(item) for item in log.items].count(Compaction) == 1
    assert compaction_wish(log) is None
