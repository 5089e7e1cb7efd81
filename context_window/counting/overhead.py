"""Tokens of a request besides the session's items: its frame, the tools, and messages that a converter must add."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from session.providers.additions import CLOSING, INTERRUPTED, PREAMBLE, USAGE_NOTE
from session.removed import ID_LENGTH, MAX_COUNT, Removed
from session.sanitize import clean

from ..decision.extracts import HEAD
from ..models.facts import tools_preamble
from ..tools import Tool, tool_texts
from . import anthropic_options, openai_options
from .anthropic_options import NO_OPTIONS, RequestOptions, options_tokens, preamble_tokens, tool_tokens
from .counter import TokenCounter
from .framing import PLAIN, Framing, framing_of
from .gemini_tools import declaration_texts, declarations_of
from .typescript_tools import function_of, namespace

COUNTED_OPTIONS = anthropic_options.COUNTED_OPTIONS | openai_options.COUNTED_OPTIONS
"""Options of requests that may cost tokens."""


@dataclass(frozen=True, slots=True)
class RequestOverhead:
    """Tokens of a request besides its items.

    Attributes:
        frame: The provider's addition to every request.
        tools: Tool definitions, and the provider's own text about tools.
        options: The provider's text about the requested answer, such as its schema.
        preamble: The converter's addition if the first message is not the user's. Counted only then.
        synthetic: The converter's addition for each call without an output.
        closing: The converter's addition where a request would have ended in the model's turn.
        note: The most that the line about removed items may cost.
        deferred: Name and tokens of each tool that the model does not see before a search has found it.
        usage_note: The line that tells the model that the window is filling up.
        digest: A digest of earlier items, without the lines that it shows of them.
    """

    frame: int = 0
    tools: int = 0
    options: int = 0
    preamble: int = 0
    synthetic: int = 0
    closing: int = 0
    note: int = 0
    deferred: tuple[tuple[str, int], ...] = ()
    usage_note: int = 0
    digest: int = 0

    @property
    def fixed(self) -> int:
        """Tokens that every request costs."""
        return self.frame + self.tools + self.options


def request_overhead(
    counter: TokenCounter, tools: Iterable[Tool], frame: int, model: str | None = None, options: RequestOptions = NO_OPTIONS
) -> RequestOverhead:
    """Return the overhead of requests with these tools.

    Args:
        counter: Counts texts, and determines the framing. With a user's own counter, tools cost just their JSON.
        tools: The tool definitions.
        frame: Tokens that the model's provider adds to every request.
        model: The model's name. Claude's instructions about tools differ between versions.
        options: Other options of requests, as the provider's API takes them. `tool_choice`, `thinking`, `output_config` and
            `output_format` add text that Claude sees, and a schema in `response_format` or `text` is seen by OpenAI's models. Other
            options count as free.

    Raises:
        ToolsError: A tool cannot be written as a definition, or the answer's schema cannot be written as JSON.
    """
    framing = framing_of(counter)
    texts: list[str] = []
    deferred: list[tuple[str, int]] = []
    for text in tool_texts(tools):
        definition = json.loads(text)
        if _is_deferred(definition):
            deferred.append((_name_of(definition), _definition_tokens(counter, framing, [text])))
        else:
            texts.append(text)
    return RequestOverhead(
        frame=max(0, frame + framing.request),
        tools=_tool_tokens(counter, framing, texts, model, options) + (framing.deferred_tools if deferred else 0),
        options=_option_tokens(counter, framing, options, has_tools=bool(texts)),
        preamble=framing.message + counter.count_text(PREAMBLE),
        synthetic=framing.output + counter.count_text(INTERRUPTED),
        closing=framing.message + counter.count_text(CLOSING),
        note=framing.message + note_tokens(counter),
        deferred=tuple(deferred),
        usage_note=framing.message + counter.count_text(USAGE_NOTE),
        digest=framing.message + counter.count_text(HEAD),
    )


def definition_tokens(counter: TokenCounter, tools: Iterable[Tool]) -> list[tuple[str, int]]:
    """Return the name of each tool and the tokens of its definition by itself, without tools that a search has to find.

    Raises ToolsError if a tool cannot be written as a definition.
    """
    framing = framing_of(counter)
    definitions = [(json.loads(text), text) for text in tool_texts(tools)]
    return [(_name_of(tool), _definition_tokens(counter, framing, [text])) for tool, text in definitions if not _is_deferred(tool)]


def stated_functions(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the definitions of functions that a session's metadata states under `tools`. What runs at a provider may leave no call."""
    tools = metadata.get("tools")
    return [
        tool
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, Mapping) and declarations_of(tool) and tool.get("type", "function") in ("function", "custom")
    ]


def _name_of(definition: Mapping[str, Any]) -> str:
    """Return the name of a tool, or the type of one that the provider runs."""
    function = function_of(definition) or definition
    names = [str(one.get("name", "")) for one in declarations_of(definition) or ()]
    return ", ".join(names) or str(function.get("name") or definition.get("name") or definition.get("type") or "")


def _is_deferred(definition: Mapping[str, Any]) -> bool:
    """True for a tool that the model does not see before a search has found it.

    Such a tool costs nothing until an output names it, and its definition from there on
    (https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool). `Measurer` adds it to the output.
    """
    function = function_of(definition) or {}
    return definition.get("defer_loading") is True or function.get("defer_loading") is True


def _option_tokens(counter: TokenCounter, framing: Framing, options: RequestOptions, *, has_tools: bool) -> int:
    match framing.tool_form:
        case "functions":
            return options_tokens(counter, framing, options)
        case "typescript":
            return openai_options.schema_tokens(counter, framing, options, has_tools=has_tools)
        case _:
            return 0


def note_tokens(counter: TokenCounter) -> int:
    """Return an upper bound of the tokens of a line about removed items: those of its words, and one for each character of the rest."""
    longest = "x" * ID_LENGTH
    line = Removed(MAX_COUNT, longest, longest).line
    variable = [longest, longest, f"{MAX_COUNT:,}"]
    words = line.replace(longest, "").replace(variable[-1], "")
    return counter.count_text(words) + sum(map(len, variable))


def _tool_tokens(counter: TokenCounter, framing: Framing, texts: list[str], model: str | None, options: RequestOptions) -> int:
    if not texts:
        return 0
    if framing == PLAIN:
        return _definition_tokens(counter, framing, texts)
    preamble = tools_preamble(model) if model is not None else None
    introduction = framing.tools if preamble is None else preamble_tokens(counter, preamble, options)
    nested = 0
    if any("function" in json.loads(text) for text in texts):
        choice = options.get("tool_choice")
        nested = framing.nested_tools + (framing.named_tool if isinstance(choice, Mapping) and "function" in choice else 0)
    return introduction + nested + _definition_tokens(counter, framing, texts)


def _definition_tokens(counter: TokenCounter, framing: Framing, texts: list[str]) -> int:
    """Return the tokens of tool definitions, without the provider's own text about tools."""
    if framing == PLAIN:
        return sum(map(counter.count_text, texts))
    definitions: list[Mapping[str, Any]] = list(map(json.loads, texts))
    if framing.tool_form == "functions":
        return sum(tool_tokens(counter, framing, *tool) for tool in zip(definitions, texts, strict=True))
    return framing.tool * len(texts) + sum(counter.count_text(clean(text)) for text in _provider_texts(framing, definitions, texts))


def _provider_texts(framing: Framing, definitions: list[Mapping[str, Any]], texts: list[str]) -> Iterator[str]:
    """Yield the definitions as the provider writes them for the model. Tools that are not functions, such as a search, stay JSON."""
    functions: list[Mapping[str, Any]] = []
    for definition, text in zip(definitions, texts, strict=True):
        match framing.tool_form:
            case "typescript" if (function := function_of(definition)) is not None:
                functions.append(function)
            case "declarations" | "escaped" | "strings" as form if (declarations := declarations_of(definition)) is not None:
                yield from declaration_texts(declarations, form)
            case "indented":
                yield json.dumps(definition, ensure_ascii=False, indent=4)
            case _:
                yield text
    if functions:
        yield namespace(functions)
