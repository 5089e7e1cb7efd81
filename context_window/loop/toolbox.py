"""Functions as tools: what a model is told of them, its arguments checked against their hints, and what they return as an answer.

Running several at once, and stopping them, lives in `running.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, TypeAlias

from session.items import FunctionCall
from session.parts import Document, Image, Part, Text
from session.session import Session

from ..errors import BudgetError
from ..recall import Recalled, RecallTool
from ..tools import anthropic_tools, hinted

ToolSource: TypeAlias = Callable[..., Any] | RecallTool | Mapping[str, Any]
"""A function with type hints, plain or async; a manager's recall tool; the definition of a tool that the provider runs itself."""

FAULTS = 5
"""Faults of one call's arguments that its answer names."""
LONGEST = 500
"""Characters of what a tool raised that its answer repeats."""


class _Function:
    """A function, its definition, and the check of its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        [self.definition] = anthropic_tools([function])
        self.name: str = self.definition["name"]
        schema = self.definition["input_schema"]
        if schema.get("type") != "object" or isinstance(function, type):
            raise BudgetError("tools", self.name, "pass a function whose parameters can be given by name")
        self.call = function
        self._check = _adapter(hinted(function))

    def arguments(self, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and named arguments of a call.

        Raises:
            ValueError: The text is no JSON object, or not what the function takes; the message says what is wrong.
        """
        from pydantic import ValidationError

        text = text if text.strip() else "{}"
        if not text.lstrip().startswith("{"):
            raise ValueError("the arguments are no JSON object")
        try:
            args, kwargs = self._check(text)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            faults = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" if one["loc"] else one["msg"] for one in found[:FAULTS]]
            raise ValueError("; ".join(faults)) from error
        return args, kwargs


def _adapter(twin: Any) -> Callable[[str], tuple[tuple[Any, ...], dict[str, Any]]]:
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(twin)
    return adapter.validate_json


class Toolbox:
    """The tools of a loop by name.

        toolbox = Toolbox([read_file, search, manager.recall_tool("anthropic")])
        model.answer(view, toolbox.definitions, allow_tools=True)

    Attributes:
        definitions: What a model is told, each with `name`, `description` and `input_schema`; a provider's own tools as they came.
    """

    def __init__(self, tools: Iterable[ToolSource] = ()) -> None:
        """
        Args:
            tools: Functions, recall tools, definitions of tools that the provider runs itself.

        Raises:
            BudgetError: One of them is no tool, or two have one name.
        """
        if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
            raise BudgetError("tools", tools, "pass a list of functions")
        self._functions: dict[str, _Function] = {}
        self._recalls: dict[str, RecallTool] = {}
        self.definitions: Sequence[Mapping[str, Any]] = tuple(definition for tool in tools for definition in self._taken_in(tool))
        names = [definition.get("name") for definition in self.definitions]
        for name in names:
            if names.count(name) > 1:
                raise BudgetError("tools", name, "two tools have this name; give one of them another")

    def _taken_in(self, tool: ToolSource) -> list[Mapping[str, Any]]:
        if isinstance(tool, RecallTool):
            definitions = anthropic_tools([tool.definition])
            self._recalls.update({definition["name"]: tool for definition in definitions})
            return list(definitions)
        if isinstance(tool, Mapping):
            return list(anthropic_tools([tool]))
        if not callable(tool):
            raise BudgetError("tools", tool, "pass functions with type hints, plain or async")
        function = _Function(tool)
        self._functions[function.name] = function
        return [function.definition]

    def prepared(self, call: FunctionCall, log: Session) -> Callable[[], Any] | Recalled:
        """What runs the call, its arguments checked; or its answer, where that is known without running anything.

        Args:
            call: The model's call.
            log: The session that recall looks into.
        """
        recall = self._recalls.get(call.name)
        if recall is not None:
            return recall.handle(log, call.arguments)
        function = self._functions.get(call.name)
        if function is None:
            known = ", ".join(sorted({*self._functions, *self._recalls})) or "none"
            return failed(f"There is no tool {call.name[:100]!r}. Tools there are: {known}.")
        try:
            args, kwargs = function.arguments(call.arguments)
        except ValueError as error:
            return failed(f"{call.name} was not run, its arguments are wrong: {error}")
        except Exception as error:  # noqa: BLE001 - a user's own validator may raise anything; the model can mend its call
            return failed(f"{call.name} was not run, its arguments could not be checked: {raised(error)}")
        return partial(function.call, *args, **kwargs)


def failed(text: str) -> Recalled:
    """An answer that says what went wrong."""
    return Recalled((Text(text),), is_error=True)


def raised(error: BaseException) -> str:
    """What a tool raised, in a line: its type and message, no traceback."""
    try:
        said = str(error)
    except BaseException:  # noqa: BLE001 - an exception that cannot even be shown still has a type
        said = ""
    return f"{type(error).__name__}: {said[:LONGEST]}" if said else type(error).__name__


def answered(value: object) -> Recalled:
    """What a tool returned, as parts: texts, images and documents as they are, all else as JSON."""
    try:
        return Recalled(_parts(value))
    except BaseException as error:  # noqa: BLE001 - any object may come, and its own methods may fail; the model is told
        return failed(f"the tool ran, but what it returned cannot be written as JSON: {raised(error)}")


def _parts(value: object) -> tuple[Part, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, Text | Image | Document):
        return (value,)
    if isinstance(value, list | tuple) and any(isinstance(one, Text | Image | Document) for one in value):
        return tuple(part for one in value for part in _parts(one))
    from pydantic_core import to_jsonable_python

    try:
        plain = to_jsonable_python(value, inf_nan_mode="strings")
    except UnicodeEncodeError:  # a text with lone surrogates, as the names of files may be; `Text` replaces them
        plain = value
    return (Text(json.dumps(plain, ensure_ascii=False, default=_plain)),)


def _plain(value: object) -> Any:
    from pydantic_core import to_jsonable_python

    return str(value) if isinstance(value, PurePath) else to_jsonable_python(value, inf_nan_mode="strings")
