"""Tokens of the texts that Claude gets besides the conversation: tools, which of them it must call, the answer's schema, thinking.

These forms are used for counting only, never sent. With Claude's own tokenizer (`ctok`) they reproduce the recorded requests' counts,
most of them exactly; `benchmarks/token_accuracy.py` prints how well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from session.sanitize import clean

from ..errors import ToolsError
from ..models.facts import ToolsPreamble
from .counter import TokenCounter
from .ctok_counter import CtokCounter
from .framing import Framing
from .typescript_tools import function_of

RequestOptions: TypeAlias = Mapping[str, Any]
"""Options of a request besides messages and tools, as `client.messages.create` takes them."""
NO_OPTIONS: RequestOptions = MappingProxyType({})
BEDROCK_FIELDS = "additionalModelRequestFields"
COUNTED_OPTIONS = frozenset({"tool_choice", "thinking", "output_config", "output_format", "context_management", BEDROCK_FIELDS})
"""Options that decide what Claude sees besides the conversation, and how much of its thinking."""
BUILT_IN_TOOLS = (("bash_", 245), ("text_editor_", 700), ("computer_", 735))
"""Tokens that Anthropic's built-in tools add to a request, by the prefix of their type. For others, such as searches, no figure is given.
https://platform.claude.com/docs/en/about-claude/pricing, as of November 2026, for models to 4.6; no record has one."""


def checked_options(options: object) -> RequestOptions:
    """Return a copy of the options; no options for None. Raises ToolsError if `options` is not a mapping."""
    if options is None:
        return NO_OPTIONS
    if not isinstance(options, Mapping):
        raise ToolsError("options", type(options), "pass a mapping, such as {'tool_choice': {'type': 'any'}}, or None")
    return dict(options)


def keeps_all_thinking(options: RequestOptions) -> bool:
    """True if the request asks that all earlier thinking stays in the prompt, as Claude Code's do, whatever the model's default is."""
    management = options.get("context_management")
    edits = management.get("edits") if isinstance(management, Mapping) else None
    return isinstance(edits, list | tuple) and any(
        isinstance(edit, Mapping) and str(edit.get("type")).startswith("clear_thinking") and edit.get("keep") == "all" for edit in edits
    )


def preamble_tokens(counter: TokenCounter, preamble: ToolsPreamble, options: RequestOptions) -> int:
    """Return the tokens of Anthropic's text about tools, without their definitions."""
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


def options_tokens(counter: TokenCounter, framing: Framing, options: RequestOptions) -> int:
    """Return the tokens of the text about the answer: its schema, thinking, and the token budget of the whole task.

    Raises ToolsError if the schema cannot be written as JSON.
    """
    tokens = 0
    if (schema := schema_of_answer(options)) is not None:
        tokens += framing.schema + counter.count_text(json_text(schema, "output_config.format.schema", indent=2))
    more = options.get(BEDROCK_FIELDS)
    thinking = more.get("thinking") if isinstance(more, Mapping) else options.get("thinking")
    if isinstance(thinking, Mapping) and thinking.get("type") == "enabled":
        tokens += framing.thinking
    if isinstance(output := options.get("output_config"), Mapping) and isinstance(output.get("task_budget"), Mapping):
        tokens += framing.task_budget
    return tokens


def schema_of_answer(options: RequestOptions) -> Mapping[str, Any] | None:
    """Return the schema of the answer from `output_config.format`, else from the older `output_format`, else None."""
    output = options.get("output_config")
    for form in (output.get("format") if isinstance(output, Mapping) else None, options.get("output_format")):
        if isinstance(form, Mapping) and form.get("type") == "json_schema" and isinstance(schema := form.get("schema"), Mapping):
            return schema
    return None


def json_text(schema: Mapping[str, Any], option: str, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """Return a schema as JSON. Raises ToolsError, which names the option, if it cannot be written."""
    try:
        return clean(json.dumps(schema, ensure_ascii=False, indent=indent, separators=separators))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolsError(option, type(schema), f"cannot be written as JSON: {error}; pass the schema as a dict of plain values") from error


def tool_tokens(counter: TokenCounter, framing: Framing, definition: Mapping[str, Any], json_text: str) -> int:
    """Return the tokens of one tool definition as Claude sees it, or of its JSON if that form is unknown."""
    tool_type = definition.get("type")
    built_in = next((tokens for prefix, tokens in BUILT_IN_TOOLS if isinstance(tool_type, str) and tool_type.startswith(prefix)), None)
    if built_in is not None:
        return built_in
    text = function_text(counter, definition)
    return framing.tool + counter.count_text(clean(json_text if text is None else text))


def function_text(counter: TokenCounter, definition: Mapping[str, Any]) -> str | None:
    """Return a function as Claude sees it: description, name and schema. None if it is no function, such as a provider's own tool.

    `strict`, `cache_control`, similar fields and an empty description are left out. Claude's tokens include the spaces of JSON, o200k's
    do not. For other vocabularies the spaces after commas are left out, which comes closer to its reports.
    """
    function = function_of(definition)
    schemas = ((function or {}).get(key) for key in ("input_schema", "parameters"))
    schema = next((schema for schema in schemas if isinstance(schema, Mapping)), None)
    if function is None or schema is None:
        return None
    description = function.get("description")
    optional = {"description": description} if description else {}
    separators = (", " if isinstance(counter, CtokCounter) else ",", ": ")
    return json.dumps({**optional, "name": function["name"], "parameters": schema}, ensure_ascii=False, separators=separators)


def argument_texts(arguments: str) -> list[str] | None:
    """Return each argument of a call as Claude sees it: its name, then its text, or the JSON of a value that is not text.

    Returns None if the arguments are not a JSON object.
    """
    try:
        values = json.loads(arguments)
        if not isinstance(values, dict):
            return None
        return [
            clean(f"{name}\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}") for name, value in values.items()
        ]
    except (ValueError, RecursionError):  # not JSON, a number with too many digits, or nested too deeply
        return None
