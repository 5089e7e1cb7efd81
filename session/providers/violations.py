"""What a validator says: one broken rule, at one place of a payload. And what all ask first: whether it can be written at all."""

from __future__ import annotations

import json
from typing import NamedTuple

from session.errors import short


class Violation(NamedTuple):
    """One broken rule.

    Attributes:
        rule: Its number, such as `A2`. The number 0 of each provider is the shape: fields, types, roles.
        where: The place in the payload, such as `messages[3].content[0]`.
        message: What is wrong there.
    """

    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule} {self.where}: {self.message}"


def wire_size(payload: object) -> tuple[int, str | None]:
    """Bytes of the payload as JSON, and None; or 0, and why it cannot be written."""
    try:
        return len(json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()), None
    except (TypeError, ValueError, RecursionError) as error:
        return 0, f"cannot be written as JSON: {error}"


def text_of(value: object) -> str:
    """Return the value itself if it is a text, else a text that stands for it: `str` fails on huge integers and on deep nesting."""
    return value if isinstance(value, str) else short(value)
