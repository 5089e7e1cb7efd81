"""`context-window` alone: what all sessions have cost, on one screen."""

from __future__ import annotations

from .output import BadInputError, show
from .spend import complain_of_faults
from .spend_reading import read_logs


def show_overview() -> bool:
    """Show the overview of the sessions of all tools. Return False if there are none."""
    from datetime import datetime

    from ..display.overview import overview_lines
    from ..spend.overview import overview_of
    from ..spend.tables import price_notes

    try:
        ledger = read_logs(())
    except BadInputError:  # there are no logs
        return False
    overview = overview_of(ledger.requests, datetime.now().astimezone().date())
    footnotes = price_notes(ledger.requests)
    show(lambda width, glyphs: overview_lines(overview, footnotes, width, glyphs))
    if ledger.faults:
        complain_of_faults(ledger, "spend --json")
    return True
