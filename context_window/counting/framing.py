"""What a provider writes around the parts of a request, by whose tokenizer counts: constants with the records they come from.

Fitted on two thirds of recorded requests with the tokens that the provider reported, the other third unseen; the command is in
`benchmarks/token_accuracy.py`. Where a user's own counter counts, nothing is known, and the plain estimate's figures hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from session.estimate import CALL_TOKENS, ITEM_TOKENS

from .counter import TokenCounter
from .ctok_counter import CtokCounter
from .images import ClaudeRule, ImageRule, claude_high_tokens
from .images_gemini import GeminiRule, GeminiTileRule
from .images_openai import PatchRule, TileRule
from .tiktoken_counter import TiktokenCounter

ToolForm: TypeAlias = Literal["json", "functions", "typescript", "declarations"]


@dataclass(frozen=True, slots=True)
class Framing:
    """Tokens that a provider adds, beside those of texts and parts.

    Attributes:
        request: To every request, more than the model's `frame` says.
        system: To a system or developer message.
        message: To a user's message, and to whatever has no figure of its own.
        answer: To a message of the model.
        call: To a call, its name and arguments aside.
        argument: To each argument of a call; with it, texts among them are counted as they are, not as JSON. 0: all are counted as JSON.
        output: To an output, its tool's name and its parts aside.
        sealed_calls: Whether a signature that a call carries is charged.
        tools: To a request with tools, their definitions aside, where that does not go by the model.
        tool: To each tool's definition.
        nested_tools: What a request with tools costs more where they are in the form of Chat Completions (`{"function": {…}}`).
        tool_form: How definitions are written for the model: their JSON, functions as Claude is told of them (`told.py`), types of
            TypeScript, or Gemini's declarations one by one.
        schema: To a request that asks for an answer of some schema, the schema aside.
        thinking: To a request with a budget for thinking.
        task_budget: To a request that tells the model of a budget for its whole task.
    """

    request: int = 0
    system: int = ITEM_TOKENS
    message: int = ITEM_TOKENS
    answer: int = ITEM_TOKENS
    call: int = ITEM_TOKENS + CALL_TOKENS
    argument: int = 0
    output: int = ITEM_TOKENS + CALL_TOKENS
    sealed_calls: bool = False
    tools: int = 0
    tool: int = 0
    nested_tools: int = 0
    tool_form: ToolForm = "json"
    schema: int = 0
    thinking: int = 0
    task_budget: int = 0


PLAIN = Framing()
"""The estimate's own figures: where nothing is known of the provider, or the counter is a user's."""

OPENAI_4 = Framing(request=3, call=8, output=6, tools=1, tool_form="typescript")
"""GPT-4o, 4.1 and their small ones. A message is exact: a text and 4, a request 3 (25 records); tools, calls and outputs are fitted on
66. Median error of all 131 below 1,000 tokens: 21 before, 3 after."""

OPENAI_5 = Framing(request=2, answer=6, call=11, output=9, tools=3, nested_tools=81, tool_form="typescript")
"""GPT-5 and later, and the o series: the model's own messages name their channel, which is 2 more (20 records); tools, calls and outputs
are fitted on 20. Chat Completions tells these models 81 tokens more about tools than Responses does. Median error of all 54: 8 before,
0.5 after."""

CLAUDE = Framing(
    request=-3,
    system=0,
    message=3,
    answer=3,
    call=22,
    argument=12,
    output=22,
    tools=496,
    tool=7,
    tool_form="functions",
    schema=81,
    thinking=29,
    task_budget=35,
)
"""Claude to 4.6. A message is exact: a text and 3; the model's `frame` has the first message's 3 in it, and system prompts are free.
With Claude's own tokenizer what is said about tools, a tool, an answer's schema and thinking comes out within 2 tokens (26 records without
calls, of tools that do not wait to be searched; 8 with schemas). A call and its output cost 39 with a text before them, 42 without, some 54
where several are made at once, each argument 14, names and texts aside (20 records): what is here is between, outputs as sessions have
them best. Median error of all 91 below 1,000 tokens: 7 before, 4 after; with Claude's own tokenizer 3 before, 0 after."""

CLAUDE_HIGH = replace(CLAUDE, tools=354, tool=8, schema=110)
"""Claude from 4.7 on. What is said about a schema is as before in its own tokens: of that there is no record, and of tools one conversation
with Sonnet 5, which cost up to 80 more. Median error of all 8: 28 before, 9 after."""

GEMINI_2 = Framing(system=1, message=1, answer=1, call=10, output=9, tool_form="declarations")
"""Gemini to 2.5: messages by 20 records, calls and outputs by 20. Signatures are free. Median error of all 48: 9 before, 3 after."""

GEMINI_3 = Framing(system=1, message=1, answer=1, call=1, output=1, sealed_calls=True, tools=4, tool_form="declarations")
"""Gemini from 3 on: by 48 records. Signatures of calls are charged (`signature_tokens`), and what else a call costs is in them. Median
error of all 50 below 1,000 tokens: 33 before, 12 after; of 5 above, 91.5 % before, 0.3 % after."""

OPENAI_4_TILES = frozenset({(85, 170), (2833, 5667)})
OPENAI_4_PATCHES = frozenset({Fraction("1.62"), Fraction("2.46")})
"""By what they charge for images, the models before GPT-5 and beside the o series."""


def framing_of(counter: TokenCounter) -> Framing:
    """What the provider adds for which the counter counts: its rule for images tells which one that is.

    Counters that are equal have the same framing, so what is remembered of an item for one holds for the other.
    """
    if isinstance(counter, TiktokenCounter | CtokCounter):
        return _framing(counter.image_rule)
    return PLAIN


def signature_tokens(signature: str) -> int:
    """Tokens of the thought signature that a call to Gemini 3 carries: 17 for 80 of its characters.

    Fitted on 22 records, with signatures from 232 to 12,732 characters. Vertex AI charges nothing for its own (11 records); they can be
    told by their first letter, since the Gemini API wraps them once more: field 2 of a message, 0x12, begins with E in base64. What
    begins otherwise is Vertex AI's, or stands for a signature that there is none of.
    """
    return len(signature) * 17 // 80 if signature.startswith("E") else 0


def _framing(rule: ImageRule) -> Framing:
    match rule:
        case ClaudeRule():
            return CLAUDE_HIGH if rule == claude_high_tokens else CLAUDE
        case TileRule():
            return OPENAI_4 if (rule.base, rule.tile) in OPENAI_4_TILES else OPENAI_5
        case PatchRule():
            return OPENAI_4 if rule.price in OPENAI_4_PATCHES else OPENAI_5
        case GeminiTileRule():
            return GEMINI_2
        case GeminiRule():
            return GEMINI_3
        case _:
            return PLAIN
