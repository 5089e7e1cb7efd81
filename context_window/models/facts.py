"""Facts about models that no price list has: output limits, image rules, tokenizers, tool prompts, bound thinking.

Each table maps patterns of names to values and cites its sources. The first matching row is used. A model that is not known yet is
treated like the newest of its family.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from ..counting.images import ImageRule, claude_high_tokens, claude_standard_tokens, estimated_image_tokens
from ..counting.images_gemini import GeminiRule, GeminiTileRule
from ..counting.images_makers import Maker, MakerRule
from ..counting.images_openai import BlindRule, PatchRule, ResizeLimits, TileRule
from .names import bare, claude_version, family, gemini_version, is_on_responses, is_on_vertex

T = TypeVar("T")

OUTPUT_LIMITS: tuple[tuple[str, int | None], ...] = (
    # https://platform.claude.com/docs/en/about-claude/models/overview, and the pages of older models
    (r"claude-(2|instant|v\d|3-(opus|sonnet|haiku))", 4_096),
    (r"claude-3[-.]5", 8_192),
    (r"claude-(3[-.]7|sonnet-4(?![-.]6)|4-sonnet|haiku-4|opus-4[-.]5)", 64_000),
    (r"claude-(opus-4(?![-.][6-9])|4-opus)", 32_000),
    (r"claude", 128_000),
    # https://developers.openai.com/api/docs/models
    (r"gpt-5-pro", 272_000),
    (r"gpt-5.*chat|gpt-5\.3(?!-codex)|gpt-4o(?!-2024-05)", 16_384),
    (r"gpt-[56]", 128_000),
    (r"gpt-4\.1", 32_768),
    (r"gpt-4o|gpt-3|gpt-4-(turbo|vision|1106|0125)", 4_096),
    (r"gpt-4(?!\.)", 8_192),
    (r"gpt-oss", 131_072),
    (r"o1-mini", 65_536),
    (r"o1-preview", 32_768),
    (r"\bo[134](?!\d)|codex-mini", 100_000),
    # https://ai.google.dev/gemini-api/docs/models
    (r"gemini-(1|2\.0|pro$|pro-[1v]|flash-1)|-tts|-live", 8_192),
    (r"gemini-2\.5-computer-use", 64_000),
    (r"gemini-(2\.5|3)", 65_536),
    (r"", None),
)
"""Maximum tokens of an answer."""

ANSWERS_ONLY = 128_000
"""Tokens of a window of GPT-5 and later that a prompt cannot use. https://developers.openai.com/api/docs/models/gpt-5"""

_SMALL = ResizeLimits(side=2048, patches=1_536)
_WIDE = ResizeLimits(side=2048, patches=6_144)
_HIGH = ResizeLimits(side=2048, patches=2_500)
_LARGE = ResizeLimits(side=6_000, patches=10_000)
_BOX = ResizeLimits(side=512)
_WHOLE = ResizeLimits(side=65_535)


def _same_for_all_details(price: str, limits: ResizeLimits) -> PatchRule:
    """Return a rule with the same limits for every detail."""
    return PatchRule(Fraction(price), limits, limits, limits, limits)


OPENAI_IMAGES: tuple[tuple[str, ImageRule], ...] = (
    # https://developers.openai.com/api/docs/guides/images-vision. Its table of sizes no longer has the mini and nano models; their rows
    # are those of an earlier version of the page.
    (r"gpt-4o-mini", TileRule(2833, 5667)),
    (r"gpt-4\.1-mini", _same_for_all_details("1.62", _WIDE)),
    (r"gpt-4\.1-nano", _same_for_all_details("2.46", _SMALL)),
    (r"gpt-5-nano", _same_for_all_details("1.5", _SMALL)),
    (r"gpt-5(\.1)?-(mini|codex-mini)|codex-mini", _same_for_all_details("1.2", _SMALL)),
    (r"o4-mini", _same_for_all_details("1.72", _SMALL)),
    (r"gpt-5\.[23](?!\d)", _same_for_all_details("1.2", _WIDE)),
    (r"gpt-5\.4(?!\d)", PatchRule(Fraction("1.2"), low=_WIDE, high=_HIGH, original=_LARGE, default=_HIGH)),
    (r"gpt-5\.5(?!\d)", PatchRule(Fraction("1.2"), low=_BOX, high=_HIGH, original=_LARGE, default=_LARGE)),
    (r"gpt-5\.\d{2}|gpt-5\.[6-9]", PatchRule(Fraction("1.2"), low=_BOX, high=_HIGH, original=_WHOLE, default=_WHOLE)),
    (r"gpt-5", TileRule(70, 140)),
    (r"gpt-oss", estimated_image_tokens),  # neither these nor the next two rows can see images
    (r"gpt-3|gpt-4(-0\d|-32k|$)", BlindRule()),
    (r"\bo[13]-mini|o1-preview", BlindRule(reasons=True)),
    (r"computer-use", TileRule(65, 129)),
    (r"gpt-4", TileRule(85, 170)),
    (r"\bo[13]", TileRule(75, 150)),
    (r"", PatchRule(Fraction("1.2"), low=_BOX, high=ResizeLimits(patches=2_500), original=_WHOLE, default=_WHOLE)),  # gpt-6
)

TOKENIZERS: tuple[tuple[str, str], ...] = (
    # https://github.com/openai/tiktoken, `model.py`; o200k_harmony, of gpt-oss, differs in special tokens only
    (r"gpt-3\.5-turbo-instruct|davinci|curie|babbage", "p50k_base"),
    (r"gpt-3|gpt-4(?![.\do])|text-embedding", "cl100k_base"),
    (r"", "o200k_base"),
)


@dataclass(frozen=True, slots=True)
class ToolsPreamble:
    """Tokens of Anthropic's text about tools, without the definitions, by the request's `tool_choice`.

    Attributes:
        auto: The model may call a tool, or must not call any.
        any: The model must call a tool.
        named: The model must call a certain tool. Does not include the tokens of its name.
    """

    auto: int
    any: int
    named: int


TOOLS_PREAMBLES: tuple[tuple[str, ToolsPreamble | None], ...] = (
    # https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview, as of November 2026. The page has one figure for `any` and a
    # named tool. For named tools the recorded requests (two thirds of them) differ from it, for 4.1 and before (4 records) and for 4.5
    # (4 records). Without records, two tokens are added for the words around the name.
    (r"claude-3([-.]5)?-haiku", ToolsPreamble(264, 355, 353)),  # a named tool: 353 to 357 (7 records)
    (r"claude-(3|opus-4(?![-.][5-9])|sonnet-4(?![-.][5-9])|4-)", ToolsPreamble(313, 315, 274)),
    (r"claude-[a-z]+-4[-.]5", ToolsPreamble(496, 588, 590)),
    (r"claude-[a-z]+-4[-.]6", ToolsPreamble(497, 589, 591)),
    (r"claude-[a-z]+-4[-.]7", ToolsPreamble(675, 804, 806)),
    # Opus 5: the example with a tool of https://platform.claude.com/docs/en/build-with-claude/token-counting costs 403 with it.
    (r"claude-([a-z]+-4[-.]8|opus-5(?![-.]\d))", ToolsPreamble(290, 410, 412)),
    (r"claude", ToolsPreamble(354, 474, 476)),
    (r"", None),
)
"""By model; None if the provider's framing already has the figure."""


OTHER_FRAMES: tuple[tuple[str, int], ...] = (
    # Requests of one short text, as recorded: a system prompt that the provider adds and does not show.
    (r"grok-code", 196),
    (r"grok-4", 148),
    # https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/: the date, and until when the model was trained
    (r"llama-?3[.-]?[123](?!\d)", 30),
    (r"", 0),
)

OTHER_MAKERS: tuple[tuple[str, Maker | None], ...] = (
    (r"deepseek-(chat-)?v3-?0324", "deepseek 3"),
    (r"deepseek", "deepseek"),
    (r"glm-", "glm"),
    (r"grok-code", "grok code"),
    (r"grok-2", "grok 2"),
    (r"grok-3", "grok 3"),
    (r"grok", "grok 4"),
    (r"kimi-k2(?!\.)", "kimi 2"),
    (r"kimi", "kimi"),
    (r"llama-?4", "llama 4"),
    (r"llama-?3[.-]?[123](?!\d)", "llama 3.1"),
    (r"llama-?3", "llama 3"),
    (r"qwen-?3(\.[5-9]|-coder)", "qwen coder"),
    (r"qwen|qwq", "qwen"),
    (r"mistral|devstral|magistral|ministral|codestral", "mistral"),
    (r"nova-(micro|lite|pro|premier)", "nova"),
    (r"", None),
)


def tools_preamble(name: str) -> ToolsPreamble | None:
    """Return the tokens of the text about tools for this model; None if they do not depend on the model."""
    return _first_match(TOOLS_PREAMBLES, name)


def output_limit(name: str) -> int | None:
    """Return the maximum tokens of an answer, or None if unknown."""
    return None if family(name) == "other" else _first_match(OUTPUT_LIMITS, name)


def input_limit(name: str, window: int) -> int:
    """Return the maximum tokens of a prompt.

    GPT-5 has a window of 400,000 tokens and refuses prompts above 272,000. The same holds for the later models of OpenAI and their
    windows. Small windows, such as those of the chat models, can be filled by the prompt.
    """
    keeps_room = window > 2 * ANSWERS_ONLY and re.search(r"gpt-([5-9]|\d\d)", bare(name)) is not None
    return window - ANSWERS_ONLY if keeps_room else window


def image_rule(name: str) -> ImageRule:
    """Return the image rule of the model's provider."""
    match family(name):
        case "claude":
            return claude_high_tokens if claude_version(name) >= (4, 7) else claude_standard_tokens
        case "openai":
            rule = _first_match(OPENAI_IMAGES, name)
            return replace(rule, on_responses=True) if isinstance(rule, PatchRule | TileRule) and is_on_responses(name) else rule
        case "google" if "gemini" in name.lower():
            version, on_vertex = gemini_version(name), is_on_vertex(name)
            if version >= (3, 0):
                return GeminiRule(texts_only=on_vertex)
            before = version < (2, 5)
            tiles = "2.5-flash" not in bare(name)
            return GeminiTileRule(has_tiles=tiles, texts_only=on_vertex or before, seals_calls=on_vertex and not before)
        case _:
            maker = _first_match(OTHER_MAKERS, name)
            return estimated_image_tokens if maker is None else MakerRule(maker)


def tokenizer(name: str) -> str:
    """Return our name of the model's tokenizer. Claude's are named after the first model that had them."""
    match family(name):
        case "claude":
            return "claude 4.7" if claude_version(name) >= (4, 7) else "claude 3"
        case "openai":
            return _first_match(TOKENIZERS, name)
        case "google":
            return "gemini"
        case _:
            return "unknown"


def binds_thinking(name: str) -> bool:
    """True if the model refuses reasoning after an edited place (docs/provider-rules.md, A5).

    https://platform.claude.com/docs/en/build-with-claude/preserved-thinking, as of November 2026: Fable 5.1 and later, Opus, Sonnet and
    Haiku 5.5, Mythos 5.2; not Mythos 5.1, and none before Fable 5.1. All later models will, so an unknown one is assumed to. Accounts
    older than 2026-08-31 are checked only if they opt in: they may pass `ModelConfig(binds_thinking=False)`.
    """
    version = claude_version(name)
    return family(name) == "claude" and version >= (5, 1) and not ("mythos" in name.lower() and version == (5, 1))


def frame(name: str) -> int:
    """Return the tokens of an empty request.

    For gpt-oss these are the system message that its format prescribes, with date and channels
    (https://cookbook.openai.com/articles/openai-harmony); for DeepSeek 4, what its Responses API adds and does not show (3 records).
    """
    version = claude_version(name)
    match family(name):
        case "claude":
            return 7 if version < (4, 7) else 11 if version == (4, 7) else 6
        case "openai":
            return 65 if "gpt-oss" in bare(name) else 0
        case "other":
            return _first_match(OTHER_FRAMES, name) + (80 if "deepseek-v4" in bare(name) and is_on_responses(name) else 0)
        case _:
            return 0


def drops_thinking(name: str) -> bool:
    """True if the reasoning of earlier turns is left out of the prompt, so that it costs nothing.

    Claude up to 4.5 except Opus 4.5 (https://platform.claude.com/docs/en/build-with-claude/extended-thinking, as of November 2026; 3
    records), OpenAI's models before GPT-5.6, which has a setting for it (2 records), and Gemini before 3.5 (4 records), which keeps it
    (https://ai.google.dev/gemini-api/docs/whats-new-gemini-3.5; 14 records). Thinking of Gemini that is shown stays (3 records).
    """
    short = bare(name)
    match family(name):
        case "claude":
            version = claude_version(name)
            return (3, 7) <= version <= (4, 5) and not (version == (4, 5) and "opus" in short)
        case "openai":
            return re.search(r"gpt-5(?!\.([6-9]|\d\d))|\bo[134](?!\d)|codex-mini", short) is not None
        case "google":
            return gemini_version(name) < (3, 5)
        case _:
            return False


def _first_match(table: tuple[tuple[str, T], ...], name: str) -> T:
    short = bare(name)
    return next(value for pattern, value in table if re.search(pattern, short))
