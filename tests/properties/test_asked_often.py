"""Guarantee: twin, of a manager that is asked often: in logs that are over their budget, whatever a trim takes."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session import FunctionCall, FunctionCallOutput, Message, MessageCategory, Reasoning, Session, Usage
from session.items import AgentConfigUpdate, AgentHandoff
from tests.support.counting import Letters

TEXTS = st.sampled_from(["", "a" * 4, "b" * 40, "line\n" * 30, "x" * 400])
RARE = ("user", "system", "context", "pinned", "handoff", "config", "answer", "calls", "thought", "orphan")
STEPS = st.sampled_from([*("output",) * 8, *RARE])


@st.composite
def logs(draw: st.DrawFn) -> list[Any]:
    """Turns with many calls: some are answered late, some never."""
    items: list[Any] = []
    waiting: list[str] = []
    for number in range(draw(st.integers(4, 30))):
        match draw(STEPS):
            case "output" if waiting:
                call = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
                items.append(FunctionCallOutput("f", draw(TEXTS), call, pinned=draw(st.integers(0, 9)) == 0))
            case "orphan":
                items.append(FunctionCallOutput("f", "late", "nobody"))
            case "answer":
                reported = draw(st.none() | st.integers(1, 3_000))
                usage = None if reported is None else Usage(input_tokens=reported, output_tokens=draw(st.integers(0, 40)))
                items.append(Message("assistant", draw(TEXTS) or "yes", usage=usage))
            case "thought":
                items.append(Reasoning(draw(TEXTS), "sealed"))
            case "user" | "output":
                items.append(Message("user", draw(TEXTS) or "go"))
            case "system":
                items.append(Message("system", draw(TEXTS)))
            case "context":
                items.append(Message("user", draw(TEXTS), category=MessageCategory.CONTEXT))
            case "pinned":
                items.append(Message("user", draw(TEXTS) or "keep", pinned=True))
            case "handoff":
                items.append(AgentHandoff("b", "a"))
            case "config":
                items.append(AgentConfigUpdate(draw(st.sampled_from(["x", "y"]))))
            case _:
                calls = [f"c{number}.{one}" for one in range(draw(st.integers(1, 6)))]
                items += [FunctionCall("f", draw(st.sampled_from(["{}", '{"a": "' + "b" * 60 + '"}'])), call) for call in calls]
                waiting += calls
    return items


@given(
    logs(),
    st.integers(30, 1_500),
    st.sampled_from(["gpt-4o", "claude-sonnet-5-5"]),
    st.sampled_from([(1.0, 0.65), (1.0, 1.0), (0.5, 0.5), (0.9, 0.3)]),
    st.integers(0, 3),
)
def test_a_view_is_the_same_however_often_it_was_asked_for(
    items: list[Any], budget: int, model: str, ratios: tuple[float, float], seldom: int
) -> None:
    """twin: with constant policy and counts, the incremental fold equals the plain from-scratch one at every prefix, whenever it
    was called."""

    def manager() -> ContextWindowManager:
        window = ContextWindow(max_tokens=budget, trigger_ratio=ratios[0], target_ratio=ratios[1])
        return ContextWindowManager(model, token_counter=Letters(), context_window=window)

    kept, session = manager(), Session(id="s")
    for number, item in enumerate(items):
        session.append(item)
        if seldom and number % (seldom + 1):
            continue
        view, plan = kept.process_session(session), kept.plan_session(session)
        cold = manager()
        assert list(view.items) == list(cold.process_session(session).items)
        assert view.response_breaks == cold.process_session(session).response_breaks
        assert plan == cold.plan_session(session)
        assert kept.get_token_usage() == cold.get_token_usage()
        event(f"over budget: {plan.over_budget}")
