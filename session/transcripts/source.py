"""The file that a transcript is read from: as a stream of JSON lines, as one JSON document, or as text.

Its format is detected in `detect.py`. Opening the file and parsing JSON are in `json_lines.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

from session.errors import TranscriptError
from session.files import Folder

from .json_lines import COMPLETE, Line, decode, open_file, parse, read_lines
from .values import JsonObject

_NOT_PARSED = object()


class Source:
    """A transcript file.

    Attributes:
        path: Path of the file.
        on_read: Called with the number of bytes read since the last call, as the file is read for the last time; or None.
        folder: The folder from which images may be read if the transcript holds only their paths. None opens no file.
        is_named_by_data: True if another transcript named this file. A link in its place is then not followed.
        is_needed: As for `read_lines`. It may be set while lines are read.
        problem: A note on values of the document that could not be read, or None.
    """

    def __init__(
        self,
        path: Path,
        on_read: Callable[[int], object] | None = None,
        folder: Folder | None = None,
        *,
        is_named_by_data: bool = False,
    ) -> None:
        self.path = path
        self.on_read = on_read
        self.folder = folder
        self.is_named_by_data = is_named_by_data
        self.is_needed: Callable[[bytes], bool] | None = None
        self.problem: str | None = None
        self._document: object = _NOT_PARSED

    @property
    def _within(self) -> Path | None:
        return self.path.parent if self.is_named_by_data else None

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self.path.name

    def lines(self) -> Iterator[Line]:
        """Return the lines as a stream. The whole file is never in memory.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        return read_lines(self.path, self.on_read, within=self._within, is_needed=self._is_needed)

    def _is_needed(self, raw: bytes) -> bool:
        return self.is_needed is None or self.is_needed(raw)

    @property
    def document(self) -> object:
        """The JSON value that the whole file is, on one line or many; None if the file is not one JSON value. Parsed once.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        if self._document is _NOT_PARSED:
            values, problem = parse(decode(self.bytes().removeprefix(b"\xef\xbb\xbf")))
            is_document = len(values) == 1 and problem in COMPLETE
            self._document, self.problem = (values[0], problem) if is_document else (None, None)
        return self._document

    @property
    def document_object(self) -> JsonObject:
        """The document if it is a JSON object, else an empty object.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        return self.document if isinstance(self.document, dict) else {}

    def document_or_lines(self) -> tuple[object, Iterator[Line]]:
        """Return the document and no lines if the file is one document; otherwise None and the lines, as a stream.

        A file with a single line is a document, unless it is named `.jsonl`: then it is a log with one line so far.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        lines = self.lines()
        first_lines = list(islice(lines, 2))
        is_cut = bool(first_lines and first_lines[0].problem and not first_lines[0].values)
        is_only_line = len(first_lines) == 1 and self.path.suffix != ".jsonl"
        if (is_cut or is_only_line) and self.document is not None:
            return self.document, iter(())
        return None, chain(first_lines, lines)

    def text(self) -> str:
        """Return the whole file as text. Bytes that are not UTF-8 become U+FFFD.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        return self.bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")

    def bytes(self, size: int = -1) -> bytes:
        """Return the first `size` bytes of the file, or all of them if it is -1.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        with open_file(self.path, within=self._within) as file:
            try:
                raw = file.read(size)
            except OSError as error:
                raise TranscriptError(self.path, f"cannot be read: {error}") from None
        if size < 0 and self.on_read is not None:
            self.on_read(len(raw))
        return raw
