"""`CalibrationRule`: the constants of the upper bound from reported usage. `Limits` holds them: one value describes a view completely."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CalibrationRule:
    """The constants of the upper bound from reported usage. The scores, `coverage` and `removal_worth` are in thousandths.

    The values come from `benchmarks/session_accuracy.py`. A score is the excess of an increment over its local count, divided by a scale
    (`calibration/conformal.py`).

    Attributes:
        coverage: Share of requests that must cost no more than their bound.
        prior_score: Score that bounds an increment, at least, until enough increments have been seen.
        prior_samples: This number of them.
        request_part: The scale has this part of the request: one over so many.
        min_score: Lowest score that bounds an increment, however exact earlier counts were.
        removal_worth: Worth of a removed token until increments tell: of a local token, or of a reported one if the provider counts less.
        worth_tokens: Local tokens that must have been added before their average cost tells the worth of a removed one.
        max_samples: Number of latest increments that are used.
        max_ratio: Reported tokens of an increment are capped at this many times its local count: the rest is text that is in no log.
    """

    coverage: int = 950
    prior_score: int = 400
    prior_samples: int = 20
    request_part: int = 20
    min_score: int = 60
    removal_worth: int = 800
    worth_tokens: int = 1_000
    max_samples: int = 100
    max_ratio: int = 3
