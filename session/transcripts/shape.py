"""Whether a file is one JSON document or one value a line, told without reading more of it than that takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from .reading import Line
from .source import Source


def document_or_lines(source: Source) -> tuple[object, Iterator[Line]]:
    """The document that the file is, and no lines; or None, and its lines, as a stream.

    One value on one line is a document, but in a file named `.jsonl`: that is a log of lines which has one so far.

    Raises:
        TranscriptError: The file cannot be read.
    """
    lines = source.lines()
    head = [line for _, line in zip(range(2), lines, strict=False)]
    goes_on = bool(head and head[0].problem and not head[0].values)
    if goes_on or (len(head) == 1 and source.path.suffix != ".jsonl"):
        document = source.document
        if document is not None:
            return document, iter(())
    return None, chain(head, lines)
