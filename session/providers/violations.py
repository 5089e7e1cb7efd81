"""What a validator says: one broken rule, at one place of a payload."""

from __future__ import annotations

from typing import NamedTuple


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
