"""Token prices of documents that are files: of a PDF per page and for its text, by provider. A document with text is counted by its text.

These are the roughest estimates in this package: the text of a PDF is measured, not read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import TypeAlias

from session.estimate import BYTES_PER_PAGE, PAGE_TOKENS
from session.parts import Document

DocumentRule: TypeAlias = Callable[[Document], int | None]
"""Returns the tokens of a document without its title; None if it is text, or its bytes are not available or of an unknown kind."""


@dataclass(frozen=True, slots=True)
class PageRule:
    """Tokens of a document: those of the pages of a PDF and of its text, or those of the seconds of a recording.

    Attributes:
        page: Tokens per page of a PDF whose text cannot be read.
        image: Tokens per page of any other PDF, besides its text; None if they are `page`. A function of the page's width and height
            in points, if it depends on them.
        text: Tokens per 1,000 characters of text in a PDF; 0 if text is free.
        audio: Tokens per second of sound; 0 if the provider takes none.
        video: Tokens per second of video, its sound included; 0 if the provider takes none.
        recording: Tokens of any recording, besides its seconds.
    """

    page: int
    image: int | Callable[[int, int], int] | None = None
    text: int = 0
    audio: int = 0
    video: int = 0
    recording: int = 0

    def __call__(self, document: Document) -> int | None:
        """Return the tokens of the document, or None if the rule does not apply."""
        data = document.data
        if document.text is not None or data is None:
            return None
        from .pdf import is_pdf
        from .recordings import kind_of, seconds_of

        if is_pdf(data):
            return self._pdf_tokens(data)
        if (kind := kind_of(document.media_type)) and (rate := self.audio if kind == "audio" else self.video):
            return self.recording + ceil(rate * seconds_of(data, kind))
        return None

    def _pdf_tokens(self, data: bytes) -> int:
        from .pdf import pdf_pages
        from .pdf_text import page_size, text_characters

        pages = pdf_pages(data)
        if pages is None:
            return self.page * (1 + len(data) // BYTES_PER_PAGE)
        if callable(self.image):
            return pages * self.image(*page_size(data))
        characters = None if self.image is None else text_characters(data)
        if self.image is None or characters is None:
            return pages * self.page
        return pages * self.image + -(-characters * self.text // 1_000)


claude_pages = PageRule(2_500, image=1_580, text=300)
"""Claude to 4.6 gets a page's text and its image (https://platform.claude.com/docs/en/build-with-claude/pdf-support): 1,575 to 1,590 for
the image of a page (3 records of 2 files). The text of a full page costs about 1,000."""

claude_high_pages = PageRule(2_750, image=1_580, text=375)
"""Claude from 4.7 on, whose text costs a quarter more. That the image costs the same is assumed: there is no record of it."""

openai_pages = PageRule(1_500, image=215, text=260, audio=10, recording=4)
"""OpenAI's models too get a page's text and its image (https://developers.openai.com/api/docs/guides/file-inputs). To GPT-5.3, Chat
Completions charges 213 to 216 for the image (4 records of 2 files). A recording costs 10 tokens a second and 4 besides (1 record)."""

openai_read_4 = replace(openai_pages, page=1_000, image=32)
openai_read_5 = replace(openai_pages, page=1_000, image=10)
"""In Responses, models before GPT-5.6 get the pages in low detail unless the request asks for more
(https://developers.openai.com/api/docs/guides/file-inputs), which costs little: 32 for GPT-4o, 10 for GPT-5.4 (1 file each)."""

openai_detailed_pages = replace(openai_pages, page=2_000, image=1_000)
"""From GPT-5.4 on: 993 for the image in Chat Completions (1 record). GPT-4.1 nano was charged the same for the same file, so that it may
depend on the file: intervals reach from one price to the other (`certainty.py`)."""

gemini_2_pages = PageRule(258, audio=32, video=300)
"""Gemini 2: 258 per page, whatever its content (https://ai.google.dev/gemini-api/docs/document-processing)."""

mistral_pages = PageRule(1_000, image=10, text=300)
"""Mistral reads the text of a PDF and sends that (https://docs.mistral.ai/studio-api/document-processing/document_qna)."""

estimated_pages = PageRule(PAGE_TOKENS)
"""For unknown providers."""


def text_of(document: Document) -> str | None:
    """Return the text of a document, also if it comes as bytes; None if the document is no text."""
    name, data = (document.media_type or "").lower(), document.data
    if data is None or not (name.startswith("text/") or name.endswith(("json", "xml", "yaml", "javascript"))) or b"\0" in data[:4096]:
        return document.text
    return data.decode("utf-8", "replace")
