"""The limits and the policy of one agent's window, checked on construction. Counts no tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from fractions import Fraction
from math import ceil
from typing import Any, Literal

from session.session import Session
from session.summarizers import Summarizer, Summarizing, as_summarizer

from ..alike import did_you_mean
from ..decision.limits import BOUNDLESS
from ..decision.strategy_api import Strategy
from ..decision.tool_rules import ToolRules, check_rules
from ..errors import ArgumentError, BudgetError
from ..strategies import Extract, check_strategy, is_final
from ..validation import check_amount, check_ratio, exact_fraction
from .shares import Shares

TARGET_RATIO = 0.65
"""The default of `target_ratio`: its part of the trigger where that is lower than the default itself."""


@dataclass(frozen=True, slots=True, repr=False)
class ContextWindow:
    """The size of one agent's window, and the policy when it is full.

        ContextWindow(max_tokens=40_000, shares=Shares(context=.5, dialog=.35), images_kept=2)

    Attributes:
        max_tokens: Tokens that the prompt may have, tool definitions included. None: as many as the model allows. "auto": the window that
            costs least, at most as large as the model allows. It is chosen at each request by the model's prices, by what no trim can take
            and by how fast the conversation grows (`context_window/decision/auto_window.py`).
        max_context_items: Items that a view may have; None for any number.
        keep_recent_turns: Number of newest turns that a compaction leaves alone, if enough turns are older. Otherwise the newest tool calls
            and messages stay, wherever turns begin.
        max_tool_calls_per_turn: Tool calls that a managed loop allows in one turn.
        summary_llm: The summariser: an async function from a prompt to a text, or a `Model`. None for the model in use, where a loop or an
            integration has one.
        compaction: False to summarise nothing unless `manager.compact` is called. "provider" to have the provider of the model compact the
            conversation itself, in `run_turn`, where the model can (`Model.compacting`); otherwise the same as True.
        summary_prompt: Instructions for the summariser, in place of our own. The record of the conversation follows them.
        keep_user_messages: True to leave the user's own messages out of summaries: they stay in views word for word, in their places, until
            a trim needs their room. Messages of category CONTEXT do not count.
        shares: Each category's part of the budget.
        trigger_ratio: A prompt above this part of the budget is trimmed. If it is below 1, a `SlidingWindow` moves only then, too.
        target_ratio: A trim goes down to this part of the budget, so that the next turns change nothing and caches stay warm. If overhead
            and protected items take much of it, a trim leaves at least half of this part of the remaining room in use: otherwise it
            would take nearly everything else. With a `trigger_ratio` of 0.65 or less, the default is 65 % of the trigger.
        keep_first_message: True to keep the first user message, which states the task, until nothing is left but it and the frontier.
            Messages of category CONTEXT do not count. Beside a summary it is kept in any case: compaction leaves it alone.
        clamp_messages: True to truncate the user's newest messages in the middle if the prompt does not fit otherwise. False to leave the
            user's words alone, and the first message too if it is kept; the prompt is then over the budget, which is an event, or an error
            if `strict`.
        clear_call_inputs: True to replace long string values in the arguments of older calls, such as the text of a file that was written,
            by placeholders before calls and messages are dropped. Values of up to 200 characters stay, such as the file's path.
        tool_rules: Rules for the results of single tools, by the tool's name or a pattern such as `mcp__github__*`: which are cleared
            first, and which are kept.
        note_removed: True to tell the model what it does not see: a view that has lost items begins with a line such as
            `[143 earlier items removed to fit the window; recall ids m3 to m212]`. It changes only when items are removed.
            Windows below about 1,000 tokens have no room for it.
        note_usage_at: Part of the budget, such as 0.8. The first request that uses it ends with a constant line that tells the model. The
            line stays there until a trim makes room. None: the model is not told. Windows below about 500 tokens have no room for it.
        clear_superseded: True to clear a result before others if its file was read again in full, or written, later. Which tools read and
            write files is known by their names (`context_window/decision/tool_rules.py`) and by their rules.
        largest_output: Part of the budget that a tool's output may have. A larger one is shown from its first request on as its first, last
            and most valuable lines, and the model can recall the rest. None: a tenth if requests carry the recall tool, otherwise 1, with
            which outputs stay as they are. A tool's rule may have another one.
        images_kept: Newest images that stay where older ones are replaced by placeholders. A trim replaces as many of the older ones as it
            needs, before it takes anything else.
        images_max: Images that a view may have. If there are more, all but the newest `images_kept` are replaced, even if everything fits.
            None: any number.
        strategy: The trimming strategy: one of `context_window.strategies`, or a function of (units, budget). None: `PriorityTrim()`, but
            `Extract()` in the chat, in the gateway, and in `run_turn` without a manager.
        warn_at: Parts of the budget at which listeners are warned.
        output_reserve: Tokens of a model's window reserved for its answer; None: a default for the model.
        below_price_cliff: True to stay below the prompt size from which a model's price rises.
        coverage: Share of requests that must cost no more than their upper bound, once usage has been reported. None: reports are
            ignored.
        strict: True to raise `ContextOverflowError` if a view cannot be made to fit.
    """

    max_tokens: int | Literal["auto"] | None = None
    max_context_items: int | None = None
    keep_recent_turns: int = 3
    max_tool_calls_per_turn: int = 10
    summary_llm: Summarizer | Summarizing | None = None
    shares: Shares = field(default_factory=Shares, kw_only=True)
    trigger_ratio: float = field(default=1.0, kw_only=True)
    target_ratio: float = field(default=TARGET_RATIO, kw_only=True)
    keep_first_message: bool = field(default=False, kw_only=True)
    clamp_messages: bool = field(default=True, kw_only=True)
    clear_call_inputs: bool = field(default=True, kw_only=True)
    tool_rules: ToolRules = field(default_factory=dict, kw_only=True, hash=False)
    note_removed: bool = field(default=True, kw_only=True)
    note_usage_at: float | None = field(default=None, kw_only=True)
    clear_superseded: bool = field(default=False, kw_only=True)
    largest_output: float | None = field(default=None, kw_only=True)
    images_kept: int = field(default=1, kw_only=True)
    images_max: int | None = field(default=None, kw_only=True)
    strategy: Strategy | None = field(default=None, kw_only=True)
    warn_at: tuple[float, ...] = field(default=(0.5, 0.75, 0.9), kw_only=True)
    output_reserve: int | None = field(default=None, kw_only=True)
    below_price_cliff: bool = field(default=False, kw_only=True)
    coverage: float | None = field(default=0.95, kw_only=True)
    strict: bool = field(default=False, kw_only=True)
    compaction: bool | Literal["provider"] = field(default=True, kw_only=True)
    summary_prompt: str | None = field(default=None, kw_only=True)
    keep_user_messages: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name, least in (("max_tokens", 1), ("max_context_items", 1), ("images_max", 0), ("output_reserve", 0)):
            if getattr(self, name) is not None and (name, getattr(self, name)) != ("max_tokens", "auto"):
                self._set(name, check_amount(name, getattr(self, name), least=least))
        for name in ("keep_recent_turns", "max_tool_calls_per_turn", "images_kept"):
            self._set(name, check_amount(name, getattr(self, name), least=0))
        if self.images_max is not None and self.images_max < self.images_kept:
            raise BudgetError("images_max", self.images_max, f"pass images_kept={self.images_kept} or more, or lower images_kept")
        if self.summary_llm is not None and as_summarizer(self.summary_llm) is None:
            advice = "pass an async function that takes a prompt and returns the summary, or a model"
            raise BudgetError("summary_llm", self.summary_llm, advice)
        if self.summary_prompt is not None and not (isinstance(self.summary_prompt, str) and self.summary_prompt.strip()):
            raise BudgetError("summary_prompt", self.summary_prompt, "pass a text that says what to write, or None")
        if not isinstance(self.shares, Shares):
            raise BudgetError("shares", self.shares, "pass a Shares(system=…, context=…, dialog=…, system_output=…)")
        if self.strategy is not None:
            check_strategy("strategy", self.strategy)
        if self.max_context_items is not None and is_final(self.strategy):
            raise BudgetError(
                "max_context_items",
                self.max_context_items,
                "the strategy forbids all other trims, so this limit could not be met; leave one of the two out",
            )
        for name in [spec.name for spec in fields(self) if isinstance(spec.default, bool)]:
            if not isinstance(getattr(self, name), bool) and (name, getattr(self, name)) != ("compaction", "provider"):
                raise BudgetError(name, getattr(self, name), "pass True or False")
        for name in ("coverage", "note_usage_at", "largest_output"):
            if getattr(self, name) is not None:
                check_ratio(name, getattr(self, name), zero=False)
        self._set("tool_rules", check_rules(self.tool_rules))
        self._check_ratios()

    def _check_ratios(self) -> None:
        check_ratio("trigger_ratio", self.trigger_ratio, zero=False)
        check_ratio("target_ratio", self.target_ratio, zero=False)
        if self.target_ratio == TARGET_RATIO >= self.trigger_ratio:
            self._set("target_ratio", float(exact_fraction(TARGET_RATIO) * exact_fraction(self.trigger_ratio)))
        if self.target_ratio > self.trigger_ratio:
            raise BudgetError(
                "target_ratio", self.target_ratio, f"a trim would take nothing; pass trigger_ratio={self.trigger_ratio} or less"
            )
        if isinstance(self.warn_at, str) or not isinstance(self.warn_at, Iterable):
            raise BudgetError("warn_at", self.warn_at, "pass several numbers, such as (0.5, 0.9), or () for none")
        self._set("warn_at", tuple(self.warn_at))
        for ratio in self.warn_at:
            check_ratio("warn_at", ratio, zero=False)

    async def manage(self, session: Session, llm: Summarizer | Summarizing | None = None) -> Session:
        """Return the view to send under these limits; if the log has outgrown them, summarise older turns first.

            view = await ContextWindow(max_tokens=8_000).manage(session, llm)  # send the view; the session keeps everything

        Short for `ContextWindowManager(context_window=…).manage(session, llm)`, with one manager per session. A manager of your own can
        also know the model, its tools and its usage reports.

        Args:
            session: The log. At most one `Compaction` is appended to it.
            llm: The summariser if there is no `summary_llm`: an async function from a prompt to a text, or a `Model`. None to trim only.

        Raises:
            ContextOverflowError: The protected items do not fit, and the window is `strict`.
            ArgumentError: `session` is not a session.
            FormatError: `llm` cannot be called.
        """
        from ..manager import manage_window

        return await manage_window(self, session, llm)

    def with_extract(self) -> ContextWindow:
        """Return these settings with `Extract()` as the strategy if none is set. The chat and the gateway use them so."""
        return self if self.strategy is not None else replace(self, strategy=Extract())

    def usage_noted_from(self, budget: int) -> int:
        """Return the tokens from which a request has the line about usage."""
        return BOUNDLESS if self.note_usage_at is None else ceil(exact_fraction(self.note_usage_at) * budget)

    def __repr__(self) -> str:
        """Return the fields that differ from their defaults: there are many."""
        defaults = {spec.name: spec.default if spec.default_factory is MISSING else spec.default_factory() for spec in fields(self)}
        changed = [f"{name}={value!r}" for name, default in defaults.items() if (value := getattr(self, name)) != default]
        return f"ContextWindow({', '.join(changed)})"

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def thousandths(self) -> int:
        """`coverage` in thousandths, at most 999."""
        return 0 if self.coverage is None else min(999, int(exact_fraction(self.coverage) * 1_000))

    @property
    def ratios(self) -> tuple[Fraction, Fraction]:
        """Trigger and target ratio, exactly the decimals that were written."""
        return exact_fraction(self.trigger_ratio), exact_fraction(self.target_ratio)


def window_of(context_window: ContextWindow | None, limits: Mapping[str, Any]) -> ContextWindow:
    """Return the window that a manager was given, as an object or by its fields.

    Raises ArgumentError if a name is not that of a field, or there are fields besides the object; BudgetError if a limit makes no sense.
    """
    names = [spec.name for spec in fields(ContextWindow)]
    for name, value in limits.items():
        if name not in names:
            hint = did_you_mean(name, ("model_config", "token_counter", *names), "the limits are the fields of ContextWindow")
            raise ArgumentError(name, value, f"there is no such argument; {hint}")
        if context_window is not None:
            raise ArgumentError(name, value, f"pass it in ContextWindow({name}=…), or leave context_window out")
    return ContextWindow(**limits) if context_window is None else context_window
