"""`ContextWindowManager`: the one class that most users meet. It resolves settings and keeps state; it decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from weakref import WeakKeyDictionary

from session.items import Item
from session.parts import Document, Image
from session.session import Session

from .asking import Asking, Step
from .budget import ModelConfig
from .calibration import Calibration, Counted
from .calling import Calling
from .compaction import Compacting
from .compaction.memory import Memory
from .config import ContextWindow
from .counting.counter import TokenCounter
from .counting.provider import AnthropicClient
from .counting.told import Options, checked_options
from .errors import BudgetError, ContextOverflowError
from .events import CalibrationReset, Listener, Trimmed, check_listener
from .folding import Folding
from .following import Following
from .kept import Kept, Sent
from .kinds import kinds_of
from .ledger import Ledger, Noted, Shown
from .recall import Provider, RecallTool, recall, recall_tool
from .recording import Recording
from .reporting import report_on, stats_on
from .requesting import Lowered
from .settings import Settings
from .spending import Spending
from .switching import lost_between
from .tools import Tool, tool_texts
from .trimming.plan import Plan
from .trimming.refused import RefusedParts
from .usage import SessionStats, UsageReport


class ContextWindowManager(Asking, Folding, Spending, Recording, Calling, Compacting):
    """Decides what a model sees of a session that has outgrown its context window.

        manager = ContextWindowManager("claude-sonnet-5-5")
        view = manager.process_session(session)  # before every call of the model
        print(manager.format_token_usage())

    The session itself is never changed. What is kept of a session is bounded by its length, and is dropped with it; only the
    items of the last view are kept until there is another, or `reset_usage`. One manager may serve many sessions and threads,
    while the sessions grow.
    """

    def __init__(
        self,
        model_config: str | ModelConfig | object | None = None,
        token_counter: TokenCounter | Callable[[str], int] | None = None,
        api_client: AnthropicClient | None = None,
        *,
        context_window: ContextWindow | None = None,
        tools: Iterable[Tool] = (),
        options: Options | None = None,
        on_event: Listener | None = None,
    ) -> None:
        """
        Args:
            model_config: A model's name, a `ModelConfig`, or any object with `max_tokens`.
            token_counter: A function of a text, or a `TokenCounter`; the best there is for the model where not given (`choice`).
            api_client: An `anthropic.Anthropic` or `anthropic.AsyncAnthropic`, for a Claude model: it is asked what whole requests
                cost (its `count_tokens`; each content once, no retries, a short timeout): by `analyze_session` always, of a view
                from three fourths of the budget on. Its figure is shown (`provider_tokens`) and told (`ProviderOverBudget`,
                `CounterFellBack` where it cannot be had), and decides nothing: the same log gives the same view without it.
                An asynchronous client is asked by the async calls only (`aanalyze_session`, …).
            context_window: The limits and the policy.
            tools: The tools that requests will carry, for what their definitions cost.
            options: What else requests will ask of Anthropic's API (`tool_choice`, `thinking`, `output_config`), for what Claude is told.
            on_event: Who is told of trims, warnings and overflows: a plain function, called in the thread of the call it is
                told of. It may ask the manager; what it raises is logged, without its message.

        Raises:
            UnknownModelError: The model's window is not known and no `max_tokens` is given.
            BudgetError: A limit makes no sense.
        """
        self.context_window = context_window if context_window is not None else ContextWindow()
        self._configure(model_config, token_counter, api_client, tool_texts(tools), checked_options(options))
        check_listener(on_event)
        self._on_event = on_event
        self._states: WeakKeyDictionary[Session, Kept] = WeakKeyDictionary()
        self._summing: WeakKeyDictionary[Session, Memory] = WeakKeyDictionary()
        self._given_out: Shown | None = None
        self._lowered: WeakKeyDictionary[Session, Lowered] = WeakKeyDictionary()
        self._refused: WeakKeyDictionary[Session, RefusedParts] = WeakKeyDictionary()
        self._lock = Lock()
        self._ledger = Ledger()
        self.calibration = Calibration()

    # Sessions

    def analyze_session(self, session: Session) -> SessionStats:
        """What the whole session would cost, untrimmed."""
        return self._finished(self._analysis(session))

    def process_session(self, session: Session) -> Session:
        """The view to send: the session itself where it fits, else what is left after trims. Treat it as read-only.

        The same log gives the same view, whenever and wherever this is called. A call costs what the session has gained
        since the last one.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
        """
        return self._finished(self._processing(session))

    def trim_session(self, session: Session, preserve_recency: bool = True) -> Session:
        """The view that one trim makes of the whole session: no history, and exactly to the budget.

        Args:
            session: The session; it is not changed.
            preserve_recency: True takes the oldest first, False the newest.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            CountingError: The token counter gave something that is no count.
        """
        return self._finished(self._trimming(session, preserve_recency))

    def plan_session(self, session: Session, *, one_shot: bool = False) -> Plan:
        """What `process_session` would do, item by item, and why.

        Args:
            session: The session; it is not changed.
            one_shot: Plan what `trim_session` would do instead.

        Raises:
            CountingError: The token counter gave something that is no count.
        """
        state = self._state(session)
        if one_shot:
            return self._one_shot(session, self._settings).plan()
        with state.lock:
            return self._follow(session, state).plan()

    def recall(self, session: Session, id: str) -> Item | Image | Document:
        """What was taken out, exactly as it was: the item with this id, or for an image's or document's id that part.

        Args:
            session: The log, or a view of it.
            id: The id that a placeholder names, or any item's.

        Raises:
            RecallError: Nothing has this id, or two things have; or the session is a view whose log is not at hand.
            BudgetError: The session is none, or the id is no text.
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
        settings, noted = self._figures() if session is None else self._analyze(session)[1:]
        return {
            "total": noted.total,
            "budget": settings.budget.tokens,
            "available": settings.budget.tokens - noted.total,
            "overhead": noted.rows.overhead,
            **{category.value: tokens for category, tokens in noted.rows.by_category.items()},
        }

    def usage(self, session: Session | None = None, *, title: str = "") -> UsageReport:
        """Where the tokens go, to print or to show with rich.

        Args:
            session: Whose, untrimmed; where not given, of the last view or analysis.
            title: What to call it.
        """
        settings, noted = self._figures() if session is None else self._analyze(session)[1:]
        shown = noted.shown
        live = shown.session() if shown is not None else None
        if shown is not None and live is not None:
            state = self._state(live)
            with state.lock:
                census = self._census(live, state, settings)
                if census.lineage is shown.lineage and len(census.fold) == len(shown.items):  # else it is not what it was
                    return self._report(live.id, census, settings, noted, title)
        frozen = shown.frozen() if shown is not None else Session()
        return self._report(frozen.id, self._caught_up(None, frozen, settings.limits.boundless(), settings), settings, noted, title)

    def format_token_usage(self, session: Session | None = None) -> str:
        """The usage as plain text."""
        return str(self.usage(session))

    def format_token_usage_rich(self, session: Session | None = None) -> str:
        """The usage as text with ANSI colours, at most as wide as the terminal. Prints nothing."""
        from .display import usage_ansi

        return usage_ansi(self.usage(session))

    # Inside

    def _analyze(self, session: Session) -> tuple[SessionStats, Settings, Noted]:
        state = self._state(session)
        with state.lock:
            settings = self._settings
            census = self._census(session, state, settings)
            return stats_on(census, settings.budget), settings, self._note(census, Shown(session, census.items, census.lineage), settings)

    def _analysis(self, session: Session) -> Step[SessionStats]:
        stats, settings, noted = self._analyze(session)
        is_refused = bool(self._refused_of(session).since)  # the provider would refuse the whole log again, at every call
        question = None if settings.provider is None or is_refused else settings.provider.question(session)
        return Step(session.id, noted, lambda tokens: SessionStats(**{**stats, "provider_tokens": tokens}), [], settings, question=question)

    def _processing(self, session: Session) -> Step[Session]:
        state = self._state(session)
        with state.lock:
            settings = self._settings
            following = self._follow(session, state, settings)
            view, lost, reset = following.view(session), following.has_lost(), following.was_reset()
            if state.before is not None:
                reset = state.before.fold.anchor is not None and following.fold.anchor is None
                lost, state.before = lost_between(state.before, following, session), None
            step = self._conclude(view, following, state, settings, lost=lost)
            if reset:
                total, budget = following.fold.total, settings.budget.tokens
                step.events.append(CalibrationReset(view.id, total, budget, "other tools, instructions, agent or model"))
            return step

    def _trimming(self, session: Session, preserve_recency: bool) -> Step[Session]:
        if not isinstance(preserve_recency, bool):
            raise BudgetError("preserve_recency", preserve_recency, "pass True to take the oldest first, or False for the newest")
        state, settings = self._state(session), self._settings
        following = self._one_shot(session, settings, newest_first=not preserve_recency)
        view = following.view(session)
        with state.lock:
            state.go_by(settings)
            return self._conclude(view, following, state, settings, lost=None, one_shot=True)

    def _report(self, session_id: str, census: Following, settings: Settings, noted: Noted, title: str) -> UsageReport:
        shares = self.context_window.shares
        return report_on(session_id, census, settings.measurer, noted, budget=settings.budget, shares=shares, title=title)

    def _conclude(
        self, view: Session, following: Following, state: Kept, settings: Settings, *, lost: bool | None, one_shot: bool = False
    ) -> Step[Session]:
        """Notes what a view costs. Gives it with what is to be told and asked of it, and the error where it must fit and does not."""
        fold, total, budget = following.fold, following.fold.total, settings.budget.tokens
        # The view may be the session itself, which may have grown since.
        shown = Shown(view, following.items, following.lineage) if following.shows_all else Shown(view, view.items, view.lineage)
        noted = self._note(following, shown, settings)
        self._given_out = shown
        state.note_sent(len(fold), Sent(Counted(fold.counted, settings.budget.counter.name), settings.budget.model, one_shot))
        now = Trimmed(view.id, total, budget, fold.tally.altered, following.freed)
        news = state.watch.news(
            now, settings.marks, lost=lost, one_shot=one_shot, kinds=lambda: kinds_of(following.reduced), overhead=noted.rows.overhead
        )
        unusable = state.media.of_one_shot if one_shot else state.media.news
        strict = total > budget and self.context_window.strict
        overflow = ContextOverflowError(total, budget, following.culprits(), fold.overhead + fold.correction) if strict else None
        return Step(
            view.id,
            noted,
            lambda _: view,
            [*news, *unusable(following, view.id, budget)],
            settings,
            overflow,
            self._question(view, total, settings),
        )

    def _note(self, following: Following, shown: Shown, settings: Settings) -> Noted:
        fold = following.fold
        noted = Noted(tuple(fold.tally.tokens), fold.overhead, fold.correction, shown, fold.reported, fold.settled)
        self._record(noted, settings)
        return noted
