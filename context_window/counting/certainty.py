"""How sure a count is: the interval in which the provider's own count of the same request usually lies.

Each kind of content has an error that is set so that 95 % of the recorded requests lie in their intervals (`benchmarks/token_accuracy.py`
prints the share). Requests that were held out when counts were fitted have been looked at for these widths. What cannot be known before the
provider answers is a range: an image or a document behind a URL or a file id, a PDF whose pages cannot be counted, a recording without its
length, what a host of an open model writes about tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from session.items import FunctionCall, Item, Reasoning, parts_of_item
from session.parts import Document, Image, Part

from .counter import TokenCounter
from .ctok_counter import CtokCounter
from .documents import openai_detailed_pages, openai_pages, text_of
from .framing import framing_of
from .images import ClaudeRule, claude_high_tokens, document_rule_of, estimated_image_tokens
from .images_gemini import GeminiRule, GeminiTileRule
from .images_makers import MakerRule
from .images_openai import BlindRule, PatchRule, TileRule
from .office import office_text
from .pdf import is_pdf, pdf_pages
from .recordings import has_length, kind_of
from .tiktoken_counter import TiktokenCounter

Kind: TypeAlias = Literal["text", "tools", "thinking", "images", "pages", "recordings"]
Spread: TypeAlias = Mapping[Kind, float]

LEAST = 8
"""Tokens by which any request may be off: the share of so small an error says nothing."""
HOST_TOOLS = 510
"""Tokens of text about tools that a host may add to an open model's own: those of the longest that a maker publishes, Llama 4's."""
CHAT_PAGES = 215, 1_000
"""Tokens for the image of a page in OpenAI's Chat Completions: of two files with GPT-4o and GPT-5 mini, and of one with GPT-4.1 nano and
GPT-5.4. It may depend on the file or on the model."""
LARGE = 8_192
"""Side in pixels of an image that costs the most of its provider."""

CTOK: Spread = {"text": 0.01, "tools": 0.03, "thinking": 0.06, "images": 0.02, "pages": 0.02, "recordings": 1}
CLAUDE: Spread = {"text": 0.08, "tools": 0.10, "thinking": 0.05, "images": 0.02, "pages": 0.02, "recordings": 1}
OPENAI: Spread = {"text": 0.02, "tools": 0.08, "thinking": 0.5, "images": 0.1, "pages": 0.15, "recordings": 0.2}
GEMINI: Spread = {"text": 0.01, "tools": 0.08, "thinking": 0.25, "images": 0.02, "pages": 0.7, "recordings": 0.2}
OTHER: Spread = {"text": 0.15, "tools": 0.33, "thinking": 0.37, "images": 1, "pages": 1, "recordings": 1}


class Interval(NamedTuple):
    """Where the provider's count of a request usually lies, in tokens: around the count; `most` is None if there is no telling."""

    least: int
    most: int | None


def interval_of(
    total: int, items: Iterable[tuple[Item, int]], tools: int, counter: TokenCounter, error: float, deferred: int = 0
) -> Interval | None:
    """Return the interval of a count; None if nothing is known about the counter.

    The items are those that are sent, each with its count; `error` is the usual relative error of a caller's own counter, 0 if it is not
    known; `deferred` are the tokens of tools that wait for a search: what has been loaded without one is not in the log.
    """
    spread = _spread_of(counter, error)
    if spread is None:
        return None
    slack, below, above, counted, is_open = LEAST + spread["tools"] * tools, 0, deferred, tools, False
    for item, tokens in items:
        unknown = 0
        for part in parts_of_item(item):
            if (reach := _range_of(part, counter)) is not None:
                count, least, most = reach
                count = min(count, tokens - unknown)
                unknown, below, is_open = unknown + count, below + max(0, count - least), is_open or most is None
                above += max(0, (most or 0) - count)
        above += _unseen_thinking(item, tokens, counter)
        slack += spread[_kind_of(item)] * (tokens - unknown)
        counted += tokens
    slack += spread["text"] * max(0, total - counted)
    above += HOST_TOOLS if tools and spread is OTHER and _is_open(counter) else 0
    return Interval(max(0, int(total - slack - below)), None if is_open else int(total + slack + above) + 1)


def _spread_of(counter: TokenCounter, error: float) -> Spread | None:
    rule = getattr(counter, "image_rule", None)
    if isinstance(counter, CtokCounter):
        return CTOK
    if isinstance(counter, TiktokenCounter):
        match rule:
            case ClaudeRule():
                return CLAUDE
            case PatchRule() | TileRule() | BlindRule():
                return OPENAI
            case GeminiRule() | GeminiTileRule():
                return GEMINI
        return OTHER
    return dict.fromkeys(OTHER, error) if error else None


def _unseen_thinking(item: Item, tokens: int, counter: TokenCounter) -> int:
    """Return the tokens that a signature may hold beyond the thinking that is shown: from Claude 4.7 on, that may be a summary.

    https://platform.claude.com/docs/en/build-with-claude/extended-thinking charges for the thinking, not for its summary (2 records).
    """
    if not isinstance(item, Reasoning) or not item.text or getattr(counter, "image_rule", None) != claude_high_tokens:
        return 0
    return max(0, int(len(item.signature or "") * framing_of(counter).signature) - tokens)


def _is_open(counter: TokenCounter) -> bool:
    """True if what is said about tools is not known: if many hosts serve the model, or if there is too little of it in records."""
    rule = getattr(counter, "image_rule", None)
    return not isinstance(rule, MakerRule) or rule.maker.startswith(("llama", "nova", "qwen"))


def _kind_of(item: Item) -> Kind:
    """Return the kind of an item; of several, the one that is hardest to count."""
    parts = [part for part in parts_of_item(item) if isinstance(part, Image | Document)]
    files = [part for part in parts if isinstance(part, Document) and text_of(part) is None]
    if any(kind_of(part.media_type) for part in files):
        return "recordings"
    if files:
        return "pages"
    if isinstance(item, Reasoning) or (isinstance(item, FunctionCall) and "thought_signature" in item.metadata):
        return "thinking"
    return "images" if parts else "tools" if isinstance(item, FunctionCall) else "text"


def _range_of(part: Part, counter: TokenCounter) -> tuple[int, int, int | None] | None:
    """Return the count of a part whose size is not known, and the least and the most it may cost; None if its size is known."""
    if isinstance(part, Image):
        if part.width is not None and part.height is not None:
            return None
        count = counter.count_part(part)
        sizes = (Image(url="-", width=side, height=side, detail=part.detail) for side in (1, LARGE))
        small, large = map(counter.count_part, sizes)
        return count, min(small, count), max(large, count)
    if not isinstance(part, Document) or text_of(part) is not None:
        return None
    rule = document_rule_of(getattr(counter, "image_rule", estimated_image_tokens))
    if rule in (openai_pages, openai_detailed_pages) and part.data is not None and (pages := pdf_pages(part.data)):
        count, price = counter.count_part(part), CHAT_PAGES[rule == openai_detailed_pages]
        least, most = (count + (end - price) * pages for end in CHAT_PAGES)
        return count, int(least * (1 - OPENAI["pages"])), int(most * (1 + OPENAI["pages"]))
    if _is_measured(part):
        return None
    return counter.count_part(part), 0, None


def _is_measured(document: Document) -> bool:
    """True if the document's text, pages or length can be read from its bytes."""
    data = document.data
    if data is None:
        return False
    if is_pdf(data):
        return pdf_pages(data) is not None
    kind = kind_of(document.media_type)
    return has_length(data) if kind else office_text(document) is not None
