"""The result of a validator: a broken rule at a place in a payload. Also the checks that all validators share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

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


@dataclass(slots=True)
class Payload:
    """A payload laid out for a provider's rules. `faults` are the violations of its shape, whose id is `shape`."""

    shape: ClassVar[str]
    faults: list[Violation] = field(default_factory=list, kw_only=True)

    def fault(self, where: str, message: str) -> None:
        """Add a violation of the shape."""
        self.faults.append(Violation(self.shape, where, message))

    def refuse_others(self, where: str, fields: Mapping[Any, Any], known: set[str] | frozenset[str], message: str) -> None:
        """Add a violation for each field that is not among the known ones."""
        for name in sorted(map(text_of, fields.keys() - known)):
            self.fault(f"{where}.{name}", message)

    def measure(self, raw: object) -> int:
        """Return the bytes of the payload as JSON; 0, and a violation, if it cannot be written as JSON."""
        try:
            return len(json.dumps(raw, ensure_ascii=False, allow_nan=False).encode())
        except (TypeError, ValueError, RecursionError) as error:
            self.fault("payload", f"cannot be written as JSON: {error}")
            return 0


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """One part of a content or an output, with its place. A plain text counts as one part."""

    where: str
    type: str
    data: Mapping[str, Any]


Turn = TypeVar("Turn")


def with_neighbours(turns: Sequence[Turn]) -> Iterator[tuple[Turn | None, Turn, Turn | None]]:
    """Return every message with its predecessor and its successor."""
    return zip([None, *turns], turns, [*turns[1:], None], strict=False)


def text_of(value: object) -> str:
    """Return a text unchanged, else a short text for the value: `str` fails on huge integers and on deep nesting."""
    return value if isinstance(value, str) else short(value)


def rules_in(module: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the rules of a validator, in order: the functions of its module that are named after the id of a rule, such as `a2_ids`."""
    return tuple(function for name, function in module.items() if re.match(r"[a-z]\d_", name))
