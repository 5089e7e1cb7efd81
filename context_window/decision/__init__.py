"""What a model sees of a log that has outgrown its window. Pure: no input or output, no clock, no randomness. Comments cite these rules
by number, as in (rule 5).

Problem. A log grows with every turn, a model's context window does not. Some of the log must be left out of the request, but the rest must
still be well-formed (no output without its call), protected items must stay, and the beginning of the request should change rarely, because
providers bill a changed beginning at the price of writing their cache.

Example. Budget 100 tokens, trigger 100, target 65. The model is called at the points marked `|`:

    user 20 | assistant 10, call 5   output 50 | assistant 10   user 10 | ...
    request:   20 tokens                    85               105 > 100: trim to 65 or less

The output is the oldest thing of the lowest category, so it is cleared: a placeholder of 8 tokens takes its place. The request is down to
63 tokens. The next requests add to it and change nothing else, until they exceed 100 again.

1.  A view (`view.py`) is a log so far (`log.py`) and what became of its items (`edits.py`): frozen values by position. An item without an
    edit is shown as it is. Appending an item adds to the sums of the view and applies what the item itself implies: it never trims.
2.  A request point is a position at which the model was called: just before each response, and at the end of the log. There the rules
    decide (`decide.py`), and what they decide before a response stays in later requests (`replay.py`). At the end nobody knows yet if the
    model is called, so that decision is made on a draft and not kept: if the next item begins a response, it is made again, with the same
    result. So the same log, settings over time, counter, refusals and reports give the same view on every machine, and requests between
    two trims extend each other.
3.  A rule (`Rule` in `view.py`) is a class. It sees a view and returns a view: the same one, or an edited draft. It says what its text
    costs, and which messages it adds. `decide.RULES` has the order in which they decide. By file:
      `summaries.py`      units that a summary stands for leave;
      `refused_reads.py`  what an assistant refuses to show again is put back, if the view lacks it (rule 16);
      `arrivals.py`       large outputs that the model has not read yet become shorter (rule 15);
      `images.py`         older images become placeholders: all but the newest if there are more than allowed, and in a trim as many as
                          needed, before anything else is taken;
      `strategy.py`       strategies choose what to give up. Their choices are checked before any is applied;
      `state_note.py`     after a trim one note restates the state of the work (rule 14);
      `priority.py`       units are dropped if there are too many items; outputs and calls are cleared and units dropped if the request
                          costs too much (rule 4);
      `usage_note.py`     a line about usage, decided before tokens are taken, which leave room for it;
      `frontier.py`       what the model is about to read shrinks, if nothing older is left (rule 6). If a strategy asks for it, as
                          `Extract()` does, unread outputs and calls are truncated first, where that is enough for the budget;
      `request_texts.py`  what converters add costs tokens;
      `digests.py`        lines of older items stand in digests (rule 7).
    After a trim, rules may settle what they added: the line about usage goes if it is no longer due, and a digest moves to the first item
    that is left in it; the note about the work is written anew.
4.  Tokens are taken in two passes. The first takes from a category only while it is above its share of the goal, the second without that
    limit. Both go through SYSTEM_OUTPUT, DIALOG and CONTEXT in this order and stop at the goal. In SYSTEM_OUTPUT, units are cleared
    before any is dropped: of each the outputs one by one, then the calls, whose long string values in the arguments become placeholders
    (with `clear_call_inputs`). Only what becomes smaller is cleared. The oldest goes first, with
    `preserve_recency=False` the newest. A unit is as old as the item that completed it. The goal is the target, or
    somewhat more if protected items fill most of the budget (`goal_of` in `limits.py`).
5.  Never dropped: SYSTEM (but for replaced instructions), pinned items and their units, summaries, the frontier (but for unpinned
    CONTEXT, rule 6), and units with a call that has no output yet. The
    frontier is the last user message, the last response and all after it, with the units of these. With `keep_first_message`, the view's
    first user message is spared while there is anything else to take, and so is a unit with a result that a rule for its tool keeps. If
    the view still exceeds a limit, those units go, then that message, before the frontier shrinks.
6.  The frontier shrinks in five steps, each only as far as needed: unpinned CONTEXT items after the last response are dropped; images
    except the newest `images_kept` become placeholders; outputs, then string values in call arguments, then the user's messages are
    truncated in the middle. Each kind shares the room: none gets more while another one that needs more has less.
7.  A strategy may choose units of which only the most valuable lines stay (`keep_lines`). The engine chooses the lines
    (`line_choice.py`) by their terms (`terms.py`), and one digest (`extracts.py`) shows them: a message in the user's voice, with the id of
    the first item in it, before that item or the response which it is in. Of a unit with lines in it, nothing else stays; units without
    any are dropped. Lines that have left do not come back. Lines with rules of the user (*must*, *never* and the like) are chosen before
    all others, terms of the state of the work count three times, and lines that repeat others count only if they name an error. A
    digest's lines count for the categories of their items, its frame is overhead.
8.  A summary stands where the items that it replaces stood: before the first of them that is not held, or before the response which that
    one is in. Its position in the log, where it came in, decides everything else. A compaction that the provider made stays where it is.
    A unit that has left for a summary comes back if an output for one of its calls comes later.
9.  If the model binds reasoning to everything before it, each change of a request drops all unpinned reasoning after the changed place.
10. Some providers leave the reasoning of earlier turns out of the prompt (`drops_thinking`). A user's message, other than CONTEXT, ends
    the turn if the last response called nothing. From then on the turn's reasoning, and the thinking in the signatures of its calls,
    counts as free, and stays where it is.
11. Rules for single tools (`tool_rules.py`) change the order in which results are cleared: those of some tools go before all others,
    and some are kept: all of a tool, or the newest that the view shows in full. With `clear_superseded`, results of calls about a file
    go first, too, once a later call has read the file in full, or written it. A result that loaded tools (`tool_reference`) is kept
    once one of them was called. Results that the model names to keep or to release (`view_tools.py`) are kept, or go first. Answers to
    recalls go first in any case, and lend no line to a digest: the log has what they repeat.
12. With `note_removed`, a request that has lost items begins with a line about them. Its upper bound counts from the first dropped item on.
    It does not tell of outputs without a call, of bound reasoning, of replaced instructions, of what a summary stands for, and of what a
    choice of lines has dropped: it would change with every such choice, and with it everything that the provider's cache holds.
13. Costs are local counts. Whatever else is known about a request's cost comes through one door (`Totals` in `view.py`): a correction that
    may treat items from a mark on differently, so the sum of those (`View.newer`) is kept apart.
14. If a strategy asks for it (`restates_work`, as `Extract()` does) and items are not limited in number, a trim ends with one note at the
    end of the request, a message in the user's voice in the form of a digest: the plan written last, the lines of the last output that
    failed, the files edited last as put together from reads and edits (`working_state.py`), each as far as the view lacks its lines; and
    what the outputs that left whole were about, with their ids. It has at most .15 of the trigger, and is left out where the view would
    then fill more than .9 of it. It stays in its place until the next trim, which writes another, and goes before other items must.
15. With `output_part`, an output that costs more than that part of the budget when it comes is truncated to it: its first lines and its
    last, a quarter each, and of the others those that a choice of lines takes (rule 7), with a mark wherever some are missing. No rule of
    its tool must keep it, and it must be no answer to a recall. What the model has read stays as it was then.
16. An output that only says that a file has not changed since it was read refers to an earlier result. If the view does not have that
    whole, and the model has not read the notice yet, the result's content stands in the notice's place: before trims, which make room
    for it, and after a trim that has taken the result, if it fits. Trims treat it like any output.

Other files: `limits.py` the settings as numbers; `strategy_api.py` what strategies see and return; `placeholders.py` the texts that stand
for removed content; `refused_parts.py` what providers refused; `shown.py` a view as a session and as a plan; `plan.py` and `plan_text.py`
the plan.
"""
