"""Tool definitions as OpenAI writes them for its models: types of TypeScript in a namespace. For what they cost; nothing is sent so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

DEPTH = 40
"""Levels of a schema that are written out; what lies deeper is `any`."""


def function_of(definition: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The function that a definition in any provider's form describes; None where it describes none."""
    inner = definition.get("function", definition)
    return inner if isinstance(inner, Mapping) and isinstance(inner.get("name"), str) else None


def schema_of(function: Mapping[str, Any]) -> Mapping[str, Any]:
    """The function's schema, by whichever name its provider has for it; empty where there is none."""
    for name in ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"):
        if isinstance(found := function.get(name), Mapping):
            return found
    return {}


def namespace(functions: Iterable[Mapping[str, Any]]) -> str:
    """The functions as one namespace."""
    return "".join(("# Tools\n\n## functions\n\nnamespace functions {\n\n", *map(_declared, functions), "} // namespace functions"))


def _declared(function: Mapping[str, Any]) -> str:
    schema = schema_of(function)
    taken = f"_: {_object(schema, DEPTH)}" if _members(schema) else ""
    return f"{_comment(function)}type {function['name']} = ({taken}) => any;\n\n"


def _comment(described: Mapping[str, Any]) -> str:
    text = described.get("description")
    return "".join(f"// {line}\n" for line in text.split("\n")) if isinstance(text, str) and text else ""


def _members(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _object(schema: Mapping[str, Any], depth: int) -> str:
    return "".join(("{\n", *_lines(schema, depth), "}"))


def _lines(schema: Mapping[str, Any], depth: int) -> Iterator[str]:
    required = schema.get("required")
    wanted = set(filter(_is_text, required)) if isinstance(required, list) else set()
    for name, given in _members(schema).items():
        member = given if isinstance(given, Mapping) else {}
        default = f" // default: {_written(member['default'])}" if "default" in member else ""
        yield f"{_comment(member)}{name}{'' if name in wanted else '?'}: {_type(member, depth - 1)},{default}\n"


def _type(schema: object, depth: int) -> str:
    if not isinstance(schema, Mapping) or depth <= 0:
        return "any"
    if isinstance(values := schema.get("enum"), list):
        return " | ".join(map(_written, values))
    for name in ("anyOf", "oneOf"):
        if isinstance(choices := schema.get(name), list):
            return " | ".join(_type(choice, depth - 1) for choice in choices)
    match schema.get("type"):
        case "integer" | "number":
            return "number"
        case "array":
            return f"{_type(schema.get('items'), depth - 1)}[]"
        case "object" if not _members(schema):
            return "object"
        case list() as names:
            each = dict.fromkeys(filter(_is_text, names))  # each once: what is in the schema is written once for each
            return " | ".join(_type({**schema, "type": name}, depth - 1) for name in each) or "any"
        case str() as name if name != "object":
            return name
    return _object(schema, depth) if _members(schema) else "any"


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_text(value: object) -> bool:
    return isinstance(value, str)
