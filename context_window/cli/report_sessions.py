"""Reads the sessions of logs for a report: their titles, and a page for each of them. Works on all cores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from datetime import tzinfo
from functools import partial
from hashlib import blake2b
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from session.session import Session
    from session.transcripts.account import TranscriptAccount

    from ..timeline.matches import LogReports

ID_BYTES = 6
"""Bytes of the digest in a page's file name."""


class FoundSession(NamedTuple):
    """A session that was found in a log. It goes from worker to parent as JSON.

    Attributes:
        tool: The tool that wrote the log.
        id: The session's id.
        agent: The sub-agent whose conversation it is; empty for the main one.
        title: Its title; empty if it has none, or nobody asked.
        requests: Number of its requests.
        file: The name of its page's file: its day and a digest, and nothing that a log says.
        html: Its page; empty if nobody asked.
    """

    tool: str
    id: str
    agent: str
    title: str
    requests: int
    file: str
    html: str


class Wanted(NamedTuple):
    """What to find out about sessions. It goes from parent to worker.

    Attributes:
        has_titles: True for their titles.
        has_pages: True for their pages.
        has_why: True if these say why they cost what they did.
        back: The address of the page of all sessions, for links in theirs.
        zone: The time zone; None for the machine's.
    """

    has_titles: bool = False
    has_pages: bool = False
    has_why: bool = False
    back: str = ""
    zone: tzinfo | None = None


def found_sessions(logs: Iterable[str], wanted: Wanted) -> Iterator[FoundSession]:
    """Yield the sessions of these logs that have requests, in any order. Logs that cannot be read have none: `read_logs` has named them.

    Args:
        logs: Paths and addresses of the logs.
        wanted: What to find out.
    """
    from ..spend.log_files import log_files
    from ..spend.schedulers import read_on_all_cores
    from .progress import progress_bar

    files = log_files(logs)
    with progress_bar("writing pages" if wanted.has_pages else "reading titles", sum(file.size for file in files)) as advance:
        for _, data in read_on_all_cores(files, advance, partial(read_found, wanted=wanted)):
            found = json.loads(data)
            if isinstance(found, list):  # else the worker that read it has died
                yield from (FoundSession(*row) for row in found)


def read_found(name: str, on_read: Callable[[int], object] | None, *, wanted: Wanted) -> bytes:
    """Return the sessions of a log as JSON. Runs in workers.

    Args:
        name: The log's path or address.
        on_read: Called with the number of bytes read since the last call.
        wanted: What to find out.
    """
    from session.errors import SessionError
    from session.transcripts import read_account

    from ..spend.remote import is_remote, local_copy

    try:
        with local_copy(name) if is_remote(name) else nullcontext(name) as path:
            account = read_account(path, on_read=on_read)
            found = [row for session in account.sessions if (row := _found(name, str(path), account, session, wanted))]
    except (SessionError, OSError):
        found = []
    return json.dumps(found).encode()


def _found(name: str, path: str, account: TranscriptAccount, session: Session, wanted: Wanted) -> FoundSession | None:
    from ..reports.names import session_name, title_of
    from ..spend.names import local_time
    from ..timeline import log_reports

    reports = log_reports(path, account, session)
    requests = [*reports.by_item.values(), *(request for _, request in reports.strays)]
    if not requests:
        return None
    (tool, id_, agent), _ = Counter((request.tool, request.session, request.agent) for request in requests).most_common(1)[0]
    first = min(requests, key=lambda request: (request.time is None, request.time or 0))
    day = local_time(first.time, wanted.zone)
    digest = blake2b(json.dumps([name, session.id, tool, id_, agent]).encode(), digest_size=ID_BYTES).hexdigest()
    file = f"{day:%Y-%m-%d}-{digest}.html" if day else f"{digest}.html"
    title = title_of(session) if wanted.has_titles else ""
    role = "sub-agent" if agent else ""
    shown = session_name(first.time, first.project, f"{title} ({role})" if title and role else title or role, wanted.zone)
    html = _page(session, reports, shown, PurePath(name).name, wanted) if wanted.has_pages else ""
    return FoundSession(tool, id_, agent, title, len(requests), file, html)


def _page(session: Session, reports: LogReports, title: str, source: str, wanted: Wanted) -> str:
    from ..reports import session_page
    from .options import CommandOptions

    manager, _ = CommandOptions().manager(session)
    explained = [request for _, request in manager.made_up(session, reports)] if wanted.has_why else ()
    timeline = manager.timeline(session, reports)
    page = session_page(timeline, title=title, source=source, items=session.items, explained=explained, back=wanted.back, zone=wanted.zone)
    return page.html
