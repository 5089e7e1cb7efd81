"""The result of a validator: a broken rule at a place in a payload. Also the checks that all validators share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from session.errors import short


class Violation(NamedTuple):
    """One broken rule.

    Attributes:
        rule: The id of the rule, such as `A2`. The number 0 of each provider is for the shape: fields, types, roles.
        where: The place in the payload, such as `messages[3].content[0]`.
        message: The problem at that place.
    """

    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule} {self.where}: {self.message}"


def wire_size(payload: object) -> tuple[int, str | None]:
    """Return the bytes of the payload as JSON and None, or 0 and the reason why it is not JSON."""
    try:
        return len(json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()), None
    except (TypeError, ValueError, RecursionError) as error:
        return 0, f"cannot be written as JSON: {error}"


def text_of(value: object) -> str:
    """Return a text unchanged, else a short text for the value: `str` fails on huge integers and on deep nesting."""
    return value if isinstance(value, str) else short(value)


def rules_in(module: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the rules of a validator, in order: the functions of its module that are named after the id of a rule, such as `a2_ids`."""
    return tuple(function for name, function in module.items() if re.match(r"[a-z]\d_", name))
