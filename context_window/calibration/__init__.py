"""An upper bound on the tokens of the next request, from the usage that providers reported. No network, no clock. The code cites the rules.

Problem. A local count is wrong by a few per cent, and some tokens of a request are in no log at all: the system prompt of an agent, its
tools, hidden reasoning. But providers report what each request cost. A reported total is exact, for the request that was sent.

Example. The last request was counted locally as 900 tokens and reported as 1,200. Its response of 40 tokens and a tool output of 60 have
come since. The total starts at 1,200. The new items were counted as 100, and as much is expected. Of the increments seen before, 95 in 100
exceeded what was expected by at most a tenth of the scale, which is 100 + 1,200/20 + 20 = 180 here. So the request
costs at most 1,200 + 100 + 18 = 1,318.

1.  At each request point the local count of the request is noted (`RequestCounts`). When the report of its response comes, it becomes the
    anchor (`Anchor`): the request that totals start from.
2.  Total = reported tokens of the anchor + bound on the tokens added since (rule 3) - worth of the tokens taken since (rule 5). It is never
    below 0. Without an anchor it is the local count. Each report is a new anchor, so no wrong factor can stick.
3.  Added tokens are bounded by split conformal prediction (`Increments`): what is expected of their local count, plus a margin that all
    but a few of the increments seen before would have stayed within. One more is left out than the coverage allows: a jump, text that a
    tool sends and does not log, raises the anchor and not the margin. An increment is learned only between two reported requests, if
    nothing was edited in between and the second cost more. Where a report was too high by tokens that the next one lacks, the two
    increments count as one. Where a router went to another host for the same model, the difference is that of the hosts (`Hosts`): it is
    no increment, and totals have as much more as another host of the log would count.
4.  A response may cost more than its local count, because of hidden reasoning. The larger of its reported output and its local count
    counts as added. Where reasoning leaves the prompt with its turn (`Limits.drops_thinking`), only the local count does in the next turn.
5.  A token that is taken lowers the total by less than one, since it may have been counted too high: by
    `CalibrationRule.removal_worth` thousandths of a local token, or of one of the provider's if that counts less. But what was added
    since the smallest request that totals started from has a known cost: the two reports' difference, without jumps, and hardly more
    than the median increment would make of it. A token of it is worth the average, less a margin that falls as more of them is taken. And
    whatever is taken, a request costs hardly more beyond its local count than that smallest one did. So a compaction starts near the
    truth. In a tool's log, a summary also stands for the last items: an anchor after it does not count them, even if the view still has
    them.
6.  A report is used only if it can be of the view (`PlausibilityCheck`). A log may have been sent untrimmed, or trimmed by other limits. If
    the local count of the request that was really sent is known (`extra["counted"]`), the report tells how the provider's count differs
    from the local one, whatever the view. A report on the log, not on its view, is the anchor of the total of the log.
7.  Reports are forgotten when another agent or model reports, or when instructions or tools change.
8.  A view records its own cost (`session.session_log.recorded_total`), because the usage in its items is about other requests. Totals start
    from that until its own request is reported.
9.  Everything depends on the log and its reports alone. Every replay of them gives the same totals.

Files: `rule.py` the constants; `conformal.py` and `hosts.py` rule 3; `plausibility.py` rule 6; `reported_totals.py` rules 1, 2, 4 and
5; `report_feed.py` rules 7 and 8; `reports.py` reports that are in no log.
"""
