"""Compaction: older turns and steps are replaced in views by a summary that a model writes. `Compactor` is the only entry point.

Theory of operation. `manager.manage` runs these steps before every request; `manager.compact` skips the limits of step 1.

1. Due? The log is replayed a second time without trimming (`SessionCompaction`), with earlier summaries in place of the items they stand
   for. A summary is due if this costs more than the trigger or has more than `max_context_items` items, and the trimmed view has lost
   more than the contents of results, unless a strategy chooses. Or the model asks for one (`view_tools.py`). The cost includes the
   difference between reported usage and local counts.
2. Where may it be appended? Only at the end of the log, and only between responses: inside a response it would split it. At most one
   summary is added between two requests (`can_append_summary`).
3. Which units? The units that the strategy chose, at least two. Else all turns but the newest `keep_recent_turns`, at least two (one if
   `keep_recent_turns` is 0). If these are too few, or have less than an eighth of the trigger's tokens once results are cleared, turns
   do not matter: all but the newest units are taken, if these have so much. The newest stay up to a quarter of the room that the other
   items leave below the trigger. SYSTEM items, instructions, items of CONTEXT, the first task, pinned items and the frontier stay.
   Earlier summaries are always folded into the new one (`unit_selection.py`). If a log has nothing to summarise, this is checked again
   in the next turn, or when it has grown by a sixteenth of the trigger.
4. Is there room? A draft of the view gets the shortest possible summary appended and trims itself. If the view is then over the
   budget, and larger than without a summary, no summary is requested (`check_room`).
5. Writing. If the summariser is the model in use, its last request has all units, and its window has room, it is asked there
   (`sum_up_in_place`): the provider then reads the conversation from its cache. Otherwise the units are rendered as text. If the text
   does not fit the summariser's window, it is sent in pieces, each together with the summary of the pieces before. A summary takes at
   most 8 requests; none is sent if most of their text is of a unit that is longer. Units that are not reached wait for the next summary.
   Settled decisions of earlier summaries are added if it lacks them (`session/decisions.py`). Each answer has a time limit
   (`summary_writer.py`, `record_pieces.py`).
6. Checks. The summary may have at most half the tokens of its units, and a third of the trigger. All units must still be in
   the log, unchanged and unpinned. The check for room is repeated with the real summary (`summary_check.py`). If the log grows during
   these checks, they are repeated, up to three times.
7. Appending. The summary becomes a `Compaction` at the end of the log. It lists the ids it stands for, those of the summaries it
   absorbed included. Nothing else in the log changes. Views leave these items out, show the summary where the first of them stood
   (`decision/log.py`), and recall can return them.
8. Failure. If anything goes wrong, the log stays as it was, `CompactionFailed` is emitted, and trimming alone keeps views within the
   budget. After failures 1, 2, 4 … 64 requests pass without an attempt; a success resets this. `compact` raises the error.
9. Concurrency. Only one call at a time works on a session's summary. Other calls do not wait: they go on with a trimmed view. A
   cancelled call leaves the log unchanged.
"""

from .compactor import AnySummarizer, Compactor

__all__ = ["AnySummarizer", "Compactor"]
