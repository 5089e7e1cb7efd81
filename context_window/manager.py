"""`ContextWindowManager`: the one class that most users meet. It resolves settings and keeps state; it decides nothing itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from threading import Lock, RLock
from typing import TypedDict
from weakref import WeakKeyDictionary

from session.items import Item, MessageCategory
from session.parts import Image
from session.session import Session
from session.units import PRIORITY

from .budget import Budget, ModelConfig, resolve_budget
from .config import ContextWindow, TokenBudget, check_amount
from .counting.counter import TokenCounter
from .counting.measure import Measurer
from .counting.overhead import request_overhead
from .errors import BudgetError, ContextOverflowError
from .events import Event, Listener, OverBudget, ThresholdCrossed, Trimmed
from .following import Following
from .recall import Provider, RecallTool, recall, recall_tool
from .tools import Tool
from .trimming.limits import Limits, portion
from .trimming.plan import Plan
from .usage import UsageReport, report_on

logger = logging.getLogger(__name__)


class SessionStats(TypedDict):
    """What `analyze_session` finds. Amounts are tokens.

    `total_tokens` is `overhead_tokens` and all of `per_category` together. `items` by category; `expected_error` is the
    part of the count by which it is usually off.
    """

    total_tokens: int
    per_category: dict[str, int]
    items: dict[str, int]
    message_count: int
    item_count: int
    image_count: int
    overhead_tokens: int
    budget: int
    available_tokens: int
    over_budget: bool
    counter: str
    expected_error: float


class _State:
    """What the manager keeps of one session: it goes when the session goes."""

    __slots__ = ("census", "freed", "lock", "view", "warned")

    def __init__(self) -> None:
        self.lock = RLock()  # a listener may ask about the session it is told of
        self.view: Following | None = None
        self.census: Following | None = None
        self.freed = 0
        self.warned: set[float] = set()


class ContextWindowManager:
    """Decides what a model sees of a session that has outgrown its context window.

        manager = ContextWindowManager("claude-sonnet-4-5")
        view = manager.process_session(session)  # before every call of the model
        print(manager.format_token_usage())

    The session itself is never changed. What is kept of a session is bounded by its length, and is dropped with it. One
    manager may serve many sessions and threads.
    """

    def __init__(
        self,
        model_config: str | ModelConfig | object | None = None,
        token_counter: TokenCounter | Callable[[str], int] | None = None,
        *,
        context_window: ContextWindow | None = None,
        tools: Iterable[Tool] = (),
        on_event: Listener | None = None,
    ) -> None:
        """
        Args:
            model_config: A model's name, a `ModelConfig`, or any object with `max_tokens`.
            token_counter: A function of a text, or a `TokenCounter`; the offline vocabulary where not given.
            context_window: The limits and the policy.
            tools: The tools that requests will carry, for what their definitions cost.
            on_event: Who is told of trims, warnings and overflows.

        Raises:
            UnknownModelError: The model's window is not known and no `max_tokens` is given.
            BudgetError: A limit makes no sense.
        """
        self.context_window = context_window if context_window is not None else ContextWindow()
        self._budget: Budget = resolve_budget(model_config, token_counter, self.context_window)
        self._overhead = request_overhead(self._budget.counter, tools, self._budget.frame)
        self._measurer = Measurer(self._budget.counter)
        self._on_event = on_event
        self._states: WeakKeyDictionary[Session, _State] = WeakKeyDictionary()
        self._lock = Lock()
        self._used = dict.fromkeys(PRIORITY, 0)
        self._used_overhead = 0
        self._last: Session | None = None

    # Budgets and what is used of them

    @property
    def total_budget(self) -> int:
        """Tokens that a request may cost, tool definitions included."""
        return self._budget.tokens

    @property
    def available_tokens(self) -> int:
        """Tokens left; negative when over the budget."""
        return self.total_budget - self._total_used()

    def get_budget(self, category: MessageCategory | str) -> TokenBudget:
        """What a category may hold and holds.

        Raises:
            BudgetError: There is no such category.
        """
        known = _category(category)
        share = self.context_window.shares.exact[PRIORITY.index(known)]
        return TokenBudget(known, float(share), portion(share, self.total_budget), self._used[known])

    def update_usage(self, category: MessageCategory | str, tokens: int) -> None:
        """Adds tokens that no session holds to a category.

        Raises:
            BudgetError: There is no such category, or the number is negative or no whole number.
        """
        amount = check_amount("tokens", tokens, least=0)
        with self._lock:
            self._used[_category(category)] += amount

    def reset_usage(self, category: MessageCategory | str | None = None) -> None:
        """Sets one category, or everything, to zero.

        Raises:
            BudgetError: There is no such category.
        """
        with self._lock:
            if category is not None:
                self._used[_category(category)] = 0
                return
            self._used = dict.fromkeys(PRIORITY, 0)
            self._used_overhead = 0
            self._last = None

    def is_over_budget(self, category: MessageCategory | str | None = None) -> bool:
        """Whether a category holds more than its share, or everything together more than the budget.

        Raises:
            BudgetError: There is no such category.
        """
        if category is None:
            return self._total_used() > self.total_budget
        return self.get_budget(category).available < 0

    # Sessions

    def analyze_session(self, session: Session) -> SessionStats:
        """What the whole session would cost, untrimmed."""
        census = self._census(session)
        fold = census.fold
        self._note(session, fold.tally.tokens, fold.overhead)
        return SessionStats(
            total_tokens=fold.total,
            per_category={category.value: tokens for category, tokens in zip(PRIORITY, fold.tally.tokens, strict=True)},
            items={category.value: items for category, items in zip(PRIORITY, fold.tally.items, strict=True)},
            message_count=census.message_count,
            item_count=sum(fold.tally.items),
            image_count=fold.tally.images,
            overhead_tokens=fold.overhead,
            budget=self.total_budget,
            available_tokens=self.total_budget - fold.total,
            over_budget=fold.total > self.total_budget,
            counter=self._budget.counter.name,
            expected_error=self._budget.expected_error,
        )

    def process_session(self, session: Session) -> Session:
        """The view to send: the session itself where it fits, else what is left after trims. Treat it as read-only.

        The same log gives the same view, whenever and wherever this is called. A call costs what the session has gained
        since the last one.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
        """
        state = self._state(session)
        with state.lock:
            following = self._follow(session)
            view = following.view(session)
            self._conclude(session, view, following, state)
        return view

    def trim_session(self, session: Session, preserve_recency: bool = True) -> Session:
        """The view that one trim makes of the whole session: no history, and exactly to the budget.

        Args:
            session: The session; it is not changed.
            preserve_recency: True takes the oldest first, False the newest.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
        """
        following = Following(session, self._limits(one_shot=True, newest_first=not preserve_recency), self._measurer, one_shot=True)
        following.catch_up(session)
        view = following.view(session)
        self._conclude(session, view, following, _State())
        return view

    def plan_session(self, session: Session, *, one_shot: bool = False) -> Plan:
        """What `process_session` would do, item by item, and why.

        Args:
            session: The session; it is not changed.
            one_shot: Plan what `trim_session` would do instead.
        """
        if one_shot:
            following = Following(session, self._limits(one_shot=True), self._measurer, one_shot=True)
            following.catch_up(session)
            return following.plan()
        with self._state(session).lock:
            return self._follow(session).plan()

    def recall(self, session: Session, id: str) -> Item | Image:
        """What was taken out, exactly as it was: the item with this id, or for an image's id the image.

        Args:
            session: The log, or a view of it.
            id: The id that a placeholder names, or any item's.

        Raises:
            RecallError: Nothing has this id, or the session is a saved view without its log.
        """
        return recall(session, id)

    def recall_tool(self, provider: Provider) -> RecallTool:
        """A tool with which the model itself asks for what was taken out: its definition, and what answers its calls.

        Args:
            provider: `anthropic`, `openai`, `openai-responses` or `google`.

        Raises:
            BudgetError: The provider is not known.
        """
        return recall_tool(provider)

    # What is shown

    def get_token_usage(self, session: Session | None = None) -> dict[str, int]:
        """Tokens by category, with total, budget, available and overhead. The categories and the overhead sum to the total.

        Args:
            session: Whose, untrimmed; where not given, of the last view or analysis.
        """
        if session is not None:
            self.analyze_session(session)
        total = self._total_used()
        return {
            "total": total,
            "budget": self.total_budget,
            "available": self.total_budget - total,
            "overhead": self._used_overhead,
            **{category.value: tokens for category, tokens in self._used.items()},
        }

    def usage(self, session: Session | None = None, *, title: str = "") -> UsageReport:
        """Where the tokens go, to print or to show with rich.

        Args:
            session: Whose, untrimmed; where not given, of the last view or analysis.
            title: What to call it.
        """
        if session is not None:
            self.analyze_session(session)
        of = self._last if self._last is not None else Session()
        return report_on(
            of,
            self._census(of),
            self._measurer,
            used=dict(self._used),
            overhead=self._used_overhead,
            budget=self._budget,
            shares=self.context_window.shares,
            title=title,
        )

    def format_token_usage(self, session: Session | None = None) -> str:
        """The usage as plain text."""
        return str(self.usage(session))

    def format_token_usage_rich(self, session: Session | None = None) -> str:
        """The usage as text with ANSI colours, at most as wide as the terminal. Prints nothing."""
        from .display import usage_ansi

        return usage_ansi(self.usage(session))

    # Inside

    def _state(self, session: Session) -> _State:
        with self._lock:
            state = self._states.get(session)
            if state is None:
                state = self._states[session] = _State()
            return state

    def _follow(self, session: Session) -> Following:
        """The session's fold, brought up to date. The caller holds the state's lock."""
        state = self._state(session)
        if state.view is None or not state.view.follows(session):
            state.view = Following(session, self._limits(), self._measurer)
        state.view.catch_up(session)
        return state.view

    def _census(self, session: Session) -> Following:
        """The session folded without limits: what it costs as it is."""
        state = self._state(session)
        with state.lock:
            if state.census is None or not state.census.follows(session):
                state.census = Following(session, self._limits().boundless(), self._measurer)
            state.census.catch_up(session)
            return state.census

    def _limits(self, *, one_shot: bool = False, newest_first: bool = False) -> Limits:
        window, budget = self.context_window, self.total_budget
        ratios = window.ratios
        items = window.max_context_items
        return Limits(
            budget=budget,
            trigger=budget if one_shot else portion(ratios[0], budget),
            target=budget if one_shot else portion(ratios[1], budget),
            shares=window.shares.exact,
            images_kept=window.images_kept,
            images_max=window.images_kept if window.images_max is None else window.images_max,
            items_max=items,
            items_target=0 if items is None else items if one_shot else max(1, portion(ratios[1], items)),
            overhead=self._overhead.fixed,
            preamble=self._overhead.preamble,
            synthetic=self._overhead.synthetic,
            binds_thinking=self._budget.binds_thinking,
            newest_first=newest_first,
        )

    def _conclude(self, session: Session, view: Session, following: Following, state: _State) -> None:
        """Notes what a view costs, tells of it, and refuses it where it must fit and does not."""
        fold = following.fold
        self._note(view, fold.tally.tokens, fold.overhead)
        total, budget = fold.total, self.total_budget
        if following.freed > state.freed:
            self._tell(Trimmed(session.id, total, budget, fold.tally.altered, following.freed))
        state.freed = following.freed
        for threshold in self.context_window.warn_at:
            if total <= threshold * budget:
                state.warned.discard(threshold)
            elif threshold not in state.warned:
                state.warned.add(threshold)
                self._tell(ThresholdCrossed(session.id, total, budget, threshold))
        if total > budget:
            self._tell(OverBudget(session.id, total, budget))
            if self.context_window.strict:
                raise ContextOverflowError(total, budget, following.culprits())

    def _note(self, of: Session, tokens: list[int], overhead: int) -> None:
        with self._lock:
            self._used = dict(zip(PRIORITY, tokens, strict=True))
            self._used_overhead = overhead
            self._last = of

    def _total_used(self) -> int:
        return self._used_overhead + sum(self._used.values())

    def _tell(self, event: Event) -> None:
        logger.log(logging.WARNING if isinstance(event, OverBudget) else logging.DEBUG, "%s", event)
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:  # a listener's fault must not cost the user a turn
            logger.exception("a listener failed on %s", type(event).__name__)


def _category(category: object) -> MessageCategory:
    if isinstance(category, MessageCategory):
        return category
    try:
        return MessageCategory(category)
    except ValueError:
        names = ", ".join(one.value for one in MessageCategory)
        raise BudgetError("category", category, f"there is no such category; pass one of {names}") from None
