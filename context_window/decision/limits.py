"""The limits of a view, as numbers. The settings make them from a `ContextWindow`; no model or tokenizer is known here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from ..calibration.rule import CalibrationRule
from .strategy_api import Advisers
from .tool_rules import ToolRules

BOUNDLESS = 2**62
"""An amount of tokens or images that no session reaches."""


@dataclass(frozen=True, slots=True)
class AutoWindow:
    """What a window is chosen by that is not set (`auto_window.py`).

    Attributes:
        kept: Tokens that a trim keeps besides what it cannot take.
        rewrite: Price of writing a token to the cache instead of reading it there, in percent of the price of reading it.
        lifetime: Seconds after which the provider's cache has forgotten a request.
    """

    kept: int
    rewrite: int
    lifetime: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a view, and how far a trim goes. Amounts are tokens unless named otherwise.

    Attributes:
        budget: The most that the whole request may cost, including `overhead` and the additions of converters.
        trigger: A view that costs more than this is trimmed.
        target: A trim goes down to this.
        shares: By rank, the part of the goal that a category keeps until all other categories are down to their shares.
        images_kept: Number of images, the newest, that stay when older ones are replaced.
        images_max: With more images than this, older ones are replaced.
        items_max: A view with more items than this is trimmed; None for no limit.
        items_target: Number of items that such a trim goes down to.
        overhead: Cost of the request besides its items.
        preamble: Cost of the message that a converter adds if the first message is not the user's.
        synthetic: Cost of the output that a converter adds for a call without an output.
        closing: Cost of the message that a converter adds where a request would have ended in the model's turn.
        note: Most that the line about removed items costs. It takes the place of the preamble.
        usage_note: Cost of the line that tells the model that the window is filling up.
        usage_noted_from: A request that costs at least this gets that line.
        digest: Cost of a digest besides what it shows of its items.
        note_removed: True to tell the model about removed items. Without it, a line that the log came with stays as it is.
        binds_thinking: True if the model refuses reasoning after an edited place (docs/provider-rules.md, A5).
        drops_thinking: True if the model's provider leaves the reasoning of earlier turns out of the prompt: it then costs nothing.
        keep_first_message: True to keep the view's first user message until nothing else can be dropped.
        clamp_messages: True to truncate the user's newest messages if nothing else is left.
        clear_call_inputs: True to clear the long values in the arguments of calls, as well as outputs, before units are dropped.
        tool_rules: Which results are cleared first, and which are kept.
        output_part: The part of the budget above which an output is shortened when it comes; None to leave outputs as they are.
        clear_superseded: True to clear results first whose file was read again in full, or written, later.
        newest_first: True to trim the newest items first instead of the oldest.
        advisers: The strategies that are asked before anything is taken by priority.
        final: True if only the advisers may take anything.
        auto: What trigger and target are chosen by at each request; None if they are what is set here.
        calibration: How reported usage is used; None to ignore it. `context_window/calibration/` reads it, nothing in this package does.
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
    closing: int = 0
    note: int = 0
    usage_note: int = 0
    digest: int = 0
    usage_noted_from: int = BOUNDLESS
    note_removed: bool = False
    binds_thinking: bool = False
    drops_thinking: bool = False
    keep_first_message: bool = False
    clamp_messages: bool = True
    clear_call_inputs: bool = True
    tool_rules: ToolRules = field(default_factory=dict, hash=False)
    output_part: Fraction | None = None
    clear_superseded: bool = False
    newest_first: bool = False
    advisers: Advisers = ()
    final: bool = False
    auto: AutoWindow | None = None
    calibration: CalibrationRule | None = None

    @property
    def clears_by_age(self) -> bool:
        """True if nothing but its age decides when a result is cleared."""
        return not (self.tool_rules or self.clear_superseded)

    @property
    def shortens_unread(self) -> bool:
        """True if a strategy asks to truncate what the model has not read yet before anything that it has left is taken."""
        return any(adviser.shortens_unread for adviser in self.advisers)

    @property
    def restates_work(self) -> bool:
        """True if a strategy asks for a note that restates the state of the work after a trim. Where items are counted, it would be one."""
        return self.items_max is None and any(adviser.restates_work for adviser in self.advisers)

    def boundless(self) -> Limits:
        """Return these limits without any limit: nothing is ever trimmed, and reports are ignored."""
        return replace(
            self,
            budget=BOUNDLESS,
            trigger=BOUNDLESS,
            target=BOUNDLESS,
            usage_noted_from=BOUNDLESS,
            images_max=BOUNDLESS,
            items_max=None,
            auto=None,
            calibration=None,
            advisers=(),
        )


def goal_of(limit: int, target: int, protected: int) -> int:
    """Return the goal of a trim: the target, or more if protected items fill most of the limit.

    Reaching the target would then take nearly everything else. So a part of the room that protected items leave stays in use:
    half of target/limit. Example: limit 100, target 60, protected 80. Of the room of 20, 20 x 60/200 = 6 stay in use: the goal is 86.
    """
    return max(target, protected + (limit - protected) * target // (2 * limit)) if protected < limit else target


def portion(share: Fraction, amount: int) -> int:
    """Return `floor(share × amount)`, exactly."""
    return share.numerator * amount // share.denominator
