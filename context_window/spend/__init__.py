"""Tokens and money of any number of logs, from the usage that they report.

    ledger = read_ledger(find_logs())
    for row in spend_by("day", ledger.requests):
        print(row.name, row.total, row.cost)

1. `discovery.py` finds the logs of all tools, or those below the paths it is given.
2. `ledger.py` reads each log's requests, counts a request that several logs repeat once, and lists the logs that could not be read.
3. `money.py` prices a request by the prices of its day.
4. `tables.py` filters requests and sums them by day, week, month, project, model, tool, session or agent.
"""

from .discovery import find_logs
from .ledger import Ledger, LogFault, read_ledger
from .money import cost_of
from .tables import GROUPINGS, SpendRow, choose, leading, spend_by

__all__ = ["GROUPINGS", "Ledger", "LogFault", "SpendRow", "choose", "cost_of", "find_logs", "leading", "read_ledger", "spend_by"]
