"""What a request costs, and how much of it the provider had seen before. A token is four characters; a picture is a thousand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .server import canonical

PICTURE = 1000
LOOKBACK = 20
"""Blocks before a mark in which an earlier mark is looked for."""


class Spent(NamedTuple):
    """Tokens of a request: read from the cache, written to it, and neither."""

    read: int
    written: int
    rest: int

    @property
    def total(self) -> int:
        return sum(self)


class PrefixCache:
    """The prefixes that were written. Digests go block by block, so that a longer request shares those of a shorter one."""

    def __init__(self, minimum: int = 0) -> None:
        self._written: set[bytes] = set()
        self._minimum = minimum

    def marked(self, blocks: Sequence[object], marks: Iterable[int]) -> Spent:
        """The cost where only marked places are written, and read from up to 20 blocks before a mark."""
        digests, sums = _prefixes(blocks)
        last = read = 0
        ends = [mark + 1 for mark in marks]
        for end in ends:
            for position in range(end, max(0, end - LOOKBACK), -1):
                if digests[position] in self._written:
                    read = max(read, sums[position])
                    break
        for end in ends:
            if sums[end] >= self._minimum:
                self._written.add(digests[end])
                last = max(last, sums[end])
        return Spent(read, max(0, last - read), sums[-1] - max(last, read))

    def whole(self, blocks: Sequence[object]) -> Spent:
        """The cost where the provider caches of its own accord, whatever was sent before."""
        digests, sums = _prefixes(blocks)
        read = next((sums[end] for end in range(len(blocks), 0, -1) if digests[end] in self._written), 0)
        self._written.update(digests[1:])
        return Spent(read if read >= self._minimum else 0, 0, sums[-1] - (read if read >= self._minimum else 0))


def _prefixes(blocks: Sequence[object]) -> tuple[list[bytes], list[int]]:
    digest = hashlib.sha256()
    digests, sums = [digest.digest()], [0]
    for block in blocks:
        digest.update(canonical(block).encode() + b"\n")
        digests.append(digest.digest())
        sums.append(sums[-1] + tokens(block))
    return digests, sums


def tokens(value: Any) -> int:
    """Tokens of whatever is sent: its texts, at four characters each, and its pictures."""
    letters, pictures = _size(value)
    return -(-letters // 4) + pictures * PICTURE


def _size(value: Any) -> tuple[int, int]:
    if isinstance(value, str):
        return (0, 1) if value.startswith("data:image/") else (len(value), 0)
    if isinstance(value, dict):
        sizes = [(0, 1) if name == "data" else _size(member) for name, member in value.items()]
    elif isinstance(value, list | tuple):
        sizes = [_size(member) for member in value]
    else:
        return len(str(value)), 0
    return sum(letters for letters, _ in sizes), sum(pictures for _, pictures in sizes)
