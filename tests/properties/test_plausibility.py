"""Guarantee: reports of views are used, reports of an untrimmed log are not, and every report is judged as the rules say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import event, example, given
from hypothesis import strategies as st

from context_window.calibration.plausibility import PlausibilityCheck, RequestCounts
from tests.support.anchored import Report, judged


@st.composite
def histories(draw: st.DrawFn) -> list[Report | None]:
    """Reports while views lack more and more of their log: of the view, of the whole log, or of neither. None: all before is forgotten."""
    reports: list[Report | None] = []
    local = untrimmed = draw(st.integers(1, 400))
    hidden, percent = draw(st.sampled_from((0, 0, 15, 300))), draw(st.sampled_from((100, 100, 50, 130)))
    for _ in range(draw(st.integers(1, 7))):
        if draw(st.integers(0, 9)) == 0:
            reports.append(None)
        untrimmed += draw(st.integers(0, 90))
        local = min(untrimmed, max(0, local + draw(st.sampled_from((60, 60, 60, 1, 0, -1, -30, -150)))))
        unlogged = draw(st.sampled_from((0, 0, 0, 1, 40)))
        source = draw(st.sampled_from((local, local, untrimmed, (local + untrimmed) // 2, local // 5)))
        tokens = max(1, hidden + source * percent // 100 + draw(st.sampled_from((0, 0, 1, -1, 25))))
        sent_count = draw(st.sampled_from((None, None, None, None, local, local // 2 + 1)))
        reports.append(Report(tokens, local, untrimmed, unlogged, sent_count))
    return reports


def counts_of(report: Report) -> RequestCounts:
    return RequestCounts(report.local, report.unlogged, 0, report.untrimmed)


VIEWS = st.lists(st.tuples(st.integers(1, 10_000), st.integers(0, 10_000)), min_size=1, max_size=8)
"""Requests: the local count of each view, and the tokens of the log that it lacks."""


@given(VIEWS)
def test_reports_of_views_are_always_used(views: list[tuple[int, int]]) -> None:
    """if the provider counts as we do and each report is about its view, whatever the views lack"""
    check = PlausibilityCheck()
    for local, missing in views:
        assert check.accepts(local, RequestCounts(local, untrimmed=local + missing))


@given(st.integers(100, 10_000), st.integers(0, 1_000), VIEWS)
def test_reports_of_the_whole_log_are_never_used_for_views_of_half_of_it(first: int, hidden: int, views: list[tuple[int, int]]) -> None:
    """after one request that was sent whole, the log is sent untrimmed, with the same hidden tokens each time"""
    check = PlausibilityCheck()
    assert check.accepts(first + hidden, RequestCounts(first, untrimmed=first)) == (4 * (first + hidden) > first)
    for local, missing in views:
        local, full_log = local + 100, 2 * (local + 100) + 2 * hidden + missing  # noqa: PLW2901 - at most half of the log is in the view
        assert not check.accepts(full_log + hidden, RequestCounts(local, untrimmed=full_log))
        assert check.predict(local) == local + hidden


@given(histories(), st.integers(0, 600))
@example([Report(100, 100, 100, 0), Report(100, 50, 110, 0), Report(60, 50, 120, 0)], 10)  # of the whole log, then of the view
@example([Report(20, 10, 41, 0)], 10)  # the first report is nearer to the log, by one token
@example([Report(500, 100, 100, 0), Report(20, 100, 100, 40), Report(500, 100, 300, 0)], 10)
def test_every_report_is_judged_as_by_the_slow_twin(reports: list[Report | None], local: int) -> None:
    """the rules of `PlausibilityCheck`, computed from all reports so far"""
    check = PlausibilityCheck()
    for position, report in enumerate(reports):
        if report is None:
            check.forget()
            assert check.predict(local) is None
            continue
        is_accepted, sure = judged(reports[: position + 1])
        assert check.accepts(report.tokens, counts_of(report), report.sent_count) == is_accepted
        event(f"accepted: {is_accepted}")
        assert check.predict(local) == (None if sure is None else sure.tokens + sure.reported_worth(local - sure.local))
    event(f"something is sure: {judged(reports)[1] is not None}")


FIRST_REPORTS = (
    (),
    (Report(100, 100, 100, 0),),
    (Report(90, 100, 130, 0),),
    (Report(130, 100, 130, 0),),
    (Report(60, 100, 100, 0), Report(95, 90, 140, 0)),
)


def second_reports() -> Iterator[Report]:
    """Reports of requests that lack some of the log: around every limit in the rules."""
    for local, missing, unlogged in product((0, 10, 59, 109), (0, 1, 2, 20, 21, 25, 26, 30, 31, 60, 110, 111), (0, 7)):
        for tokens in range(1, 2 * local + missing + 40, 3):
            yield Report(tokens, local, local + missing, unlogged)
    for tokens, sent_count in product((1, 24, 25, 26, 30, 60), (None, 60, 100, 400)):  # about a quarter of the sent request's count
        yield Report(tokens, 100, 140, 7, sent_count)


def test_every_report_of_a_small_request_is_judged_as_by_the_slow_twin() -> None:
    for first, report in product(FIRST_REPORTS, second_reports()):
        check = PlausibilityCheck()
        for earlier in first:
            check.accepts(earlier.tokens, counts_of(earlier), earlier.sent_count)
        is_accepted, sure = judged([*first, report])
        assert check.accepts(report.tokens, counts_of(report), report.sent_count) == is_accepted, (first, report)
        assert check.predict(50) == (None if sure is None else sure.tokens + sure.reported_worth(50 - sure.local)), (first, report)
