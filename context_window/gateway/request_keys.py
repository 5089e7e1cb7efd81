"""`RequestKeys`: takes the keys with which a request came, and those in its body, out of whatever is recorded of it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from starlette.requests import Request

from session.redaction import LETTERS
from session.secret_finder import Layer, decoded, layers, secrets_in

HIDDEN = b"[key]"
"""Stands in a recording where a key stood."""
LONG = 8
"""Characters of a key that is found inside words, too. A shorter one is hidden as a word: local servers take any word for a key."""
MOST_KEYS = 200
"""Keys of a body that are looked for in the answer. Of a request with more, as no session has, the answer is not recorded."""
LEFT_OUT = b"[the answer is left out: its request holds too many keys to look for each]"
AGAIN = 4
"""What waits is searched again once this many times the bytes that came since would be as much."""
HELD_MAX = 1_000_000
"""Bytes that wait for the next piece at most: some keys repeat themselves."""
_SECRET = re.compile(r"auth|key|token|secret|cookie|credential|signature", re.IGNORECASE)
"""A part of the name of each header and query parameter that holds a key."""
_SCHEME = re.compile(r"(?:bearer|basic|digest|token|apikey)\s+", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s;,=]+")
_BEGUN_ESCAPE = re.compile(r"[\\%&][\\%&#;{}uUxX0-9a-fA-F]{0,1000}$")
"""What may be the beginning of one character, escaped three times."""


class RequestKeys:
    """Replaces keys in bytes, however they are spelled. What comes in pieces is searched across their borders."""

    def __init__(self, request: Request, body: bytes = b"") -> None:
        """
        Args:
            request: A client's request. The keys are the values of its headers and parameters whose names say so.
            body: Its body. What `secrets_in` finds there is a key, too.
        """
        parameters = request.query_params.multi_items()
        self._named = [value for name, value in (*request.headers.items(), *parameters) if _SECRET.search(name)]
        self._body = body
        self._rest = self._new = ""

    @cached_property
    def _in_body(self) -> set[str]:
        return {secret.value for secret in secrets_in(self._body.decode("latin-1"))}

    @cached_property
    def _keys(self) -> list[str]:
        """The keys. Found when they are needed first, so in the thread that writes."""
        keys = {key for value in self._named for key in _keys_in(value)} | set(sorted(self._in_body)[:MOST_KEYS])
        return [*keys, *{form for key in keys if len(key) >= LONG for form in _encoded(key)}]

    def hidden(self, content: bytes) -> bytes:
        """Return a whole file's content without keys, those included that were not known before."""
        text = content.decode("latin-1")
        return _without(text, (*self._spans(layers(text)), *((secret.start, secret.end) for secret in secrets_in(text))))

    def hidden_piece(self, piece: bytes) -> bytes:
        """Return what can be written once this piece is known. The beginning of a key waits for the next piece."""
        if len(self._in_body) > MOST_KEYS:
            return b""
        self._new += piece.decode("latin-1")
        if AGAIN * len(self._new) < len(self._rest):  # else many small pieces would take time with the square of what waits
            return b""
        text, self._new = self._rest + self._new, ""
        found = layers(text)
        spans = sorted(self._spans(found))
        end = min(self._begun(found, 1), default=len(text)) if len(text) < HELD_MAX else len(text)
        for start, after in reversed(spans):  # a key that ends where another one may begin
            end = start if start < end < after else end
        self._rest = text[end:]
        return _without(text[:end], (span for span in spans if span[1] <= end))

    def hidden_end(self) -> bytes:
        """Return what waited when the last piece has come. The beginning of a key at its end is taken out."""
        if len(self._in_body) > MOST_KEYS:
            return LEFT_OUT
        text, self._rest, self._new = self._rest + self._new, "", ""
        found = layers(text)
        return _without(text, (*self._spans(found), *((begun, len(text)) for begun in self._begun(found, LETTERS))))

    def _spans(self, found: Sequence[Layer]) -> Iterator[tuple[int, int]]:
        """Yield where the keys are. Each is looked for by itself: a pattern of all of them would try each at every character."""
        for layer in found:
            for key in self._keys:
                start = layer.text.find(key)
                while start >= 0:
                    end = start + len(key)
                    if len(key) >= LONG or _is_word(layer.text, start, end):
                        yield layer.place(start), layer.place(end)
                    start = layer.text.find(key, start + 1)

    def _begun(self, found: Sequence[Layer], least: int) -> Iterator[int]:
        """Yield where something begins at the end of a text that may become a key: `least` characters of it, or an escape.

        Args:
            found: The layers of the text.
            least: Characters of a key. With 1, the beginning of an escape is enough.
        """
        for layer in found:
            escape = _BEGUN_ESCAPE.search(layer.text, max(0, len(layer.text) - 1_001))
            end = len(layer.text) if escape is None else escape.start()
            if escape is not None and least == 1:
                yield layer.place(end)
            for key in self._keys:
                if (size := _begun_size(layer.text, end, key, least)) > 0:
                    yield layer.place(end - size)


def _begun_size(text: str, end: int, key: str, least: int) -> int:
    """Return the number of characters of a key's beginning with which the text ends; 0 if they are fewer than `least`."""
    start = text.find(key[:LETTERS], max(0, end - len(key) + 1), end)
    while start >= 0:
        if key.startswith(text[start:end]):
            return end - start
        start = text.find(key[:LETTERS], start + 1, end)
    return next((size for size in range(LETTERS - 1, least - 1, -1) if text.endswith(key[:size], 0, end)), 0)


def _is_word(text: str, start: int, end: int) -> bool:
    """True if no letter and no digit stands right before or after this part."""
    return not any(each.isascii() and each.isalnum() for each in (text[start - 1 : start] if start else "", text[end : end + 1]) if each)


def _keys_in(value: str) -> Iterator[str]:
    """Yield the keys in the value of a header or a parameter: it as a whole, and its parts if they are long."""
    value = _SCHEME.sub("", value.strip(), count=1)
    login = decoded(value) or ""
    for whole in (value, login, login.partition(":")[2]):
        if len(whole) >= LETTERS:
            yield whole
        yield from (part for part in _BETWEEN.split(whole) if len(part) >= LONG)


def _encoded(key: str) -> Iterator[str]:
    """Yield what hexadecimal, Base64 and Base32 make of a key for sure, wherever in the encoded bytes it stands."""
    content = key.encode()
    yield from {content.hex(), content.hex().upper()}
    for bits, places, encode in ((6, 3, base64.b64encode), (5, 5, base64.b32encode)):
        for before in range(places):
            encoded = encode(b"\0" * before + content).decode().rstrip("=")
            form = encoded[(before * 8 + bits - 1) // bits : (before + len(content)) * 8 // bits]
            if len(form) >= LONG:
                yield from {form, form.replace("+", "-").replace("/", "_")}


def _without(text: str, spans: Iterable[tuple[int, int]]) -> bytes:
    pieces: list[bytes] = []
    shown = 0
    for start, end in sorted(set(spans)):
        if start >= shown:
            pieces += text[shown:start].encode("latin-1"), HIDDEN
        shown = max(shown, end)
    return b"".join((*pieces, text[shown:].encode("latin-1")))
