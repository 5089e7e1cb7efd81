"""Tool definitions as text, for what they cost in a request. Functions get the schema that pydantic reads off their hints."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from .errors import BudgetError

Tool: TypeAlias = Mapping[str, Any] | Callable[..., Any] | str
"""A definition in any provider's form, the function itself, or a definition's JSON text."""


def tool_text(tool: Tool) -> str:
    """The tool's definition as compact JSON.

    Raises:
        BudgetError: It is no tool, or not JSON.
    """
    if isinstance(tool, str):
        return tool
    try:
        return json.dumps(tool if isinstance(tool, Mapping) else _definition(tool), ensure_ascii=False, separators=(",", ":"), default=dict)
    except (TypeError, ValueError) as error:
        raise BudgetError("tools", getattr(tool, "__name__", type(tool).__name__), f"cannot be written as a tool definition: {error}") from error


def _definition(function: Callable[..., Any]) -> dict[str, Any]:
    from pydantic import TypeAdapter  # 50 ms: only who passes functions pays for it
    from pydantic.errors import PydanticUserError

    if not callable(function):
        raise TypeError(f"a {type(function).__name__} is no tool; pass a definition (a mapping) or a function")
    name = getattr(function, "__name__", type(function).__name__)
    try:
        schema = TypeAdapter(function).json_schema()
    except PydanticUserError as error:
        raise TypeError(f"its type hints have no JSON schema: {error.message.splitlines()[0]}") from error
    return {"name": name, "description": inspect.getdoc(function) or "", "input_schema": schema}
