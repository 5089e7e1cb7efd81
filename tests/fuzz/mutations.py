"""Damage to JSON values, to the text they are written as, and to its bytes. A `random.Random` decides everything."""

from __future__ import annotations

import json
import marshal
from functools import cache
from random import Random
from typing import Any

from .seeds import Layout, Seed, event_stream, seeds

MUTATIONS = (1, 1, 1, 2, 3, 4)
"""Most changes to the values of one mutant. With more, hardly any reader recognizes its own format."""


def _nested(depth: int, *, objects: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"content": value} if objects else [value]
    return value


LITERALS = (
    *("1e400", "-1e400", "9" * 5_000, "1" + "0" * 4_299, "-0", "1E-400", "NaN", "Infinity", "-Infinity"),
    *("[" * depth + "]" * depth for depth in (400, 900, 950, 960, 970, 10_000)),
    *('{"content":' * depth + "1" + "}" * depth for depth in (400, 900, 950, 960, 970, 10_000)),
    *("[" * 10_000, '{"a":1,"a":2}', "nul", "'a'", "01"),
)
"""JSON that `json.dumps` does not write, and texts that are not JSON. Each is replaced by a marker until the value is written."""
MARKERS = tuple(f"\x01literal {index}\x01" for index in range(len(LITERALS)))
_LITERAL_OF_MARKER = {json.dumps(marker): literal for marker, literal in zip(MARKERS, LITERALS, strict=True)}


def objects() -> tuple[Any, ...]:
    """Return values that a caller can pass but a file cannot hold, made anew: a mutation may change them.

    They replace the literals if a value is not written to a file.
    """
    return (
        10**5_000,
        _nested(900, objects=False),
        _nested(10_000, objects=True),
        float("nan"),
        float("inf"),
        b"\xff",
        {1: 2},
        {10**5_000: 1},
        (1,),
        object(),
    )


NUMBERS = (0, -1, 7, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**16, 10**30, 10**639, 10**700, 1.5, -0.0, 1e308, 5e-324)
TEXTS = (
    *("", " ", "a", "user", "assistant", "tool", "system", "text", "REDACTED", "None", "x" * 3_000, "\n" * 300, "e\u0301" * 50),
    *("\ud800", "\udfff", "a\ud800b", "\0", "\x1b[31m", "\u202e", "\u200b\ufeff", "\U0001f468\u200d\U0001f469", "\r\n"),
    *("data:image/png;base64,AAAA", "data:,", "data:image/png;base64,\ud800", "file:///etc/passwd", "https://example.com/a.png"),
    *("2026-02-30", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00Z", "1e400", "9" * 5_000),
    *("=1+1", "@SUM(A1)", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\u2067\u0085"),
    *("{", '{"a": 1e400}', "[" * 2_000, "NaN", "attachment://x", "<returncode>", "> Tokens: 9e9 sent, 1 received."),
)
KEYS = (
    *("type", "role", "content", "id", "text", "parts", "messages", "usage", "timestamp", "payload", "name", "tool_calls", "metadata"),
    *("input", "output", "arguments", "input_tokens", "prompt_tokens", "cache_read_input_tokens", "extra", "created_at", "version", ""),
    *("\ud800", "\udfff", "system", "tools", "options", "model", "call_id", "uuid", "parentUuid", "items", "$rewindTo", "data"),
)
BYTES = (
    b"\0",
    b"\0" * 64,
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\r",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"\x1a",
    b"{",
    b"]",
)


@cache
def subtrees(*, recorded: bool) -> tuple[bytes, ...]:
    """Small values from every seed, marshalled, to be inserted where they do not belong."""
    values = {marshal.dumps(inner) for seed in seeds(recorded=recorded) for inner in containers(seed.value())}
    return tuple(sorted(value for value in values if len(value) < 1_000))


def containers(value: Any) -> list[Any]:
    """Return every non-empty object and list in a value, beginning with the value itself."""
    pending, nonempty = [value], []
    while pending:
        inner = pending.pop()
        if isinstance(inner, dict | list) and inner:
            nonempty.append(inner)
            pending.extend(inner.values() if isinstance(inner, dict) else inner)
    return nonempty


class Mutator:
    """Makes one mutant.

    Args:
        chance: Decides the place and the kind of damage.
        recorded: As for `seeds`.
    """

    def __init__(self, chance: Random, *, recorded: bool = True) -> None:
        self.chance = chance
        self.recorded = recorded

    def mutant(self, seed: Seed) -> Any:
        """Return the bytes of a file for seeds of the transcript readers, a JSON value for others."""
        value = seed.value()
        if seed.reader != "file":
            return self._values(value, objects())
        if seed.layout == "bytes":
            return self._bytes(value, 1.0)
        if seed.layout == "text":
            return self._bytes(self.written(self._text_lines(value), "text").encode("utf-8", "surrogatepass"), 1.0)
        mutated = self._values(value, MARKERS) if self.chance.random() < 0.9 else value
        text = self.written(mutated, seed.layout)
        if self.chance.random() < 0.05:  # a repeated key
            index = text.find("{", self.chance.randrange(len(text) + 1))
            text = f"{text[: index + 1]}{json.dumps(self._key())}:{json.dumps(self._anything(MARKERS))},{text[index + 1 :]}"
        if "\\u0001literal" in text:
            for marker, literal in _LITERAL_OF_MARKER.items():
                text = text.replace(marker, literal)
        return self._bytes(text.encode("utf-8", "surrogatepass"), 0.25 if mutated is not value else 1.0)

    # Values

    def _values(self, value: Any, rare: tuple[Any, ...]) -> Any:
        for _ in range(self.chance.choice(MUTATIONS)):
            value = self._changed(value, rare)
        return value

    def _changed(self, value: Any, rare: tuple[Any, ...]) -> Any:
        """Return the value with one value inside it replaced, removed, repeated, renamed or moved."""
        chance, holders = self.chance, containers(value)
        if not holders or chance.random() < 0.002:
            return self._anything(rare)
        holder = chance.choice(holders)
        key = chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
        match chance.randrange(9):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder[key:key] = [holder[key]] * chance.choice((1, 1, 2, 30))
            case 2 if isinstance(holder, list):
                chance.shuffle(holder)
            case 1:
                holder[self._key()] = holder.pop(key)
            case 2:
                other = chance.choice(list(holder))
                holder[key], holder[other] = holder[other], holder[key]
            case 3:
                other = chance.choice(holders)  # copied, because a value inside itself cannot be written
                inner = chance.choice(list(other.values()) if isinstance(other, dict) else other)
                holder[key] = _copy(inner)
            case 4:
                holder[key] = marshal.loads(chance.choice(subtrees(recorded=self.recorded)))
            case 5 if isinstance(holder, dict):
                holder[self._key()] = self._anything(rare)
            case 6:
                holder[key] = [holder[key]] if chance.random() < 0.5 else {self._key(): holder[key]}
            case _:
                holder[key] = self._anything(rare)
        return value

    def _anything(self, rare: tuple[Any, ...], depth: int = 0) -> Any:
        """Return a value of any kind."""
        chance = self.chance
        match chance.randrange(10):
            case 0 | 1 | 2:
                return chance.choice(TEXTS)
            case 3 | 4 | 5:
                return chance.choice(NUMBERS)
            case 6:
                return chance.choice((None, True, False, [], {}))
            case 7 if depth < 3:
                return [self._anything(rare, depth + 1) for _ in range(chance.randrange(1, 4))]
            case 8 if depth < 3:
                return {self._key(): self._anything(rare, depth + 1) for _ in range(chance.randrange(1, 4))}
            case 9 if depth < 3:
                return (
                    chance.choice(rare) if chance.random() < 0.7 else _nested(chance.choice((20, 99, 120)), objects=chance.random() < 0.5)
                )
        return None

    def _key(self) -> str:
        return self.chance.choice(KEYS)

    # Text and bytes

    def written(self, value: Any, layout: Layout) -> str:
        """Return the value as the text of a file, with varying line ends."""
        if layout == "text":
            return "\n".join(value)
        if layout == "events" and isinstance(value, list):
            return event_stream(value)
        if layout in ("document", "events") or not isinstance(value, list):
            return json.dumps(value, indent=self.chance.choice((None, None, 1)))
        end = self.chance.choice(("\n", "\n", "\n", "\n", "\r\n", "\r\n\n", "", " "))
        return end.join(json.dumps(record) for record in value) + self.chance.choice(("\n", ""))

    def _text_lines(self, lines: list[str]) -> list[str]:
        for _ in range(self.chance.choice(MUTATIONS)):
            index = self.chance.randrange(len(lines))
            match self.chance.randrange(3):
                case 0:
                    lines.insert(index, self.chance.choice(lines))
                case 1:
                    lines[index] = self.chance.choice(TEXTS) + lines[index]
                case _ if len(lines) > 1:
                    del lines[index]
        return lines

    def _bytes(self, raw: bytes, likelihood: float) -> bytes:
        """Return the bytes with some lost, added, changed or repeated, as often as `likelihood` says."""
        chance = self.chance
        if chance.random() >= likelihood:
            return raw
        start = chance.randrange(len(raw) + 1)
        length = chance.choice((0, 1, 1, 3, 40))
        match chance.randrange(7):
            case 0:
                return raw[:start] + raw[start + length :]
            case 1:
                return raw[:start] + chance.randbytes(length) + raw[start:]
            case 2:
                return raw[:start] + raw[start : start + 200] + raw[start:]
            case 3 if start < len(raw):
                return raw[:start] + bytes([raw[start] ^ 1 << chance.randrange(8)]) + raw[start + 1 :]
            case 4:
                return chance.choice(BYTES) + raw
            case 5:
                return raw[:start] + chance.choice(BYTES) + raw[start:]
        return raw[:start]


def _copy(value: Any) -> Any:
    try:
        return marshal.loads(marshal.dumps(value))
    except ValueError:  # nested deeper than marshal goes
        return None
