"""The file that a transcript is read from: as a stream of JSON lines, as one JSON document, or as text.

A line that is damaged costs only itself. The lines are never in memory all at once, because tools write transcripts of hundreds of
megabytes. What the values mean is up to each format; `detect.py` recognizes it.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

from session.errors import FormatError, TranscriptError
from session.files import Folder
from session.json_strings import int_or_text
from session.opening import open_regular

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
        problem: A sentence on values of the document that could not be read, or None.
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


VALUES_MAX = 100_000
"""Values to read from one line. No tool writes more than a few on one line."""

BLOCK = 1 << 18
"""Bytes to read at a time. Most lines of large logs are longer than the usual 8 KiB."""

DEPTH_MAX = 200
"""Levels of nesting to keep of a value that is nested too deeply for the JSON parser. Items can hold at most 100 of them."""

CUT_OFF = "incomplete line; the tool may still be writing it"
TOO_DEEP = f"values nested deeper than {DEPTH_MAX} levels were left out"
UNREADABLE = "nested too deeply to be read"
TOO_LONG = "an integer has more digits than Python can convert; it was read as text"
COMPLETE = (None, TOO_DEEP, TOO_LONG)
"""Problems of a line that was nevertheless read to its end."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file.

    Attributes:
        number: The line's number, counted from 1.
        values: The JSON values on it: usually one, none on a blank or damaged line, several if a tool left out a line break.
        problem: The error in the line or in a value on it; None if all of it was read.
    """

    number: int
    values: tuple[object, ...]
    problem: str | None


def read_lines(
    path: Path,
    on_read: Callable[[int], object] | None = None,
    *,
    within: Path | None = None,
    is_needed: Callable[[bytes], bool] | None = None,
) -> Iterator[Line]:
    """Yield the lines of the file, in order.

    Args:
        path: The file.
        on_read: Called with the number of bytes of each line, before the line is yielded.
        within: As for `open_file`.
        is_needed: Returns False for a line that need not be parsed. Such a line is not yielded. Default: all are.

    Raises:
        TranscriptError: The file cannot be opened or read.
    """
    with open_file(path, within=within) as file:
        number = 0
        while raw := _read_line(file, path):
            number += 1
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            elif is_needed is not None and not is_needed(raw):
                if on_read is not None:
                    on_read(len(raw))
                continue
            size, is_terminated, text = len(raw), raw.endswith(b"\n"), decode(raw)
            del raw  # a line may have tens of megabytes, so neither its bytes nor its text stay in memory longer than needed
            values, problem = parse(text)
            del text
            if problem not in COMPLETE:
                problem = problem if is_terminated else CUT_OFF
                problem = f"the rest of the line: {problem}" if values else problem
            if on_read is not None:
                on_read(size)
            yield Line(number, values, problem)
            del values


def open_file(path: Path, *, within: Path | None = None) -> IO[bytes]:
    """Open the file for reading bytes.

    Args:
        path: The file.
        within: For a file that the user did not name: the folder that it must be in. Links below that folder are not followed.

    Raises:
        TranscriptError: The file does not exist, is a folder or a device, or cannot be read by this user.
    """
    if within is not None:
        return _open_within(path, within)
    try:
        size = os.stat(path).st_size
        return open_regular(path, buffering=min(max(size, io.DEFAULT_BUFFER_SIZE), BLOCK))
    except IsADirectoryError:
        may_list = os.access(path, os.R_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)
        problem = "is a folder; pass one of the files in it" if may_list else "permission denied; what the folder holds is not known"
        raise TranscriptError(path, problem) from None
    except FileNotFoundError:
        raise TranscriptError(path, "no such file") from None
    except PermissionError:
        raise TranscriptError(path, "permission denied; change the file's permissions or pass a copy") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        if isinstance(error, OSError) and error.errno == errno.EINVAL:
            raise TranscriptError(path, "is not a regular file; save its content to a file first") from None
        raise TranscriptError(path, f"cannot be opened: {error}") from None


def _open_within(path: Path, within: Path) -> IO[bytes]:
    try:
        with Folder(within) as folder:
            return folder.open(os.path.relpath(path, within))
    except FormatError as error:
        raise TranscriptError(path, error.problem) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = getattr(error, "strerror", None) or error
        raise TranscriptError(path, f"cannot be opened: {reason} (links to files that the user did not name are not followed)") from None


def decode(raw: bytes) -> str:
    """Decode UTF-8. Invalid bytes become U+FFFD; NUL bytes, which a crash can leave in a file, are removed."""
    text = raw.decode("utf-8", "replace")
    return text.replace("\0", "") if "\0" in text else text


def parse(text: str) -> tuple[tuple[object, ...], str | None]:
    """Return the JSON values in this text and the problem with them, or None.

    If a value is nested too deeply, its deepest levels are left out. Any other error ends the reading of the text.
    """
    try:
        return _parse_all(text)
    except RecursionError:
        pass
    try:
        values, problem = _parse_all(_cut_nesting(text))
    except RecursionError:  # the caller used up the stack
        values, problem = (), UNREADABLE
    return values, TOO_DEEP if problem in COMPLETE else UNREADABLE


def _parse_all(text: str) -> tuple[tuple[object, ...], str | None]:
    values: list[object] = []
    problem: str | None = None
    position = _skip_space(text, 0)
    while position < len(text):
        if len(values) == VALUES_MAX:
            return tuple(values), f"more than {VALUES_MAX:,} values on one line"
        try:
            try:
                value, position = _DECODER.raw_decode(text, position)
            except json.JSONDecodeError:
                raise
            except ValueError:
                value, position = _LONG_INT_DECODER.raw_decode(text, position)
                problem = TOO_LONG
        except json.JSONDecodeError as error:
            return tuple(values), f"invalid JSON at character {error.pos + 1}"
        values.append(value)
        position = _skip_space(text, position)
    return tuple(values), problem


_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+\\?"?|[\[{]|[\]}]', re.DOTALL)


def _cut_nesting(text: str) -> str:
    """Return the text with every list and object below level `DEPTH_MAX` replaced by null."""
    pieces: list[str] = []
    depth = end = start = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
            if depth == DEPTH_MAX + 1:
                start = token.start()
        elif token[0] in ("]", "}"):
            depth -= 1
            if depth == DEPTH_MAX:
                pieces += (text[end:start], "null")
                end = token.end()
    return "".join((*pieces, text[end : start if depth > DEPTH_MAX else None]))


_DECODER = json.JSONDecoder(strict=False)  # `strict=False` allows raw tabs in strings, which tools do write
_LONG_INT_DECODER = json.JSONDecoder(strict=False, parse_int=int_or_text)
_SPACE = re.compile(r"\s*")


def _skip_space(text: str, position: int) -> int:
    if text.startswith("{", position):  # most calls
        return position
    if position + 1 == len(text) and text[position] == "\n":  # most others
        return position + 1
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _read_line(file: IO[bytes], path: Path) -> bytes:
    try:
        return file.readline()
    except OSError as error:
        raise TranscriptError(path, f"cannot be read: {error}") from None
