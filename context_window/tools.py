"""Tool definitions: as text, to count their tokens, and in Anthropic's form. The schema of a function is derived from its type hints."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, get_type_hints, runtime_checkable

from session.sanitize import clean

from .errors import ToolsError

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema


@runtime_checkable
class ToolObject(Protocol):
    """A definition as an object of a provider's client, such as `google.genai.types.Tool`: any pydantic model."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]:
        """Return the fields as JSON values, by their names on the wire."""
        ...  # pragma: no cover - a protocol


class DefinedTool(Protocol):
    """A tool of ours, such as the one of `recall_tool`."""

    @property
    def definition(self) -> Any:
        """The definition, a mapping."""
        ...  # pragma: no cover - a protocol


Tool: TypeAlias = Mapping[str, Any] | ToolObject | DefinedTool | Callable[..., Any] | str
"""A definition in any provider's form, as a mapping, an object of its client, or a tool of ours; the function; or a definition's JSON."""

REMEDY = "pass each tool as its definition (a mapping, or its JSON text) or as the function itself"


def tool_texts(tools: Iterable[Tool]) -> list[str]:
    """Return each tool's definition as compact JSON. Raises ToolsError if this is not a list, or one of its elements is not a tool."""
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise ToolsError("tools", tools, f"pass a list of tools; {REMEDY}")
    return [tool_text(tool) for tool in tools]


def tool_text(tool: Tool) -> str:
    """Return the tool's definition as compact JSON with its keys in order; a string is returned unchanged.

    Raises ToolsError if it is not a tool, or has no JSON form.
    """
    try:
        if isinstance(tool, str):
            return clean(_checked(tool))
        definition = tool if isinstance(tool, Mapping) else _definition(tool)
        return clean(json.dumps(definition, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain))
    except (TypeError, ValueError, RecursionError) as error:
        function = _innermost(tool)
        name = f"{function.__name__} " if inspect.isroutine(function) or inspect.isclass(function) else ""
        value = tool if isinstance(tool, str) else type(function)
        raise ToolsError("tools", value, f"{name}cannot be written as JSON: {error}; {REMEDY}") from error


def anthropic_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools of any provider's form in Anthropic's form. A definition that declares several functions becomes several tools.

    Raises ToolsError if this is not a list, or one of its elements is not a tool.
    """
    return [tool for text in tool_texts(tools) for tool in _in_anthropic_form(json.loads(text))]


def hinted(function: Callable[..., Any]) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return a function with the same parameters and type hints that returns its arguments as (positional, by name).

    It takes all arguments by name and has no `*args`. Quoted hints are resolved in the module where the function was defined; pydantic
    would use the module where it was wrapped, bound or partially applied.

    Args:
        function: A function or another callable, but not a class.

    Raises:
        NameError: A hint refers to an undefined name.
        TypeError: It cannot be called as a function, or one of its hints is invalid.
        ValueError: Its parameters are not known.
    """
    definition = _innermost(function)
    definition = inspect.unwrap(definition if inspect.isroutine(definition) else type(definition).__call__, stop=_has_signature)
    kinds = inspect.Parameter
    parameters = [param for param in inspect.signature(function).parameters.values() if param.kind is not kinds.VAR_POSITIONAL]
    hints = SimpleNamespace(__annotations__={param.name: param.annotation for param in parameters if param.annotation is not param.empty})
    type_params = {param.__name__: param for param in getattr(definition, "__type_params__", ())}
    positional = [param for param in parameters if param.kind is param.POSITIONAL_ONLY]

    def split(**arguments: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(arguments.pop(param.name, param.default) for param in positional), arguments

    twin: Any = split
    annotations = twin.__annotations__ = get_type_hints(hints, getattr(definition, "__globals__", {}), type_params, include_extras=True)
    twin.__signature__ = inspect.Signature(
        [
            param.replace(
                annotation=annotations.get(param.name, param.empty),
                kind=param.POSITIONAL_OR_KEYWORD if param in positional else param.kind,
            )
            for param in parameters
        ]
    )
    return split


def _has_signature(function: object) -> bool:
    return hasattr(function, "__signature__")


def _innermost(function: Any) -> Any:
    """Return the function inside `functools.partial` objects."""
    while isinstance(function, partial):
        function = function.func
    return function


def _checked(text: str) -> str:
    if not isinstance(json.loads(text), dict):
        raise TypeError("the text is JSON, but not an object")
    return text


def _plain(value: object) -> Any:
    """Return an object without a JSON form as one that has one: mappings, pydantic models, and tools of ours that hold a definition."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(definition := getattr(value, "definition", None), Mapping):
        return dict(definition)
    if isinstance(value, ToolObject) and not isinstance(value, type):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _definition(function: object) -> Any:
    if not callable(function):
        return _plain(function)
    from pydantic import TypeAdapter  # takes 50 ms, needed only for functions
    from pydantic.errors import PydanticUserError

    inner = _innermost(function)
    try:
        callable_with_hints: Any = function if isinstance(inner, type) else hinted(function)
        schema = TypeAdapter(callable_with_hints).json_schema(schema_generator=_quiet_schema())
    except (PydanticUserError, NameError, AttributeError, SyntaxError) as error:  # the last three: an invalid quoted hint
        raise TypeError(f"its type hints have no JSON schema ({str(error).partition(chr(10))[0]})") from error
    name = getattr(inner, "__name__", type(inner).__name__)
    description = inspect.cleandoc(inner.__doc__ or "")  # not `getdoc`: a pydantic model without a docstring would inherit pydantic's
    return {"name": name, "description": description, "input_schema": schema}


@cache
def _quiet_schema() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema

    class QuietSchema(GenerateJsonSchema):
        """Omits values without a JSON form, such as an object as a default, without a warning: they are not sent either."""

        def emit_warning(self, kind: Any, detail: str) -> None:
            pass

    return QuietSchema


def is_gemini_tool(tool: Mapping[str, Any]) -> bool:
    """True for a tool that runs at Google, such as `{"google_search": {}}`: it has fields for its kinds, but no name and no type."""
    return bool(tool) and tool.keys().isdisjoint({"name", "type", "function", "description", "input_schema", "parameters"})


def _in_anthropic_form(tool: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a tool of any provider's form in Anthropic's form; several, if it declares several functions.

    A tool that runs at its provider is unchanged.
    """
    declarations = tool.get("function_declarations") or tool.get("functionDeclarations")
    if isinstance(declarations, list):
        for declaration in declarations:
            yield from _in_anthropic_form(declaration)
        tool = {name: value for name, value in tool.items() if value is not declarations}
        if not tool:
            return
    if is_gemini_tool(tool):
        yield tool
        return
    function = tool.get("function") if tool.get("type") == "function" else None
    definition = function if isinstance(function, dict) else tool
    if "input_schema" in definition or ("type" in tool and tool["type"] != "function"):
        yield definition
        return
    schema = definition.get("parametersJsonSchema") or definition.get("parameters_json_schema")
    if schema is None:
        schema = _json_schema(definition.get("parameters")) or {"type": "object", "properties": {}}
    description = {"description": definition["description"]} if definition.get("description") else {}
    yield {"name": definition.get("name", "tool"), **description, "input_schema": schema}


_SNAKE_CASE = {
    "any_of": "anyOf",
    "max_items": "maxItems",
    "min_items": "minItems",
    "max_length": "maxLength",
    "min_length": "minLength",
    "max_properties": "maxProperties",
    "min_properties": "minProperties",
    "additional_properties": "additionalProperties",
}
"""Keywords of a schema that Google's client also takes in snake case."""


def _json_schema(schema: Any) -> Any:
    """Return a schema as JSON Schema. Gemini's own schemas have types in capitals, `nullable`, and an order of the properties."""
    if isinstance(schema, list):
        return [_json_schema(choice) for choice in schema]
    if not isinstance(schema, dict):
        return schema
    result: dict[str, Any] = {}
    for name, value in schema.items():
        keyword = str(_SNAKE_CASE.get(name, name))
        if keyword == "properties" and isinstance(value, dict):
            result[keyword] = {member: _json_schema(inner) for member, inner in value.items()}
        elif keyword not in ("property_ordering", "propertyOrdering", "nullable"):
            result[keyword] = _json_schema(value) if keyword in ("items", "anyOf", "additionalProperties") else value
    kind: object = schema.get("type")
    if isinstance(kind, str) and kind.isupper():
        result["type"] = kind.lower()
    if schema.get("nullable") is True and isinstance(kind, str):
        result["type"] = [result["type"], "null"]
    return result
