"""Tokens that providers add around the parts of a request: frames, messages, calls, tools. A user's own counter sees none of them."""

from __future__ import annotations

import json
import pickle
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.counting import CallableCounter, CharacterCounter, TiktokenCounter, TokenCounter, default_counter
from context_window.counting.certainty import HOST_TOOLS
from context_window.counting.framing import (
    CLAUDE,
    CLAUDE_HIGH,
    GEMINI_2,
    GEMINI_3,
    GEMINI_TEXTS,
    GEMINI_TEXTS_2,
    OPENAI_4,
    OPENAI_5,
    OPENAI_O,
    PLAIN,
    Framing,
    framing_of,
    signature_tokens,
)
from context_window.counting.item_tokens import Measurer
from context_window.counting.overhead import request_overhead
from context_window.counting.select import select_counter
from context_window.counting.typescript_tools import DEPTH, namespace
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
A name.
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
            st.sampled_from(("type", "properties", "items", "anyOf", "enum", "required", "default", "description", "$ref", "$defs", "x")),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


def counter_of(model: str) -> TokenCounter:
    return select_counter(None, describe_model(model)).counter


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
        ("o3", OPENAI_O),
        ("o4-mini", OPENAI_O),
        ("claude-sonnet-4-5", CLAUDE),
        ("claude-3-5-haiku-latest", CLAUDE),
        ("claude-opus-4-7", CLAUDE_HIGH),
        ("claude-opus-4-8", CLAUDE_HIGH),
        ("gemini-2.5-flash", GEMINI_2),
        ("gemini-3-pro-preview", GEMINI_3),
        ("gemini-2.0-flash", GEMINI_TEXTS),
        ("o3-mini", OPENAI_O),
        ("gpt-3.5-turbo", OPENAI_4),
        ("responses/gpt-4o", OPENAI_4),
        ("vertex_ai/gemini-2.5-flash", GEMINI_TEXTS_2),
        ("google-vertex:gemini-3-pro-preview", GEMINI_TEXTS),
        ("publishers/google/models/gemini-3-flash-preview", GEMINI_TEXTS),
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
        # the providers' reports for one text, for a system prompt and a text, and for three turns, minus the tokens of the texts
        ("gpt-4o", (7, 11, 15)),
        ("gpt-5", (6, 10, 16)),
        ("claude-sonnet-4-5", (7, 7, 13)),
        ("claude-opus-4-7", (11, 11, 17)),
        ("claude-opus-4-8", (6, 6, 12)),
    ],
)
def test_messages_cost_what_providers_report_beside_their_texts(model: str, tokens: tuple[int, int, int]) -> None:
    user, system, answer = Message("user", "hello"), Message("system", "hello"), Message("assistant", "hello")
    text = counter_of(model).count_text("hello")
    for items, beside in zip(([user], [system, user], [user, answer, Message("user", "hello")]), tokens, strict=True):
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
        (Compaction("text"), 3 + 11),  # its header and its end are sent with it
        (FunctionCall("ab", "{}", "c", metadata={"thought_signature": "E" * 50}), 22 + 1),
    ],
)
def test_calls_outputs_and_summaries_cost_their_frames(item: Item, tokens: int) -> None:
    counter = TiktokenCounter(describe_model("claude-sonnet-4-5").image_rule)
    assert Measurer(counter).measure(item).tokens == tokens


def test_gemini_3_charges_for_signatures_of_calls_that_its_api_gave() -> None:
    measurer = Measurer(counter_of("gemini-3-pro-preview"))
    plain = measurer.measure(FunctionCall("ab", "{}", "c")).tokens
    for signature, extra in (("E" * 200, 10), ("E" * 150, 0), ("C" * 200, 0), ("", 0), (7, 0), (None, 0)):
        call = FunctionCall("ab", "{}", "c", metadata={"thought_signature": signature})
        assert measurer.measure(call).tokens == plain + extra
    assert signature_tokens("E" * 950) == 170


def test_functions_are_written_as_types_for_openai() -> None:
    assert namespace([FLAT, {"name": "stop"}]) == WRITTEN
    assert namespace([NESTED["function"], {"name": "stop", "parameters": {"type": "object", "properties": {}}}]) == WRITTEN  # type: ignore[list-item]


AUTHOR = {"type": "object", "description": "Who wrote it.", "properties": {"name": {"type": "string"}}, "required": ["name"]}
BOOK = {
    "$defs": {
        "Author": AUTHOR,
        "Tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
    },
    "type": "object",
    "properties": {"author": {"$ref": "#/$defs/Author"}, "others": {"type": "array", "items": {"$ref": "#/$defs/Author"}}},
}
WRITTEN_BOOK = """\
type find = (_: {
// Who wrote it.
author?: {
name: string,
},
others?: {
name: string,
}[],
}) => any;
"""


def test_what_a_schema_refers_to_is_written_in_its_place() -> None:
    assert WRITTEN_BOOK in namespace([{"name": "find", "parameters": BOOK}])
    unknown = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Missing"}, "b": {"$ref": 3}}}
    assert "a?: any,\nb?: any,\n" in namespace([{"name": "find", "parameters": unknown}])


def test_references_that_go_in_circles_or_multiply_end() -> None:
    tree = {**BOOK, "properties": {"tree": {"$ref": "#/$defs/Tree"}}}
    assert "tree?: {\nchildren?: any[],\n},\n" in namespace([{"name": "find", "parameters": tree}])
    level = {f"L{n}": {"anyOf": [{"$ref": f"#/definitions/L{n + 1}"}] * 4} for n in range(30)}
    start = time.process_time()
    assert (
        len(namespace([{"name": "find", "parameters": {"definitions": level, "properties": {"a": {"$ref": "#/definitions/L0"}}}}])) < 2_000
    )
    assert time.process_time() - start < 1


def test_tools_of_openai_cost_their_types_and_what_is_said_about_them() -> None:
    counter = counter_of("gpt-5")
    types = counter.count_text(namespace([FLAT]))
    assert request_overhead(counter, [FLAT], 0).tools == types + 3
    assert request_overhead(counter, [NESTED], 0).tools == types + 3 + 81
    assert request_overhead(counter_of("gpt-4o"), [NESTED], 0).tools == types + 1
    search = {"type": "web_search"}
    assert request_overhead(counter, [FLAT, search], 0).tools == types + 3 + counter.count_text('{"type":"web_search"}')
    assert request_overhead(counter, [], 0).tools == 0


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-8", "gpt-5.4", "none of these"])
def test_a_tool_that_a_search_must_find_first_costs_nothing(model: str) -> None:
    counter = CharacterCounter() if model == "none of these" else counter_of(model)
    search = {"name": "search_tools", "input_schema": {"type": "object"}}
    for deferred in ({**FLAT, "defer_loading": True}, {**NESTED, "function": {**NESTED["function"], "defer_loading": True}}):  # type: ignore[dict-item]
        overhead = request_overhead(counter, [search, deferred], 0, model)
        about = framing_of(counter).deferred_tools
        assert overhead.fixed == request_overhead(counter, [search], 0, model).fixed + about
        assert [name for name, _ in overhead.deferred] == [FLAT["name"]]
    at_once = {**FLAT, "defer_loading": False}
    assert request_overhead(counter, [search, at_once], 0, model).tools > request_overhead(counter, [search], 0, model).tools


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-5.4"])
def test_a_deferred_tool_costs_its_definition_from_the_output_on_that_names_it(model: str) -> None:
    """Such a tool costs nothing until an output names it, and its definition from there on."""
    counter = counter_of(model)
    search = {"name": "search_tools", "input_schema": {"type": "object"}}
    with_both, with_search = (request_overhead(counter, tools, 0, model) for tools in ([search, FLAT], [search]))
    deferred = request_overhead(counter, [search, {**FLAT, "defer_loading": True}], 0, model).deferred
    definition = dict(deferred)[str(FLAT["name"])]
    assert abs(definition - (with_both.tools - with_search.tools)) <= 20  # each definition of OpenAI's has a heading of its own
    plain, measurer = Measurer(counter), Measurer(counter, deferred)
    for text, extra in ((FLAT["name"], definition), (f"Found {FLAT['name']}.", 0), ("other", 0)):
        output = FunctionCallOutput("search_tools", str(text), "c")
        assert measurer.measure(output).tokens == plain.measure(output).tokens + extra
        assert measurer.cleared_tokens(output) == plain.cleared_tokens(output)  # the reference is gone, and the tool with it
        expected = measurer.measure(output).tokens if extra else plain.truncated(output, 5).tokens
        assert measurer.truncated(output, 5).tokens == expected  # an output that names a deferred tool is left whole


def test_the_definition_of_a_found_tool_is_in_the_total() -> None:
    tools: list[dict[str, Any]] = [{"name": "search_tools", "input_schema": {"type": "object"}}, {**FLAT, "defer_loading": True}]
    totals = []
    for text in ("nothing", str(FLAT["name"])):
        log = Session(
            items=(Message("user", "Go."), FunctionCall("search_tools", "{}", "c"), FunctionCallOutput("search_tools", text, "c"))
        )
        manager = ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(max_tokens=10**6), tools=tools)
        totals.append(int(manager.analyze_session(log)["total_tokens"]))
    assert totals[1] - totals[0] > 40


def test_tools_of_gemini_cost_each_declaration() -> None:
    counter = counter_of("gemini-2.5-flash")
    tools = {"functionDeclarations": [{"name": "a"}, {"name": "b"}]}
    assert request_overhead(counter, [tools], 0).tools == counter.count_text('{"name":"a"}') + counter.count_text('{"name":"b"}')


@given(values)
def test_any_schema_can_be_written(schema: Any) -> None:
    text = namespace([{"name": "f", "description": schema, "parameters": schema}])
    assert text.endswith("} // namespace functions")
    assert len(text) < 10_000 + 20 * len(json.dumps(schema))


@given(values)
def test_any_definition_costs_something_and_crashes_nothing(schema: Any) -> None:
    for model in ("gpt-5", "gemini-3-flash-preview", "claude-sonnet-4-5"):
        for tool in ({"name": "f", "parameters": schema}, {"function": schema}, {"functionDeclarations": schema}, {"x": schema}):
            assert request_overhead(counter_of(model), [tool], 0, model).tools >= 0


def test_hostile_schemas_are_written_in_time_and_no_deeper_than_allowed() -> None:
    nested: Any = {"type": "string"}
    for _ in range(300):
        nested = {"type": ["object", "object"], "properties": {"a": nested}}
    start = time.process_time()
    assert namespace([{"name": "f", "parameters": nested}]).count("a?:") <= DEPTH
    assert time.process_time() - start < 1
    text = '{"name": "f", "description": "\\ud800"}'
    assert request_overhead(counter_of("gpt-5"), [text], 0).tools > 0


def test_a_named_tool_costs_its_words_in_chat_completions_of_gpt_4() -> None:
    tools = [{"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}}]
    counter = counter_of("gpt-4o")
    named = {"tool_choice": {"type": "function", "function": {"name": "a"}}}
    free, forced = (request_overhead(counter, tools, 0, "gpt-4o", options).tools for options in ({"tool_choice": "auto"}, named))
    assert forced - free == OPENAI_4.named_tool == 13


def test_the_schema_of_a_functions_result_costs_on_gemini_if_it_has_properties() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    for model in ("gemini-2.5-pro", "gemini-3-pro-preview", "vertex_ai/gemini-2.5-pro"):
        counter = counter_of(model)
        plain, empty, full = (
            request_overhead(counter, [{"functionDeclarations": [{"name": "a", "parametersJsonSchema": schema, **more}]}], 0).tools
            for more in ({}, {"responseJsonSchema": {"type": "string"}}, {"responseJsonSchema": schema})
        )
        assert plain == empty < full


def test_other_makers_add_texts_about_tools_and_hidden_prompts() -> None:
    tools = [{"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}}]
    plain = request_overhead(counter_of("some-model"), tools, 0).tools
    for model, added in (
        ("deepseek-chat", 231),
        ("glm-4.7", 86 + 16),
        ("grok-4-fast", 143),
        ("kimi-k2-instruct", 22),
        ("mistral-large", 24),
        ("qwen3-32b", 92),
    ):
        assert request_overhead(counter_of(model), tools, 0).tools == plain + added
    frames = {"grok-4-fast": 148, "grok-code-fast-1": 196, "grok-2": 0, "llama-3.3-70b": 30, "responses/deepseek-v4-flash": 80}
    assert {name: describe_model(name).frame for name in frames} == frames


@pytest.mark.parametrize(
    ("model", "reported"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct-Turbo", 198),  # recorded, as the next one
        ("groq/qwen/qwen3-32b", None),
        ("meta-llama/llama-4-scout-17b-16e-instruct", None),
    ],
)
def test_open_models_count_like_their_templates(model: str, reported: int | None) -> None:
    """The frame, each message and the text about tools are those that the maker publishes."""
    parameters = {"type": "object", "properties": {"city": {"type": "string", "description": "The city, e.g. Paris"}}, "required": ["city"]}
    function = {"name": "get_current_weather", "description": "Get the current weather in a given city", "parameters": parameters}
    tool = {"type": "function", "function": function}
    question, answer = Message("user", "What is the weather in Paris right now?"), Message("assistant", "Sunny.")
    unlimited = ContextWindow(max_tokens=100_000)
    plain, with_tools = (ContextWindowManager(model, context_window=unlimited, tools=tools) for tools in ([], [tool]))
    counts = [plain.analyze_session(Session(items))["total_tokens"] for items in ([question], [question, answer])]
    text = default_counter().count_text
    assert counts[1] - counts[0] == 5 + text("Sunny.")  # two tokens around the role, one line, and the end of the message
    total = with_tools.analyze_session(Session([question]))["total_tokens"]
    assert total - counts[0] > text(json.dumps(tool))
    assert reported is None or abs(total - reported) <= 1


def test_what_a_host_writes_about_tools_is_a_range() -> None:
    tools = [{"type": "function", "function": {"name": "get_date", "parameters": {"type": "object", "properties": {}}}}]
    session = Session([Message("user", "Which day is it?")])
    for model, is_open in (("llama-3.1-8b", True), ("some-model", True), ("grok-4", False)):
        usages = [
            ContextWindowManager(model, context_window=ContextWindow(max_tokens=100_000), tools=given).usage(session)
            for given in ([], tools)
        ]
        widths = [usage.most - usage.least for usage in usages if usage.most is not None and usage.least is not None]
        assert (widths[1] - widths[0] > HOST_TOOLS) is is_open
