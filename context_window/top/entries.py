"""Groups the requests of all logs into sessions. Sums are kept as long as a session's requests stay the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from session.transcripts.reported_requests import Request

from ..spend.ledger import Ledger
from ..spend.tables import UNKNOWN, SpendRow, added, local_day, sum_of


class EntryKey(NamedTuple):
    """What tells sessions apart. One that worked in two folders is a session in each of them, as in `spend --by project`."""

    project: str
    tool: str
    session: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A session.

    Attributes:
        key: Its project, tool and id.
        requests: Its requests, those of its sub-agents included, in the order of the logs.
        origins: The log of each request.
        days: Its sums by day; of None for requests without a time.
    """

    key: EntryKey
    requests: tuple[Request, ...]
    origins: tuple[str, ...]
    days: tuple[tuple[date | None, SpendRow], ...]

    @property
    def logs(self) -> tuple[str, ...]:
        """Its logs, that of the main conversation first."""
        main = Counter(dict.fromkeys(self.origins, 0))
        main.update(log for log, request in zip(self.origins, self.requests, strict=True) if not request.agent)
        return tuple(sorted(main, key=lambda log: (-main[log], log)))

    @property
    def last(self) -> Request:
        """The last request of the main conversation, or of any if it has none."""
        main = [request for request in self.requests if not request.agent] or self.requests
        return max(main, key=lambda request: request.time or 0.0)

    @property
    def time(self) -> float | None:
        """Unix seconds of its last request; None if no time is known."""
        return max((request.time for request in self.requests if request.time is not None), default=None)

    def spent(self, since: date | None = None) -> SpendRow:
        """Return its sums, from a day on or of all days."""
        return added(self.key.session, (row for day, row in self.days if since is None or (day is not None and day >= since)))


class Entries:
    """The sessions as they were last time, so that only what has changed is summed up again."""

    def __init__(self) -> None:
        self._last: dict[EntryKey, Entry] = {}

    def of(self, ledger: Ledger) -> tuple[Entry, ...]:
        """Return the sessions of all logs, the one that was used last first."""
        groups: dict[EntryKey, list[tuple[Request, str]]] = {}
        for request, origin in zip(ledger.requests, ledger.origins, strict=True):
            key = EntryKey(request.project or UNKNOWN, request.tool, request.session or UNKNOWN)
            groups.setdefault(key, []).append((request, origin))
        entries: dict[EntryKey, Entry] = {}
        for key, pairs in groups.items():
            requests, origins = zip(*pairs, strict=True)
            last = self._last.get(key)
            is_same = last is not None and last.requests == requests and last.origins == origins
            entries[key] = last if last is not None and is_same else Entry(key, requests, origins, tuple(_days(requests)))
        self._last = entries
        return tuple(sorted(entries.values(), key=lambda entry: (-(entry.time or 0.0), entry.key)))


def _days(requests: Iterable[Request]) -> Iterable[tuple[date | None, SpendRow]]:
    days: dict[date | None, list[Request]] = {}
    for request in requests:
        days.setdefault(local_day(request), []).append(request)
    return ((day, sum_of("", of_day)) for day, of_day in days.items())
