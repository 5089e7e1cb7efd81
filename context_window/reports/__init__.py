"""Reports as self-contained HTML pages. A page loads nothing, and every figure in it is one that the command line shows.

    page = spend_page(read_ledger(find_logs()).requests)
    Path("report.html").write_text(page.html, "utf-8")

1. `spend_page.py` shows tokens and money of many sessions: over time, by model, project, tool and session.
2. `session_page.py` shows one session over time: the window at each request, its cost, and where the cache broke.
3. `spend.html` and `session.html` are their templates. Charts and style come from `pages`.
"""

from .session_page import session_page
from .spend_page import spend_page

__all__ = ["session_page", "spend_page"]
