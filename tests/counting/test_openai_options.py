"""Tokens of the answer's schema in a request to OpenAI, and the calls of a manager that include them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session, ToolsError
from context_window.counting import CharacterCounter, TokenCounter
from context_window.counting.openai_options import schema_of_answer
from context_window.counting.overhead import request_overhead
from context_window.counting.select import select_counter
from context_window.models import describe_model

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
CHAT: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA, "strict": True}}}
RESPONSES: dict[str, Any] = {"text": {"format": {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}}}
LOOK = {"type": "function", "name": "look", "parameters": SCHEMA}

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("type", "schema", "format", "json_schema")), inner, max_size=3)
    ),
    max_leaves=12,
)


def counter_of(model: str) -> TokenCounter:
    return select_counter(None, describe_model(model)).counter


def asking() -> Session:
    session = Session()
    session.add_message("user", "hello")
    return session


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5.4", "o3"])
def test_the_schema_of_the_answer_costs_its_json_without_spaces(model: str) -> None:
    counter = counter_of(model)
    schema = counter.count_text(json.dumps(SCHEMA, separators=(",", ":")))
    for tools, options, tokens in (((), RESPONSES, -4), ([LOOK], RESPONSES, -4), ([LOOK], CHAT, -4), ((), CHAT, 4)):
        with_schema = request_overhead(counter, tools, 0, model, options)
        without = request_overhead(counter, tools, 0, model)
        assert with_schema.options == with_schema.fixed - without.fixed == schema + tokens


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"response_format": {"type": "json_object"}},
        {"response_format": dict},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
        {"text": {"format": {"type": "text"}, "verbosity": "low"}},
        {"text": "json"},
    ],
)
def test_other_forms_of_answers_cost_nothing(options: dict[str, Any]) -> None:
    assert request_overhead(counter_of("gpt-5"), [], 0, "gpt-5", options).options == 0


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gemini-3-flash-preview", "none of these"])
def test_other_providers_are_told_nothing_of_openais_options(model: str) -> None:
    counter = CharacterCounter() if model == "none of these" else counter_of(model)
    assert request_overhead(counter, [], 0, None, {**CHAT, **RESPONSES}).options == 0


@given(st.dictionaries(st.sampled_from(("response_format", "text")), junk))
def test_options_of_any_form_cost_nothing_or_more(options: dict[str, Any]) -> None:
    assert request_overhead(counter_of("gpt-5"), [], 0, "gpt-5", options).options >= 0


def test_a_schema_that_is_no_json_is_told_to_the_caller() -> None:
    options = {"text": {"format": {"type": "json_schema", "schema": {"a": object()}}}}
    assert schema_of_answer(options) is not None
    with pytest.raises(ToolsError, match="response_format or text"):
        request_overhead(counter_of("gpt-5"), [], 0, "gpt-5", options)


def test_a_manager_counts_the_schema_of_its_options_and_of_its_requests() -> None:
    window = ContextWindow(max_tokens=100_000)
    plain = ContextWindowManager("gpt-5", context_window=window)
    told = ContextWindowManager("gpt-5", context_window=window, options=RESPONSES)
    schema = counter_of("gpt-5").count_text(json.dumps(SCHEMA, separators=(",", ":"))) - 4
    before = plain.analyze_session(asking())["total_tokens"]
    assert told.analyze_session(asking())["total_tokens"] == before + schema
    request = plain.request(asking(), "openai-responses", model="gpt-5", **RESPONSES)
    assert request["text"] == RESPONSES["text"]
    assert plain.analyze_session(asking())["total_tokens"] == before + schema
