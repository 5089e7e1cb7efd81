"""Tokens that a provider writes around the parts of a request: constants per provider, with the records they come from.

Fitted on two thirds of recorded requests whose tokens the provider reported; the other third was held out. The command is in
`benchmarks/token_accuracy.py`. For a user's own counter nothing is known, and the plain estimate's figures apply.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from session.estimate import CALL_TOKENS, ITEM_TOKENS

from .counter import TokenCounter
from .ctok_counter import CtokCounter
from .gemini_tools import GeminiForm
from .images import ClaudeRule, ImageRule, claude_high_tokens
from .images_gemini import GeminiRule, GeminiTileRule
from .images_makers import Maker, MakerRule
from .images_openai import OPENAI_4_PRICES, OPENAI_4_TILES, BlindRule, PatchRule, TileRule
from .tiktoken_counter import TiktokenCounter

SealedCalls: TypeAlias = Literal["", "gemini 3", "gemini 2.5", "vertex 2.5"]
ToolForm: TypeAlias = Literal["json", "indented", "functions", "typescript"] | GeminiForm


@dataclass(frozen=True, slots=True)
class Framing:
    """Tokens that a provider adds to those of texts and parts.

    Attributes:
        request: Added to every request, on top of the model's `frame`.
        system: Added to a system or developer message.
        message: Added to a user message, and to any item without a figure of its own.
        answer: Added to a message of the model.
        call: Added to a call, besides its name and arguments.
        argument: Added to each argument of a call. If set, texts among the arguments are counted as plain text. If 0, all
            arguments are counted as JSON.
        output: Added to an output, besides its tool's name and its parts.
        file: Added to a document that the model sees as text, besides the text and its title.
        sharp_pages: True if the pages of a PDF in an output cost what images of high resolution do.
        loaded_tool: Added to an output for each tool that it loads by name (`extra["loaded_tools"]`): its definition, which is in no log.
        drops_reasoning: True if the API leaves reasoning that is sent back out of the prompt.
        signature: Tokens for each character of the signature of thinking that is not shown: it was thought all the same.
        sealed_calls: Whose rule says what the signature of a call costs (`signature_tokens`); empty if it is free.
        tools: Added to a request with tools, besides their definitions, unless the model has a figure of its own.
        tool: Added to each tool definition.
        deferred_tools: Added to a request with tools that are deferred for a search, besides those that were found.
        nested_tools: Added to a request with tools in the form of Chat Completions (`{"function": {…}}`).
        named_tool: Added to such a request that must call a certain tool.
        tool_form: Form in which the model sees definitions: their JSON, indented or not, functions as Claude sees them
            (`anthropic_options.py`), TypeScript types (`typescript_tools.py`), or a form of Gemini's (`gemini_tools.py`).
        schema: Added to a request for an answer with a schema, besides the schema.
        chat_schema: Added to such a request in the form of Chat Completions if it has no tools.
        thinking: Added to a request with a thinking budget.
        task_budget: Added to a request that states a token budget for the whole task.
    """

    request: int = 0
    system: int = ITEM_TOKENS
    message: int = ITEM_TOKENS
    answer: int = ITEM_TOKENS
    call: int = ITEM_TOKENS + CALL_TOKENS
    argument: int = 0
    output: int = ITEM_TOKENS + CALL_TOKENS
    file: int = 0
    sharp_pages: bool = False
    loaded_tool: int = 0
    drops_reasoning: bool = False
    signature: Fraction = Fraction(3, 16)
    sealed_calls: SealedCalls = ""
    tools: int = 0
    tool: int = 0
    deferred_tools: int = 0
    nested_tools: int = 0
    named_tool: int = 0
    tool_form: ToolForm = "json"
    schema: int = 0
    chat_schema: int = 0
    thinking: int = 0
    task_budget: int = 0


PLAIN = Framing()
"""The estimate's own figures, for unknown providers and users' own counters."""

OPENAI_4 = Framing(
    request=3, call=8, output=6, file=20, tools=-3, nested_tools=4, named_tool=13, tool_form="typescript", schema=-4, chat_schema=8
)
"""GPT-3.5, 4, 4o, 4.1 and their small versions. Messages are exact: a message costs its text plus 4, a request 3 (25 records). Tools,
calls and outputs are fitted on 66 records. Responses charges 4 less for tools than Chat Completions (30 records); there, a request that
must call a certain tool costs 12 to 15 more (10 records)."""

OPENAI_5 = Framing(
    request=2, answer=6, call=11, output=9, file=26, tools=3, nested_tools=81, tool_form="typescript", schema=-4, chat_schema=8
)
"""GPT-5 and later, and the o series. The model's own messages name their channel, which costs 2 more (20 records). Tools, calls and
outputs are fitted on 20 records. Chat Completions adds 81 tokens about tools that Responses does not. Median error of all 54 records:
8 before, 0.5 after."""

CLAUDE = Framing(
    request=-3,
    system=0,
    message=3,
    answer=3,
    call=22,
    argument=12,
    output=22,
    file=32,
    loaded_tool=800,
    signature=Fraction(2, 7),
    tools=496,
    tool=7,
    tool_form="functions",
    schema=81,
    thinking=29,
    task_budget=35,
)
"""Claude to 4.6. Messages are exact: a message costs its text plus 3. The model's `frame` includes the first message's 3, and system
prompts are free. With Claude's own tokenizer, the text about tools, a tool, an answer's schema and thinking are right within 2 tokens
(26 records without calls, of tools that are not deferred for a search; 8 with schemas). A call and its output cost 39 with a text
before them, 42 without, some 54 if several calls are made at once, and each argument 14, names and texts aside (20 records). The
figures used lie in between; the outputs of real sessions fit them best. Median error of all 91 records below 1,000 tokens: 7 before, 4
after; with Claude's own tokenizer 3 before, 0 after. Signatures of hidden thinking are fitted on 14 answers of one session with Opus
4.7: together they cost .289 tokens a character, the three longest .25, .29 and .32. A tool that a search loads is assumed to cost what
it does from 4.7 on, in these tokens."""

CLAUDE_HIGH = replace(CLAUDE, loaded_tool=1_000, tools=354, tool=8, deferred_tools=80, schema=110)
"""Claude from 4.7 on. The text about a schema is assumed to be the old one in the new tokens: there is no record of it. Of tools there
is one conversation with Sonnet 5 (3 records), whose tools are deferred: it cost 64 to 97 more than the definitions, which models to 4.6
do not charge (8 records). A tool that a search loads cost 730 to 1,480 in four
recorded requests with 16 of them, 1,054 on average; two held-out requests cost 730 and 820."""

GEMINI_TEXTS = Framing(system=0, message=0, answer=0, call=0, output=0, tool_form="strings")
"""Vertex AI, and the Gemini API before 2.5. Exact for 20 of 24 records, within 5 tokens for the others."""

GEMINI_TEXTS_2 = replace(GEMINI_TEXTS, sealed_calls="vertex 2.5")
"""Gemini 2.5 on Vertex AI, which charges for the thinking behind a call (4 of 5 records)."""

GEMINI_2 = Framing(system=1, message=1, answer=1, call=8, output=7, sealed_calls="gemini 2.5", tool_form="declarations")
"""Gemini 2.5: messages from 18 records, of which 15 are exact. Declarations are exact if their schema is a JSON schema (4 records), and
4 or 5 tokens low if it is in Google's own form (5 records). Calls and outputs are fitted on 10 records. Signatures are free unless they
were streamed (`signature_tokens`)."""

GEMINI_3 = Framing(
    system=1, message=1, answer=1, call=5, output=11, sharp_pages=True, sealed_calls="gemini 3", tools=2, tool_form="escaped"
)
"""Gemini from 3 on, from 42 records. Declarations are within 4 tokens (10 records without calls). What a call and its output cost depends
on the signature (`signature_tokens`): of 27 records with calls, half are within 2.2 %."""

OPENAI_O = replace(OPENAI_5, nested_tools=0)
"""The o series, to which Chat Completions adds nothing about tools (2 records), and GPT-5 and later on Responses, or where a reseller
translates tools in the form of Chat Completions for Responses (7 records)."""


_LLAMA = replace(PLAIN, message=5, answer=5, call=13, output=5, tools=56, tool=1, tool_form="indented")
_QWEN = replace(PLAIN, request=3, system=5, message=5, answer=5, call=20, output=8, tools=92)

MAKERS: dict[Maker, Framing] = {
    "deepseek 3": replace(PLAIN, request=2, system=0, message=1, answer=2, tools=126),
    "deepseek": replace(PLAIN, request=2, system=0, message=1, answer=2, tools=231),
    "glm": replace(PLAIN, system=3, message=3, tools=86, tool=16),
    "grok 2": replace(PLAIN, request=2, tools=80),
    "grok 3": replace(PLAIN, request=2, tools=215, drops_reasoning=True),
    "grok 4": replace(PLAIN, tools=143, call=29, output=29, drops_reasoning=True),
    "grok code": replace(PLAIN, tools=122, call=29, output=29),
    "kimi": replace(PLAIN, request=4),
    "kimi 2": replace(PLAIN, request=3, tool=22),
    "llama 3": replace(_LLAMA, request=5, system=5),
    "llama 3.1": replace(_LLAMA, system=0),
    "llama 4": replace(_LLAMA, request=5, system=5, tools=510),
    "mistral": replace(PLAIN, tool=24),
    "nova": replace(PLAIN, system=0, message=0),
    "qwen": _QWEN,
    "qwen coder": replace(_QWEN, tools=220),
}
"""Other makers, whose own text about tools is in no request. Texts are counted with o200k. Grok's hidden system prompt and Llama's date are
in the model's `frame`.

Of open models, the templates say what is added; hosts may use their own, so intervals reach further (`certainty.py`):
- DeepSeek, but for tools: https://huggingface.co/deepseek-ai/DeepSeek-V3-0324/blob/main/tokenizer_config.json
- Llama: https://github.com/meta-llama/llama-models, and for tools of Llama 4 its prompt for lists of calls
- Qwen: https://huggingface.co/Qwen/Qwen3-32B, https://huggingface.co/Qwen/Qwen3-Coder-480B-A35B-Instruct

The rest is fitted on 1 to 15 records each, none of them held out. xAI's Chat Completions discards reasoning that is sent back
(https://docs.x.ai/developers/model-capabilities/text/best-practices; 2 records), but not for Grok Code (4 records)."""

O_BASE, O_PRICE = 75, Fraction("1.72")
"""Image prices by which the o series is recognized."""


def framing_of(counter: TokenCounter) -> Framing:
    """Return the framing of the provider that the counter counts for, which its image rule identifies.

    Equal counters have equal framings, so an item's remembered counts hold for both.
    """
    if isinstance(counter, TiktokenCounter | CtokCounter):
        return _framing_of_rule(counter.image_rule)
    return PLAIN


def signature_tokens(signature: str, rule: SealedCalls = "gemini 3") -> int:
    """Return the tokens of the thought signature of a call.

    Gemini 2.5: a signature is a protocol buffer with a field for each chunk in which it was streamed, and a chunk holds the thinking, 4
    bytes a token, behind 33 bytes. The Gemini API charges for it only if there are several chunks (6 records; with one chunk, 30 records
    are free), Vertex AI nearly always (4 of 5 records).

    Gemini 3: 17 per 80 characters above 150. Fitted on 25 records, with signatures from 208 to 12,732 characters. Vertex AI charges nothing
    for its signatures (11 records). The first letter tells the two apart: the Gemini API wraps a signature once more, in field 2 of a
    message, and 0x12 begins with E in base64. A signature that begins otherwise is Vertex AI's, or a dummy for a missing one.
    """
    match rule:
        case "gemini 3":
            return max(0, len(signature) - 150) * 17 // 80 if signature.startswith("E") else 0
        case "gemini 2.5" | "vertex 2.5":
            chunks = _chunk_lengths(signature)
            return sum(max(0, length - 33) for length in chunks) // 4 if rule == "vertex 2.5" or len(chunks) > 1 else 0
        case _:
            return 0


def _chunk_lengths(signature: str) -> list[int]:
    """Return the length of each field 1 of a signature, in bytes; none if it is something else."""
    try:
        data = b64decode(signature.translate({45: 43, 95: 47}) + "=" * (-len(signature) % 4))
    except ValueError:
        return []
    lengths, at = [], 0
    while at < len(data):
        length = shift = 0
        if data[at] != 0x0A:
            return []
        for byte in data[at + 1 : at + 6]:
            at, length, shift = at + 1, length | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        lengths.append(min(length, len(data)))
        at += 1 + length
    return lengths


def _framing_of_rule(rule: ImageRule) -> Framing:
    match rule:
        case MakerRule():
            return MAKERS[rule.maker]
        case ClaudeRule():
            return CLAUDE_HIGH if rule == claude_high_tokens else CLAUDE
        case BlindRule():
            return OPENAI_O if rule.reasons else OPENAI_4
        case TileRule() if (rule.base, rule.tile) in OPENAI_4_TILES:
            return OPENAI_4
        case PatchRule() if rule.price in OPENAI_4_PRICES:
            return OPENAI_4
        case TileRule():
            return OPENAI_O if rule.base == O_BASE or rule.on_responses else OPENAI_5
        case PatchRule():
            return OPENAI_O if rule.price == O_PRICE or rule.on_responses else OPENAI_5
        case GeminiTileRule() | GeminiRule() if rule.texts_only:
            return GEMINI_TEXTS_2 if isinstance(rule, GeminiTileRule) and rule.seals_calls else GEMINI_TEXTS
        case GeminiTileRule():
            return GEMINI_2
        case GeminiRule():
            return GEMINI_3
        case _:
            return PLAIN
