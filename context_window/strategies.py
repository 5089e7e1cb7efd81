"""How a full window is trimmed, by name. The steps themselves live in `trimming/`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class PriorityTrim:
    """The lowest category first, the oldest first, each category down to its share before any goes below its own."""


Strategy: TypeAlias = PriorityTrim
