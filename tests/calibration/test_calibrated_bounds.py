"""Bounds on the next request from reports of earlier ones: against a slow twin, by hand, and the rule's promises."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from random import Random

from hypothesis import event, given
from hypothesis import strategies as st

from context_window.counting.counter import CallableCounter
from context_window.counting.item_tokens import Measurer
from context_window.counting.tiktoken_counter import TiktokenCounter
from session import Session
from session.items import AgentConfigUpdate, Compaction, FunctionCall, FunctionCallOutput, Item, Message
from session.units import grouping
from session.usage import Usage
from tests.support.engine import CalibrationRule
from tests.support.recordings import account_of
from tests.support.reported import Estimate, estimate, estimates_along, exchanges_of
from tests.support.shared import TRANSCRIPTS, needs_transcripts

MEASURER = Measurer(CallableCounter(len))
FRAME = 4
"""Tokens that the counter of a user's own has around a message."""
RECORDED = ("codex", "mini_swe_agent", "opencode", "pi", "tau2_bench")


def said(tokens: int) -> str:
    """A text that costs so much in a message."""
    return "x" * max(1, tokens - FRAME)


def log_of(added: Sequence[int], seen: Sequence[int], anchor: int = 1_000_000, last: int = 1_000) -> Session:
    """Answers and questions with their local counts and the increments of the next reports; then one more of each."""
    session = Session()
    session.append(Message("user", said(100)))
    for counted, observed in zip([*added, last], [*seen, 0], strict=True):
        session.append(Message("assistant", said(counted // 2), usage=Usage(anchor)))
        session.append(Message("user", said(counted - counted // 2)))
        anchor += observed
    return session


def bounds(session: Session, prior_score: int = 200, **rule: int) -> list[Estimate | None]:
    return estimates_along(session, MEASURER, CalibrationRule(prior_score=prior_score, **rule))


def last_of(session: Session, prior_score: int = 200, **rule: int) -> Estimate:
    *_, result = bounds(session, prior_score, **rule)
    assert result is not None
    return result


@st.composite
def logs(draw: st.DrawFn) -> Session:
    """Sessions of several shapes whose requests were reported now and then: exactly, too high, with something hidden, or as fallen."""
    session = Session()
    local, hidden = 0, draw(st.integers(0, 20_000))
    factor = draw(st.integers(100, 700))
    size = st.integers(1, 900)
    for number in range(draw(st.integers(0, 24))):
        texts = [said(draw(size)) for _ in range(2)]
        added: list[Item]
        hidden += draw(st.sampled_from((0, 0, 0, 0, 3_000, -50)))
        tokens = max(0, local * factor // 100 + hidden) if draw(st.integers(0, 5)) else 0
        usage = Usage(tokens, output_tokens=draw(st.sampled_from((0, 50, 2_000)))) if tokens else None
        if draw(st.booleans()):
            added = [Message("assistant", texts[0], usage=usage), Message("user", texts[1])]
        else:
            added = [FunctionCall("look", texts[0], f"c{number}", usage=usage), FunctionCallOutput("look", texts[1], f"c{number}")]
        for item in added:
            session.append(item)
            local += MEASURER.measure(item).tokens
    return session


# The twin


RULES = st.builds(
    CalibrationRule,
    coverage=st.sampled_from((950, 900, 500, 990)),
    prior_score=st.sampled_from((50, 200, 400)),
    prior_samples=st.sampled_from((20, 3)),
    request_part=st.sampled_from((20, 50)),
    min_score=st.sampled_from((60, 0)),
    max_samples=st.sampled_from((100, 3)),
    max_ratio=st.sampled_from((4, 1, 10**6)),
)


@given(logs(), RULES)
def test_the_fold_equals_the_slow_twin_at_every_request(session: Session, rule: CalibrationRule) -> None:
    exchanges = exchanges_of(session, MEASURER)
    estimates = estimates_along(session, MEASURER, rule)
    assert estimates == [estimate(exchanges[:length], rule) for length in range(len(exchanges) + 1)]
    event(f"scored: {sum(one.reported > 0 for one in exchanges) // 10}0")


@needs_transcripts
def test_the_fold_equals_the_slow_twin_on_recorded_sessions() -> None:
    measurer, rule, compared = Measurer(TiktokenCounter()), CalibrationRule(prior_score=200), 0
    for file in sorted(file for folder in RECORDED for file in (TRANSCRIPTS / folder).rglob("*.json*")):
        for session in account_of(file).sessions:
            starts = grouping(session).response_starts
            if starts and not any(map(edits, session.items[starts[0] :])):
                exchanges = exchanges_of(session, measurer)
                estimates = estimates_along(session, measurer, rule)
                assert estimates == [estimate(exchanges[:length], rule) for length in range(len(exchanges) + 1)]
                compared += sum(entry.reported > 0 for entry in exchanges)
    assert compared > 600


def edits(item: Item) -> bool:
    """True if the item changes the prompt before it, who asks, or who answers: beyond the twin."""
    return (
        "host" in item.extra
        or isinstance(item, Compaction | AgentConfigUpdate)
        or (isinstance(item, Message) and item.role in ("system", "developer"))
    )


# By hand


def test_without_a_report_there_is_no_bound() -> None:
    session = Session()
    session.append(Message("user", said(100)))
    session.append(Message("assistant", said(100)))
    assert bounds(session) == [None, None]


def test_the_first_bound_is_the_anchor_the_increment_and_the_prior_of_the_scale() -> None:
    session = log_of([], [], anchor=10_000, last=1_000)
    assert last_of(session, prior_score=200) == Estimate(point=11_000, bound=11_000 + (1_000 + 500 + 20) * 200 // 1_000)


def test_of_the_answer_the_larger_count_is_taken() -> None:
    session = Session()
    session.append(Message("user", said(100)))
    session.append(Message("assistant", said(50), usage=Usage(500, output_tokens=300)))
    assert last_of(session, prior_score=0).point == 800
    session.append(Message("user", said(70)))
    assert last_of(session, prior_score=0).point == 870


def test_two_steps_are_scored_by_hand() -> None:
    """304 more than the 1,000 that were counted, of a scale of 1,000 + 500 + 20: 0.2. One that was further off is left out."""
    learned = last_of(log_of([1_000, 1_000], [1_304, 2_304], anchor=10_000), prior_score=0)
    scale = 1_000 + 13_608 // 20 + 20
    assert learned.bound == 13_608 + 1_000 + -(-scale * 200 // 1_000)
    assert learned.point == 13_608 + 1_000  # two steps are not yet the usual ones


# Its promises


@given(logs(), st.integers(0, 1_000))
def test_a_bound_is_at_least_the_point(session: Session, prior: int) -> None:
    assert all(result is None or result.bound >= result.point for result in bounds(session, prior))


@given(logs(), st.integers(1, 998))
def test_who_asks_for_more_coverage_gets_a_bound_as_high(session: Session, coverage: int) -> None:
    for less, more in zip(bounds(session, coverage=coverage), bounds(session, coverage=coverage + 1), strict=True):
        assert less is None or more is None or less.bound <= more.bound


def test_of_steps_that_are_alike_as_many_are_covered_as_is_stated() -> None:
    chance = Random(20)
    for coverage, least, most in ((950, 0.92, 0.97), (800, 0.77, 0.86)):
        covered: list[bool] = []
        for _ in range(12):
            added = [chance.randrange(50, 3_000) for _ in range(100)]
            session = log_of(added, [int(entry * chance.lognormvariate(0.2, 0.2)) for entry in added], anchor=3_000_000)
            reports = [entry.reported for entry in exchanges_of(session, MEASURER)]
            estimates = bounds(session, coverage=coverage, min_score=0)
            covered += [result.bound >= tokens for result, tokens in zip(estimates[20:], reports[20:], strict=False) if result is not None]
        assert least <= statistics.mean(covered) <= most


def test_tokens_in_no_log_are_not_learned_in_full() -> None:
    jump = last_of(log_of([500] * 5, [500, 500, 9_000, 500, 500], anchor=10_000), prior_score=50)
    plain = last_of(log_of([500] * 5, [500] * 5, anchor=18_500), prior_score=50)
    assert jump.bound - plain.bound < 3_000  # 8,500 were hidden, a part of a scale that has grown since


def test_a_count_that_is_wrong_all_along_is_learned_within_a_few_steps() -> None:
    for factor in (150, 200, 290):
        reports = log_of([1_000] * 8, [10 * factor] * 8, anchor=20_000)
        anchor = exchanges_of(reports, MEASURER)[-1].reported
        result = last_of(reports, prior_score=50)
        assert result.bound >= anchor + 10 * factor
        assert result.point >= anchor + 9 * factor


def test_a_factor_does_not_stick_when_the_content_changes() -> None:
    changed = log_of([1_000] * 150, [1_900] * 30 + [1_000] * 120)
    anchor = exchanges_of(changed, MEASURER)[-1].reported
    assert last_of(changed, min_score=0, max_samples=100) == Estimate(anchor + 1_000, anchor + 1_000)


def test_steps_from_long_ago_are_forgotten() -> None:
    new = log_of([1_000] * 110, [1_100] * 110, anchor=1_000_000)
    old = log_of([1_000] * 310, [1_900] * 200 + [1_100] * 110, anchor=1_000_000 - 200 * 1_900)
    assert last_of(old, prior_score=0, max_samples=100) == last_of(new, prior_score=0, max_samples=100)
