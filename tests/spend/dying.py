"""Readers that end their process, or fail. Workers import them from here, without pytest."""

from __future__ import annotations

import os
from collections.abc import Sequence

from context_window.spend.rows import Reader, read_rows


def die_of_a_batch(names: Sequence[str], _reader: Reader) -> list[bytes]:
    return [die_of_the_second(name) for name in names]


def die_of_the_second(name: str, _: object = None) -> bytes:
    if name.endswith("001.jsonl"):
        os._exit(9)
    return read_rows(name)


def fail_at_the_second(names: Sequence[str], _reader: Reader) -> list[bytes]:
    if any(name.endswith("001.jsonl") for name in names):
        raise OSError("a fault of the worker's machine")
    return [read_rows(name) for name in names]
