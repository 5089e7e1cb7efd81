"""`RequestKeys`: takes the keys with which a request came, and those in its body, out of whatever is recorded of it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from starlette.requests import Request

from session.redaction import LETTERS
from session.secret_finder import decoded, layers, secrets_in

HIDDEN = b"[key]"
"""Stands in a recording where a key stood."""
LONG = 8
"""Characters of a key that is found inside words, too. A shorter one is hidden as a word: local servers take any word for a key."""
SPELLED_MAX = 10
"""Characters that one of a key may take, escaped three times."""
_SECRET = re.compile(r"auth|key|token|secret|cookie|credential|signature", re.IGNORECASE)
"""A part of the name of each header and query parameter that holds a key."""
_SCHEME = re.compile(r"(?:bearer|basic|digest|token|apikey)\s+", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s;,=]+")
_BEGUN_ESCAPE = re.compile(r"(?:\\+(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|%[0-9a-fA-F]?)?$")


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
        self._rest = b""

    @cached_property
    def _keys(self) -> list[str]:
        """The keys, the longest first. Found when they are needed first, so in the thread that writes."""
        keys = {key for value in self._named for key in _keys_in(value)}
        keys |= {secret.value for secret in secrets_in(self._body.decode("latin-1"))}
        return sorted(keys | {form for key in keys if len(key) >= LONG for form in _in_base64(key)}, key=len, reverse=True)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        forms = (re.escape(key) if len(key) >= LONG else rf"(?<![A-Za-z0-9]){re.escape(key)}(?![A-Za-z0-9])" for key in self._keys)
        return re.compile("|".join(forms) or "(?!)")

    def hidden(self, content: bytes) -> bytes:
        """Return a whole file's content without keys, those included that were not known before."""
        text = content.decode("latin-1")
        return _without(text, (*self._spans(text), *((secret.start, secret.end) for secret in secrets_in(text))))

    def hidden_piece(self, piece: bytes) -> bytes:
        """Return what can be written once this piece is known. The beginning of a key may wait for the next piece."""
        text = (self._rest + piece).decode("latin-1")
        content = _without(text, self._spans(text))
        end = max(0, len(content) - SPELLED_MAX * len(max(self._keys, key=len, default="")))
        self._rest = content[end:]
        return content[:end]

    def hidden_end(self) -> bytes:
        """Return what waited when the last piece has come. The beginning of a key at its end is taken out."""
        text, self._rest = self._rest.decode("latin-1"), b""
        return _without(text, self._begun_spans(text))

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        for layer in layers(text):
            for match in self._pattern.finditer(layer.text):
                yield layer.place(match.start()), layer.place(match.end())

    def _begun_spans(self, text: str) -> Iterator[tuple[int, int]]:
        begun = _BEGUN_ESCAPE.search(text)
        whole = text if begun is None else text[: begun.start()]
        for layer in layers(whole):
            for key in self._keys:
                length = next((size for size in range(len(key) - 1, LETTERS - 1, -1) if layer.text.endswith(key[:size])), 0)
                if length:
                    yield layer.place(len(layer.text) - length), len(text)


def _keys_in(value: str) -> Iterator[str]:
    """Yield the keys in the value of a header or a parameter: it as a whole, and its parts if they are long."""
    value = _SCHEME.sub("", value.strip(), count=1)
    login = decoded(value) or ""
    for whole in (value, login, login.partition(":")[2]):
        if len(whole) >= LETTERS:
            yield whole
        yield from (part for part in _BETWEEN.split(whole) if len(part) >= LONG)


def _in_base64(key: str) -> Iterator[str]:
    """Yield what Base64 makes of a key for sure, wherever in the encoded bytes it stands."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + key.encode()).decode().rstrip("=")
        form = encoded[(before * 8 + 5) // 6 : (before + len(key.encode())) * 8 // 6]
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
