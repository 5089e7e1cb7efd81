"""Reports as self-contained HTML pages. A page loads nothing, and every figure in it is one that the command line shows.

    page = spend_page(read_ledger(find_logs()).requests)
    Path("report.html").write_text(page.html, "utf-8")

1. `spend_page.py` shows tokens and money of many sessions: over time, why, by model, project and tool, and the tree of `tree.py`:
   projects and their sessions, with links to the sessions' pages if there are any.
2. `session_page.py` shows one session over time: the window at each request, its cost and why, and where the cache broke.
3. `reasons.py` has the tables of why, `names.py` the names of sessions and items.
4. `spend.html` and `session.html` are their templates, with what both have in `parts.html`. Charts and style come from `pages`.
"""

from .session_page import session_page
from .spend_page import spend_page
from .tree import Link, SessionKey

__all__ = ["Link", "SessionKey", "session_page", "spend_page"]
