"""How far the hosts differ among which a router chooses for one model: they count the same prompt one to three per cent apart."""

from __future__ import annotations

MILLION = 1_000_000
FARTHEST = 50_000
"""Millionths by which hosts differ at most. What is beyond is no difference between hosts."""


class Hosts:
    """The hosts that reported, each with its level: by how many millionths it counts more than the first. Empty names count as none."""

    def __init__(self) -> None:
        self._levels: dict[str, int] = {}
        self._current = ""

    def is_another(self, host: str) -> bool:
        """True if the next report is by another host than the last one."""
        return bool(host and self._current) and host != self._current

    def learn(self, host: str, tokens: int, expected: int) -> None:
        """Take a report by another host, and what the last host would have reported. The latest level of a host counts."""
        difference = (tokens - expected) * MILLION // max(1, expected)
        self._levels[host] = self._levels[self._current] + max(-FARTHEST, min(FARTHEST, difference))

    def meet(self, host: str) -> None:
        """Take the host of a report. One whose level is not known counts as the last one does."""
        if host:
            self._levels.setdefault(host, self._levels.get(self._current, 0))
            self._current = host

    def gap(self, tokens: int) -> int:
        """Return the most tokens that another host would count more for a request that the last host counted as so many."""
        if not self._current:
            return 0
        return (max(self._levels.values()) - self._levels[self._current]) * tokens // MILLION
