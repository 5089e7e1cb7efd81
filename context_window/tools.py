"""Tool definitions: as text, for what they cost in a request, and in Anthropic's form. Functions get the schema that pydantic reads off
their hints."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

from session.door import clean

from .errors import BudgetError

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema

Tool: TypeAlias = Mapping[str, Any] | Callable[..., Any] | str
"""A definition in any provider's form, the function itself, or a definition's JSON text."""

REMEDY = "pass each tool as its definition (a mapping, or its JSON text) or as the function itself"


def tool_texts(tools: Iterable[Tool]) -> list[str]:
    """Each tool's definition as compact JSON.

    Raises:
        BudgetError: It is no list of tools, or one of them is no tool.
    """
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise BudgetError("tools", tools, f"pass a list of tools; {REMEDY}")
    return [tool_text(tool) for tool in tools]


def tool_text(tool: Tool) -> str:
    """The tool's definition as compact JSON, keys in their order; a text as it is.

    Raises:
        BudgetError: It is no tool, or has no JSON form.
    """
    try:
        if isinstance(tool, str):
            return clean(_checked(tool))
        definition = tool if isinstance(tool, Mapping) else _definition(tool)
        return clean(json.dumps(definition, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain))
    except (TypeError, ValueError, RecursionError) as error:
        named = _innermost(tool)
        name = f"{named.__name__} " if inspect.isroutine(named) or inspect.isclass(named) else ""
        value = tool if isinstance(tool, str) else type(named)
        raise BudgetError("tools", value, f"{name}cannot be written as JSON: {error}; {REMEDY}") from error


def anthropic_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The tools as Anthropic's API takes them, whichever provider's form they have; what declares several gives several.

    Raises:
        BudgetError: It is no list of tools, or one of them is no tool.
    """
    return [tool for text in tool_texts(tools) for tool in _in_their_form(json.loads(text))]


def hinted(function: Callable[..., Any]) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    """A function with the same parameters, each with its hint, that hands its arguments back as the function itself takes them.

    All of them are taken by name; `*args`, which have none, are left out. Hints in quotes are looked up where the function was written:
    pydantic looks where it was wrapped, bound or partly applied.

    Args:
        function: A function, or what can be called as one; no class.

    Raises:
        NameError: A hint names what is not defined.
        TypeError: It cannot be called as a function, or a hint is none.
        ValueError: Nothing is known of its parameters.
    """
    written = _innermost(function)
    written = inspect.unwrap(written if inspect.isroutine(written) else type(written).__call__, stop=_is_signed)
    kinds = inspect.Parameter
    parameters = [one for one in inspect.signature(function).parameters.values() if one.kind is not kinds.VAR_POSITIONAL]
    hints = SimpleNamespace(__annotations__={one.name: one.annotation for one in parameters if one.annotation is not one.empty})
    own = {one.__name__: one for one in getattr(written, "__type_params__", ())}
    by_place = [one for one in parameters if one.kind is one.POSITIONAL_ONLY]

    def taken(**given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(given.pop(one.name, one.default) for one in by_place), given

    twin: Any = taken
    twin.__annotations__ = get_type_hints(hints, getattr(written, "__globals__", {}), own, include_extras=True)
    named = [
        one.replace(
            annotation=twin.__annotations__.get(one.name, one.empty), kind=one.POSITIONAL_OR_KEYWORD if one in by_place else one.kind
        )
        for one in parameters
    ]
    twin.__signature__ = inspect.Signature(named)
    return taken


def _is_signed(function: object) -> bool:
    return hasattr(function, "__signature__")


def _innermost(function: Any) -> Any:
    """What was partly applied."""
    while isinstance(function, partial):
        function = function.func
    return function


def _checked(text: str) -> str:
    if not isinstance(json.loads(text), dict):
        raise TypeError("the text is JSON, but no object")
    return text


def _plain(value: object) -> Any:
    """What JSON has no form for, in one that it has: any mapping, and pydantic's models."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json", exclude_none=True)
    raise TypeError(f"a {type(value).__name__} is no JSON value")


def _definition(function: object) -> Any:
    if not callable(function):
        return _plain(function)
    from pydantic import TypeAdapter  # 50 ms: only who passes functions pays for it
    from pydantic.errors import PydanticUserError

    named = _innermost(function)
    try:
        described: Any = function if isinstance(named, type) else hinted(function)
        schema = TypeAdapter(described).json_schema(schema_generator=_quiet_schema())
    except (PydanticUserError, NameError, AttributeError, SyntaxError) as error:  # the last three: a hint in quotes that is none
        raise TypeError(f"its type hints have no JSON schema ({str(error).partition(chr(10))[0]})") from error
    name = getattr(named, "__name__", type(named).__name__)
    description = inspect.cleandoc(named.__doc__ or "")  # not `getdoc`: a model without a docstring would get that of pydantic
    return {"name": name, "description": description, "input_schema": schema}


@cache
def _quiet_schema() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema

    class QuietSchema(GenerateJsonSchema):
        """Leaves out what has no JSON form, such as an object as a default, without a warning: it is not sent either."""

        def emit_warning(self, kind: Any, detail: str) -> None:
            pass

    return QuietSchema


def _in_their_form(tool: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A tool as Anthropic takes it, whichever provider's form it has; what holds several gives several."""
    declared = tool.get("function_declarations") or tool.get("functionDeclarations")
    if isinstance(declared, list):
        for one in declared:
            yield from _in_their_form(one)
        return
    function = tool.get("function") if tool.get("type") == "function" else None
    said = function if isinstance(function, dict) else tool
    if "input_schema" in said or ("type" in tool and tool["type"] != "function"):
        yield said
        return
    schema = said.get("parameters") or said.get("parametersJsonSchema") or {"type": "object", "properties": {}}
    described = {"description": said["description"]} if said.get("description") else {}
    yield {"name": said.get("name", "tool"), **described, "input_schema": schema}
