"""One session under several policies and windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from session import Session
from session.items import MessageCategory

from .limit import limits
from .metric import Reading, Tally, Timeline
from .outcomes import Needs, OutcomeReading, Outcomes
from .policies import Policy
from .sessions import Recording, tokens_of

WINDOW_LEAST = 2_000
"""Tokens of the smallest window: in smaller ones hardly more than the newest items fits."""
SYSTEM_MOST = 0.5
"""The part of a window that system prompts may take: nobody works in a window that they fill."""


class Outcome(NamedTuple):
    """What came of one session under one window.

    Attributes:
        name: The session.
        tool: The tool that wrote its log.
        held_out: True if no constant of a strategy may be fitted on it.
        percent: The window, in percent of the session's tokens.
        limit: The limit of recall: a sum over the steps.
        verbatim_limit: The limit of verbatim recall.
        tallies: The sums of each policy, by name.
        needs: What its views showed of what the agent needed, by name.
    """

    name: str
    tool: str
    held_out: bool
    percent: int
    limit: float
    verbatim_limit: float
    tallies: dict[str, Tally]
    needs: dict[str, Outcomes]


def replay(recording: Recording, percents: Sequence[int], policies: Mapping[str, Policy]) -> list[Outcome]:
    """Replay a session, and return an outcome per window that is not too small.

    Args:
        recording: The session.
        percents: The windows, in percent of the session's tokens.
        policies: The policies by name.
    """
    timeline = Timeline(recording)
    windows = {percent: recording.tokens * percent // 100 for percent in percents}
    system = sum(map(tokens_of, (item for item in recording.items if item.category is MessageCategory.SYSTEM)))
    windows = {percent: window for percent, window in windows.items() if window >= WINDOW_LEAST and system <= SYSTEM_MOST * window}
    needs = Needs(timeline)
    outcomes = {(percent, name): OutcomeReading(timeline, needs) for percent in windows for name in policies}
    readings = {(percent, name): Reading(timeline, windows[percent], on_read=reading.read) for (percent, name), reading in outcomes.items()}
    views = {(percent, name): policies[name](windows[percent]) for percent, name in readings}
    log = Session(metadata=dict(recording.session.metadata))
    log.restore_seams(recording.session.response_breaks, 0)
    length = 0
    for step in timeline.steps:
        for item in recording.items[length : step.start]:
            log.append(item)
        length = step.start
        for key, reading in readings.items():
            reading.read(step, views[key](log))
    return [
        Outcome(
            recording.name,
            recording.tool,
            recording.held_out,
            percent,
            *limits(timeline, window),
            {name: readings[percent, name].tally for name in policies},
            {name: outcomes[percent, name].outcomes for name in policies},
        )
        for percent, window in windows.items()
    ]
