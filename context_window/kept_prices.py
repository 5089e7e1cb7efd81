"""Keeps what the price lists answered between runs, so that a command that asks the same again need not import them. Imports next to
nothing, since the status line needs it.

The file is one for the lists and the program as they are: with other ones it begins anew.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from session.opening import read_regular

from .user_folder import PRICES_FILE, replace_file, user_folder

Answer = TypeVar("Answer")
MOST = 20_000
"""Answers to keep. A file with more begins anew."""
SOURCES = ("models/prices.py", "models/names.py", "models/second_prices.py", "spend/money.py", "pauses.py", "data/prices.csv")
"""Files of ours that answers depend on."""


class _Answers:
    kept: dict[str, Any] | None = None
    """By question, the answers as JSON values; None while none are kept."""
    count = 0
    """Number of those that the file has."""


def kept(answer: Callable[[], Answer], *question: str | int) -> Answer:
    """Return the answer that was kept for a question, or else this one: texts, numbers, None, or lists of these."""
    if _Answers.kept is None:
        return answer()
    name = json.dumps(question)
    if name not in _Answers.kept:
        _Answers.kept[name] = answer()
    found: Answer = _Answers.kept[name]
    return found


@contextmanager
def keeping() -> Iterator[None]:
    """Keep answers in the user's folder. Where that is impossible, nothing is kept."""
    with suppress(RuntimeError, OSError):
        file, version = user_folder() / PRICES_FILE, _version()
        _Answers.kept = _read(file, version)
        _Answers.count = len(_Answers.kept)
    try:
        yield
    finally:
        answers, _Answers.kept = _Answers.kept, None
        if answers is not None and len(answers) > _Answers.count:
            content = json.dumps(answers).encode()
            with suppress(OSError):
                replace_file(file, f"{version} {zlib.crc32(content)}\n".encode() + content)


def _read(file: Path, version: str) -> dict[str, Any]:
    try:
        head, _, content = read_regular(file).partition(b"\n")
    except (OSError, ValueError):
        return {}
    if head.decode("ascii", "replace") != f"{version} {zlib.crc32(content)}":
        return {}
    answers: dict[str, Any] = json.loads(content)
    return answers if len(answers) <= MOST else {}


def _version() -> str:
    """Return a text that changes with the lists and with what reads them."""
    spec = find_spec("genai_prices")  # imports nothing
    lists = [] if spec is None or spec.origin is None else [Path(spec.origin).with_name("data.py"), Path(spec.origin).with_name("types.py")]
    states = [os.stat(path) for path in (*lists, *(Path(__file__).parent / name for name in SOURCES))]
    return "-".join(f"{state.st_size}:{state.st_mtime_ns}" for state in states)
