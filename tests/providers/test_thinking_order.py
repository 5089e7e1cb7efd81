"""`with_thinking_in_order`: requests with thinking by budget, whose view has lost steps of the turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session
from session.providers.additions import TURN_BREAK
from session.providers.anthropic import validate_anthropic
from session.providers.anthropic.thinking_order import THINKING, with_thinking_in_order
from tests.support.stubs.answers import Call, Say, Think
from tests.support.stubs.anthropic import AnthropicStub

Json = dict[str, Any]
ENABLED = {"type": "enabled", "budget_tokens": 1_024}
OUTPUT = "".join(f"{number}: a line of the file that was read\n" for number in range(40))
READ = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


@pytest.mark.parametrize("thinks", ["always", "at first", "now and then"])
@pytest.mark.filterwarnings("ignore:The model .* is deprecated")
def test_a_long_turn_with_thinking_by_budget_is_accepted_however_often_the_model_thinks(thinks: str) -> None:
    """The view drops the first steps of the turn, among them the only thinking, and no request is refused."""
    steps = 0

    def script(_: Mapping[str, Any]) -> list[Any]:
        nonlocal steps
        steps += 1
        thought = {"always": True, "at first": steps == 1, "now and then": steps % 5 == 1}[thinks]
        return [*([Think("hm")] if thought else []), Say(f"Reading {steps}. " + "More words. " * 60), Call("read", {"path": f"{steps}.py"})]

    manager = ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(max_tokens=3_000))
    session = Session()
    session.add_message("user", "Read all files.")
    with AnthropicStub(script) as stub, anthropic.Anthropic(base_url=stub.url, api_key="k", max_retries=0) as client:
        for _ in range(20):
            request = manager.anthropic_request(session, model="claude-sonnet-4-5", max_tokens=2_000, tools=[READ], thinking=ENABLED)
            assert validate_anthropic(request) == []
            answer = client.messages.create(**request)
            session.add_response(answer)
            session.add_function_output("read", OUTPUT, answer.content[-1].id)
    assert len(json.dumps(stub.requests[-1])) < 10 * len(OUTPUT)  # of twenty outputs
    if thinks == "at first":
        assert TURN_BREAK in json.dumps(stub.requests[-1])


def test_without_a_break_such_a_turn_is_refused() -> None:
    messages = [_user("Go."), _response(1, thinks=False), _results(1)]
    assert validate_anthropic({"messages": messages, "thinking": ENABLED}) != []
    broken = with_thinking_in_order(messages, ENABLED)
    assert broken[-1]["content"][-1] == {"type": "text", "text": TURN_BREAK}
    assert validate_anthropic({"messages": broken, "thinking": ENABLED}) == []


def test_the_break_stays_where_it_was_once_the_model_has_thought() -> None:
    messages = [_user("Go."), _response(1, thinks=False), _results(1)]
    first = with_thinking_in_order(messages, ENABLED)
    later = with_thinking_in_order([*messages, _response(2, thinks=True), _results(2), _response(3, thinks=False), _results(3)], ENABLED)
    assert later[: len(first)] == first


blocks = st.sampled_from(
    [
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "tool_use", "id": "c", "name": "read", "input": {}},
        {"type": "tool_result", "tool_use_id": "c", "content": "r"},
    ]
)
contents = st.just("text") | st.lists(blocks, max_size=4)
any_messages = st.lists(
    st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(["user", "assistant"]), contents)
)


@given(any_messages)
def test_thinking_is_put_in_the_order_of_the_rules(messages: list[Json]) -> None:
    assert with_thinking_in_order(messages, ENABLED) == _slowly_in_order(messages)


def _slowly_in_order(messages: list[Json]) -> list[Json]:
    """Put thinking in order, rule by rule."""
    result = []
    for message in messages:
        blocks = _blocks(message)
        thinks = [block["type"] in THINKING for block in blocks]
        if True in thinks and not thinks[0]:
            begin = thinks.index(True)
            end = begin + [*thinks[begin:], False].index(False)
            blocks = [*blocks[begin:end], *blocks[:begin], *blocks[end:]]
        result.append({**message, "content": blocks} if blocks else message)
    last_text = [index for index, message in enumerate(result) if message["role"] == "user" and _has_text(message)]
    turn = range(last_text[-1] + 1 if last_text else 0, len(result))
    responses = [index for index in turn if result[index]["role"] == "assistant" and _blocks(result[index])]
    thoughts = [index for index in responses if _blocks(result[index])[0]["type"] in THINKING]
    has_calls = any(block["type"] == "tool_use" for index in responses for block in _blocks(result[index]))
    if has_calls and thoughts[:1] != responses[:1]:
        after = (thoughts[0] if thoughts else len(result)) - 1
        if result[after]["role"] == "user":
            result[after] = {**result[after], "content": [*_blocks(result[after]), {"type": "text", "text": TURN_BREAK}]}
    return result


def _has_text(message: Json) -> bool:
    return isinstance(message["content"], str) or any(block["type"] != "tool_result" for block in message["content"])


def _blocks(message: Json) -> list[Json]:
    return message["content"] if isinstance(message["content"], list) else []


turns = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=6)


@given(turns)
def test_every_request_with_thinking_by_budget_is_valid(steps: list[tuple[bool, bool, bool]]) -> None:
    """Whatever thinking and text a view has left of a turn: the request begins its messages and its turn with thinking, loses no block and
    changes none of the caller's messages."""
    messages = [_user("Go.")]
    for number, (thinks, says, merged) in enumerate(steps):
        blocks = _response(number, thinks=thinks)["content"]
        content = [*([{"type": "text", "text": "earlier"}] if merged else []), *blocks[: 1 if thinks else 0]]
        content += [*([{"type": "text", "text": "now"}] if says else []), blocks[-1]]
        messages += [{"role": "assistant", "content": content}, _results(number)]
    copy = [{**message, "content": list(message["content"])} for message in messages]
    sent = with_thinking_in_order(messages, ENABLED)
    assert messages == copy
    assert validate_anthropic({"messages": sent, "thinking": ENABLED}) == []
    assert with_thinking_in_order(messages, {"type": "adaptive"}) == messages
    kept = [block for message in sent for block in message["content"] if block != {"type": "text", "text": TURN_BREAK}]
    assert sorted(map(repr, kept)) == sorted(repr(block) for message in messages for block in message["content"])


def _user(text: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def _response(number: int, *, thinks: bool) -> Json:
    thought = [{"type": "thinking", "thinking": "hm", "signature": "s"}] if thinks else []
    return {"role": "assistant", "content": [*thought, {"type": "tool_use", "id": f"c{number}", "name": "read", "input": {}}]}


def _results(number: int) -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": "x"}]}
