"""What a document costs: pages counted in the bytes, a price a page by provider, and files that lie, bomb or break."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.counting import CallableCounter, TiktokenCounter
from context_window.counting.documents import claude_pages
from context_window.counting.pdf import MOST_PAGES, is_pdf, pdf_pages
from context_window.counting.pdf_text import page_size, text_characters
from context_window.models import describe_model
from session.estimate import BYTES_PER_PAGE
from session.parts import Document

HEADER = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


def pdf(pages: int, *, count: bool = True) -> bytes:
    """A PDF as old writers make it: every object in plain sight."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [ ] /Count %d >>" % pages if count else b"<< /Type /Pages >>"]
    objects += [b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"] * pages
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, content) for number, content in enumerate(objects, 1))
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
    for content in (data, HEADER + data):
        pages = pdf_pages(content)
        assert pages is None or 1 <= pages <= MOST_PAGES


@pytest.mark.parametrize(
    ("model", "page"),
    [
        ("claude-sonnet-4-5", 2_500),
        ("claude-opus-4-8", 2_750),
        ("gpt-4o", 1_500),
        ("gpt-5.4", 2_000),
        ("gemini-2.5-pro", 258),
        ("my-own", 2_000),
        ("gpt-4", 1_500),
    ],
)
def test_a_document_that_cannot_be_read_costs_so_much_a_page(model: str, page: int) -> None:
    rule = describe_model(model).document_rule
    assert rule(Document(data=pdf(3))) == 3 * page
    assert rule(Document(data=b"some bytes before " + pdf(1), media_type="application/pdf")) == page
    encrypted = HEADER + b"\x80" * (2 * BYTES_PER_PAGE)
    assert rule(Document(data=encrypted)) == 3 * page  # by its size, as nothing in it tells


@pytest.mark.parametrize(
    ("model", "page", "text"),
    [
        # tokens of a page's image, and of 1,000 characters of text; reported for sparse pages: 1,575 to 1,590, 213 to 216, 993, 258
        ("claude-sonnet-4-5", 1_580, 300),
        ("claude-opus-4-8", 1_580, 375),
        ("gpt-4o", 215, 260),
        ("gpt-5-mini", 215, 260),
        ("gpt-5.4", 1_000, 260),
        ("gemini-2.5-pro", 258, 0),
    ],
)
def test_a_document_costs_the_images_of_its_pages_and_its_text(model: str, page: int, text: int) -> None:
    rule = describe_model(model).document_rule
    assert rule(Document(data=pdf(2) + shown(b""))) == 2 * page  # a scan: pictures of pages
    assert rule(Document(data=pdf(2) + shown(b"a" * 1_000) * 3)) == 2 * page + 3 * text


@pytest.mark.parametrize(("box", "page"), [(b"[0 0 612 792]", 520), (b"[0 0 595.3 841.9]", 532), (b"[ 5 5 1005 1005 ]", 529)])
def test_a_page_costs_gemini_3_as_many_patches_as_its_size_allows(box: bytes, page: int) -> None:
    """520 and 532 are what the provider reported for pages of US letter and A4."""
    rule = describe_model("gemini-3-pro").document_rule
    assert rule(Document(data=pdf(3).replace(b"[0 0 612 792]", box))) == 3 * page


def shown(text: bytes, *, compress: bool = True) -> bytes:
    """A content stream that shows a text."""
    content = b"q BT /F1 12 Tf 72 720 Td (" + text + b") Tj ET Q"
    data, kind = (zlib.compress(content), b"/Filter /FlateDecode") if compress else (content, b"")
    return b"9 0 obj\n<< %s /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (kind, len(data), data)


def test_the_characters_that_a_pdf_shows_are_counted() -> None:
    assert text_characters(HEADER + shown(b"Hello") + shown(b"you \\) there")) == 5 + 12
    assert text_characters(HEADER + shown(b"Hello", compress=False)) == 5
    assert text_characters(HEADER + b"<< /Filter /LZWDecode >> stream\n\x80\x0b\nendstream") is None  # not read
    parts = zlib.compress(b"BT [(He) -20 (llo) 3 <00480065> ] TJ ET")
    assert text_characters(HEADER + b"<< /Filter /FlateDecode >> stream\r\n" + parts + b"\r\nendstream") == 5 + 2
    drawing = zlib.compress(b"0 0 m (no text) 9 9 l S")
    assert text_characters(HEADER + b"<< /Filter /FlateDecode >> stream\n" + drawing + b"\nendstream") == 0
    assert text_characters(HEADER + shown(b"Hello") + b"trailer << /Encrypt 5 0 R >>") is None
    photograph = b"<< /Filter /DCTDecode >> stream\n\xff\xd8\xff\xe0\nendstream"
    assert text_characters(HEADER + photograph) == 0  # a scan
    assert text_characters(HEADER + photograph + shown(b"Hello")) == 5


LONG: dict[str, Callable[[], bytes]] = {
    "text objects without end": lambda: zlib.compress(b"BT " * 5_000_000),
    "strings that never end": lambda: zlib.compress(b"BT Tj " + b"(" * 5_000_000 + b"(a" * 2_000_000),
    "long strings that never end": lambda: zlib.compress(b"BT Tj " + (b"(" + b"a" * 3_999) * 1_000),
    "digits that never end": lambda: zlib.compress(b"BT Tj " + b"<0" * 500_000 + b"<" + b"0" * 9_000_000),
}
"""Contents of streams made to take long."""


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("times", [1, 300])
def test_no_text_takes_long(name: str, times: int) -> None:
    data = HEADER + b"<< /Filter /FlateDecode >> stream\n" + LONG[name]() + b"\nendstream\n"
    start = time.process_time()
    text_characters(data * times)
    assert time.process_time() - start < 4


@given(
    data=st.binary(max_size=300)
    | st.lists(st.sampled_from([b"stream\n", b"endstream", shown(b"ab"), b"/MediaBox [", b"0 ", b"9 9]", b"x"])).map(b"".join)
)
def test_any_bytes_give_a_number_of_characters_and_a_size(data: bytes) -> None:
    characters = text_characters(data)
    assert characters is None or characters >= 0
    assert min(page_size(data)) >= 1


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
def test_text_that_comes_as_bytes_costs_what_the_text_costs(kind: str) -> None:
    text = "name,size\nLücke,2\n" * 30
    document = Document(data=text.encode(), media_type=kind)
    for counter in (TiktokenCounter(), CallableCounter(len)):
        assert counter.count_part(document) == counter.count_part(Document(text=text))
    assert TiktokenCounter().count_part(Document(data=b"\xff\xfe", media_type=kind)) > 0
    assert TiktokenCounter().count_part(Document(data=b"", media_type=kind)) == 0


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


def test_a_page_costs_little_on_responses_before_gpt_5_6_and_its_image_elsewhere() -> None:
    page = Document(data=pdf(1) + shown(b"a" * 1_000))
    costs = {
        name: describe_model(name).document_rule(page) for name in ("responses/gpt-4o", "openai/responses/gpt-5.4", "responses/gpt-5.6")
    }
    assert costs == {"responses/gpt-4o": 32 + 260, "openai/responses/gpt-5.4": 10 + 260, "responses/gpt-5.6": 1_000 + 260}
    assert describe_model("gpt-5.4").document_rule(page) == 1_000 + 260
    assert describe_model("mistral-large-latest").document_rule(page) == 10 + 300
