"""What increments teach, one by one: against the rule as `tests/support/reported.py` states it, at the corners that logs seldom have."""

from __future__ import annotations

from hypothesis import event, example, given
from hypothesis import strategies as st

from context_window.trimming.anchor import CalibrationRule, Increments
from tests.support.reported import FEW, quantile, scale_of

RULES = st.builds(
    CalibrationRule,
    coverage=st.integers(1, 999),
    prior=st.sampled_from((0, 50, 400)),
    least=st.sampled_from((0, 10, 60)),
    remembered=st.sampled_from((1, 3, 100)),
    beyond=st.sampled_from((1, 3)),
)
AMOUNTS = st.one_of(st.integers(1, 40), st.integers(1, 50_000))
STEPS = st.lists(st.tuples(st.integers(0, 200_000), AMOUNTS, AMOUNTS), max_size=12)
"""The request before, what was counted of what is new, and what was reported of it."""
NEW = st.one_of(st.integers(-5, 2), st.integers(-50, 50_000))


@example(rule=CalibrationRule(), steps=[(100, 10, 15)] * 5, anchored=1_000, new=0)
@example(rule=CalibrationRule(), steps=[(100, 10, 15)] * 5, anchored=1_000, new=-1)
@example(rule=CalibrationRule(least=0, prior=0), steps=[(0, 3, 4)] * 5, anchored=0, new=30_000)  # a third more, in whole thousandths
@given(rule=RULES, steps=STEPS, anchored=st.integers(0, 200_000), new=NEW)
def test_a_bound_and_the_likeliest_follow_the_rule_whatever_was_learned(
    rule: CalibrationRule, steps: list[tuple[int, int, int]], anchored: int, new: int
) -> None:
    increments = Increments(rule)
    for step in steps:
        increments.learn(*step)
    seen = [(before, local, min(observed, rule.beyond * local)) for before, local, observed in steps][-rule.remembered :]
    assert len(increments) == len(seen)
    event(f"learned: {min(len(seen), FEW)}")
    if new <= 0:
        assert increments.bound(anchored, new) == increments.likely(anchored, new) == 0
        return
    scores = sorted(-(-1_000 * (observed - local) // scale_of(before, local)) for before, local, observed in seen)
    ratios = sorted(1_000 * observed // local for _, local, observed in seen)
    usual, times = (scores[len(scores) // 2], ratios[len(ratios) // 2]) if len(seen) >= FEW else (0, 0)
    scale = scale_of(anchored, new)
    assert increments.likely(anchored, new) == max(0, new + usual * scale // 1_000)
    assert increments.bound(anchored, new) == max(new - (-quantile(scores, rule) * scale // 1_000), -(-times * new // 1_000))
