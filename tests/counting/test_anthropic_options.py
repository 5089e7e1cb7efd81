"""Tokens of tools, tool choice, the answer's schema and thinking in a request to Claude, and the counters that include them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session, ToolsError
from context_window.counting import CharacterCounter, TokenCounter
from context_window.counting.anthropic_options import argument_texts, function_text, schema_of_answer
from context_window.counting.overhead import RequestOverhead, request_overhead
from context_window.counting.select import select_counter
from context_window.models import describe_model
from context_window.models.facts import ToolsPreamble, tools_preamble

SONNET = "claude-sonnet-4-5"
LOOK = {"name": "look", "description": "The weather.", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
ASKED = {"type": "json_schema", "schema": SCHEMA}
WRITTEN = """\
{
  "type": "object",
  "properties": {
    "city": {
      "type": "string"
    }
  },
  "required": [
    "city"
  ],
  "additionalProperties": false
}"""

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.sampled_from(("type", "schema")), inner, max_size=3)
    ),
    max_leaves=12,
)
ENABLED = {"type": "enabled", "budget_tokens": 1024}
fields = st.sampled_from(("tool_choice", "thinking", "output_config", "output_format", "format", "type", "schema", "name", "x"))
options_of_any_kind = st.dictionaries(fields, junk | st.dictionaries(fields, junk | st.sampled_from(("json_schema", "enabled", "tool"))))


def counter_of(model: str) -> TokenCounter:
    return select_counter(None, describe_model(model)).counter


def overhead(model: str = SONNET, tools: Any = (LOOK,), **options: Any) -> RequestOverhead:
    return request_overhead(counter_of(model), tools, 7, model, options)


def fixed_overhead(manager: ContextWindowManager) -> int:
    return manager.get_token_usage(asking())["overhead"]


def asking() -> Session:
    session = Session()
    session.add_message("user", "hello")
    return session


def manager_of(model: str = SONNET, **arguments: Any) -> ContextWindowManager:
    return ContextWindowManager(model, context_window=ContextWindow(max_tokens=100_000), **arguments)


@pytest.mark.parametrize(
    ("model", "auto", "any_", "named"),
    [
        ("claude-3-5-haiku-latest", 264, 355, 353),
        ("claude-3-7-sonnet-20250219", 313, 315, 274),
        ("claude-sonnet-4-0", 313, 315, 274),
        ("claude-sonnet-4-20250514", 313, 315, 274),
        ("claude-opus-4-1", 313, 315, 274),
        ("claude-sonnet-4-5-20250929", 496, 588, 590),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", 496, 588, 590),
        ("claude-opus-4-6", 497, 589, 591),
        ("claude-opus-4-7", 675, 804, 806),
        ("claude-opus-4-8", 290, 410, 412),
        ("claude-sonnet-5", 354, 474, 476),
        ("claude-next", 354, 474, 476),
    ],
)
def test_what_claude_is_told_about_tools_goes_by_its_version_and_by_whether_it_must_call_one(
    model: str, auto: int, any_: int, named: int
) -> None:
    assert tools_preamble(model) == ToolsPreamble(auto, any_, named)
    definition = overhead(model).tools - auto
    assert definition > 0
    for choice in ({"type": "auto"}, {"type": "none"}, {"type": "unheard of"}, {}, None, "any"):
        assert overhead(model, tool_choice=choice).tools == definition + auto
    assert overhead(model, tool_choice={"type": "any", "disable_parallel_tool_use": True}).tools == definition + any_
    name = counter_of(model).count_text("look")
    assert overhead(model, tool_choice={"type": "tool", "name": "look"}).tools == definition + named + name


def test_without_tools_nothing_is_said_about_them() -> None:
    assert overhead(tools=(), tool_choice={"type": "any"}).fixed == overhead(tools=()).fixed
    assert tools_preamble("gpt-5") is None


def test_a_tool_is_told_with_its_description_name_and_schema_and_nothing_else() -> None:
    o200k = counter_of("gpt-4o")
    text = '{"description": "The weather.","name": "look","parameters": {"type": "object","properties": {"city": {"type": "string"}}}}'
    other_fields = {"strict": True, "cache_control": {"type": "ephemeral"}}
    assert function_text(o200k, LOOK | other_fields) == text
    assert function_text(o200k, {"name": "stop", "description": "", "input_schema": {}}) == '{"name": "stop","parameters": {}}'
    openai = {"type": "function", "function": {"name": "look", "description": "The weather.", "parameters": LOOK["input_schema"]}}
    assert function_text(o200k, openai) == text
    assert function_text(o200k, {"type": "bash_20250124", "name": "bash"}) is None
    assert function_text(o200k, {"input_schema": {}}) is None
    assert overhead(tools=[LOOK | other_fields]).tools == overhead().tools == overhead(tools=[openai]).tools


def test_each_tool_costs_its_text_and_what_is_written_around_it() -> None:
    counter = counter_of(SONNET)
    text = counter.count_text(function_text(counter, LOOK) or "")
    assert overhead().tools == 496 + 7 + text
    assert overhead(tools=[LOOK, LOOK]).tools == 496 + 2 * (7 + text)
    search = {"type": "web_search_20250305", "name": "web_search"}
    assert overhead(tools=[search]).tools == 496 + 7 + counter.count_text(json.dumps(search, separators=(",", ":")))


@pytest.mark.parametrize(("kind", "tokens"), [("bash_20250124", 245), ("text_editor_20250728", 700), ("computer_20251124", 735)])
def test_tools_of_anthropics_own_design_cost_what_its_documentation_says(kind: str, tokens: int) -> None:
    assert overhead(tools=[{"type": kind, "name": "own"}]).tools == 496 + tokens
    assert overhead(tools=[LOOK, {"type": kind, "name": "own"}]).tools == overhead().tools + tokens


@pytest.mark.parametrize("options", [{"output_config": {"format": ASKED}}, {"output_format": ASKED}])
def test_the_schema_of_the_answer_costs_its_indented_text_and_what_is_said_of_it(options: dict[str, Any]) -> None:
    assert overhead(**options).options == 81 + counter_of(SONNET).count_text(WRITTEN)
    assert overhead(**options).fixed == overhead().fixed + overhead(**options).options
    assert schema_of_answer(options) == SCHEMA


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"output_config": {"effort": "high"}},
        {"output_config": {"format": {"type": "text"}}},
        {"output_config": {"format": {"type": "json_schema", "schema": "none"}}},
        {"output_format": "json"},
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "adaptive"}},
        {"temperature": 0.5, "stop_sequences": ["x"]},
    ],
)
def test_what_claude_is_not_told_of_costs_nothing(options: dict[str, Any]) -> None:
    assert overhead(**options) == overhead()


def test_thinking_and_a_budget_for_the_task_are_told() -> None:
    for options in ({"thinking": ENABLED}, {"additionalModelRequestFields": {"thinking": ENABLED}}):
        assert overhead(**options).options == 29
    assert overhead("claude-opus-4-7", output_config={"task_budget": {"type": "tokens", "total": 9}}).options == 35


@pytest.mark.parametrize("model", ["gpt-5", "gemini-3-flash-preview", "none of these"])
def test_other_providers_are_told_nothing_of_anthropics_options(model: str) -> None:
    counter = CharacterCounter() if model == "none of these" else counter_of(model)
    options = {"output_config": {"format": ASKED}, "thinking": {"type": "enabled"}, "tool_choice": {"type": "any"}}
    assert request_overhead(counter, [LOOK], 0, None, options) == request_overhead(counter, [LOOK], 0)


def test_a_schema_that_is_no_json_is_told_to_the_caller() -> None:
    cyclic: dict[str, Any] = {}
    cyclic["again"] = cyclic
    for schema in (cyclic, {"a": object()}):
        with pytest.raises(ToolsError, match=r"output_config\.format\.schema"):
            overhead(output_config={"format": {"type": "json_schema", "schema": schema}})


@given(options_of_any_kind)
def test_options_of_any_kind_cost_something_or_nothing_and_crash_nothing(options: dict[str, Any]) -> None:
    for model in (SONNET, "claude-opus-4-8"):
        assert overhead(model, **options).fixed >= overhead(model).frame


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers() | st.lists(st.text(max_size=5)), max_size=5))
def test_arguments_are_shown_each_with_its_name_texts_as_they_are(values: dict[str, Any]) -> None:
    texts = argument_texts(json.dumps(values))
    assert texts is not None
    assert len(texts) == len(values)
    for text, (name, value) in zip(texts, values.items(), strict=True):
        assert text.startswith(name)
        assert text.removeprefix(f"{name}\n") == (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize(
    "arguments", ["", "{", "[1]", "null", '"text"', "1" * 5_000, '{"a": ' + "1" * 5_000 + "}", "[" * 100_000, '{"a":' * 100_000]
)
def test_arguments_that_are_no_object_are_counted_as_they_are(arguments: str) -> None:
    assert argument_texts(arguments) is None


def test_arguments_with_lone_surrogates_and_a_million_characters_are_counted_in_time() -> None:
    assert argument_texts('{"a": "\\ud800"}') == ["a\n\ufffd"]
    start = time.process_time()
    assert argument_texts(json.dumps({"a": "x" * 1_000_000})) == ["a\n" + "x" * 1_000_000]
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("options", "extra", "text"),
    [
        ({"tool_choice": {"type": "any"}}, 588 - 496, ""),
        ({"output_config": {"format": ASKED}}, 81, WRITTEN),
        ({"thinking": {"type": "enabled", "budget_tokens": 1_024}}, 29, ""),
        ({"temperature": 1.0}, 0, ""),
    ],
)
def test_a_request_counts_what_it_asks_for_from_then_on(options: dict[str, Any], extra: int, text: str) -> None:
    extra += counter_of(SONNET).count_text(text)
    plain, manager = manager_of(tools=[LOOK]), manager_of(tools=[LOOK])
    manager.anthropic_request(asking(), model=SONNET, max_tokens=2_000, tools=[LOOK], **options)
    assert fixed_overhead(manager) - fixed_overhead(plain) == extra
    manager.anthropic_request(asking(), model=SONNET, max_tokens=2_000, tools=[LOOK])
    assert fixed_overhead(manager) - fixed_overhead(plain) == extra


def test_a_schema_counts_in_a_request_without_tools() -> None:
    manager = manager_of()
    manager.anthropic_request(asking(), model=SONNET, max_tokens=2_000, output_format=ASKED)
    assert fixed_overhead(manager) - fixed_overhead(manager_of()) == 81 + counter_of(SONNET).count_text(WRITTEN)


def test_a_manager_told_of_the_options_counts_them_from_the_start_and_with_every_model() -> None:
    options = {"tool_choice": {"type": "any"}}
    manager = manager_of(tools=[LOOK], options=options)
    options.clear()  # the caller may change the mapping later
    assert fixed_overhead(manager) - fixed_overhead(manager_of(tools=[LOOK])) == 588 - 496
    manager.use_model("claude-opus-4-8")
    assert fixed_overhead(manager) - fixed_overhead(manager_of("claude-opus-4-8", tools=[LOOK])) == 410 - 290


@pytest.mark.parametrize("options", ["any", 1, [("thinking", {})]])
def test_options_that_are_no_mapping_are_told(options: Any) -> None:
    with pytest.raises(ToolsError, match="options"):
        manager_of(options=options)


def test_a_counter_is_not_asked_anew_for_requests_that_ask_for_nothing() -> None:
    texts: list[str] = []

    def count(text: str) -> int:
        texts.append(text)
        return len(text)

    manager: Any = manager_of(token_counter=count)
    request: Callable[..., Any] = manager.anthropic_request
    session = asking()
    request(session, model=SONNET, max_tokens=2_000)
    before = len(texts)
    request(session, model=SONNET, max_tokens=2_000, temperature=0.0)
    assert len(texts) == before


def test_calls_of_claude_count_texts_without_the_escapes_of_json() -> None:
    code, counter = 'print("hello")\n' * 200, counter_of(SONNET)
    texts = []
    for arguments in (json.dumps({"text": code}), json.dumps({"text": code}, indent=4)):
        session = Session()
        session.add_function_call("write", arguments, "a")
        texts.append(manager_of().analyze_session(session)["per_category"])
    assert texts[0] == texts[1]
    in_call = sum(texts[0].values()) - 22 - 12 - counter.count_text("write")
    assert in_call == counter.count_text(f"text\n{code}") < counter.count_text(json.dumps({"text": code}))
