"""Tool definitions and calls as Gemini counts them. Used for counting only, never sent.

There are three forms, inferred from reported tokens (`framing.py` says for how many records):

- `declarations`: Gemini 2.5 is charged for the declaration as compact JSON.
- `escaped`: Gemini 3 is charged for about the form that Google publishes for its small model FunctionGemma
  (https://ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices): no quotes around names, and a marker of one token before
  and after each text. A newline stands for the marker here, since it is a token of its own too.
- `strings`: Vertex AI, and the Gemini API before 2.5, charge only for names, descriptions, types and values.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from session.sanitize import clean

from .typescript_tools import definitions_of, function_of, schema_of

GeminiForm: TypeAlias = Literal["declarations", "escaped", "strings"]

REPEATS = 10
"""Times that a definition which refers to itself is written out inside itself (2 records)."""
NODES, DEPTH = 5_000, 60
"""Values of a schema that are written out, and their levels. Definitions that refer to each other could grow without end."""
MARKER = "\n"
"""Stands for the marker around a text in the form of Gemini 3."""
UNSEEN = frozenset({"title", "$defs", "definitions", "$schema"})
"""Keywords that are not charged."""


def declarations_of(definition: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the declarations of a Gemini tool, which may hold several, or the function of another form; None if it is no function."""
    for name in ("functionDeclarations", "function_declarations"):
        if isinstance(declarations := definition.get(name), list):
            return [declaration for declaration in declarations if isinstance(declaration, Mapping)]
    function = function_of(definition)
    return None if function is None else [function]


def declaration_texts(declarations: Iterable[Mapping[str, Any]], form: GeminiForm) -> Iterator[str]:
    """Yield the texts that are charged for the declarations: one each, or the single strings."""
    for declaration in declarations:
        name, description = str(declaration.get("name", "")), declaration.get("description")
        described = {"description": description} if isinstance(description, str) else {}
        parameters = schema_of(declaration)
        schema = _Expansion(parameters).written(parameters)
        answer = response_schema_of(declaration)
        key = "responseJsonSchema" if form == "declarations" else "response"
        response = {key: _Expansion(answer).written(answer)} if answer.get("properties") else {}
        details = {**described, **({"parameters": schema} if schema else {}), **response}
        match form:
            case "declarations":
                yield _json({"name": name, **details})
            case "escaped":
                yield f"declaration:{name}{_escaped(_without_empty(details))}"
            case "strings":
                yield name
                yield from described.values()
                yield from _schema_strings(schema)
                yield from _schema_strings(response.get(key))


def response_schema_of(declaration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the function's result; empty if it has none. Only one with properties is charged."""
    for key in ("response", "responseJsonSchema", "response_json_schema"):
        if isinstance(schema := declaration.get(key), Mapping):
            return schema
    return {}


class _Expansion:
    """Writes the references of one schema out in place."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions = definitions_of(schema)
        self._open: Counter[str] = Counter()
        self._remaining = NODES

    def written(self, value: Any, depth: int = DEPTH) -> Any:
        """Return the value with its references written out, without the keywords that are not charged."""
        self._remaining -= 1
        if self._remaining < 0 or depth <= 0:
            return {}
        if isinstance(value, list):
            return [self.written(inner, depth - 1) for inner in value]
        if not isinstance(value, Mapping):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str) and (definition := self._definitions.get(reference)) is not None:
            return self._referenced(reference, definition, depth)
        return {
            key: {name: self.written(member, depth - 2) for name, member in inner.items()}
            if key == "properties" and isinstance(inner, Mapping)
            else self.written(inner, depth - 1)
            for key, inner in value.items()
            if key not in UNSEEN
        }

    def _referenced(self, name: str, definition: Mapping[str, Any], depth: int) -> Any:
        if self._open[name] >= REPEATS:
            return {}
        self._open[name] += 1
        expanded = self.written(definition, depth - 1)
        self._open[name] -= 1
        return expanded


def _without_empty(value: Any) -> Any:
    """Return a declaration without empty texts, lists and objects, and without `additionalProperties`."""
    if not isinstance(value, Mapping):
        return value
    members = ((name, _without_empty(inner)) for name, inner in value.items() if name != "additionalProperties")
    return {name: inner for name, inner in members if inner not in ("", [], {})}


def _escaped(value: Any) -> str:
    match value:
        case str():
            return f"{MARKER}{value}{MARKER}"
        case list():
            return f"[{','.join(map(_escaped, value))}]"
        case Mapping():
            return f"{{{','.join(f'{name}:{_escaped(inner)}' for name, inner in value.items())}}}"
        case _:
            return _json(value)


def _schema_strings(schema: Any) -> Iterator[str]:
    """Yield the type of a schema, its other texts, and those of its members. An object without properties has none."""
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    if schema.get("type") in ("object", "OBJECT") and not properties:
        return
    for key in ("type", "description"):
        if isinstance(text := schema.get(key), str):
            yield text
    for key in ("enum", "required"):
        yield from _value_strings(schema.get(key) or [])
    if isinstance(properties, Mapping):
        for name, member in properties.items():
            yield name
            yield from _schema_strings(member)
    yield from _schema_strings(schema.get("items"))
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(choices := schema.get(key), list):
            for choice in choices:
                yield from _schema_strings(choice)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def argument_strings(arguments: str) -> list[str]:
    """Return the names and values of a call's arguments, or the arguments themselves if they are not JSON."""
    try:
        return [clean(text) for text in _value_strings(json.loads(arguments))]
    except (ValueError, RecursionError):  # not JSON, a number with too many digits, or nested too deeply
        return [arguments]


def escaped_arguments(arguments: str) -> str:
    """Return a call's arguments in the form of Gemini 3, or as they are if they are not JSON."""
    try:
        return clean(_escaped(json.loads(arguments)))
    except (ValueError, RecursionError):
        return arguments


def _value_strings(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _value_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _value_strings(inner)
    else:
        yield value if isinstance(value, str) else _json(value)
