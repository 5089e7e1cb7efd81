"""A file, line by line, as JSON values: whatever is wrong with a line costs that line only. No format is known here.

The whole file is never in memory: tools write transcripts of hundreds of megabytes.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from session.errors import FormatError, TranscriptError
from session.files import Folder

SPACE = re.compile(r"\s*")

VALUES_MAX = 100_000
"""Values on one line beyond which nothing is read: no tool glues so many together."""

DEPTH_MAX = 200
"""Levels of nesting that are left of a value that is nested too deeply for the JSON parser. Readers carry at most 100 of them."""

CUT_OFF = "cut off in the middle; the tool may still be writing"
TOO_DEEP = f"values nested deeper than {DEPTH_MAX} levels are left out"
UNREADABLE = "nested too deeply to be read"
TOO_LONG = "an integer has more digits than Python converts; it is read as a text"
COMPLETE = (None, TOO_DEEP, TOO_LONG)
"""The problems of a line that was read to its end."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file.

    Attributes:
        number: Counted from 1.
        values: The JSON values on it: usually one; none on a blank or broken line; more where a tool glued them together.
        problem: What is wrong with it, with a value on it or with the rest of it; None where all of it was read.
    """

    number: int
    values: tuple[object, ...]
    problem: str | None


def read_lines(path: Path, on_read: Callable[[int], object] | None = None, *, within: Path | None = None) -> Iterator[Line]:
    """The lines of the file, in order.

    Args:
        path: The file.
        on_read: Is told the bytes of each line, before it is given out.
        within: As for `open_file`.

    Raises:
        TranscriptError: The file cannot be opened or read.
    """
    with open_file(path, within=within) as file:
        number = 0
        while raw := _next(file, path):
            number += 1
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            size, ended, text = len(raw), raw.endswith(b"\n"), text_of(raw)
            del raw  # a line may be tens of megabytes: neither its bytes nor its text are held longer than they are needed
            values, problem = parse(text)
            del text
            if problem not in COMPLETE:
                problem = problem if ended else CUT_OFF
                problem = f"the rest of the line: {problem}" if values else problem
            if on_read is not None:
                on_read(size)
            yield Line(number, values, problem)
            del values


def open_file(path: Path, *, within: Path | None = None) -> IO[bytes]:
    """The file, open for reading bytes.

    Args:
        path: The file.
        within: A folder that the file must lie in, with no link on the way from there: for a file that the user did not name.

    Raises:
        TranscriptError: There is no such file, it is a folder or a device, or it may not be read.
    """
    if within is not None:
        return _open_within(path, within)
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise TranscriptError(path, "is a folder; pass one of the files in it")
        if not stat.S_ISREG(mode):
            raise TranscriptError(path, "is not a regular file; save its content to one first")
        return open(path, "rb")
    except FileNotFoundError:
        raise TranscriptError(path, "no such file") from None
    except PermissionError:
        raise TranscriptError(path, "this user may not read it; change its permissions or pass a copy") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise TranscriptError(path, f"cannot be opened: {error}") from None


def _open_within(path: Path, within: Path) -> IO[bytes]:
    try:
        with Folder(within) as folder:
            return folder.open(os.path.relpath(path, within))
    except FormatError as error:
        raise TranscriptError(path, error.problem) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = getattr(error, "strerror", None) or error
        raise TranscriptError(path, f"cannot be opened: {reason} (no link is followed to a file that the user did not name)") from None


def text_of(raw: bytes) -> str:
    """The text that these bytes are: what is no UTF-8 becomes U+FFFD, and NUL bytes, which a crash leaves behind, are skipped."""
    text = raw.decode("utf-8", "replace")
    return text.replace("\0", "") if "\0" in text else text


def parse(text: str) -> tuple[tuple[object, ...], str | None]:
    """Return the JSON values in this text and what is wrong with them, if anything is.

    A value that is nested too deeply costs what lies too deep in it; any other fault costs all that follows it.
    """
    try:
        return _parsed(text)
    except RecursionError:
        pass
    try:
        values, problem = _parsed(_shallow(text))
    except RecursionError:  # the caller has used up the stack
        values, problem = (), UNREADABLE
    return values, TOO_DEEP if problem in COMPLETE else UNREADABLE


def _parsed(text: str) -> tuple[tuple[object, ...], str | None]:
    values: list[object] = []
    problem: str | None = None
    place = _skip(text, 0)
    while place < len(text):
        if len(values) == VALUES_MAX:
            return tuple(values), f"more than {VALUES_MAX:,} values on one line"
        try:
            try:
                value, place = _STRICT.raw_decode(text, place)
            except json.JSONDecodeError:
                raise
            except ValueError:
                value, place = _LENIENT.raw_decode(text, place)
                problem = TOO_LONG
        except json.JSONDecodeError as error:
            return tuple(values), f"no valid JSON from character {error.pos + 1} on"
        values.append(value)
        place = _skip(text, place)
    return tuple(values), problem


_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+\\?"?|[\[{]|[\]}]', re.DOTALL)


def _shallow(text: str) -> str:
    """Return the text with null in place of each list and object that lies more than `DEPTH_MAX` levels deep."""
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


def _any_int(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        return digits


_STRICT = json.JSONDecoder(strict=False)  # "strict" here means: no raw tabs in texts. Tools do write them.
_LENIENT = json.JSONDecoder(strict=False, parse_int=_any_int)


def _skip(text: str, place: int) -> int:
    found = SPACE.match(text, place)
    return found.end() if found else place


def _next(file: IO[bytes], path: Path) -> bytes:
    try:
        return file.readline()
    except OSError as error:
        raise TranscriptError(path, f"cannot be read: {error}") from None
