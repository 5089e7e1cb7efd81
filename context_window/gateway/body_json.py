"""JSON of requests' bodies. orjson reads and writes it, and `json` what orjson cannot.

1. Clients cut texts in the middle of a character, so bodies have lone surrogates. orjson refuses them. It reads a whole number of more than
   64 bits as a float. `json` keeps both as they are.
2. NaN, Infinity and numbers too large for a float are no JSON. A body with such a number is not read, and goes upstream as it came.
3. The bytes of a message depend on the message alone, so the same messages begin every body with the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from itertools import accumulate
from typing import Any

try:
    from orjson import dumps as _dumps
    from orjson import loads as _loads
except ModuleNotFoundError:  # `manage` works without the gateway's packages: json does it all

    def _dumps(_: Any) -> bytes:  # type: ignore[misc]
        raise TypeError

    def _loads(_: bytes) -> Any:  # type: ignore[misc]
        raise ValueError


Json = dict[str, Any]

VALUES_MAX = 2_000_000
"""Values that a request may have, about. Nothing else is done while one is read, and twenty million take nine seconds."""
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
"""A number with so many digits may not fit into 64 bits."""


def request_object(content: bytes) -> Json | None:
    """Return the JSON object of a client's body; None if it holds none, so that the upstream can say so.

    Raises:
        OverflowError: It may have so many values that reading it would keep others waiting. Commas in texts count.
    """
    counts = (content.count(mark, start, start + VALUES_MAX) for start in range(0, len(content), VALUES_MAX) for mark in b",[{")
    if len(content) > VALUES_MAX and not content.startswith(b"--") and any(total > VALUES_MAX for total in accumulate(counts)):
        raise OverflowError(f"the body has more than {VALUES_MAX:,} values")
    return object_of(content)


def object_of(content: bytes) -> Json | None:
    """Return the JSON object of a text; None if it holds none."""
    body = value_of(content)
    return body if isinstance(body, dict) else None


def value_of(content: bytes) -> Any:
    """Return the JSON value of a text; None if it holds none that every reader understands alike."""
    try:
        return _value_of(content)
    except (ValueError, RecursionError):
        return None


def _value_of(content: bytes) -> Any:
    if _LONG_NUMBER not in content.translate(_ZEROS):
        with suppress(ValueError):
            return _loads(content)
    return json.loads(content, parse_constant=_finite, parse_float=_finite)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(number)
    return value


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON.

    Raises:
        RecursionError: It is nested too deeply.
    """
    try:
        return _dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")  # surrogates as \udXXX


def body_bytes(body: Mapping[str, Any], field: str) -> bytes:
    """Return a body as JSON.

    Args:
        body: The fields.
        field: The one that holds the messages. Each message is written by itself.
    """
    values = ((name, b"[%b]" % b",".join(map(json_bytes, value)) if name == field else json_bytes(value)) for name, value in body.items())
    return b"{%b}" % b",".join(b"%b:%b" % (json_bytes(name), value) for name, value in values)
