"""Whether reports are of views: `Doubts` report by report, against the slow twin of its rules (`tests/support/anchored.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import event, example, given
from hypothesis import strategies as st

from context_window.trimming.doubts import Asked, Doubts
from tests.support.anchored import Heard, judged


@st.composite
def histories(draw: st.DrawFn) -> list[Heard | None]:
    """Reports of views that lose more and more of their log: of the view, of the whole log, or of neither; None where all begins anew."""
    heard: list[Heard | None] = []
    counted = whole = draw(st.integers(1, 400))
    hidden, percent = draw(st.sampled_from((0, 0, 15, 300))), draw(st.sampled_from((100, 100, 50, 130)))
    for _ in range(draw(st.integers(1, 7))):
        if draw(st.integers(0, 9)) == 0:
            heard.append(None)
        whole += draw(st.integers(0, 90))
        counted = min(whole, max(0, counted + draw(st.sampled_from((60, 60, 60, 1, 0, -1, -30, -150)))))
        unsaid = draw(st.sampled_from((0, 0, 0, 1, 40)))
        of = draw(st.sampled_from((counted, counted, whole, (counted + whole) // 2, counted // 5)))
        tokens = max(1, hidden + of * percent // 100 + draw(st.sampled_from((0, 0, 1, -1, 25))))
        sent = draw(st.sampled_from((None, None, None, None, counted, counted // 2 + 1)))
        heard.append(Heard(tokens, counted, whole, unsaid, sent))
    return heard


@given(histories(), st.integers(0, 600))
@example([Heard(100, 100, 100, 0), Heard(100, 50, 110, 0), Heard(60, 50, 120, 0)], 10)  # said to be whole, then not
@example([Heard(20, 10, 41, 0)], 10)  # from the start nearer to the log, by one token
@example([Heard(500, 100, 100, 0), Heard(20, 100, 100, 40), Heard(500, 100, 300, 0)], 10)
def test_every_report_is_judged_as_the_rules_say(heard: list[Heard | None], amount: int) -> None:
    doubts = Doubts()
    for place, one in enumerate(heard):
        if one is None:
            doubts.forget()
            assert doubts.foretold(amount) is None
            continue
        believed, sure = judged(heard[: place + 1])
        assert doubts.hear(one.tokens, Asked(one.counted, one.unsaid, 0, one.whole), one.sent) == believed
        event(f"believed: {believed}")
        assert doubts.foretold(amount) == (None if sure is None else sure.tokens + sure.worth(amount - sure.counted))
    event(f"something is sure: {judged(heard)[1] is not None}")


FIRST = (
    (),
    (Heard(100, 100, 100, 0),),
    (Heard(90, 100, 130, 0),),
    (Heard(130, 100, 130, 0),),
    (Heard(60, 100, 100, 0), Heard(95, 90, 140, 0)),
)


def seconds() -> Iterator[Heard]:
    """Requests that have lost this much, reported as this: around every limit that the rules have."""
    for counted, lost, unsaid in product((0, 10, 59, 109), (0, 1, 2, 20, 21, 25, 26, 30, 31, 60, 110, 111), (0, 7)):
        for tokens in range(1, 2 * counted + lost + 40, 3):
            yield Heard(tokens, counted, counted + lost, unsaid)
    for tokens, sent in product((1, 24, 25, 26, 30, 60), (None, 60, 100, 400)):  # about a fourth of the count, and of what was sent
        yield Heard(tokens, 100, 140, 7, sent)


def test_every_report_of_a_small_request_is_judged_as_the_rules_say() -> None:
    for first, one in product(FIRST, seconds()):
        doubts = Doubts()
        for before in first:
            doubts.hear(before.tokens, Asked(before.counted, before.unsaid, 0, before.whole), before.sent)
        believed, sure = judged([*first, one])
        assert doubts.hear(one.tokens, Asked(one.counted, one.unsaid, 0, one.whole), one.sent) == believed, (first, one)
        assert doubts.foretold(50) == (None if sure is None else sure.tokens + sure.worth(50 - sure.counted)), (first, one)
