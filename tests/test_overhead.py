"""What providers write around the parts of a request: frames, messages, calls, tools; and that a user's own counter sees none of it."""

from __future__ import annotations

import json
import pickle
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.choice import choose_counter
from context_window.counting import CallableCounter, CharacterCounter, TiktokenCounter, TokenCounter
from context_window.counting.framing import (
    CLAUDE,
    CLAUDE_HIGH,
    GEMINI_2,
    GEMINI_3,
    OPENAI_4,
    OPENAI_5,
    PLAIN,
    Framing,
    framing_of,
    signature_tokens,
)
from context_window.counting.measure import Measurer
from context_window.counting.overhead import request_overhead
from context_window.counting.tool_types import DEPTH, namespace
from context_window.models import describe_model
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message
from tests.support.counting import Letters

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where.\nA name."},
        "unit": {"enum": ["c", "f"], "default": "c"},
        "days": {"type": ["integer", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        "more": {"anyOf": [{"type": "boolean"}, {}]},
    },
    "required": ["city"],
}
WRITTEN = """\
# Tools

## functions

namespace functions {

// The weather.
type look = (_: {
// Where.
// A name.
city: string,
unit?: "c" | "f", // default: "c"
days?: number | null,
tags?: string[],
place?: {
x: number,
},
more?: boolean | any,
}) => any;

type stop = () => any;

} // namespace functions"""
FLAT = {"type": "function", "name": "look", "description": "The weather.", "parameters": SCHEMA}
NESTED = {"type": "function", "function": {"name": "look", "description": "The weather.", "parameters": SCHEMA}}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(("type", "properties", "items", "anyOf", "enum", "required", "default", "description", "x")), inner, max_size=5
        )
    ),
    max_leaves=30,
)


def counter_of(model: str) -> TokenCounter:
    return choose_counter(None, describe_model(model)).counter


@pytest.mark.parametrize(
    ("model", "framing"),
    [
        ("gpt-4o", OPENAI_4),
        ("gpt-4o-mini", OPENAI_4),
        ("gpt-4.1", OPENAI_4),
        ("gpt-4.1-mini", OPENAI_4),
        ("gpt-4.1-nano", OPENAI_4),
        ("gpt-5", OPENAI_5),
        ("gpt-5-mini", OPENAI_5),
        ("gpt-5-nano", OPENAI_5),
        ("gpt-5.4", OPENAI_5),
        ("gpt-5.6", OPENAI_5),
        ("o3", OPENAI_5),
        ("o4-mini", OPENAI_5),
        ("claude-sonnet-4-5", CLAUDE),
        ("claude-3-5-haiku-latest", CLAUDE),
        ("claude-opus-4-7", CLAUDE_HIGH),
        ("claude-opus-4-8", CLAUDE_HIGH),
        ("gemini-2.5-flash", GEMINI_2),
        ("gemini-3-pro-preview", GEMINI_3),
        ("some-other-model", PLAIN),
    ],
)
def test_the_counter_of_a_model_tells_whose_framing_holds(model: str, framing: Framing) -> None:
    counter = counter_of(model)
    assert framing_of(counter) == framing
    assert framing_of(pickle.loads(pickle.dumps(counter))) == framing


@pytest.mark.parametrize("counter", [Letters(), CallableCounter(len, describe_model("gpt-5").image_rule), CharacterCounter()])
def test_with_ones_own_counter_nothing_is_framed(counter: TokenCounter) -> None:
    assert framing_of(counter) == PLAIN
    tool = json.dumps(NESTED)
    overhead = request_overhead(counter, [tool], 7, "claude-sonnet-4-5")
    assert (overhead.frame, overhead.tools) == (7, counter.count_text(tool))


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        # what the providers report of one text, of a system prompt with it, and of three turns, beside the texts' own tokens
        ("gpt-4o", (7, 11, 15)),
        ("gpt-5", (6, 10, 16)),
        ("claude-sonnet-4-5", (7, 7, 13)),
        ("claude-opus-4-7", (11, 11, 17)),
        ("claude-opus-4-8", (6, 6, 12)),
    ],
)
def test_messages_cost_what_providers_report_beside_their_texts(model: str, tokens: tuple[int, int, int]) -> None:
    one, two, three = Message("user", "hello"), Message("system", "hello"), Message("assistant", "hello")
    text = counter_of(model).count_text("hello")
    for items, beside in zip(([one], [two, one], [one, three, Message("user", "hello")]), tokens, strict=True):
        session = Session(items)
        stats = ContextWindowManager(model, context_window=ContextWindow(max_tokens=10_000)).analyze_session(session)
        assert stats["total_tokens"] - text * len(items) == beside
        assert stats["total_tokens"] == stats["overhead_tokens"] + sum(stats["per_category"].values())


@pytest.mark.parametrize(
    ("item", "tokens"),
    [
        (FunctionCall("ab", "{}", "c"), 22 + 1),
        (FunctionCall("ab", '{"cd": "text"}', "c"), 22 + 1 + 12 + 3),
        (FunctionCall("ab", "[]", "c"), 22 + 1 + 1),
        (FunctionCallOutput("ab", "text", "c"), 22 + 2),
        (Compaction("text"), 3 + 5),  # its header is sent with it
        (FunctionCall("ab", "{}", "c", metadata={"thought_signature": "E" * 50}), 22 + 1),
    ],
)
def test_calls_outputs_and_summaries_cost_their_frames(item: Item, tokens: int) -> None:
    counter = TiktokenCounter(describe_model("claude-sonnet-4-5").image_rule)
    assert Measurer(counter).measured(item).tokens == tokens


def test_gemini_3_charges_for_signatures_of_calls_that_its_api_gave() -> None:
    measurer = Measurer(counter_of("gemini-3-pro-preview"))
    plain = measurer.measured(FunctionCall("ab", "{}", "c")).tokens
    for signature, more in (("E" * 50, 10), ("C" * 50, 0), ("", 0), (7, 0), (None, 0)):
        call = FunctionCall("ab", "{}", "c", metadata={"thought_signature": signature})
        assert measurer.measured(call).tokens == plain + more
    assert signature_tokens("E" * 800) == 170


def test_functions_are_written_as_types_for_openai() -> None:
    assert namespace([FLAT, {"name": "stop"}]) == WRITTEN
    assert namespace([NESTED["function"], {"name": "stop", "parameters": {"type": "object", "properties": {}}}]) == WRITTEN  # type: ignore[list-item]


def test_tools_of_openai_cost_their_types_and_what_is_said_about_them() -> None:
    counter = counter_of("gpt-5")
    types = counter.count_text(namespace([FLAT]))
    assert request_overhead(counter, [FLAT], 0).tools == types + 3
    assert request_overhead(counter, [NESTED], 0).tools == types + 3 + 81
    assert request_overhead(counter_of("gpt-4o"), [NESTED], 0).tools == types + 1
    search = {"type": "web_search"}
    assert request_overhead(counter, [FLAT, search], 0).tools == types + 3 + counter.count_text('{"type":"web_search"}')
    assert request_overhead(counter, [], 0).tools == 0


def test_tools_of_gemini_cost_each_declaration() -> None:
    counter = counter_of("gemini-2.5-flash")
    tools = {"functionDeclarations": [{"name": "a"}, {"name": "b"}]}
    assert request_overhead(counter, [tools], 0).tools == counter.count_text('{"name":"a"}') + counter.count_text('{"name":"b"}')


@given(values)
def test_any_schema_can_be_written(schema: Any) -> None:
    written = namespace([{"name": "f", "description": schema, "parameters": schema}])
    assert written.endswith("} // namespace functions")
    assert len(written) < 10_000 + 20 * len(json.dumps(schema))


@given(values)
def test_any_definition_costs_something_and_crashes_nothing(schema: Any) -> None:
    for model in ("gpt-5", "gemini-3-flash-preview", "claude-sonnet-4-5"):
        for tool in ({"name": "f", "parameters": schema}, {"function": schema}, {"functionDeclarations": schema}, {"x": schema}):
            assert request_overhead(counter_of(model), [tool], 0, model).tools >= 0


def test_hostile_schemas_are_written_in_time_and_no_deeper_than_allowed() -> None:
    nested: Any = {"type": "string"}
    for _ in range(300):
        nested = {"type": ["object", "object"], "properties": {"a": nested}}
    start = time.perf_counter()
    assert namespace([{"name": "f", "parameters": nested}]).count("a?:") <= DEPTH
    assert time.perf_counter() - start < 1
    text = '{"name": "f", "description": "\\ud800"}'
    assert request_overhead(counter_of("gpt-5"), [text], 0).tools > 0
