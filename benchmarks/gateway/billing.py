"""What a provider bills for a request: tokens read from its cache, written to it, and neither. A token is four characters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

Json = dict[str, Any]

LEAST = 1_024
"""Tokens that a prefix must have to be cached."""
LOOKBACK = 20
"""Blocks before a mark in which Anthropic looks for a prefix that it has cached."""
READ_PRICE, WRITE_PRICE, PRICE = 0.1, 1.25, 1.0
"""Prices of a token, in parts of the plain price."""
MARK = "cache_control"


class Bill(NamedTuple):
    """Tokens of a request.

    Attributes:
        read: Read from the cache.
        written: Written to it.
        rest: Neither.
    """

    read: int
    written: int
    rest: int

    @property
    def cost(self) -> float:
        """The cost in tokens at the plain price."""
        return READ_PRICE * self.read + WRITE_PRICE * self.written + PRICE * self.rest


class Cache:
    """A provider's cache. It holds prefixes by a hash of their blocks."""

    def __init__(self) -> None:
        self._prefixes: set[bytes] = set()

    def bill(self, body: Json) -> Bill:
        """Return what a request costs, and remember its prefixes. Only Anthropic's requests have marks."""
        return self._marked(body) if "max_tokens" in body else self._automatic(body)

    def _marked(self, body: Json) -> Bill:
        """Write prefixes that end in a mark. Read the longest one that ends at most 20 blocks before a mark."""
        hashes, sums, marks = _prefixes(body)
        read = written = 0
        for mark in marks:
            for place in range(mark, max(0, mark - LOOKBACK), -1):
                if hashes[place] in self._prefixes:
                    read = max(read, sums[place])
                    break
        for mark in marks:
            if sums[mark] >= LEAST:
                self._prefixes.add(hashes[mark])
                written = max(written, sums[mark] - read)
        return Bill(read, written, sums[-1] - read - written)

    def _automatic(self, body: Json) -> Bill:
        """Read the longest prefix that was sent before, and write the rest. OpenAI bills a write like any other input."""
        hashes, sums, _ = _prefixes(body)
        read = next((sums[end] for end in range(len(hashes) - 1, 0, -1) if hashes[end] in self._prefixes), 0)
        read = read if read >= LEAST else 0
        self._prefixes.update(hashes)
        return Bill(read, sums[-1] - read, 0)


def _prefixes(body: Json) -> tuple[list[bytes], list[int], list[int]]:
    """Return the hashes and the tokens of the first blocks of a request, from none to all, and the lengths that end in a mark."""
    hashes, sums, marks = [b""], [0], []
    for block in _blocks(body):
        bare = {name: value for name, value in block.items() if name != MARK}
        text = json.dumps(bare, sort_keys=True)
        hashes.append(hashlib.sha256(hashes[-1] + text.encode()).digest())
        sums.append(sums[-1] + -(-len(text) // 4))
        if MARK in block:
            marks.append(len(hashes) - 1)
    return hashes, sums, marks


def _blocks(body: Json) -> Iterator[Json]:
    """Yield tools, system prompt and blocks of messages, each with the role of its message: the order in which a prompt is cached."""
    yield from body.get("tools") or []
    for message in [
        {"role": "system", "content": body.get("system") or body.get("instructions")},
        *(body.get("messages") or body["input"]),
    ]:
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"text": content}]:
            yield {**{name: value for name, value in message.items() if name != "content"}, **block}
