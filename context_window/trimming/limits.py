"""The numbers a trim goes by. Made by the manager from a `ContextWindow`; nothing here knows a model or a tokenizer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from .anchor import CalibrationRule
from .choices import Advisers

BOUNDLESS = 2**62
"""Tokens, or images, that nothing reaches."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a view may hold, and how far a trim goes. Amounts are tokens unless named otherwise.

    Attributes:
        budget: What the whole request may cost: `overhead` and what converters add included.
        trigger: Above this a view is trimmed.
        target: Down to this.
        shares: By rank: the part of the goal a category is trimmed to before others are touched below theirs.
        images_kept: Image parts, the newest, that the image rule spares.
        images_max: More image parts than this call for the image rule.
        items_max: More items than this are trimmed; None for any number.
        items_target: Down to so many items.
        overhead: What the request costs beside its items.
        preamble: What a converter adds where the first message is not the user's.
        synthetic: What a converter adds for a call without an output.
        binds_thinking: Whether the model refuses reasoning after an edited place (docs/provider-rules.md, A5).
        newest_first: Trim the newest first instead of the oldest.
        advisers: The strategies that are asked before anything is taken by priority.
        final: Whether what they choose is all that is taken.
        calibration: How the provider's reports are used; None: not at all.
    """

    budget: int
    trigger: int
    target: int
    shares: tuple[Fraction, Fraction, Fraction, Fraction]
    images_kept: int = 1
    images_max: int = 1
    items_max: int | None = None
    items_target: int = 0
    overhead: int = 0
    preamble: int = 0
    synthetic: int = 0
    binds_thinking: bool = False
    newest_first: bool = False
    advisers: Advisers = ()
    final: bool = False
    calibration: CalibrationRule | None = None

    def boundless(self) -> Limits:
        """The same without any limit: nothing is ever trimmed."""
        return replace(
            self, budget=BOUNDLESS, trigger=BOUNDLESS, target=BOUNDLESS, images_max=BOUNDLESS, items_max=None, calibration=None, advisers=()
        )


def goal_of(most: int, target: int, stays: int) -> int:
    """What a trim goes down to: the target, but no lower than leaves half of the target's part of the room above what stays in use.

    Where what stays fills most of what there is, the target itself could be reached only by taking nearly everything else.

    Args:
        most: What calls for the trim when it is exceeded.
        target: The target, at most that.
        stays: What no trim can take.
    """
    return max(target, stays + (most - stays) * target // (2 * most)) if stays < most else target


def portion(share: Fraction, amount: int) -> int:
    """`floor(share × amount)`, exact."""
    return share.numerator * amount // share.denominator
