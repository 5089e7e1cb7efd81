"""What a document costs: pages counted in the bytes, a price a page by provider, and files that lie, bomb or break."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.counting import TiktokenCounter
from context_window.counting.documents import PageRule, claude_pages
from context_window.counting.pdf import MOST_PAGES, is_pdf, pdf_pages
from context_window.models import describe_model
from session.estimate import BYTES_A_PAGE
from session.parts import Document

HEADER = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


def pdf(pages: int, *, count: bool = True) -> bytes:
    """A PDF as old writers make it: every object in plain sight."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [ ] /Count %d >>" % pages if count else b"<< /Type /Pages >>"]
    objects += [b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"] * pages
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, one) for number, one in enumerate(objects, 1))
    return HEADER + body + b"trailer << /Root 1 0 R >>\n%%EOF\n"


def packed(content: bytes, newline: bytes = b"\n") -> bytes:
    """A PDF as new writers make it: the objects in a compressed stream."""
    data = zlib.compress(content)
    head = b"1 0 obj\n<< /Type /ObjStm /N 9 /First 60 /Filter /FlateDecode /Length %d >>\nstream" % len(data)
    return HEADER + head + newline + data + b"\nendstream\nendobj\n%%EOF\n"


@pytest.mark.parametrize("pages", [1, 2, 17, 300])
def test_pages_are_counted(pages: int) -> None:
    assert pdf_pages(pdf(pages)) == pdf_pages(pdf(pages, count=False)) == pages
    assert pdf_pages(packed(b"<</Type/Pages/Count 3>>" + b"<</Type/Page/Parent 2 0 R>>" * pages)) == pages
    assert pdf_pages(packed(b"<< /Type /Page >> " * pages, b"\r\n")) == pages


def test_where_no_page_is_seen_the_trees_count_is_believed() -> None:
    assert pdf_pages(HEADER + b"<< /Type /Pages /Count 12 /Kids [3 0 R] >> << /Count 4 >>") == 12
    assert pdf_pages(packed(b"<</Type/Pages/Kids[9 0 R]/Count 7>>")) == 7
    assert pdf_pages(HEADER + b"1 0 obj\n<< /Linearized 1 /L 9999 /O 3 /E 800 /N 5 /T 99 >>\nendobj") == 5


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEADER,
        HEADER + b"/Type /PageLabels /Type /Pages /Type /Pag",
        HEADER + b"<< /Type /ObjStm >> stream\nnot compressed\nendstream",
        HEADER + b"<< /Type /ObjStm >> stream",
        HEADER + b"<< /Type /ObjStm >>",
        HEADER + b"/Count -5 /Count 0 /Count 99999999999999999999",
    ],
)
def test_where_nothing_tells_no_number_is_made_up(data: bytes) -> None:
    assert pdf_pages(data) is None


def test_a_file_that_claims_too_much_is_not_believed() -> None:
    assert pdf_pages(HEADER + b"<< /Type /Pages /Count 9999999 >>") == MOST_PAGES
    assert pdf_pages(HEADER + b"<</Type/Page>>" * 5_000) == MOST_PAGES


HOSTILE: dict[str, Callable[[], bytes]] = {
    "streams that inflate without end": lambda: packed(b"\0" * 1_000_000) * 1_000,
    "streams that never end": lambda: HEADER + b"<< /Type /ObjStm >> stream\n" * 200_000,
    "many names": lambda: HEADER + b"/Type " * 2_000_000,
    "blanks": lambda: HEADER + b"/Type" + b" " * 10_000_000,
    "linearized again and again": lambda: HEADER + b"/Linearized " * 500_000,
    "a number of millions of digits": lambda: HEADER + b"/Count " + b"1" * 5_000_000,
}
"""Files made to take long, or to grow when they are opened."""


@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_takes_long(name: str) -> None:
    data = HOSTILE[name]()
    start = time.process_time()
    assert pdf_pages(data) is None
    assert time.process_time() - start < 4


@given(
    data=st.binary(max_size=300)
    | st.lists(st.sampled_from([b"/Type", b" ", b"/Page", b"/ObjStm", b"stream", b"\n", b"/Count 3", b"x"])).map(b"".join)
)
def test_any_bytes_give_a_number_of_pages_or_none(data: bytes) -> None:
    for one in (data, HEADER + data):
        pages = pdf_pages(one)
        assert pages is None or 1 <= pages <= MOST_PAGES


@pytest.mark.parametrize(
    ("model", "page"),
    [("claude-opus-4-8", 2_500), ("gpt-5.4", 1_500), ("gemini-2.5-pro", 258), ("gemini-3-pro", 560), ("my-own", 2_000), ("gpt-4", 2_000)],
)
def test_a_document_costs_so_much_a_page(model: str, page: int) -> None:
    rule = describe_model(model).document_rule
    assert rule(Document(data=pdf(3))) == 3 * page
    assert rule(Document(data=b"some bytes before " + pdf(1), media_type="application/pdf")) == page
    encrypted = HEADER + b"\x80" * (2 * BYTES_A_PAGE)
    assert rule(Document(data=encrypted)) == 3 * page  # by its size, as nothing in it tells


def test_what_no_page_rule_knows_is_left_to_the_caller() -> None:
    for document in (
        Document(text="plain"),
        Document(url="https://example.org/a.pdf"),
        Document(file_id="f"),
        Document(data=b"PK\x03\x04"),
    ):
        assert claude_pages(document) is None
    assert claude_pages(Document(data=b"\0\1\2", media_type="text/plain")) is None


@pytest.mark.parametrize("kind", ["text/csv", "text/plain; charset=utf-8", "application/json", "TEXT/Markdown"])
def test_text_that_comes_as_bytes_costs_a_third_of_them(kind: str) -> None:
    assert PageRule(1)(Document(data=b"a,b\n1,2\n" * 30, media_type=kind)) == 80
    assert PageRule(1)(Document(data=b"", media_type=kind)) == 0


@given(data=st.binary(min_size=0, max_size=100), kind=st.none() | st.sampled_from(["application/pdf", "text/plain", "x"]))
def test_a_count_is_never_negative(data: bytes, kind: str | None) -> None:
    tokens = claude_pages(Document(data=data, media_type=kind))
    assert tokens is None or tokens >= 0


def test_bytes_are_a_pdf_by_their_header() -> None:
    assert is_pdf(pdf(1))
    assert is_pdf(b"\r\n" * 100 + pdf(1))
    assert not is_pdf(b" " * 2_000 + pdf(1))
    assert not is_pdf(b"PDF")


def test_a_counter_counts_documents_by_the_rule_of_the_images_provider() -> None:
    pages = Document(data=pdf(3))
    for name in ("claude-sonnet-4-5", "gpt-5", "gemini-3-pro"):
        model = describe_model(name)
        expected = model.document_rule(pages)
        assert expected is not None
        assert TiktokenCounter(model.image_rule).count_part(pages) == expected
    assert TiktokenCounter(model.image_rule).count_part(Document(text="a b c")) == TiktokenCounter().count_text("a b c")
