"""`context-window report`: tokens and money of all sessions, or one session over time, as an HTML page or a folder of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..printable import printable
from .newest import log_of_session
from .options import CommandOptions, max_tokens_option, session_option
from .output import BadInputError, say, say_aside
from .packages import needs
from .report_sessions import FoundSession, Wanted, found_sessions
from .safe_folder import INDEX, PAGES, FolderTarget, is_folder, write_page
from .safe_write import STDOUT, Target, output_options
from .spend import complain_of_faults, filter_of, filter_options
from .spend_reading import read_logs
from .timeline import read_timeline

if TYPE_CHECKING:
    from session.transcripts.reported_requests import Request

    from ..pages import HtmlPage
    from ..reports import Link, SessionKey
    from ..spend import Ledger

EPILOG = """\b
Examples:
  context-window report -o report.html
  context-window report ~/.codex/sessions --since 2026-03-01 -o march.html
  context-window report session.jsonl -o session.html
  context-window report --titles -o report/
"""
OF_ONE = ("max_tokens", "session_id")
"""Options for one log."""
OF_ALL = ("since", "until", "project", "model", "tool", "zone", "scheduler", "is_trusted", "no_cache", "has_titles", "is_brief")
"""Options for all logs."""
ID_SHOWN = 13
"""Characters of a sub-agent's id that are shown."""


@click.command(epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@output_options
@filter_options
@max_tokens_option
@session_option
@click.option("--titles", "has_titles", is_flag=True, help="Name sessions by their title or the first words of the user, too.")
@click.option("--no-why", "is_brief", is_flag=True, help="Leave out why sessions cost what they did, which takes most of the time.")
@click.pass_context
def report(context: click.Context, /, paths: tuple[str, ...], out: str, force: bool, **options: Any) -> None:
    """Write a report as an HTML page that needs no network.

    With one log, the page shows that session over time: the window at each request, its cost, and where the cache broke. With
    several logs, a folder, or no PATH, it shows what all sessions have cost and why; the options that choose requests are those of spend.

    If OUT is a folder, such as report/, it gets that page as index.html, and a page for each session, all linked.

    OUT is readable only by its owner. An existing file or report is replaced only with --force.
    """
    needs("pages", "a report", "jinja2")
    is_tree = is_folder(out)
    paths = paths if is_tree or len(paths) != 1 else (log_of_session(paths[0]),)
    is_session = not is_tree and len(paths) == 1 and (paths[0] == "-" or Path(paths[0]).expanduser().is_file())
    _refuse(context, OF_ALL if is_session else OF_ONE, "are for several logs" if is_session else "are for one log")
    if is_tree:
        folder = FolderTarget(out, force=force)
        _write_tree(folder, paths, **{name: options[name] for name in OF_ALL})
        say(printable(f"wrote {folder.label}"))
        return
    target = Target(out, paths, force=force)
    given = {name: options[name] for name in (OF_ONE if is_session else OF_ALL)}
    page = _session_report(paths[0], given) if is_session else _spend_report(paths, **given)
    target.write(page.html.encode(errors="replace"))
    (say_aside if target.name == STDOUT else say)(printable(f"wrote {target.label}"))


def _refuse(context: click.Context, names: Sequence[str], reason: str) -> None:
    """Refuse options that the page has no use for.

    Raises:
        UsageError: One of them was given.
    """
    named_options = {name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    if named_options:
        flags = [option.opts[0] for option in context.command.params if option.name in named_options]
        raise click.UsageError(f"{', '.join(flags)}: such options {reason}.")


def _session_report(path: str, options: dict[str, Any]) -> HtmlPage:
    from ..reports import session_page

    result = read_timeline(path, CommandOptions(**options))
    session, timeline = result.transcript.session, result.timeline
    explained = [request for _, request in result.manager.made_up(session, result.reports)]
    return session_page(timeline, title=result.name, items=session.items, explained=explained)


def _spend_report(paths: Sequence[str], *, zone: tzinfo | None, has_titles: bool, **options: Any) -> HtmlPage:
    ledger, requests = _read(paths, zone=zone, **options)
    titles = _titles(_found(ledger, requests, Wanted(has_titles=True, zone=zone))) if has_titles else {}
    return _page(ledger, requests, zone, titles)


def _write_tree(folder: FolderTarget, paths: Sequence[str], *, zone: tzinfo | None, has_titles: bool, **options: Any) -> None:
    if "-" in paths:
        raise BadInputError("a folder of pages needs logs that are files; pass their paths instead of -")
    ledger, requests = _read(paths, zone=zone, **options)
    with folder.filled() as place:
        pages = place / PAGES
        pages.mkdir(mode=0o700)
        found = []
        wanted = Wanted(has_titles, has_pages=True, has_why=not options["is_brief"], back=f"../{INDEX}", zone=zone)
        for session in _found(ledger, requests, wanted):
            write_page(pages / session.file, session.html.encode(errors="replace"))
            found.append(session._replace(html=""))
        page = _page(ledger, requests, zone, _titles(found), _links(found))
        write_page(place / INDEX, page.html.encode(errors="replace"))


def _read(
    paths: Sequence[str],
    *,
    zone: tzinfo | None,
    scheduler: str | None,
    is_trusted: bool,
    no_cache: bool,
    is_brief: bool,
    **filters: Any,
) -> tuple[Ledger, list[Request]]:
    """Return what the logs report, and the requests that pass the filters."""
    passes = filter_of(zone, **filters)
    ledger = read_logs(paths, no_cache=no_cache, address=scheduler, is_trusted=is_trusted, explained_if=None if is_brief else passes)
    if ledger.faults:
        complain_of_faults(ledger, "the report")
    if not ledger.logs:
        raise BadInputError("none of the logs could be read, so no report was written")
    requests = list(filter(passes, ledger.requests))
    return ledger, [replace(request, makeup=None) for request in requests] if is_brief else requests  # earlier runs may have explained them


def _found(ledger: Ledger, requests: Sequence[Request], wanted: Wanted) -> Iterator[FoundSession]:
    """Yield the sessions of these requests, as far as their logs still exist."""
    from ..spend import is_remote

    keys = {(request.tool, request.session) for request in requests}
    logs = {log for key in keys for log in ledger.logs_of[key] if is_remote(log) or Path(log).exists()}
    return (session for session in found_sessions(logs, wanted) if (session.tool, session.id) in keys)


def _page(
    ledger: Ledger,
    requests: Sequence[Request],
    zone: tzinfo | None,
    titles: Mapping[SessionKey, str],
    pages: Mapping[SessionKey, Sequence[Link]] | None = None,
) -> HtmlPage:
    from ..reports import spend_page

    return spend_page(requests, zone=zone, repeated=ledger.repeated, faults=ledger.faults, titles=titles, pages=pages)


def _in_order(found: Iterable[FoundSession]) -> list[FoundSession]:
    """Return the main conversation of each session before those of its sub-agents, and the longest first."""
    return sorted(found, key=lambda session: (bool(session.agent), -session.requests, session.file))


def _titles(found: Iterable[FoundSession]) -> dict[SessionKey, str]:
    from ..reports import SessionKey

    titles: dict[SessionKey, str] = {}
    for session in _in_order(found):
        titles.setdefault(SessionKey(session.tool, session.id), session.title)
    return titles


def _links(found: Iterable[FoundSession]) -> dict[SessionKey, list[Link]]:
    from ..reports import Link, SessionKey

    links: dict[SessionKey, list[Link]] = {}
    for session in _in_order(found):
        name = session.title or (f"sub-agent {session.agent[:ID_SHOWN]}" if session.agent else "another log of it")
        links.setdefault(SessionKey(session.tool, session.id), []).append(Link(f"{PAGES}/{session.file}", name))
    return links
