"""What no price list has, by name: output limits, image rules, tokenizers, and who binds thinking. The newest of a
family stands for those that are not known yet. First of a table's rows counts that fits; each names its source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from ..counting.images import ImageRule, claude_high_tokens, claude_standard_tokens, seed_image_tokens
from ..counting.images_gemini import GeminiRule, GeminiTileRule
from ..counting.images_openai import Limits, PatchRule, TileRule
from .names import bare, claude_version, family, gemini_version

T = TypeVar("T")

OUTPUT_LIMITS: tuple[tuple[str, int | None], ...] = (
    # https://platform.claude.com/docs/en/about-claude/models/overview, and the pages of older models
    (r"claude-(2|instant|v\d|3-(opus|sonnet|haiku))", 4_096),
    (r"claude-3[-.]5", 8_192),
    (r"claude-(3[-.]7|sonnet-4|4-sonnet|haiku-4|opus-4[-.]5)", 64_000),
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
    (r"gemini-(2\.5|3)", 65_536),
    (r"", None),
)
"""Tokens of an answer at most."""

_SMALL = Limits(side=2048, patches=1_536)
_WIDE = Limits(side=2048, patches=6_144)
_HIGH = Limits(side=2048, patches=2_500)
_LARGE = Limits(side=6_000, patches=10_000)
_BOX = Limits(side=512)
_WHOLE = Limits(side=65_535)


def _alike(price: str, limits: Limits) -> PatchRule:
    """A rule for which every detail has the same limits."""
    return PatchRule(Fraction(price), limits, limits, limits, limits)


OPENAI_IMAGES: tuple[tuple[str, ImageRule], ...] = (
    # https://developers.openai.com/api/docs/guides/images-vision; the mini and nano models that its table of sizes has dropped: as it
    # had them before
    (r"gpt-4o-mini", TileRule(2833, 5667)),
    (r"gpt-4\.1-mini", _alike("1.62", _WIDE)),
    (r"gpt-4\.1-nano", _alike("2.46", _SMALL)),
    (r"gpt-5-nano", _alike("1.5", _SMALL)),
    (r"gpt-5(\.1)?-(mini|codex-mini)|codex-mini", _alike("1.2", _SMALL)),
    (r"o4-mini", _alike("1.72", _SMALL)),
    (r"gpt-5\.[23](?!\d)", _alike("1.2", _WIDE)),
    (r"gpt-5\.4(?!\d)", PatchRule(Fraction("1.2"), low=_WIDE, high=_HIGH, original=_LARGE, default=_HIGH)),
    (r"gpt-5\.5(?!\d)", PatchRule(Fraction("1.2"), low=_BOX, high=_HIGH, original=_LARGE, default=_LARGE)),
    (r"gpt-5\.\d{2}|gpt-5\.[6-9]", PatchRule(Fraction("1.2"), low=_BOX, high=_HIGH, original=_WHOLE, default=_WHOLE)),
    (r"gpt-5", TileRule(70, 140)),
    (r"gpt-oss|gpt-3|gpt-4(-0\d|-32k|$)|o[13]-mini|o1-preview", seed_image_tokens),  # these see nothing
    (r"computer-use", TileRule(65, 129)),
    (r"gpt-4", TileRule(85, 170)),
    (r"\bo[13]", TileRule(75, 150)),
    (r"", PatchRule(Fraction("1.2"), low=_BOX, high=Limits(patches=2_500), original=_WHOLE, default=_WHOLE)),  # gpt-6
)

TOKENIZERS: tuple[tuple[str, str], ...] = (
    # https://github.com/openai/tiktoken, `model.py`; o200k_harmony, of gpt-oss, differs in special tokens only
    (r"gpt-3\.5-turbo-instruct|davinci|curie|babbage", "p50k_base"),
    (r"gpt-3|gpt-4(?![.\do])|text-embedding", "cl100k_base"),
    (r"", "o200k_base"),
)


@dataclass(frozen=True, slots=True)
class ToolsPreamble:
    """What Claude is told about tools beside their definitions, in tokens, by what the request says of calling them.

    Attributes:
        auto: It is free to call one, or must not.
        any: It must call one.
        named: It must call one by name: the name's own tokens aside.
    """

    auto: int
    any: int
    named: int


TOOLS_PREAMBLES: tuple[tuple[str, ToolsPreamble | None], ...] = (
    # https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview, as of November 2026. It has one figure for `any` and a tool
    # by name; of the latter, two thirds of the recorded requests say more for 4.1 and before (4 records) and for 4.5 (4). Where there are
    # none, two tokens are added for the words around the name.
    (r"claude-3[-.]5-haiku", ToolsPreamble(264, 355, 357)),
    (r"claude-(3|opus-4(?![-.][5-9])|sonnet-4(?![-.][5-9])|4-)", ToolsPreamble(313, 315, 274)),
    (r"claude-[a-z]+-4[-.]5", ToolsPreamble(496, 588, 590)),
    (r"claude-[a-z]+-4[-.]6", ToolsPreamble(497, 589, 591)),
    (r"claude-[a-z]+-4[-.]7", ToolsPreamble(675, 804, 806)),
    (r"claude-[a-z]+-4[-.]8", ToolsPreamble(290, 410, 412)),
    (r"claude", ToolsPreamble(354, 474, 476)),
    (r"", None),
)
"""By model; None where the provider's own framing has what there is."""


def tools_preamble(name: str) -> ToolsPreamble | None:
    """What the model is told about tools beside their definitions; None where that does not go by the model."""
    return _first(TOOLS_PREAMBLES, name)


def output_limit(name: str) -> int | None:
    """Tokens of an answer at most; None where not known."""
    return None if family(name) == "other" else _first(OUTPUT_LIMITS, name)


def image_rule(name: str) -> ImageRule:
    """What the model's provider charges for images."""
    match family(name):
        case "claude":
            return claude_high_tokens if claude_version(name) >= (4, 7) else claude_standard_tokens
        case "openai":
            return _first(OPENAI_IMAGES, name)
        case "google" if "gemini" in name.lower():
            return GeminiRule() if gemini_version(name) >= (3, 0) else GeminiTileRule()
        case _:
            return seed_image_tokens


def tokenizer(name: str) -> str:
    """What the model's tokenizer is called here, Claude's by the first model that had it."""
    match family(name):
        case "claude":
            return "claude 4.7" if claude_version(name) >= (4, 7) else "claude 3"
        case "openai":
            return _first(TOKENIZERS, name)
        case "google":
            return "gemini"
        case _:
            return "unknown"


def binds_thinking(name: str) -> bool:
    """Whether the model refuses reasoning after an edited place (docs/provider-rules.md, A5).

    https://platform.claude.com/docs/en/build-with-claude/preserved-thinking, as of November 2026: Fable 5.1 and later, Opus, Sonnet and
    Haiku 5.5, Mythos 5.2; not Mythos 5.1, and none before Fable 5.1. All later models will, so one that is not known does. Accounts
    older than 2026-08-31 are checked only if they ask for it: they may pass `ModelConfig(binds_thinking=False)`.
    """
    version = claude_version(name)
    return family(name) == "claude" and version >= (5, 1) and not ("mythos" in name.lower() and version == (5, 1))


def _first(table: tuple[tuple[str, T], ...], name: str) -> T:
    short = bare(name)
    return next(value for pattern, value in table if re.search(pattern, short))
