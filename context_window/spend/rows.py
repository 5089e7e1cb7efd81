"""The requests of one log as compact bytes: what a worker hands back and what the cache keeps.

Of a conversation they hold names of tools, commands and skills, subjects of commits and addresses of pull requests, if they are explained;
no other text.

The bytes are JSON, compressed if they are many. Texts that repeat, such as the model and the folder, are stored once a log. Ids are
hashed, since they only serve to tell requests apart.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from hashlib import blake2b
from sys import intern
from typing import Any

from session.errors import TranscriptError
from session.plan_limits import LimitPeriod, PlanLimits
from session.transcripts.makeup import Makeup, Part
from session.transcripts.reported_requests import NO_LINEAGE, Lineage, Request, read_requests

from .remote import is_remote, local_copy

FORMAT = 14
"""Number of the format. Raise it when a reader's figures change: logs with rows of another format are read again. Those of logs that no
longer exist are all there is, so rows of every format from 9 on must stay readable: each names its fields."""
WORTH_COMPRESSING = 4_000
"""Bytes of rows that are compressed. Most logs are small, and setting up the compression takes as long as their rows."""
TEXTS = ("tool", "model", "project", "session", "agent", "speed", "tier", "region", "branch")
"""Texts of a request that are stored once a log."""
FIELDS = (
    *("id", "time", *TEXTS, "input_tokens", "cache_read", "cache_write", "cache_write_1h", "output_tokens", "reasoning", "cost"),
    *("searches", "largest_prompt", "makeup"),
)
"""The fields of a request, in the order in which a row has them."""
TEXTS_OF_PART = 3
"""Fields of a part that are texts, its first ones."""
Explain = Callable[[str | os.PathLike[str], tuple[Request, ...]], tuple[Request, ...]]
"""Takes a log and its requests, and returns these with their makeup, as far as the log allows."""
Wanted = Callable[[Request], bool]
"""Tells of a request whether anybody asks for it."""
ID_BYTES = 16
"""Bytes of a hashed id. Two of a thousand million requests have the same hash with a chance of one in 10²⁰."""


@dataclass(frozen=True, slots=True)
class LogRows:
    """The content of a log as far as spending is concerned.

    Attributes:
        requests: Each request once.
        damaged_lines: Lines that could not be read in full.
        problem: The reason why the log could not be read at all, in words; None if it could.
        lineage: The logs whose reports it may repeat.
        note: As for `ReadLog`.
        limits: As for `ReadLog`.
        is_explained: True if its requests have their makeup, as far as the log allows.
    """

    requests: tuple[Request, ...]
    damaged_lines: int = 0
    problem: str | None = None
    lineage: Lineage = NO_LINEAGE
    note: str = ""
    limits: PlanLimits | None = None
    is_explained: bool = False


def everything(_request: Request) -> bool:
    """Ask for every request."""
    return True


class DamagedRowsError(Exception):
    """The bytes are not those that `encode` has written."""


Reader = Callable[[str, Callable[[int], object] | None], bytes]
"""Takes the path or address of a log, and what `read_requests` takes as `on_read`. Returns rows as bytes."""


def read_rows(
    name: str, on_read: Callable[[int], object] | None = None, explain: Explain | None = None, wanted: Wanted = everything
) -> bytes:
    """Read a log and return its rows as bytes. A log that cannot be read has a problem instead of requests.

    Args:
        name: The log's path or address.
        on_read: As for `read_requests`.
        explain: Adds their makeup to the log's requests. Default: nobody asked.
        wanted: As for `read_ledger`.
    """
    is_explained = False
    try:
        with local_copy(name) if is_remote(name) else nullcontext(name) as path:
            log = read_requests(path, on_read)
            requests = log.requests
            if explain is not None and any(map(wanted, requests)):
                requests, is_explained = explain(path, requests), True
    except TranscriptError as error:
        return encode(LogRows((), problem=error.problem))
    except MemoryError:
        return encode(LogRows((), problem="one of its lines does not fit into memory"))
    return encode(LogRows(requests, log.damaged_lines, None, log.lineage, log.note, log.limits, is_explained))


def encode(log: LogRows) -> bytes:
    """Return the rows as bytes. Ids are hashed."""
    indices: dict[str, int] = {}

    def index_of(text: str) -> int:
        return indices.setdefault(text, len(indices))

    requests = [
        [
            _hashed(request.id),
            request.time,
            *(index_of(getattr(request, name)) for name in TEXTS),
            request.input_tokens,
            request.cache_read,
            request.cache_write,
            request.cache_write_1h,
            request.output_tokens,
            request.reasoning,
            None if request.cost is None else str(request.cost),
            request.searches,
            request.largest_prompt,
            None if request.makeup is None else _packed(request.makeup, index_of),
        ]
        for request in log.requests
    ]
    values = {
        "fields": FIELDS,
        "requests": requests,
        "texts": list(indices),
        "damaged": log.damaged_lines,
        "problem": log.problem,
        "note": log.note,
    }
    values["limits"], values["explained"] = log.limits, log.is_explained
    values["lineage"] = [log.lineage.thread, log.lineage.start, log.lineage.parents]
    data = json.dumps(values, separators=(",", ":")).encode()
    return data if len(data) < WORTH_COMPRESSING else zlib.compress(data, 1)


def decode(data: bytes) -> LogRows:
    """Return the rows in these bytes.

    Raises:
        DamagedRowsError: The bytes are damaged.
    """
    try:
        values = json.loads(data if data.startswith(b"{") else zlib.decompress(data))
        texts = [intern(text) for text in values["texts"]]
        rows, fields = values["requests"], tuple(values["fields"])
        read = partial(_own_request, texts) if fields == FIELDS else partial(_request, texts, fields)
        requests = tuple(map(read, rows))
        thread, start, parents = values["lineage"]
        lineage = Lineage(thread, start, tuple(parents))
        return LogRows(
            requests, values["damaged"], values["problem"], lineage, values["note"], _limits(values["limits"]), values["explained"]
        )
    except (zlib.error, ValueError, TypeError, KeyError, IndexError, InvalidOperation):
        raise DamagedRowsError from None


def _packed(makeup: Makeup, index_of: Callable[[str], int]) -> list[Any]:
    texts = [index_of(text) for text in (makeup.cause, makeup.commit, makeup.pull_request)]
    parts = ([index_of(part.kind), index_of(part.call), index_of(part.detail), *part[TEXTS_OF_PART:]] for part in makeup.parts)
    return [makeup.lost, *texts, *parts]


def _makeup(values: list[Any], texts: list[str]) -> Makeup:
    lost, cause, commit, pull, *parts = values
    named = [Part(texts[kind], texts[call], texts[detail], *tokens) for kind, call, detail, *tokens in parts]
    return Makeup(tuple(named), lost, texts[cause], texts[commit], texts[pull])


def _limits(values: list[Any] | None) -> PlanLimits | None:
    if values is None:
        return None
    tool, time, plan, periods = values
    return PlanLimits(tool, time, plan, tuple(LimitPeriod(*period) for period in periods))


def _own_request(texts: list[str], row: list[Any]) -> Request:
    """Return a request of this format, whose fields are those of `Request` in another order: by place, which is twice as fast."""
    id_, time, tool, model, project, session, agent, speed, tier, region, branch, *rest = row
    uncached, read, write, for_hour, output, reasoning, cost, searches, largest, makeup = rest
    return Request(
        id_,
        time,
        texts[tool],
        texts[model],
        texts[project],
        texts[session],
        texts[agent],
        uncached,
        read,
        write,
        for_hour,
        output,
        reasoning,
        None if cost is None else Decimal(cost),
        texts[speed],
        texts[tier],
        texts[region],
        searches,
        largest,
        texts[branch],
        None if makeup is None else _makeup(makeup, texts),
    )


def _request(texts: list[str], fields: Sequence[str], values: list[Any]) -> Request:
    """Return a request of an earlier format."""
    row = dict(zip(fields, values, strict=True))
    row |= {name: texts[row[name]] for name in TEXTS if name in row}
    cost, makeup = row["cost"], row["makeup"]
    row["cost"] = None if cost is None else Decimal(cost)
    row["makeup"] = None if makeup is None else _makeup(makeup, texts)
    return Request(**row)


def _hashed(id_: str) -> str:
    return blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=ID_BYTES).hexdigest() if id_ else ""
