"""What `Extract()` could keep at best, and where it loses what the model then used.

    python -m benchmarks.replay.losses [--windows 10,25] [--held-out | --all] [FOLDER…]

1. The first table has `Extract()`, and the same with the future known: the same moments, budgets and forms, but a term is worth the weight
   of its next use, and nothing else is worth anything. The difference is what better foresight could bring; the rest, other mechanics.
2. The second table has the points of F that are lost, by the item that last had the lost term, and by what had become of that item in the
   view. Rows and columns sum to 100 times the lost verbatim recall (`metric.py`).
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from context_window.decision import log as decision_log
from context_window.decision.placeholders import CLEARED, DIGEST, MARK, TRUNCATED
from context_window.decision.terms import Term, TermIndex
from context_window.strategies import Extract
from session import Session
from session.identity import digested, is_digest
from session.items import FunctionCall, FunctionCallOutput, Item, Message

from .metric import KINDS, Reading, Step, Timeline, is_verbatim_kind
from .policies import Policy, View, ours
from .replay import Outcome, replay
from .sessions import Recording, recordings
from .table import figures_of
from .terms import terms_of

READS, SEARCHES, COMMANDS, EDITS = (
    frozenset(("read", "view", "cat", "open_file", "webfetch")),
    frozenset(("grep", "glob", "ls", "find", "search", "web_search", "toolsearch")),
    frozenset(("bash", "shell", "exec_command", "write_stdin", "run", "run_ipython", "bashoutput")),
    frozenset(("edit", "write", "apply_patch", "str_replace_editor", "multiedit")),
)
FATES = {CLEARED: "cleared", DIGEST: "its line not chosen", TRUNCATED: "truncated"}
LEFT_OUT, OTHER = "left out with its unit", "other"
KNOWING, EXTRACT = "knowing", "extract"
LABELS = {EXTRACT: "`Extract()`", KNOWING: "the same, with the future known"}


class _UsedTerm(Term):
    """A term that the model will use: the length of the log at each use, and the weight of that."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.steps: list[tuple[int, float]] = []


def knowing(timeline: Timeline) -> Policy:
    """Return the policy of an `Extract()` that knows what the model will use in this session."""
    uses: dict[tuple[str, str], _UsedTerm] = defaultdict(_UsedTerm)
    for step in timeline.steps:
        used_terms = [used for used in step.uses if is_verbatim_kind(used)]
        for used in used_terms:
            uses[used].steps.append((step.start, 1 / len(used_terms)))

    class KnownTerms(TermIndex):
        """The terms of the metric, each worth the weight of its next use."""

        def terms_of(self, line: str) -> list[Term]:
            terms = terms_of(line)
            return [uses[kind, text] for kind in KINDS for text in sorted(getattr(terms, kind)) if (kind, text) in uses]

        def value(self, term: Term, _window: int) -> float:
            if not isinstance(term, _UsedTerm):
                return 0.0  # a rule of the user, which the metric does not know
            place = bisect_left(term.steps, (self.length, 0.0))
            return term.steps[place][1] if place < len(term.steps) else 0.0

    def policy(window: int) -> View:
        view = ours(strategy=Extract())(window)

        def knowing_view(log: Session) -> Sequence[Item]:
            with patch.object(decision_log, "TermIndex", KnownTerms):
                return view(log)

        return knowing_view

    return policy


def losses(recording: Recording, timeline: Timeline, window: int) -> Counter[tuple[str, str]]:
    """Return the lost verbatim recall of `Extract()`, by the kind of the item that last had it and by what became of that item."""
    reading, view = Reading(timeline, window), ours(strategy=Extract())(window)
    steps = sum(any(map(is_verbatim_kind, step.uses)) for step in timeline.steps)
    lost: Counter[tuple[str, str]] = Counter()
    log = Session(metadata=dict(recording.session.metadata))
    log.restore_seams(recording.session.response_breaks, 0)
    for step in timeline.steps:
        for item in recording.items[len(log.items) : step.start]:
            log.append(item)
        shown = view(log)
        marks = marks_of(shown)
        uses = sum(map(is_verbatim_kind, step.uses))
        for term in reading.lost(step, shown):
            place = _last_place(timeline, step, term)
            item_id = recording.items[place].id
            fate = FATES.get(marks[item_id], OTHER) if item_id in marks else LEFT_OUT
            lost[kind_of(recording.items, place), fate] += 1 / uses / steps
    return lost


def marks_of(view: Sequence[Item]) -> dict[object, object]:
    """Return by id how each item of the log was changed in a view: `DIGEST` if a digest has lines of it, None if it is whole."""
    digests = [item for item in view if is_digest(item)]
    marks: dict[object, object] = {item.id: item.extra.get(MARK) for item in view if not is_digest(item)}
    return {entry.get("id"): DIGEST for digest in digests for entry in digested(digest)} | marks


def _last_place(timeline: Timeline, step: Step, term: tuple[str, str]) -> int:
    places = timeline.places[term]
    return places[bisect_left(places, step.start) - 1]


def kind_of(items: Sequence[Item], place: int) -> str:
    """Return the kind of the item at this position."""
    item = items[place]
    if isinstance(item, FunctionCall):
        return "arguments of calls"
    if isinstance(item, FunctionCallOutput):
        name = item.name or next((call.name for call in items if isinstance(call, FunctionCall) and call.call_id == item.call_id), "")
        kinds = {"reads": READS, "searches": SEARCHES, "commands": COMMANDS, "edits": EDITS}
        return f"outputs of {next((kind for kind, names in kinds.items() if name.lower() in names), 'other tools')}"
    if isinstance(item, Message):
        return f"texts of the {item.role}"
    return "reasoning"


# The command


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables for each window and return the exit code: 2 if there is nothing to replay."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay.losses", description="What Extract() could keep, and what it loses.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="FOLDER", help="logs of any format, or folders of logs")
    parser.add_argument("--windows", default="10,25", help="in percent of each session's tokens (default: %(default)s)")
    split = parser.add_mutually_exclusive_group()
    split.add_argument("--held-out", action="store_true", help="the third of the sessions that nothing may be tuned on")
    split.add_argument("--all", action="store_true", help="all sessions (default: the two thirds for tuning)")
    options = parser.parse_args(arguments)
    chosen = [recording for recording in recordings(options.paths) if options.all or recording.held_out is options.held_out]
    for percent in map(int, options.windows.split(",")):
        outcomes: list[Outcome] = []
        lost: Counter[tuple[str, str]] = Counter()
        for recording in chosen:
            timeline = Timeline(recording)
            if found := replay(recording, [percent], {EXTRACT: ours(strategy=Extract()), KNOWING: knowing(timeline)}):
                outcomes += found
                lost.update(losses(recording, timeline, recording.tokens * percent // 100))
        if not outcomes:
            print("there is no session here that is long enough; name a log or a folder of logs", file=sys.stderr)
            return 2
        print(f"### W = {percent} % of the session: {len(outcomes)} sessions\n\n{best_table(outcomes)}\n")
        print(f"{losses_table(lost, len(outcomes))}\n")
    return 0


def best_table(outcomes: Sequence[Outcome]) -> str:
    """Return the table of `Extract()` and of the same with the future known."""
    rows = ["| policy | ρ | F | cost | blind |", "|---|--:|--:|--:|--:|"]
    for name, label in LABELS.items():
        figures = figures_of(outcomes, name)
        values = " | ".join(f"{estimate.value:.3f}" for estimate in (figures.recall, figures.verbatim, figures.cost))
        rows.append(f"| {label} | {values} | {'–' if figures.blind is None else f'{figures.blind:.0%}'} |")
    return "\n".join(rows)


def losses_table(lost: Counter[tuple[str, str]], sessions: int) -> str:
    """Return the table of losses in points, the largest first: a row per kind of item, a column per fate."""
    kinds, fates = Counter[str](), Counter[str]()
    for (kind, fate), weight in lost.items():
        kinds[kind] += 100 * weight / sessions
        fates[fate] += 100 * weight / sessions
    columns = [fate for fate, _ in fates.most_common()]
    rows = [f"| lost points | {' | '.join(columns)} | all |", f"|---|{'--:|' * (len(columns) + 1)}"]
    for kind, total in kinds.most_common():
        rows.append(f"| {kind} | {' | '.join(f'{100 * lost[kind, fate] / sessions:.1f}' for fate in columns)} | {total:.1f} |")
    return "\n".join([*rows, f"| all | {' | '.join(f'{fates[fate]:.1f}' for fate in columns)} | {sum(kinds.values()):.1f} |"])


if __name__ == "__main__":
    sys.exit(main())
