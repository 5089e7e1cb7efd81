"""Reads the logs that `context-window spend` is about: where from, with which cache, and on which machines."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .output import BadInputError, complain
from .progress import progress_bar

if TYPE_CHECKING:
    from session.transcripts.reported_requests import Request

    from ..spend import Ledger, SpendCache
    from ..spend.rows import Wanted


def read_logs(
    paths: Sequence[str],
    *,
    no_cache: bool = False,
    address: str | None = None,
    is_trusted: bool = False,
    explained_if: Wanted | None = None,
    forget: bool = False,
) -> Ledger:
    """Return the requests of these logs, or of those of all tools.

    Args:
        paths: Paths, patterns and addresses of logs and folders, or `-` alone for standard input.
        no_cache: True to read every log and keep nothing.
        address: Of the Dask scheduler of the cluster to read on; None to read with all cores of this machine.
        is_trusted: True to reach a scheduler on another machine without TLS.
        explained_if: Tells of which requests to work out what their prompts were made of, which takes several times as long. Default: none.
        forget: True to forget the logs that no longer exist.

    Raises:
        BadInputError: There are no logs.
        FleetError: A cluster, a file system or a package for them cannot be used.
    """
    from ..kept_prices import keeping
    from ..spend import find_logs, find_remote_logs, is_remote, read_ledger, read_on_all_cores, read_on_dask

    if "" in paths:
        raise BadInputError("the name of a log is empty; pass a file, a folder, or -")
    if "-" in paths:
        return _read_standard_input(paths, explained_if=explained_if)
    scheduler = read_on_all_cores if address is None else read_on_dask(address, is_trusted=is_trusted)
    local = [path for path in paths if not is_remote(path)]
    logs = [*(find_logs(local) if local or not paths else ()), *find_remote_logs(path for path in paths if is_remote(path))]
    if not logs:
        where = "below the given paths" if paths else "where the known tools write them"
        raise BadInputError(f"no logs found {where}; pass the path of a log or of a folder of logs")
    if not no_cache and (context := click.get_current_context(silent=True)) is not None:
        context.with_resource(keeping())  # until the command ends, for it asks for prices
    with nullcontext() if no_cache else _cache() as cache:
        if cache is not None and forget:
            complain(f"forgotten: {cache.forget():,} logs that no longer exist")
        progress = partial(progress_bar, "reading logs" if explained_if is None else "explaining logs")
        ledger = read_ledger(logs, progress, scheduler=scheduler, cache=cache, keep=not paths, **_explaining(explained_if))
    if cache is not None and cache.problem:
        complain(cache.problem)
    return ledger


def _explaining(wanted: Wanted | None) -> dict[str, Any]:
    return {} if wanted is None else {"explain": explained, "wanted": wanted}


def explained(path: str | os.PathLike[str], requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """Return the requests of a log with what their prompts were made of, as far as its sessions can be read. Runs in workers."""
    from session.errors import SessionError
    from session.transcripts import read_account

    from ..timeline.matches import match_requests
    from .options import CommandOptions

    made_up: dict[int, Request] = {}
    rest: Sequence[Request] = requests
    try:
        sessions = read_account(path).sessions
    except SessionError:
        return requests
    for session in sessions:
        if not rest:
            break
        reports = match_requests(rest, session, [other for other in sessions if other is not session])
        manager, _ = CommandOptions().manager(session)
        made_up |= {id(request): explained for request, explained in manager.made_up(session, reports)}
        rest = reports.elsewhere
    return tuple(made_up.get(id(request), request) for request in requests)


def _cache() -> AbstractContextManager[SpendCache | None]:
    from ..spend import SpendCache, cache_file

    try:
        return SpendCache(cache_file())
    except RuntimeError as error:  # the user's home is unknown
        complain(f"nothing is kept for the next run: {error}; set CONTEXT_WINDOW_HOME to a writable folder")
        return nullcontext()


def _read_standard_input(paths: Sequence[str], *, explained_if: Wanted | None) -> Ledger:
    """Return the requests of the log on standard input. It is kept in a temporary file while it is read."""
    import shutil
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from ..spend import read_ledger

    if len(paths) > 1:
        raise BadInputError("- cannot be combined with other paths")
    with TemporaryDirectory() as folder:
        path = Path(folder, "-.jsonl")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        ledger = read_ledger([path], **_explaining(explained_if))
    return replace(ledger, faults=tuple(replace(fault, path="-") for fault in ledger.faults))
