"""Tool definitions as text: their JSON, the same in every process, and errors for other objects."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

import pydantic
import pytest

from context_window import ContextWindow, ContextWindowManager, Session, Toolbox, ToolsError
from context_window.counting.overhead import request_overhead
from context_window.tools import anthropic_tools, tool_text, tool_texts
from session.estimate import CALL_TOKENS, ITEM_TOKENS
from session.providers.additions import INTERRUPTED, PREAMBLE
from tests.support.counting import Letters


class Place(pydantic.BaseModel):
    """A place."""

    city: str
    country: str | None = None


class Undocumented(pydantic.BaseModel):
    city: str


def get_weather(city: str, days: int = 3) -> str:
    """The weather.

    In some days.
    """
    return city * days


async def get_places(near: Place, kinds: "list[str]") -> list[Place]:
    """Places."""
    return [near for _ in kinds]


class Desk:
    """At it."""

    def ask(self, question: str) -> str:
        """Asks."""
        return question

    def __call__(self, question: str) -> str:
        return question


def shape(tool: Any) -> Any:
    """Name, description, and the parameters with their types."""
    definition = json.loads(tool_text(tool))
    assert set(definition) == {"name", "description", "input_schema"}
    properties = definition["input_schema"]["properties"]
    return definition["name"], definition["description"], {name: hint.get("type") or hint.get("$ref") for name, hint in properties.items()}


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (get_weather, ("get_weather", "The weather.\n\nIn some days.", {"city": "string", "days": "integer"})),
        (get_places, ("get_places", "Places.", {"near": "#/$defs/Place", "kinds": "array"})),
        (Desk().ask, ("ask", "Asks.", {"question": "string"})),
        (Desk(), ("Desk", "At it.", {"question": "string"})),
        (partial(get_weather, days=1), ("get_weather", "The weather.\n\nIn some days.", {"city": "string", "days": "integer"})),
        (partial(get_weather, "Bonn"), ("get_weather", "The weather.\n\nIn some days.", {"days": "integer"})),
        (lambda a, b: None, ("<lambda>", "", {"a": None, "b": None})),
        (Place, ("Place", "A place.", {"city": "string", "country": None})),
        (Undocumented, ("Undocumented", "", {"city": "string"})),
    ],
    ids=["function", "async", "method", "object", "partial", "partial by place", "no hints", "model", "model without a docstring"],
)
def test_functions_get_the_schema_of_their_hints(tool: Callable[..., Any], expected: Any) -> None:
    assert shape(tool) == expected


def test_required_parameters_are_listed() -> None:
    assert json.loads(tool_text(get_weather))["input_schema"]["required"] == ["city"]


def test_a_default_without_a_json_form_is_left_out_in_silence() -> None:
    """Pydantic would warn, and the suite turns warnings into errors."""

    def search(query: str, engine: Any = object()) -> None: ...  # noqa: B008 - that is the case

    assert shape(search) == ("search", "", {"query": "string", "engine": None})


DEFINITION: dict[str, Any] = {"name": "f", "input_schema": {"type": "object", "properties": {"b": {}, "a": {}}}, "description": "é"}


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (DEFINITION, '{"name":"f","input_schema":{"type":"object","properties":{"b":{},"a":{}}},"description":"é"}'),
        (MappingProxyType({"name": "f", "inner": MappingProxyType({"x": 1})}), '{"name":"f","inner":{"x":1}}'),
        ({"name": "f", "place": Place(city="Bonn")}, '{"name":"f","place":{"city":"Bonn"}}'),
        (Place(city="Bonn"), '{"city":"Bonn"}'),
        ('{"name": "f",  "x": 1}', '{"name": "f",  "x": 1}'),
        ({"name": "\ud800"}, '{"name":"\ufffd"}'),
        ({}, "{}"),
    ],
    ids=["order and letters are kept", "mappings", "model inside", "model", "text as it is", "lone surrogate", "empty"],
)
def test_definitions(tool: Any, text: str) -> None:
    assert tool_text(tool) == text


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


def circle() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["in"] = value
    return value


class Opaque: ...


def takes_opaque(value: Opaque) -> None: ...


def takes_the_unknown(value: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that is the case


WRONG: dict[str, tuple[Any, str]] = {
    "name": ("get_weather", "tools=a text of 11 characters that begins with 'get_'"),
    "list text": ("[1]", "the text is JSON, but not an object"),
    "deep text": ('{"a":' * 100_000, "cannot be written as JSON"),
    "number": (5, "tools=<class 'int'>"),
    "none": (None, "tools=<class 'NoneType'>"),
    "object": (Opaque(), "Opaque is not a JSON value"),
    "bytes": ({"a": b"x"}, "bytes is not a JSON value"),
    "set": ({"a": {"xy", "zw"}}, "set is not a JSON value"),
    "nan": ({"a": float("nan")}, "not JSON compliant"),
    "tuple key": ({(1, 2): 3}, "keys must be str"),
    "circle": (circle(), "Circular reference"),
    "deep": (nested(100_000), "recursion"),
    "opaque hint": (takes_opaque, "takes_opaque cannot be written.*its type hints have no JSON schema"),
    "unknown hint": (takes_the_unknown, "its type hints have no JSON schema .*Nowhere"),
    "builtin": (max, "max cannot be written.*no signature found"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_other_objects_are_rejected_as_tools(wrong: str) -> None:
    tool, message = WRONG[wrong]
    remedy = r"pass each tool as its definition \(a mapping, or its JSON text\) or as the function itself"
    with pytest.raises(ToolsError, match=f"(?s){message}.*{remedy}") as error:
        tool_text(tool)
    assert error.value.field == "tools"


@pytest.mark.parametrize(
    "tools", ['{"name": "f"}', DEFINITION, get_weather, None, 5], ids=["text", "mapping", "function", "none", "number"]
)
def test_tools_are_passed_as_a_list(tools: Any) -> None:
    """A string would be iterated letter by letter, a mapping key by key."""
    with pytest.raises(ToolsError, match="pass a list of tools"):
        ContextWindowManager(tools=tools)


def test_any_iterable_of_tools_is_a_list() -> None:
    assert tool_texts(tool for tool in (DEFINITION, get_weather)) == [tool_text(DEFINITION), tool_text(get_weather)]
    assert tool_texts({"a": DEFINITION}.values()) == [tool_text(DEFINITION)]


def test_the_text_is_the_same_in_every_process() -> None:
    code = "from tests.counting.test_tools import *; print(tool_text(get_places) + tool_text(DEFINITION) + tool_text(Place))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            encoding="utf-8",
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1"},
            timeout=60,
        ).stdout
        for seed in "12"
    }
    assert outputs == {tool_text(get_places) + tool_text(DEFINITION) + tool_text(Place) + "\n"}


def test_the_overhead_of_requests() -> None:
    overhead = request_overhead(Letters(), [DEFINITION, get_weather], 7)
    assert overhead.tools == len(tool_text(DEFINITION)) + len(tool_text(get_weather))
    assert overhead.fixed == overhead.tools + 7
    assert overhead.preamble == ITEM_TOKENS + len(PREAMBLE)
    assert overhead.synthetic == ITEM_TOKENS + CALL_TOKENS + len(INTERRUPTED)
    assert request_overhead(Letters(), [], 0).fixed == 0


def test_a_manager_counts_its_tools() -> None:
    bare, with_tools = (
        ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=5_000), tools=tools)
        for tools in ([], [DEFINITION])
    )
    assert with_tools._settings.current.overhead.fixed - bare._settings.current.overhead.fixed == len(tool_text(DEFINITION))


# Objects of the providers' clients

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": ["array", "null"], "items": {"type": "integer"}}}}
DEFINITION = {"name": "get_weather", "description": "The weather.", "input_schema": {**SCHEMA, "required": ["city"]}}


def google_tools() -> list[Any]:
    """The tool as objects of Google's client: its own schema, the same as a mapping, and JSON Schema."""
    types = pytest.importorskip("google.genai.types")
    days = types.Schema(type="ARRAY", items=types.Schema(type="INTEGER"), nullable=True)
    schema = types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING"), "days": days}, required=["city"])
    own = {"name": "get_weather", "description": "The weather."}
    declarations = [types.FunctionDeclaration(**own, parameters=schema), types.FunctionDeclaration(**own, parameters=schema.model_dump())]
    declarations.append(types.FunctionDeclaration(**own, parameters_json_schema=DEFINITION["input_schema"]))
    return [*declarations, *(types.Tool(function_declarations=[declaration]) for declaration in declarations)]


def test_an_object_of_googles_client_is_a_tool_like_its_definition() -> None:
    for tool in google_tools():
        assert anthropic_tools([tool]) == [DEFINITION]
        assert tuple(Toolbox([tool]).definitions) == (DEFINITION,)


def test_an_object_of_a_client_counts_like_its_definition() -> None:
    for tool in google_tools():
        sizes = {total_of(model, [tool]) - total_of(model, [json.loads(tool_text(tool))]) for model in ("gemini-2.5-pro", "gpt-5")}
        assert sizes == {0}
        assert total_of("gemini-2.5-pro", [tool]) > total_of("gemini-2.5-pro", [])


def total_of(model: str, tools: list[Any]) -> int:
    session = Session()
    session.add_message("user", "Is it cold?")
    return ContextWindowManager(model, tools=tools).plan_session(session).overhead


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses", "google"])
def test_a_request_to_any_provider_takes_the_objects_of_googles_client(provider: Any) -> None:
    session = Session()
    session.add_message("user", "Is it cold?")
    requests = [
        ContextWindowManager("gpt-5").request(session, provider, model="m", max_tokens=99, tools=[tool])
        for tool in (*google_tools(), DEFINITION)
    ]
    assert all(request == requests[-1] for request in requests)


def test_a_search_of_googles_client_is_sent_as_it_is() -> None:
    types = pytest.importorskip("google.genai.types")
    session = Session()
    session.add_message("user", "Is it cold?")
    both = types.Tool(function_declarations=[{"name": "look"}], google_search=types.GoogleSearch())
    sent = ContextWindowManager("gemini-2.5-pro").request(session, "google", model="m", tools=[both])["config"]
    tools = types.GenerateContentConfig(**sent).tools
    assert [tool.google_search is not None for tool in tools] == [False, True]


def test_words_of_gemini_in_other_places_of_a_schema_stay() -> None:
    """Only keywords are translated: properties, defaults and choices may have any name."""
    schema = {"type": "OBJECT", "properties": {"any_of": {"type": "STRING", "enum": ["STRING"], "default": {"type": "STRING"}}}}
    [tool] = anthropic_tools([{"functionDeclarations": [{"name": "f", "parameters": schema}]}])
    assert tool["input_schema"] == {
        "type": "object",
        "properties": {"any_of": {"type": "string", "enum": ["STRING"], "default": {"type": "STRING"}}},
    }
