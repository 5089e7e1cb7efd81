"""How a log becomes a view. Pure: numbers in, decisions out. The code cites the rules below by number.

Problem. A log grows with every turn, a model's context window does not. Some of the log must be left out of the request, but the rest must
still be well-formed (no output without its call), protected items must stay, and the beginning of the request should change rarely, because
providers bill a changed beginning at the price of writing their cache.

Example. Budget 100 tokens, trigger 100, target 65. The model is called at the points marked `|`:

    user 20 | assistant 10, call 5   output 50 | assistant 10   user 10 | ...
    request:   20 tokens                    85               105 > 100: trim to 65 or less

The output is the oldest thing of the lowest category, so it is cleared: a placeholder of 8 tokens takes its place. The request is down to
63 tokens. The next requests add to it and change nothing else, until they exceed 100 again.

1.  The view is a left fold over the log (`Fold`). Items come in one at a time, already measured. Reading the same log again gives the same
    view. A call costs only the items that are new.
2.  A request point is a position at which the model was called: just before each response, and at the end of the log. Only there is
    anything taken, and nothing taken comes back by itself. Requests between two trims therefore extend each other.
3.  At a request point (`trim`), in this order:
      1. outputs whose call is not in the log are left out (already when they come in), and so are instructions that a config update
         replaced (already when the update comes in);
      2. units that a summary stands for are dropped;
      3. if there are more than `images_max` images, all but the newest `images_kept` become placeholders;
      4. strategies choose what to give up, and the engine checks and applies their choices;
      5. if there are more than `items_max` items, units are dropped down to a goal;
      6. the line about usage is added if it is due (rule 17);
      7. if the total exceeds the trigger, outputs and calls are cleared and units dropped down to a goal (rule 5);
      8. if the total still exceeds the budget, the frontier shrinks (`frontier.py`), each step only as far as needed: unpinned CONTEXT
         items after the last response are dropped; images except the newest `images_kept` become placeholders; outputs, then string
         values in call arguments, then the user's messages are truncated in the middle. Each kind shares the room: none gets more while
         another one that needs more has less. Messages get the target's part of it (`shrink_frontier`).
    A view that only its strategies may trim ends after step 4 and step 6, and skips step 3. With a strategy that says so
    (`shortens_unread`), outputs and calls of the frontier are truncated right before step 7, if that is enough for the budget. Steps 7 and
    8 are then skipped: one large output does not cost everything that the strategy has left.
4.  The end of the log is a provisional request point (`conclude`): nobody knows yet if the model is called there. If the next item begins
    a response, the trim becomes final. If not, it is undone. For this, sums are copied before the trim and every other change is recorded.
5.  Tokens are taken in two passes. The first takes from a category only while it is above its share of the goal, the second without that
    limit. Both go through SYSTEM_OUTPUT, DIALOG and CONTEXT in this order and stop at the goal. In SYSTEM_OUTPUT, units are cleared
    before any is dropped: of each the outputs one by one, then the calls, whose long string values in the arguments become placeholders
    (with `clear_call_inputs`). Only what becomes smaller is cleared. Everywhere the oldest goes first, and a unit is as old as the item
    that completed it. The goal is the target, or somewhat more if protected items fill most of the budget (`goal_of`).
6.  Never taken in steps 2 to 7: SYSTEM, pinned items and their units, summaries, the frontier, calls without an output. The frontier is
    the last user message, the last response and all after it. With `keep_first_message`, the view's first user message counts as
    protected in steps 4 to 7. If the view then still exceeds `items_max` or the budget, it is dropped, and the next user message is the
    view's first. A unit with a result that a rule keeps (rule 12) is treated alike in steps 5 and 7, and is dropped before that message.
7.  Each category has a queue of positions, in the order in which items became complete; an item of a response is complete when the
    response ends. A position stands for its unit only if nothing has extended the unit since, so a unit is found at its true age without
    sorting. Marks (`Tally.cleared_to`, `dropped_to`) move forward only. A dropped unit whose late output arrives comes back: the model
    waits for that output.
8.  A trim that took everything there is to take, and still exceeds the budget, would be repeated with the same result at every call
    (`Exhausted`). It stays in place while items come in that cannot change that result (`Fold._keeps_trim`), and is extended to them
    (`extend`).
9.  Costs are local counts. Whatever else is known about a request's cost comes through one door (`totals.py`): a correction that is
    added to the local count. It may treat items from a mark on differently, so the sum of those (`Tally.newer`) is kept apart.
10. If the model binds reasoning to everything before it, each edit drops all reasoning after the edited place (`ViewState.note_edit`).
11. A summary stands where the items that it replaces stood: before the first of them that is not held, or before the response which that
    one is in. Its position in the log, where it came in, decides everything else (`ViewContents.moved`). So its arrival changes the
    request at that place, and an answer before it in the log still needs a closing line. A summary of nothing that the log has before
    it stays where it is, and so does a compaction that the provider made: it begins the answer after it.
12. Rules for single tools (`ToolRule`) change the order in which results are cleared: those of some tools go before all others
    (`Tally.early`), and some are kept: all of a tool, or the newest that the view shows in full (`Tally.kept`). `ResultsByRule` says which.
13. Some providers leave the reasoning of earlier turns out of the prompt (`drops_thinking`). A user's message, other than CONTEXT, ends
    the turn if the last response called nothing; otherwise it is sent together with the outputs, and the turn goes on. From then on the
    turn's reasoning counts as free, and stays where it is.
14. With `note_removed`, a request that has lost items begins with a line about them. Its upper bound counts from the first dropped item on
    (`ViewContents.has_note`), and a dropped or returning item edits the beginning of the request (`ViewState.place_of_loss`). The line does
    not tell of orphans, of bound reasoning, of replaced instructions, of what a summary stands for, and of units that a choice of lines
    has dropped (rule 16): it would change with every such choice, and with it everything that the provider's cache holds.
15. With `clear_superseded`, results of calls about a file go into `Tally.early`, too, once the output of a later call has come that read
    the file in full, or wrote it (`file_access.py`). It counts while such an output is in the view.
16. A strategy may choose units of which only the most valuable lines stay (`keep_lines`). The engine chooses the lines
    (`line_choice.py`) by their terms (`terms.py`), and one digest (`extracts.py`) shows them all: a message in the user's voice. It stands
    before the first of its items, or before the response which that one is in (`digests.py`). Of a unit with lines in it, nothing else
    stays; units without any are dropped. Lines that have left do not come back: the next choice is among those that the view still shows.
    What a digest shows of an item counts for the item's category, and as the item; its first line and its frame are overhead
    (`Limits.digest`). An item that a summary stands for leaves the digest, even if the rest of its unit does not. In the view, the digest
    has the id of the first item that it shows.
17. With `usage_noted_from`, a request that costs so much ends with a line about it (`Tally.usage_noted`). It stays in its place: before the
    next response, in all later requests. A trim that takes something takes the line away if the request then costs less
    (`ViewState.withdraw_usage_note`), which is an edit of that place; if nothing is left before the line, it moves to the end. So the line
    comes and goes as the log decides, and never between two trims. It is decided before tokens are taken, which leave room for it, and
    only where the log does not end in a response. Like a closing line, it counts as a message of its own.

Files: `limits.py` and `tool_rules.py` the settings; `results_by_rule.py` rules 12 and 15; `fold.py` rules 1, 2, 4, 8 and 13; `trim.py`
rules 3, 5, 6, 12 and 15; `frontier.py` the last step of rule 3; `view_contents.py` the view; `view_state.py` its changes, and rule 17;
`view_totals.py` its sums; `request_size.py` sizes of hypothetical requests; `strategy_*.py` step 4; `plan.py`, `apply.py` and
`plan_text.py` the decisions as data; `placeholders.py`, `edited_output.py`, `extracts.py` and `refused_parts.py` the items that a view
shows instead; `terms.py`, `line_choice.py` and `digests.py` rule 16.
"""
