"""`PlanNotes`: the limits of the plans that requests are charged to, as the headers of answers state them."""

from __future__ import annotations

import time
from collections.abc import Iterable

from session.plan_limits import PlanLimits, limits_of, stated_in

from ..display.limits import limit_sentences
from ..kept_limits import keep_limits


class PlanNotes:
    """The newest limits of each plan. Nothing for API keys, whose answers state none."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[PlanLimits, object]] = {}
        self._kept: dict[str, float] = {}

    def note(self, headers: Iterable[tuple[bytes, bytes]], now: float) -> bool:
        """Read an answer's headers. Returns True if they state other limits than the ones before.

        Args:
            headers: Names in lower case, and values.
            now: Unix seconds.
        """
        stated = stated_in({name.decode("latin-1"): value.decode("latin-1") for name, value in headers}, now)
        limits = None if stated is None else limits_of(*stated, now)
        if stated is None or limits is None:
            return False
        earlier = self._newest.get(stated[0])
        self._newest[stated[0]] = limits, stated[1]
        return earlier is None or earlier[0].periods != limits.periods

    def keep(self) -> None:
        """Write what is new where `context-window` finds it."""
        for tool, (limits, stated) in list(self._newest.items()):
            if self._kept.get(tool) != limits.time:
                keep_limits(tool, stated, limits.time)
                self._kept[tool] = limits.time

    def sentences(self) -> list[str]:
        """Return a sentence for each period of each plan."""
        return list(limit_sentences([limits for limits, _ in list(self._newest.values())], (), time.time()))
