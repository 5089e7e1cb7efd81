"""The window at each request of one session: tokens by category, reported tokens, cost, and where it lost something.

    reports = log_reports("session.jsonl", account)
    timeline = ContextWindowManager().timeline(account.sessions[0], reports)
    for point in timeline.points:
        print(point.number, point.total, point.cost)

1. `matches.py` finds each reported request in the session: the response that carries the same counts.
2. `walk.py` reads the session once, with a fold that trims nothing, and keeps the sums at each request.
3. `build.py` makes a point of each request. A report's prompt tokens are the point's total: what the local count lacks is overhead, as in
   a usage report. The last point is the request that would come next; its figures are those of the usage report.
4. `spend/breaks.py` compares each request's cache reads with what the one before it left in the cache.
"""

from .matches import LogReports, log_reports, reports_of_items
from .points import Marker, MarkerKind, Point, Timeline

__all__ = ["LogReports", "Marker", "MarkerKind", "Point", "Timeline", "log_reports", "reports_of_items"]
