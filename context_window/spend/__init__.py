"""Tokens and money of any number of logs, from the usage that they report.

    ledger = read_ledger(find_logs())
    for row in spend_by("day", ledger.requests):
        print(row.name, row.total, row.cost)

1. `discovery.py` finds the logs of all tools, or those below the paths it is given.
2. `ledger.py` counts a request that several logs repeat once, and lists the logs that could not be read. `schedulers.py` reads the logs in
   one process or in several; `rows.py` is what they hand back, and what `cache.py` keeps for the next run.
3. `money.py` prices a request by the prices of its day.
4. `tables.py` filters requests and sums them by day, week, month, project, model, tool, session or agent.
5. `reasons.py` divides the money among its reasons: tools, commands, cache losses, thinking.
6. `breaks.py` finds losses of the cache between two requests; `overview.py` sums them up for one screen.

With the extra `fleet`, `remote.py` reads addresses such as `s3://…`, `cluster.py` reads on a Dask cluster, and `parquet.py` writes the
requests as a Parquet file.
"""

from .cache import SpendCache, cache_file
from .cluster import read_on_dask
from .discovery import find_logs
from .errors import FleetError
from .ledger import Ledger, LogFault, read_ledger
from .money import cost_of
from .parquet import parquet_of
from .reasons import REASON_GROUPINGS, ReasonRow, charges_of, reasons_by
from .remote import find_remote_logs, is_remote
from .schedulers import read_here, read_on_all_cores
from .tables import GROUPINGS, SpendRow, choose, leading, spend_by

__all__ = [
    "GROUPINGS",
    "REASON_GROUPINGS",
    "FleetError",
    "Ledger",
    "LogFault",
    "ReasonRow",
    "SpendCache",
    "SpendRow",
    "cache_file",
    "charges_of",
    "choose",
    "cost_of",
    "find_logs",
    "find_remote_logs",
    "is_remote",
    "leading",
    "parquet_of",
    "read_here",
    "read_ledger",
    "read_on_all_cores",
    "read_on_dask",
    "reasons_by",
    "spend_by",
]
