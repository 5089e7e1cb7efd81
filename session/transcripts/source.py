"""A file as a format wants to read it: line by line, or as the one JSON document it holds. Which format that is, `detect.py` tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from session.errors import TranscriptError
from session.files import Folder

from .reading import COMPLETE, Line, open_file, parse, read_lines, text_of

_UNREAD = object()


class Source:
    """A transcript's file.

    Attributes:
        path: Where it is.
        on_read: Is told, as the lines or the document are read for good, how many more bytes are behind us; or None.
        folder: Where images of which the transcript holds only a path are read from; None opens no file.
        is_named_by_data: True if a transcript named this file. It is then opened only if no link is at its place.
        problem: What was left out of the document, if anything was.
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
        self.problem: str | None = None
        self._document: object = _UNREAD

    @property
    def _within(self) -> Path | None:
        return self.path.parent if self.is_named_by_data else None

    @property
    def name(self) -> str:
        """The file's name, without its folder."""
        return self.path.name

    def lines(self) -> Iterator[Line]:
        """Its lines, as a stream: the whole file is never in memory.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        return read_lines(self.path, self.on_read, within=self._within)

    @property
    def document(self) -> object:
        """The one JSON value that the whole file is, on one line or many; None where it is none. Parsed once.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        if self._document is _UNREAD:
            values, problem = parse(text_of(self.bytes().removeprefix(b"\xef\xbb\xbf")))
            is_document = len(values) == 1 and problem in COMPLETE
            self._document, self.problem = (values[0], problem) if is_document else (None, None)
        return self._document

    def text(self) -> str:
        """All of it as text; bytes that are no UTF-8 become U+FFFD.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        return self.bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")

    def bytes(self, most: int = -1) -> bytes:
        """The first `most` bytes of it; all where that is -1.

        Raises:
            TranscriptError: The file cannot be opened or read.
        """
        with open_file(self.path, within=self._within) as file:
            try:
                raw = file.read(most)
            except OSError as error:
                raise TranscriptError(self.path, f"cannot be read: {error}") from None
        if most < 0 and self.on_read is not None:
            self.on_read(len(raw))
        return raw
