"""Requests as a Parquet file, one row each, for DuckDB, pandas, Spark and whatever else reads it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from itertools import islice
from typing import Any

from session.transcripts.reported_requests import Request

from .errors import missing
from .money import invoice_of
from .tables import AMOUNTS, local_day

GROUP = 50_000
"""Requests that are converted at a time."""
TEXTS = ("id", "tool", "model", "project", "session", "agent", "branch")
PLACES = 15
"""Decimal places of a price."""
SMALLEST = Decimal(1).scaleb(-PLACES)
DIGITS = 38
"""Digits of a price: those of DuckDB's largest decimal."""


def parquet_of(requests: Sequence[Request], *, zone: tzinfo | None = None) -> bytes:
    """Return the requests as the bytes of a Parquet file.

    The columns are `time` (UTC), `day`, `id` (hashed), `tool`, `model`, `project`, `session`, `agent`, the amounts in tokens, and
    `cost_usd`, which is null if the price is unknown, `disputed_usd`, by how much two price lists differ, and `lacking`, what the price
    has no part for. Both are null where nothing is uncertain.

    Args:
        requests: The requests.
        zone: As for `choose`, for the column `day`.

    Raises:
        FleetError: pyarrow is missing.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise missing("pyarrow") from None
    fields = [
        ("time", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        *((name, pa.string()) for name in TEXTS),
        *((column, pa.int64()) for column in AMOUNTS),
        *((name, pa.decimal128(DIGITS, PLACES)) for name in ("cost_usd", "disputed_usd")),
        ("lacking", pa.string()),
    ]
    schema = pa.schema(fields)
    file = io.BytesIO()
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        rest = iter(requests)
        while group := list(islice(rest, GROUP)):
            writer.write_table(pa.table(_columns(group, zone=zone), schema=schema))
    return file.getvalue()


def _columns(requests: Sequence[Request], *, zone: tzinfo | None) -> dict[str, list[Any]]:
    days = [local_day(request, zone=zone) for request in requests]
    times = [
        None if day is None or request.time is None else datetime.fromtimestamp(request.time, UTC)
        for request, day in zip(requests, days, strict=True)
    ]
    texts = {name: [_clean(getattr(request, name)) for request in requests] for name in TEXTS}
    amounts = {column: [getattr(request, name) for request in requests] for column, name in AMOUNTS.items()}
    invoices = list(map(invoice_of, requests))
    money: dict[str, list[Any]] = {
        "cost_usd": [_rounded(invoice.cost) for invoice in invoices],
        "disputed_usd": [_rounded(invoice.dispute) for invoice in invoices],
        "lacking": [invoice.lacking or None for invoice in invoices],
    }
    return {"time": times, "day": days, **texts, **amounts, **money}


def _rounded(cost: Decimal | None) -> Decimal | None:
    return None if cost is None else cost.quantize(SMALLEST)


def _clean(text: str) -> str:
    """Return the text without halves of characters, which a damaged log can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode()
