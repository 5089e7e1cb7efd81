"""Office files cost the text that is in them: documents, slides and sheets, and archives that lie, bomb or break."""

from __future__ import annotations

from io import BytesIO
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.counting import TiktokenCounter
from context_window.counting.office import INFLATED_BYTES, PREFIX, ROWS, office_text
from context_window.counting.select import select_counter
from context_window.models import describe_model
from session.estimate import estimate_part
from session.parts import Document

WORD, SLIDES, SHEET = (PREFIX + name for name in ("wordprocessingml.document", "presentationml.presentation", "spreadsheetml.sheet"))

lines = st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=12), min_size=1, max_size=6)


def archive(**contents: str) -> bytes:
    """Return a zip archive. In names, `__` stands for a slash and `_xml` for the ending."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as writer:
        for name, content in contents.items():
            writer.writestr(name.replace("__", "/").replace("_xml", ".xml"), content)
    return file.getvalue()


def word(texts: list[str]) -> bytes:
    """Return a docx file with these paragraphs."""
    paragraphs = "".join(f'<w:p w:rsidR="0"><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>' for text in texts)
    return archive(word__document_xml=f"<w:document><w:body>{paragraphs}</w:body></w:document>")


def sheet(rows: list[list[str]], *, shared: bool) -> bytes:
    """Return an xlsx file with these cells, as shared strings or in place."""
    strings = [cell for row in rows for cell in row]
    numbers = iter(range(len(strings)))

    def written(cell: str) -> str:
        return f'<c r="A1" t="s"><v>{next(numbers)}</v></c>' if shared else f'<c r="A1" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'

    cells = "".join(f'<row r="1">{"".join(map(written, row))}</row>' for row in rows)
    table = "".join(f"<si><t>{escape(text)}</t></si>" for text in strings)
    return archive(xl__sharedStrings_xml=f"<sst>{table}</sst>", xl__worksheets__sheet1_xml=f"<worksheet>{cells}</worksheet>")


def text(data: bytes, media_type: str = WORD) -> str | None:
    return office_text(Document(data=data, media_type=media_type))


@given(lines)
def test_a_document_costs_its_paragraphs(texts: list[str]) -> None:
    """OpenAI gives its models the text of such files."""
    assert text(word(texts)) == "\n".join(texts).strip()


@given(st.lists(lines, min_size=1, max_size=4), st.booleans())
def test_a_sheet_costs_its_cells(rows: list[list[str]], shared: bool) -> None:
    assert text(sheet(rows, shared=shared), SHEET) == "\n".join(map(",".join, rows)).strip()


def test_a_sheet_costs_its_numbers_and_no_more_than_a_thousand_rows() -> None:
    rows = '<row><c r="A1"><v>1984</v></c><c r="B1"><f>A1*2</f><v>3968</v></c></row>' * (ROWS + 5)
    content = text(archive(xl__worksheets__sheet1_xml=rows), SHEET)
    assert content is not None
    assert content.split("\n") == ["1984,3968"] * ROWS


def test_slides_cost_their_texts() -> None:
    slides = {f"ppt__slides__slide{n}_xml": f"<p:sld><a:p><a:r><a:t>Slide {n}</a:t></a:r></a:p></p:sld>" for n in (1, 2)}
    assert text(archive(**slides), SLIDES) == "Slide 1\n\nSlide 2"


def test_a_counter_counts_the_text_and_the_title() -> None:
    """Counted by a flat price per page, this memo of one paragraph was 2,000 tokens."""
    document = Document(data=word(["The offsite is on Friday."]), media_type=WORD, title="memo.docx")
    counter = TiktokenCounter()
    assert counter.count_part(document) == counter.count_text("The offsite is on Friday.") + counter.count_text("memo.docx")
    for model in ("claude-sonnet-4-5", "gpt-5", "gemini-3-pro", "a-model-nobody-knows"):
        assert 6 <= select_counter(None, describe_model(model)).counter.count_part(document) <= 20


@pytest.mark.parametrize(
    "data",
    [b"", b"PK", word(["x"])[:-30], archive(other_xml="<w:t>x</w:t>"), word(["x" * 500]).replace(b"word/document", b"word/doc\xffment")],
)
def test_what_cannot_be_read_costs_the_estimate(data: bytes) -> None:
    document = Document(data=data, media_type=WORD)
    assert office_text(document) is None
    assert TiktokenCounter().count_part(document) == estimate_part(document)


def test_a_bomb_is_read_to_the_limit() -> None:
    bomb = archive(word__document_xml="<w:t>" + "a" * (2 * INFLATED_BYTES))
    assert len(bomb) < 100_000
    assert len(text(bomb) or "") <= INFLATED_BYTES


@given(st.binary(max_size=200), st.integers(0, 400))
def test_damaged_archives_crash_nothing(noise: bytes, offset: int) -> None:
    data = word(["Some text", "more text"])
    damaged = data[:offset] + noise + data[offset + len(noise) :]
    assert isinstance(text(damaged), str | None)
