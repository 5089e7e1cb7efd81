"""Tools and calls as Gemini counts them: figures that the provider reported, references written out, and any schema at all."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.counting.gemini_tools import (
    NODES,
    REPEATS,
    GeminiForm,
    argument_strings,
    declaration_texts,
    declarations_of,
    escaped_arguments,
)
from session.items import FunctionCall, FunctionCallOutput, Message

FORMS: tuple[GeminiForm, ...] = get_args(GeminiForm)
WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather for a city.",
    "parameters_json_schema": {
        "additionalProperties": False,
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "type": "object",
    },
}
FORECAST = {
    "name": "forecast",
    "description": "Gets the weather forecast for a city",
    "parameters": {"properties": {"city": {"type": "STRING"}}, "required": ["city"], "type": "OBJECT"},
}
EMPTY = {"additionalProperties": False, "properties": {}, "type": "object"}

names = st.sampled_from(["a", "b", "type", "properties", "$ref", "items", "anyOf", "required", "enum", "description", "title", "$defs"])
values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=6) | st.sampled_from(["#/$defs/a", "#/$defs/b", "object"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=20,
)


def tokens(model: str, tools: list[dict[str, Any]], *items: Any) -> int:
    """Return the tokens of a request."""
    manager = ContextWindowManager(model, context_window=ContextWindow(max_tokens=10**6), tools=[{"functionDeclarations": tools}])
    return int(manager.analyze_session(Session(items=items))["total_tokens"])


def question(text: str) -> Message:
    return Message("user", text)


@pytest.mark.parametrize(
    ("model", "tools", "text", "reported"),
    [
        ("gemini-2.5-flash", [WEATHER], "What's the weather in Paris?", 49),
        (
            "gemini-2.0-flash",
            [{"name": "bar", "description": "", "parameters": {"type": "OBJECT", "properties": {}}}],
            "run bar for me please",
            6,
        ),
        (
            "vertex_ai/gemini-3-flash-preview",
            [{"name": "get_file", "description": "", "parametersJsonSchema": EMPTY}],
            "Use the get_file tool now to retrieve a image file, then describe what you received.",
            22,
        ),
    ],
)
def test_requests_cost_what_the_provider_reported(model: str, tools: list[dict[str, Any]], text: str, reported: int) -> None:
    assert tokens(model, tools, question(text)) == reported


def test_the_texts_of_each_form() -> None:
    texts = {form: list(declaration_texts([WEATHER], form)) for form in FORMS}
    assert texts["declarations"] == [
        (
            '{"name":"get_weather","description":"Get the current weather for a city.",'
            '"parameters":{"additionalProperties":false,"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}}'
        )
    ]
    assert texts["escaped"] == [
        (
            "declaration:get_weather{description:\nGet the current weather for a city.\n,parameters:"
            "{properties:{city:{type:\nstring\n}},required:[\ncity\n],type:\nobject\n}}"
        )
    ]
    assert texts["strings"] == ["get_weather", "Get the current weather for a city.", "object", "city", "city", "string"]
    assert list(declaration_texts([{"name": "stop", "description": "", "parameters": EMPTY}], "escaped")) == [
        "declaration:stop{parameters:{type:\nobject\n}}"
    ]


def test_vertex_charges_for_texts_and_nothing_around_them() -> None:
    """Gemini's tool framing is not charged on Vertex AI: a call costs its name and arguments, an output its name and text."""
    start = question("Look it up.")
    call, output = FunctionCall("look", '{"city": "Paris", "days": 3}', "c1"), FunctionCallOutput("look", "rain", "c1")
    for model, framed in (("vertex_ai/gemini-3-flash-preview", False), ("gemini-3-flash-preview", True)):
        added = tokens(model, [FORECAST], start, call, output) - tokens(model, [FORECAST], start)
        assert (added == len(["look", "city", "Paris", "days", "3", "look", "rain"])) is not framed


def test_a_definition_that_refers_to_itself_is_written_out_ten_times() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
    schema = {"$defs": {"Tree": tree}, "type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}}}
    for form in FORMS:
        written = "".join(declaration_texts([{"name": "record", "parameters": schema}], form))
        assert written.count("children") == REPEATS
        assert "$ref" not in written
        assert "$defs" not in written


def test_definitions_that_refer_to_each_other_end() -> None:
    """Definitions that refer to each other could grow without end."""
    names = [f"D{number}" for number in range(30)]
    schema = {
        "$defs": {name: {"properties": {f"p{other}": {"$ref": f"#/$defs/{other}"} for other in names}} for name in names},
        "properties": {"start": {"$ref": "#/$defs/D0"}},
    }
    for form in FORMS:
        assert sum(map(len, declaration_texts([{"name": "f", "parameters": schema}], form))) < 60 * NODES


@given(values, values)
def test_any_schema_can_be_written_and_costs_its_name(schema: Any, arguments: Any) -> None:
    declaration = {"name": "lookup", "parameters": schema, "description": schema}
    for form in FORMS:
        assert any("lookup" in text for text in declaration_texts([declaration], form))
    written = json.dumps(arguments)
    assert escaped_arguments(written)
    assert all(isinstance(text, str) for text in argument_strings(written))


@given(st.dictionaries(st.text("abc", min_size=1, max_size=5), st.text("xyz", max_size=5) | st.integers(), max_size=4))
def test_a_calls_arguments_cost_their_names_and_values_on_vertex(arguments: dict[str, Any]) -> None:
    strings = [text for name, value in arguments.items() for text in (name, str(value))]
    assert argument_strings(json.dumps(arguments)) == strings


def test_arguments_that_are_not_json_are_counted_as_they_are() -> None:
    for text in ("not json", "{" * 100_000, "1" * 5_000):
        assert argument_strings(text) == [text]
        assert escaped_arguments(text) == text


def test_functions_of_other_forms_are_declarations_too() -> None:
    assert declarations_of({"type": "function", "function": FORECAST}) == [FORECAST]
    assert declarations_of({"functionDeclarations": [FORECAST, "no declaration"]}) == [FORECAST]
    assert declarations_of({"google_search": {}}) is None
