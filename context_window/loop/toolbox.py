"""Functions as tools: their definitions, the check of a call's arguments, and the output made of a result.

Running calls concurrently and cancelling them is in `tool_runner.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any, TypeAlias

from session.items import FunctionCall
from session.parts import Document, Image, Part, Text
from session.session import Session

from ..errors import ToolsError
from ..recall import Recalled, RecallTool
from ..tools import ToolObject, anthropic_tools, hinted

MAX_ARGUMENT_ERRORS = 5
"""Argument errors that the output of a rejected call lists."""
MAX_ERROR_CHARACTERS = 500
"""Characters of a tool's error message that its output repeats."""


@dataclass(frozen=True, slots=True)
class SchemaTool:
    """A tool given as its definition and a function, for tools whose parameters are not in type hints.

        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        search = SchemaTool({"name": "search", "description": "Searches.", "input_schema": schema}, lambda query: index[query])
        await run_turn(session, "What is new?", model=model, tools=[search], manager=manager)

    Before a call, the arguments must be a JSON object with all that the schema requires. Their types are for the function to check.

    Attributes:
        definition: The definition, in any provider's form.
        call: The function, plain or async. It gets the arguments by name.
    """

    definition: Mapping[str, Any]
    call: Callable[..., Any]


ToolSource: TypeAlias = Callable[..., Any] | SchemaTool | RecallTool | Mapping[str, Any] | ToolObject
"""A function with type hints, plain or async; a `SchemaTool`; a manager's recall tool; or the definition of a server-side tool."""


class _DefinedTool:
    """A `SchemaTool`, its definition in Anthropic's form and the names of the arguments that it requires."""

    def __init__(self, tool: SchemaTool) -> None:
        definitions = anthropic_tools([tool.definition])
        if len(definitions) != 1 or not isinstance(definitions[0].get("name"), str) or "input_schema" not in definitions[0]:
            raise ToolsError("tools", type(tool.definition), "pass the definition of one function, with its name and its schema")
        if not callable(tool.call):
            raise ToolsError("tools", tool.call, "pass the function that runs the tool")
        [self.definition] = definitions
        self.name: str = self.definition["name"]
        self.call = tool.call
        required = self.definition["input_schema"].get("required")
        self._required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []

    def arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Parse a call's arguments. Return them by name.

        Raises ValueError, with a message for the model, if the text is not a JSON object, or an argument is missing.
        """
        values = json.loads(text) if text.strip() else {}
        if not isinstance(values, dict):
            raise ValueError("the arguments are no JSON object")  # noqa: TRY004 - as for arguments of a wrong type
        if missing := [name for name in self._required if name not in values]:
            raise ValueError(f"{', '.join(missing[:MAX_ARGUMENT_ERRORS])}: missing")
        return (), values


class _FunctionTool:
    """A function, its definition and its argument validator."""

    def __init__(self, function: Callable[..., Any]) -> None:
        [self.definition] = anthropic_tools([function])
        self.name: str = self.definition["name"]
        schema = self.definition["input_schema"]
        if schema.get("type") != "object" or isinstance(function, type):
            raise ToolsError("tools", self.name, "pass a function whose parameters can be passed by name")
        self.call = function
        self._validate = _json_validator(hinted(function))

    def arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Parse a call's arguments. Return the positional and the keyword arguments.

        Raises ValueError, with a message for the model, if the text is not a JSON object, or does not match the parameters.
        """
        from pydantic import ValidationError

        text = text if text.strip() else "{}"
        if not text.lstrip().startswith("{"):
            raise ValueError("the arguments are no JSON object")
        try:
            args, kwargs = self._validate(text)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False, include_input=False)[:MAX_ARGUMENT_ERRORS]
            messages = [f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" if detail["loc"] else detail["msg"] for detail in details]
            raise ValueError("; ".join(messages)) from error
        return args, kwargs


def _json_validator(function: Any) -> Callable[[str], tuple[tuple[Any, ...], dict[str, Any]]]:
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(function)
    return adapter.validate_json


class Toolbox:
    """A loop's tools, by name.

        toolbox = Toolbox([read_file, search, manager.recall_tool("anthropic")])
        model.answer(view, toolbox.definitions, allow_tools=True)

    Attributes:
        definitions: Tool definitions for a request, each with `name`, `description` and `input_schema`. Server-side tools are unchanged.
    """

    def __init__(self, tools: Iterable[ToolSource] = ()) -> None:
        """
        Args:
            tools: Functions, `SchemaTool`s, recall tools, definitions of server-side tools.

        Raises:
            ToolsError: An element is not a tool, or two tools have the same name.
        """
        if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
            raise ToolsError("tools", tools, "pass a list of functions")
        self._functions: dict[str, _FunctionTool | _DefinedTool] = {}
        self._recalls: dict[str, RecallTool] = {}
        self.definitions: Sequence[Mapping[str, Any]] = tuple(definition for tool in tools for definition in self._register(tool))
        names = [definition["name"] for definition in self.definitions if "name" in definition]  # some server-side tools have none
        for name in names:
            if names.count(name) > 1:
                raise ToolsError("tools", name, "two tools have this name; give one of them another")

    def _register(self, tool: ToolSource) -> list[Mapping[str, Any]]:
        """Add a tool and return its definitions."""
        if isinstance(tool, RecallTool):
            definitions = anthropic_tools([tool.definition])
            self._recalls.update({definition["name"]: tool for definition in definitions})
            return list(definitions)
        if isinstance(tool, Mapping | ToolObject) and not isinstance(tool, type):
            return list(anthropic_tools([tool]))
        if not (callable(tool) or isinstance(tool, SchemaTool)):
            raise ToolsError("tools", tool, "pass functions with type hints, plain or async")
        function = _DefinedTool(tool) if isinstance(tool, SchemaTool) else _FunctionTool(tool)
        self._functions[function.name] = function
        return [function.definition]

    def prepared(self, call: FunctionCall, log: Session) -> Callable[[], Any] | Recalled:
        """Return a function that runs the call, with its arguments checked; or the result itself if nothing has to run.

        The result is known at once for recall, an unknown tool and wrong arguments.

        Args:
            call: The model's call.
            log: The session that recall searches.
        """
        recall = self._recalls.get(call.name)
        if recall is not None:
            answer = recall.handle(log, call.arguments)
            # Of a view that is used as a log, the content is in the log behind it, to which a reference would not lead.
            return answer if log.origin is None else replace(answer, characters=0)
        function = self._functions.get(call.name)
        if function is None:
            tool_names = ", ".join(sorted({*self._functions, *self._recalls})) or "none"
            return error_result(f"There is no tool {call.name[:100]!r}. Tools there are: {tool_names}.")
        try:
            args, kwargs = function.arguments(call.arguments)
        except ValueError as error:
            return error_result(f"{call.name} was not run, its arguments are wrong: {error}")
        except Exception as error:  # noqa: BLE001 - a user's own validator may raise anything; the model can correct its call
            return error_result(f"{call.name} was not run, its arguments could not be checked: {describe_error(error)}")
        return partial(function.call, *args, **kwargs)


def error_result(text: str) -> Recalled:
    """Return a tool result that reports an error."""
    return Recalled((Text(text),), is_error=True)


def describe_error(error: BaseException) -> str:
    """Return an exception's type and message in one line, without its traceback."""
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001 - an exception whose message cannot be formatted still has a type
        message = ""
    return f"{type(error).__name__}: {message[:MAX_ERROR_CHARACTERS]}" if message else type(error).__name__


def result_of(value: object) -> Recalled:
    """Return a tool's return value as a result: texts, images and documents unchanged, everything else as JSON."""
    try:
        return Recalled(_parts(value))
    except BaseException as error:  # noqa: BLE001 - the value may be any object, and its own methods may fail; the model sees the error
        return error_result(f"the tool ran, but what it returned cannot be written as JSON: {describe_error(error)}")


def _parts(value: object) -> tuple[Part, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, Text | Image | Document):
        return (value,)
    if isinstance(value, list | tuple) and any(isinstance(element, Text | Image | Document) for element in value):
        return tuple(part for element in value for part in _parts(element))
    from pydantic_core import to_jsonable_python

    try:
        json_value = to_jsonable_python(value, inf_nan_mode="strings")
    except UnicodeEncodeError:  # a text with lone surrogates, as file names may contain; `Text` replaces them
        json_value = value
    return (Text(json.dumps(json_value, ensure_ascii=False, default=_json_value)),)


def _json_value(value: object) -> Any:
    from pydantic_core import to_jsonable_python

    return str(value) if isinstance(value, PurePath) else to_jsonable_python(value, inf_nan_mode="strings")
