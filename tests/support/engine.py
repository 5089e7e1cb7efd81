"""All that the tests take from the modules that decide: names of values and texts, and a driver.

The rest of the tests ask the public API, or what stands here. A change that moves or rewrites the engine changes this file alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from context_window import Plan
from context_window.calibration.rule import CalibrationRule
from context_window.counting.item_tokens import Measurer
from context_window.decision.extracts import HEAD, DigestPart, cut_to_lines, digest, lines_of, section, texts_of, uncut_lines
from context_window.decision.frontier import fair_parts
from context_window.decision.limits import BOUNDLESS, AutoWindow, Limits, goal_of
from context_window.decision.placeholders import (
    CLEARED,
    GAP,
    LONG_VALUE,
    MARK,
    SHOWN,
    WAS,
    changed,
    cleared,
    cleared_call,
    cut_marker,
    cut_text,
    image_placeholder,
    is_alias,
    longest_text,
    middle_cut,
    original_of,
    original_place,
    output_placeholder,
    output_text,
    part_id,
    refused_placeholder,
    shortened,
    shortened_arguments,
    shown_id,
    value_marker,
    without_refused,
)
from context_window.decision.plan import Cut
from context_window.decision.plan_text import ActionTotals, Run, action_totals, headline, runs
from context_window.decision.refused_parts import NONE_REFUSED, RefusedParts, Source, source_of_part
from context_window.decision.refused_reads import is_notice
from context_window.decision.replay import SessionReplay
from context_window.decision.state_note import note_of
from context_window.decision.strategy_api import STRATEGY_REASONS
from context_window.decision.terms import _NAMES, LINE, MIN_LINE, NAME, NUMBER, PATH, form_of, rule_in, weight_of, without_number
from context_window.decision.tool_rules import FileAccess, file_access, names_of_result, rule_for, subject_of, tools_loaded_by
from context_window.decision.working_state import command_of, names_error, shows_texts, state_lines
from session.session import Session
from tests.support.counting import Letters


def names_in(line: str) -> list[str]:
    """Return what may be terms in a line: its words and numbers, and the line itself if it is long."""
    line = without_number(line)
    return [*_NAMES.findall(line), *([line] if len(line) >= MIN_LINE else [])]


MEASURER = Measurer(Letters())


@dataclass(frozen=True)
class Outcome:
    """The result of one call.

    Attributes:
        log: The session that was passed.
        view: What the model would be shown.
        plan: The decisions.
        limits: The limits of the view.
    """

    log: Session
    view: Session
    plan: Plan
    limits: Limits

    @property
    def total(self) -> int:
        """Tokens of the request."""
        return self.plan.after


class Engine:
    """Decides about one session from call to call, as a manager does, with limits that a test chooses."""

    def __init__(
        self,
        session: Session,
        limits: Limits,
        *,
        one_shot: bool = False,
        refused: RefusedParts = NONE_REFUSED,
        measurer: Measurer = MEASURER,
    ) -> None:
        self.limits = limits
        self._begin = partial(SessionReplay, measures=measurer, one_shot=one_shot, refused=refused)
        self._replay = self._begin(session, limits)

    def process(self, session: Session) -> Outcome:
        """Return the view and the plan of the session as it is now."""
        if not self._replay.can_update(session):
            self._replay = self._begin(session, self.limits)
        self._replay.update(session)
        return Outcome(session, self._replay.session_view(session), self._replay.plan(), self.limits)

    def change_limits(self, limits: Limits) -> None:
        """Use other amounts from the last request on, as after a provider's refusal."""
        self.limits = limits
        self._replay.use_limits(limits)

    def estimate(self, session: Session) -> int | None:
        """Return the likeliest cost of the request, in tokens; None if no usage was reported."""
        self._replay.update(session)
        feed = self._replay.feed
        return feed.totals.estimate(self._replay.decided) if feed.is_anchored else None
