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
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from session.session import Session
    from session.transcripts.account import TranscriptAccount

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


def found_sessions(logs: Iterable[str], *, has_titles: bool, has_pages: bool, back: str, zone: tzinfo | None) -> Iterator[FoundSession]:
    """Yield the sessions of these logs that have requests, in any order. Logs that cannot be read have none: `read_logs` has named them.

    Args:
        logs: Paths and addresses of the logs.
        has_titles: True to find their titles.
        has_pages: True to make their pages.
        back: The address of the page of all sessions, for links in theirs.
        zone: The time zone. Default: the machine's.
    """
    from ..spend.log_files import log_files
    from ..spend.schedulers import read_on_all_cores
    from .progress import progress_bar

    reader = partial(read_found, has_titles=has_titles, has_pages=has_pages, back=back, zone=zone)
    files = log_files(logs)
    with progress_bar("writing pages" if has_pages else "reading titles", sum(file.size for file in files)) as advance:
        for _, data in read_on_all_cores(files, advance, reader):
            found = json.loads(data)
            if isinstance(found, list):  # else the worker that read it has died
                yield from (FoundSession(*row) for row in found)


def read_found(
    name: str, on_read: Callable[[int], object] | None, *, has_titles: bool, has_pages: bool, back: str, zone: tzinfo | None
) -> bytes:
    """Return the sessions of a log as JSON. Runs in workers. Arguments as of `found_sessions`; `on_read` is called with bytes read."""
    from session.errors import SessionError
    from session.transcripts import read_account

    from ..spend.remote import is_remote, local_copy

    try:
        with local_copy(name) if is_remote(name) else nullcontext(name) as path:
            account = read_account(path, on_read=on_read)
            found = [
                row
                for session in account.sessions
                if (row := _found(name, str(path), account, session, has_titles=has_titles, has_pages=has_pages, back=back, zone=zone))
            ]
    except (SessionError, OSError):
        found = []
    return json.dumps(found).encode()


def _found(
    name: str,
    path: str,
    account: TranscriptAccount,
    session: Session,
    *,
    has_titles: bool,
    has_pages: bool,
    back: str,
    zone: tzinfo | None,
) -> FoundSession | None:
    from ..reports.names import local_time, session_name, title_of
    from ..timeline import log_reports

    reports = log_reports(path, account, session)
    requests = [*reports.by_item.values(), *(request for _, request in reports.strays)]
    if not requests:
        return None
    (tool, id_, agent), _ = Counter((request.tool, request.session, request.agent) for request in requests).most_common(1)[0]
    first = min(requests, key=lambda request: (request.time is None, request.time or 0))
    day = local_time(first.time, zone)
    digest = blake2b(json.dumps([name, session.id, tool, id_, agent]).encode("utf-8", "surrogatepass"), digest_size=ID_BYTES).hexdigest()
    title = title_of(session) if has_titles else ""
    shown = session_name(
        first.time, first.project, f"{title} (sub-agent)" if agent and title else title or ("sub-agent" if agent else ""), zone
    )
    html = _page(session, reports, shown, name, back, zone) if has_pages else ""
    return FoundSession(tool, id_, agent, title, len(requests), f"{day:%Y-%m-%d}-{digest}.html" if day else f"{digest}.html", html)


def _page(session: Session, reports: Any, title: str, name: str, back: str, zone: tzinfo | None) -> str:
    from ..reports import session_page
    from .options import CommandOptions

    manager, _ = CommandOptions().manager(session)
    explained = [request for _, request in manager.made_up(session, reports)]
    page = session_page(
        manager.timeline(session, reports),
        title=title,
        source=PurePath(name).name,
        items=session.items,
        explained=explained,
        back=back,
        zone=zone,
    )
    return page.html
