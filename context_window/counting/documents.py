"""What a document costs whose text is not known: a price a page, by provider. Documents that are text are their counter's to count.

An estimate, and the roughest of all here: what is written on a page is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from session.estimate import BYTES_A_PAGE, PAGE_TOKENS
from session.parts import Document

from .pdf import is_pdf, pdf_pages

DocumentRule: TypeAlias = Callable[[Document], int | None]
"""Tokens of a document, its title aside; None where the rule has nothing to say: it is text, or its bytes are elsewhere."""

BYTES_A_TOKEN = 3
"""Of text that comes as bytes: code and tables have about three bytes a token."""


@dataclass(frozen=True, slots=True)
class PageRule:
    """Tokens of a document: so many a page of a PDF, and of other bytes that are text a third of their number.

    Attributes:
        page: Tokens of a page.
    """

    page: int

    def __call__(self, document: Document) -> int | None:
        """Tokens of the document, or None."""
        data = document.data
        if document.text is not None or data is None:
            return None
        if is_pdf(data):
            return self.page * (pdf_pages(data) or 1 + len(data) // BYTES_A_PAGE)
        return -(-len(data) // BYTES_A_TOKEN) if _is_text(document.media_type, data) else None


claude_pages = PageRule(2_500)
"""Claude reads the text of a page and looks at the page: https://platform.claude.com/docs/en/build-with-claude/pdf-support speaks of
1,500 to 3,000 tokens of text, and an image beside it of about 1,580; sparse pages are 1,640 in all, full ones 2,100 to 2,500."""

openai_pages = PageRule(1_500)
"""OpenAI's models, too, get a page's text and its image (https://developers.openai.com/api/docs/guides/pdf-files): some 800 to 1,050
tokens for a page with little text, 500 more for a full one."""

gemini_2_pages = PageRule(258)
"""Gemini 2: 258 a page, whatever is on it (https://ai.google.dev/gemini-api/docs/document-processing)."""

gemini_pages = PageRule(560)
"""From Gemini 3 on: at most 560 a page (https://ai.google.dev/gemini-api/docs/media-resolution); 520 for a letter, 532 for an A4."""

seed_pages = PageRule(PAGE_TOKENS)
"""Where the provider is not known."""


def _is_text(media_type: str | None, data: bytes) -> bool:
    """Whether a provider would read the bytes as text."""
    kind = (media_type or "").lower()
    if not kind.startswith("text/") and not kind.endswith(("json", "xml", "yaml", "javascript")):
        return False
    return b"\0" not in data[:4096]
