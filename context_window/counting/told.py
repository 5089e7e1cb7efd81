"""What Claude is told beside the conversation: its tools, which of them it must call, the schema of its answer, that it may think.

For what it costs; nothing is sent so. The forms are those with which the recorded requests' counts come out, most to the token, where
Claude's own tokenizer (`ctok`) counts; how much that is, `benchmarks/token_accuracy.py` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from session.door import clean

from ..errors import BudgetError
from ..models.facts import ToolsPreamble
from .counter import TokenCounter
from .ctok_counter import CtokCounter
from .framing import Framing
from .tool_types import function_of

Options: TypeAlias = Mapping[str, Any]
"""What a request asks for beside its messages and tools, as `client.messages.create` takes it."""
NOTHING: Options = MappingProxyType({})
TOLD = frozenset({"tool_choice", "thinking", "output_config", "output_format"})
"""The options that Claude is told of."""
OWN_TOOLS = (("bash_", 245), ("text_editor_", 700), ("computer_", 735))
"""Tokens that tools of Anthropic's own design add to a request, by how their types begin; of the others, such as searches, nothing is said.
https://platform.claude.com/docs/en/about-claude/pricing, as of November 2026, for models to 4.6; no record has one."""


def checked_options(options: object) -> Options:
    """The options, as they are now; none where None is given.

    Raises:
        BudgetError: They are no mapping.
    """
    if options is None:
        return NOTHING
    if not isinstance(options, Mapping):
        raise BudgetError("options", type(options), "pass a mapping, such as {'tool_choice': {'type': 'any'}}, or None")
    return dict(options)


def preamble_tokens(counter: TokenCounter, preamble: ToolsPreamble, options: Options) -> int:
    """Tokens of what is said about tools, their definitions aside."""
    choice = options.get("tool_choice")
    if not isinstance(choice, Mapping):
        return preamble.auto
    match choice.get("type"):
        case "any":
            return preamble.any
        case "tool":
            return preamble.named + counter.count_text(clean(str(choice.get("name", ""))))
        case _:
            return preamble.auto


def options_tokens(counter: TokenCounter, framing: Framing, options: Options) -> int:
    """Tokens of what is said about the answer: its schema, thinking before it, and the tokens that the whole task may take.

    Raises:
        BudgetError: The schema cannot be written as JSON.
    """
    tokens = 0
    if (schema := schema_of_answer(options)) is not None:
        tokens += framing.schema + counter.count_text(_schema_text(schema))
    if isinstance(thinking := options.get("thinking"), Mapping) and thinking.get("type") == "enabled":
        tokens += framing.thinking
    if isinstance(output := options.get("output_config"), Mapping) and isinstance(output.get("task_budget"), Mapping):
        tokens += framing.task_budget
    return tokens


def schema_of_answer(options: Options) -> Mapping[str, Any] | None:
    """The schema that the answer must have: of `output_config.format`, else of the older `output_format`; None where there is none."""
    output = options.get("output_config")
    for given in (output.get("format") if isinstance(output, Mapping) else None, options.get("output_format")):
        if isinstance(given, Mapping) and given.get("type") == "json_schema" and isinstance(schema := given.get("schema"), Mapping):
            return schema
    return None


def _schema_text(schema: Mapping[str, Any]) -> str:
    try:
        return clean(json.dumps(schema, ensure_ascii=False, indent=2))
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"cannot be written as JSON: {error}; pass the schema as a dict of plain values"
        raise BudgetError("output_config.format.schema", type(schema), problem) from error


def tool_tokens(counter: TokenCounter, framing: Framing, definition: Mapping[str, Any], text: str) -> int:
    """Tokens of one tool's definition as Claude is told of it.

    Args:
        counter: What counts texts.
        framing: What is written around one.
        definition: The definition.
        text: Its JSON; it counts where nothing is known of how Claude is told.
    """
    kind = definition.get("type")
    own = next((tokens for start, tokens in OWN_TOOLS if isinstance(kind, str) and kind.startswith(start)), None)
    if own is not None:
        return own
    told = function_text(counter, definition)
    return framing.tool + counter.count_text(clean(text if told is None else told))


def function_text(counter: TokenCounter, definition: Mapping[str, Any]) -> str | None:
    """A function as Claude is told of it: description, name, and schema; None of what is no function, such as a provider's own tool.

    `strict`, `cache_control` and their like are not in it, nor an empty description. Claude's tokens hold the spaces of JSON, o200k's
    do not: where another vocabulary counts, those after commas are left out, and its count times its ratio is right again.
    """
    function = function_of(definition)
    schema = next((found for name in ("input_schema", "parameters") if isinstance(found := (function or {}).get(name), Mapping)), None)
    if function is None or schema is None:
        return None
    description = function.get("description")
    described = {"description": description} if description else {}
    separators = (", " if isinstance(counter, CtokCounter) else ",", ": ")
    return json.dumps({**described, "name": function["name"], "parameters": schema}, ensure_ascii=False, separators=separators)


def argument_texts(arguments: str) -> list[str] | None:
    """Each argument of a call as Claude is shown it: its name, and its text, or the JSON of what is no text.

    None of arguments that are no JSON object.
    """
    try:
        given = json.loads(arguments)
        if not isinstance(given, dict):
            return None
        return [
            clean(f"{name}\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}") for name, value in given.items()
        ]
    except (ValueError, RecursionError):  # no JSON, a number with too many digits, or lists in lists without end
        return None
