"""The tree of a report: projects, the sessions in each, and what each session has paid most for. The sums are those of `spend`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import chain
from typing import NamedTuple

from session.transcripts.reported_requests import Request

from ..spend.reasons import UNEXPLAINED, ReasonRow, reasons_by
from ..spend.tables import UNKNOWN, SpendRow, added, sum_of
from .names import session_name

ID_LENGTH = 13
"""Characters of an id that are shown: enough to tell sessions apart, and for `--session`."""
PROJECTS_MAX, SESSIONS_MAX = 50, 200
"""Projects, and sessions of a project, that are listed. One more row sums up the rest."""


class SessionKey(NamedTuple):
    """What tells a session from all others.

    Attributes:
        tool: The tool that wrote its log.
        id: Its id.
    """

    tool: str
    id: str


class Link(NamedTuple):
    """A page about a session, or about a sub-agent of it.

    Attributes:
        address: The page's address, from the page with the tree.
        text: Its name.
    """

    address: str
    text: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session.

    Attributes:
        key: What tells it apart; None for the row that sums up other sessions.
        name: Its name.
        sums: What it has cost.
        cause: What it has paid most for; None if that is not known.
        page: Its page; None if there is none.
        agents: Pages of its sub-agents.
    """

    key: SessionKey | None
    name: str
    sums: SpendRow
    cause: ReasonRow | None = None
    page: Link | None = None
    agents: Sequence[Link] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A project and its sessions.

    Attributes:
        name: The project's folder.
        sums: What its sessions have cost.
        count: Number of its sessions.
        sessions: The sessions, the dearest first. They add up to the sums.
    """

    name: str
    sums: SpendRow
    count: int
    sessions: Sequence[SessionRow]


def key_of(request: Request) -> SessionKey:
    """Return the session of a request."""
    return SessionKey(request.tool, request.session)


def session_tree(
    requests: Sequence[Request],
    *,
    zone: tzinfo | None = None,
    titles: Mapping[SessionKey, str] | None = None,
    pages: Mapping[SessionKey, Sequence[Link]] | None = None,
) -> list[Branch]:
    """Return the projects with their sessions, the dearest first. A session that has worked in two folders is in both, with a part each.

    Args:
        requests: The requests.
        zone: The time zone of names. Default: the machine's.
        titles: Titles of sessions. Default: names have none.
        pages: The pages of sessions, each session's own before those of its sub-agents. Default: there are none.
    """
    projects: dict[str, dict[SessionKey, list[Request]]] = {}
    for request in requests:
        projects.setdefault(request.project or UNKNOWN, {}).setdefault(key_of(request), []).append(request)
    branches = [_branch(name, sessions, zone, titles or {}, pages or {}) for name, sessions in projects.items()]
    branches.sort(key=lambda branch: (-branch.sums.cost, -branch.sums.total, branch.name))
    if len(branches) <= PROJECTS_MAX:
        return branches
    rest = branches[PROJECTS_MAX:]
    rows = [row for branch in rest for row in branch.sessions]
    sums = added(f"({len(rest):,} other projects)", [branch.sums for branch in rest])
    return [*branches[:PROJECTS_MAX], Branch(sums.name, sums, sum(branch.count for branch in rest), _leading(rows, sums))]


def _branch(
    name: str,
    sessions: Mapping[SessionKey, Sequence[Request]],
    zone: tzinfo | None,
    titles: Mapping[SessionKey, str],
    pages: Mapping[SessionKey, Sequence[Link]],
) -> Branch:
    rows = []
    for key, requests in sessions.items():
        times = [request.time for request in requests if request.time is not None]
        shown = session_name(min(times, default=None), requests[0].project, titles.get(key, ""), zone)
        cause = next((row for row in reasons_by("cause", requests) if row.name != UNEXPLAINED), None)
        linked = pages.get(key, ())
        rows.append(SessionRow(key, shown, sum_of(shown, requests), cause, next(iter(linked), None), linked[1:]))
    sums = sum_of(name, list(chain.from_iterable(sessions.values())))
    return Branch(name, sums, len(rows), _leading(rows, sums))


def _leading(rows: Sequence[SessionRow], sums: SpendRow) -> list[SessionRow]:
    """Return the dearest sessions, and a row for the others."""
    rows = sorted(rows, key=lambda row: (row.key is None, -row.sums.cost, -row.sums.total, row.name, row.key or ()))
    if len(rows) <= SESSIONS_MAX:
        return rows
    rest = [row.sums for row in rows[SESSIONS_MAX:]]
    others = added(f"(other sessions of {sums.name})", rest)
    return [*rows[:SESSIONS_MAX], SessionRow(None, others.name, others)]
