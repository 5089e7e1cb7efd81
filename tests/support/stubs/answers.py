"""What a scripted model says, in no provider's words: each stub puts it into its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Say:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """A thought. A hidden one comes without its text: redacted, or encrypted, or as a signature alone."""

    text: str = ""
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """The wish to have a tool run."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """A block in the provider's own form, for kinds that only one provider has."""

    fields: Mapping[str, Any]


Block: TypeAlias = Say | Think | Call | Raw

Script: TypeAlias = Callable[[Mapping[str, Any]], Sequence[Block]]
"""The model: what it says to a request, which is the parsed body."""


def in_order(*answers: Sequence[Block]) -> Script:
    """A model that gives these answers one after the other, and then says that it has no more."""
    waiting = iter(answers)
    return lambda request: next(waiting, (Say("That is all."),))
