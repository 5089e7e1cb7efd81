"""Tool definitions as OpenAI writes them for its models: TypeScript types in a namespace. Used for counting only, never sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

DEPTH = 40
"""Levels of a schema that are written out. Deeper ones become `any`."""
REFERENCES = 64
"""References of a schema that are written out. Further ones become `any`: definitions that refer to each other could grow without end."""


def function_of(definition: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the function that a definition in any provider's form describes, or None if it describes none."""
    inner = definition.get("function", definition)
    return inner if isinstance(inner, Mapping) and isinstance(inner.get("name"), str) else None


def schema_of(function: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the function's schema, under whichever key its provider uses; empty if it has none."""
    for key in ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"):
        if isinstance(schema := function.get(key), Mapping):
            return schema
    return {}


def definitions_of(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the definitions in a schema by the references to them."""
    return {
        f"#/{key}/{name}": value
        for key in ("$defs", "definitions")
        if isinstance(definitions := schema.get(key), Mapping)
        for name, value in definitions.items()
        if isinstance(value, Mapping)
    }


def namespace(functions: Iterable[Mapping[str, Any]]) -> str:
    """Return the functions as one TypeScript namespace."""
    return "".join(("# Tools\n\n## functions\n\nnamespace functions {\n\n", *map(_declaration, functions), "} // namespace functions"))


def _declaration(function: Mapping[str, Any]) -> str:
    schema = schema_of(function)
    parameters = f"_: {_Types(schema).members(schema, DEPTH)}" if _properties(schema) else ""
    return f"{_comment(function)}type {function['name']} = ({parameters}) => any;\n\n"


def _comment(schema: Mapping[str, Any]) -> str:
    """Return the description as a comment. Only its first line is marked as one: so the reported tokens say (6 records)."""
    text = schema.get("description")
    return f"// {text}\n" if isinstance(text, str) and text else ""


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


class _Types:
    """Writes the types of one schema. A reference to one of its definitions is written out in place, a reference to itself is `any`."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions = definitions_of(schema)
        self._open: set[str] = set()
        self._remaining = REFERENCES

    def members(self, schema: Mapping[str, Any], depth: int) -> str:
        """Return the type of an object with its members."""
        return "".join(("{\n", *self._members(schema, depth), "}"))

    def _members(self, schema: Mapping[str, Any], depth: int) -> Iterator[str]:
        required = schema.get("required")
        required_names = set(filter(_is_text, required)) if isinstance(required, list) else set()
        for name, value in _properties(schema).items():
            member = value if isinstance(value, Mapping) else {}
            comment = _comment(member) or _comment(self._definition(member) or {})
            default = f" // default: {_json(member['default'])}" if "default" in member else ""
            yield f"{comment}{name}{'' if name in required_names else '?'}: {self._type(member, depth - 1)},{default}\n"

    def _definition(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the definition that a schema refers to; None if it refers to none."""
        name = schema.get("$ref")
        return self._definitions.get(name) if isinstance(name, str) else None

    def _referenced(self, name: str, definition: Mapping[str, Any], depth: int) -> str:
        if name in self._open or not self._remaining:
            return "any"
        self._remaining -= 1
        self._open.add(name)
        text = self._type(definition, depth - 1)
        self._open.remove(name)
        return text

    def _type(self, schema: object, depth: int) -> str:
        if not isinstance(schema, Mapping) or depth <= 0:
            return "any"
        if (definition := self._definition(schema)) is not None:
            return self._referenced(schema["$ref"], definition, depth)
        if isinstance(values := schema.get("enum"), list):
            return " | ".join(map(_json, values))
        for key in ("anyOf", "oneOf"):
            if isinstance(choices := schema.get(key), list):
                return " | ".join(self._type(choice, depth - 1) for choice in choices)
        match schema.get("type"):
            case "integer" | "number":
                return "number"
            case "array":
                return f"{self._type(schema.get('items'), depth - 1)}[]"
            case "object" if not _properties(schema):
                return "object"
            case list() as names:
                unique = dict.fromkeys(filter(_is_text, names))  # each name writes out the whole schema, so write it once
                return " | ".join(self._type({**schema, "type": name}, depth - 1) for name in unique) or "any"
            case str() as name if name != "object":
                return name
        return self.members(schema, depth) if _properties(schema) else "any"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_text(value: object) -> bool:
    return isinstance(value, str)
