"""What a request costs beside the session's items: its frame, the tools, and what a converter must add."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from session.door import clean
from session.providers.additions import INTERRUPTED, PREAMBLE

from ..models.facts import tools_preamble
from ..tools import Tool, tool_texts
from .counter import TokenCounter
from .framing import PLAIN, Framing, framing_of
from .told import NOTHING, Options, options_tokens, preamble_tokens, tool_tokens
from .tool_types import function_of, namespace


@dataclass(frozen=True, slots=True)
class RequestOverhead:
    """Tokens of a request beside its items.

    Attributes:
        frame: What the provider adds to every request.
        tools: Tool definitions, and what the provider says about tools.
        options: What the model is told of the answer that is asked for, such as its schema.
        preamble: What a converter adds where the first message is not the user's; only then does it count.
        synthetic: What a converter adds for each call without an output.
    """

    frame: int = 0
    tools: int = 0
    options: int = 0
    preamble: int = 0
    synthetic: int = 0

    @property
    def fixed(self) -> int:
        """What every request costs."""
        return self.frame + self.tools + self.options


def request_overhead(
    counter: TokenCounter, tools: Iterable[Tool], frame: int, model: str | None = None, options: Options = NOTHING
) -> RequestOverhead:
    """The overhead of requests with these tools.

    Args:
        counter: What counts texts; it tells whose framing holds. With a user's own counter, tools cost their JSON and no more.
        tools: The definitions.
        frame: What the model's provider adds to every request, in tokens.
        model: The model's name: what Claude is told about tools differs from version to version.
        options: What else requests ask for, as Anthropic's API takes it: of `tool_choice`, `thinking`, `output_config` and
            `output_format` Claude is told. The rest, and what they ask of other providers, is taken to cost nothing.

    Raises:
        BudgetError: A tool cannot be written as a definition, or the schema of the answer not as JSON.
    """
    framing = framing_of(counter)
    return RequestOverhead(
        frame=max(0, frame + framing.request),
        tools=_tool_tokens(counter, framing, tool_texts(tools), model, options),
        options=options_tokens(counter, framing, options) if framing.schema else 0,
        preamble=framing.message + counter.count_text(PREAMBLE),
        synthetic=framing.output + counter.count_text(INTERRUPTED),
    )


def _tool_tokens(counter: TokenCounter, framing: Framing, texts: list[str], model: str | None, options: Options) -> int:
    if not texts:
        return 0
    if framing == PLAIN:
        return sum(map(counter.count_text, texts))
    preamble = tools_preamble(model) if model is not None else None
    said = framing.tools if preamble is None else preamble_tokens(counter, preamble, options)
    definitions: list[Mapping[str, Any]] = list(map(json.loads, texts))
    nested = framing.nested_tools if any("function" in definition for definition in definitions) else 0
    if framing.tool_form == "functions":
        return said + sum(tool_tokens(counter, framing, *each) for each in zip(definitions, texts, strict=True))
    return said + nested + sum(counter.count_text(clean(text)) for text in _written(framing, definitions, texts))


def _written(framing: Framing, definitions: list[Mapping[str, Any]], texts: list[str]) -> Iterator[str]:
    """The definitions as the provider writes them for the model; what it does not run itself, such as a search, by its JSON."""
    functions: list[Mapping[str, Any]] = []
    for definition, text in zip(definitions, texts, strict=True):
        if framing.tool_form == "typescript" and (function := function_of(definition)) is not None:
            functions.append(function)
        elif framing.tool_form == "declarations" and (declared := _declared(definition)) is not None:
            yield from declared
        else:
            yield text
    if functions:
        yield namespace(functions)


def _declared(definition: Mapping[str, Any]) -> list[str] | None:
    """Each declaration of a Gemini tool, which holds several; None of what is no such tool."""
    for name in ("functionDeclarations", "function_declarations"):
        if isinstance(declared := definition.get(name), list):
            return [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in declared]
    return None
