"""`context-window` alone: what all sessions have cost, on one screen."""

from __future__ import annotations

from .days import today_in
from .output import BadInputError, show
from .spend import complain_of_faults
from .spend_reading import read_logs


def show_overview() -> bool:
    """Show the overview of the sessions of all tools. Return False if there are none."""
    import time

    from ..display.limits import limit_sentences
    from ..display.overview import overview_lines
    from ..spend.ledger import collector_paused
    from ..spend.limits import stated_limits
    from ..spend.overview import overview_of
    from ..spend.tables import price_notes

    try:
        ledger = read_logs(())
    except BadInputError:  # there are no logs
        return False
    with collector_paused():
        overview = overview_of(ledger.requests, today_in(None))
        limits = list(limit_sentences(stated_limits(ledger.limits), ledger.requests, time.time()))
        footnotes = price_notes(ledger.requests)
    show(lambda width, glyphs: overview_lines(overview, limits, footnotes, width, glyphs))
    if ledger.faults:
        complain_of_faults(ledger, "spend --json")
    return True
