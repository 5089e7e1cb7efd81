"""`ContextWindowManager`, the class that users meet. It only passes each call on to the object that does the work.

Those objects are imported with the first manager, and not with the class: a program starts at once, and pays for what it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from session.items import Compaction
from session.session import Session

if TYPE_CHECKING:
    from session.items import Item, MessageCategory
    from session.parts import Document, Image
    from session.transcripts.reported_requests import Request
    from session.usage import Usage

    from .compaction import AnySummarizer
    from .counting.anthropic_options import RequestOptions
    from .counting.count_clients import ApiClient
    from .counting.counter import AnyCounter
    from .decision.plan import Plan
    from .events.definitions import Listener
    from .model_errors import PartRefusedError, PromptTooLongError
    from .recall import Provider, RecallTool
    from .settings.active_settings import LimitsByModel
    from .settings.budget import ModelConfig
    from .settings.context_window import ContextWindow
    from .settings.shares import TokenBudget
    from .timeline.contents import WindowContents
    from .timeline.matches import LogReports
    from .timeline.points import Timeline
    from .timeline.why import Why
    from .tools import Tool
    from .usage.report import SessionStats, UsageReport
    from .usage.tool_calls import ToolCalls
    from .usage.view_figures import ViewFigures


class ContextWindowManager:
    """Decides what a model sees of a session that has outgrown its context window.

        manager = ContextWindowManager("claude-sonnet-5-5")
        view = manager.process_session(session)  # before every call of the model
        print(manager.format_token_usage())

    Sessions are never changed; only `manage` and `compact` append a summary. The manager keeps a bounded amount of state per session
    and drops it with the session; the items of the last view are kept until the next view or `reset_usage`. One manager may serve many
    sessions and threads while the sessions grow. A copy has the settings and has seen no session; so has a pickled manager, whose
    `api_client` stays behind.

    Attributes:
        context_window: The limits and the policy.
        calibration: The usage reports recorded with `record_usage`; `to_dict` and `restore` save and load them.
    """

    def __init__(
        self,
        model_config: str | ModelConfig | Mapping[str, Any] | object | None = None,
        token_counter: AnyCounter | None = None,
        api_client: ApiClient | None = None,
        *,
        context_window: ContextWindow | None = None,
        tools: Iterable[Tool] = (),
        options: RequestOptions | None = None,
        on_event: Listener | None = None,
        **limits: Any,
    ) -> None:
        """
        Args:
            model_config: A model's name, a `ModelConfig`, a mapping such as `{"model": "gpt-5", "max_tokens": 40_000}`, or any object
                with `max_tokens`, `max_input_tokens` or `context_window`.
            token_counter: A function from a text to tokens, or from a message such as `{"role": …, "content": …}`; a tokenizer or another
                object with a method such as `encode`, `count_tokens` or `estimate`; or a `TokenCounter`. By default the best one available
                for the model.
            api_client: A client of the model's provider: `anthropic.Anthropic`, `openai.OpenAI`, `google.genai.Client`, or an asynchronous
                one (`google.genai.Client().aio`). Its token-count endpoint counts whole requests: every session that is analysed, and
                every view from three quarters of the budget on. Each content is counted once, without retries and with a short timeout.
                The count is shown (`provider_tokens`) and emitted (`ProviderOverBudget`, or `CounterFellBack` if it fails) but decides
                nothing: without it the views are the same. An asynchronous client is used by the async calls only
                (`aanalyze_session`, …).
            context_window: The limits and the policy; or pass its fields, as in `ContextWindowManager("gpt-5", max_tokens=4_000)`.
            tools: The tools that requests will carry. Room is reserved for their definitions.
            options: Other options of requests that cost tokens, as the provider's API takes them: Anthropic's `tool_choice`, `thinking`
                and `output_config`; the answer's schema in OpenAI's `response_format` or `text`.
            on_event: A plain function, called with every trim, warning and overflow in the thread of the call that caused it. It may
                use the manager. An exception that it raises is logged without its message.
            limits: Fields of a `ContextWindow`, in place of `context_window`.

        Raises:
            UnknownModelError: The model's window is not known and no `max_tokens` is given.
            BudgetError: A limit makes no sense.
            ArgumentError: Another argument makes no sense.
        """
        from .calibration.reports import Calibration
        from .compaction import Compactor
        from .counting.anthropic_options import checked_options
        from .events.definitions import check_listener
        from .requests.anthropic_request import AnthropicRequests
        from .requests.part_refusals import PartRefusals
        from .requests.provider_check import ProviderCheck
        from .requests.session_calls import SessionCalls
        from .sessions import Sessions
        from .settings.active_settings import ActiveSettings, SettingsSource
        from .settings.context_window import window_of
        from .tools import tool_texts
        from .usage.analysis import recounted
        from .usage.usage_reports import UsageReports

        self.context_window = window = window_of(context_window, limits)
        self.calibration = Calibration()
        source = SettingsSource(token_counter, api_client, window, tool_texts(tools), checked_options(options))
        self._settings = ActiveSettings(model_config, source, recounted)
        check_listener(on_event)
        self._sessions = Sessions(self.calibration)
        self._reports = UsageReports(self.calibration, self._settings, self._sessions)
        self._calls = SessionCalls(window, self._settings, self._sessions, self._reports)
        self._on_event = on_event
        self._check = ProviderCheck(self._settings.usage, on_event)
        self._refusals = PartRefusals(self._settings, self._sessions, on_event)
        self._requests = AnthropicRequests(self._settings, self._sessions, self._refusals)
        self._compactor = Compactor(window, self._settings, self._sessions, on_event)

    def __repr__(self) -> str:
        return f"<ContextWindowManager: {self._settings!r}>"

    def __copy__(self) -> ContextWindowManager:
        """Return a manager with the same settings that has seen no session and no usage report."""
        manager = type(self)(**self._settings.arguments, on_event=self._on_event)
        manager.__setstate__(self._settings.limits_by_model)
        return manager

    def __deepcopy__(self, memo: object) -> ContextWindowManager:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what `__copy__` copies, without the client: its connections belong to this process."""
        arguments = {**self._settings.arguments, "api_client": None, "on_event": self._on_event}
        return partial(type(self), **arguments), (), self._settings.limits_by_model

    def __setstate__(self, limits_by_model: LimitsByModel) -> None:
        self._settings.limits_by_model = limits_by_model

    # Views

    def process_session(self, session: Session) -> Session:
        """Return the view to send: all items if they fit, else a trimmed copy. It is read-only.

        The same log gives the same view, no matter when or where this is called. The cost depends on the items appended since the
        last call.

        Raises:
            ContextOverflowError: The protected items do not fit, and the window is `strict`.
            CountingError: The token counter returned something that is not a count.
        """
        return self._check.finish(self._calls.view(session))

    async def aprocess_session(self, session: Session) -> Session:
        """Like `process_session`, but counts in a thread so that the event loop keeps running."""
        return await self._check.afinish(lambda: self._calls.view(session))

    def trim_session(self, session: Session, preserve_recency: bool = True) -> Session:
        """Return the view after a single trim of the whole session, exactly to the budget and regardless of earlier views.

        Args:
            session: The session; it is not changed.
            preserve_recency: True to take the oldest items first, False to take the newest first.

        Raises:
            ContextOverflowError: The protected items do not fit, and the window is `strict`.
            CountingError: The token counter returned something that is not a count.
            ArgumentError: `preserve_recency` is not a boolean.
        """
        return self._check.finish(self._calls.one_shot_view(session, preserve_recency))

    async def atrim_session(self, session: Session, preserve_recency: bool = True) -> Session:
        """Like `trim_session`, but counts in a thread so that the event loop keeps running."""
        return await self._check.afinish(lambda: self._calls.one_shot_view(session, preserve_recency))

    def plan_session(self, session: Session, *, one_shot: bool = False) -> Plan:
        """Return what `process_session` would do with each item, and why.

        Args:
            session: The session; it is not changed.
            one_shot: True to plan `trim_session` instead.

        Raises:
            CountingError: The token counter returned something that is not a count.
        """
        return self._calls.plan(session, one_shot=one_shot)

    def latest_view(self, session: Session) -> ViewFigures | None:
        """Return the figures of the view that `process_session` returned last for this session. Nothing is counted for it.

        Args:
            session: The session.

        Returns:
            The figures; None if there was no view yet, or none since the model or the window was changed.

        Raises:
            ArgumentError: `session` is not a session.
        """
        return self._calls.latest_view(session)

    def recall(self, session: Session, id: str) -> Item | Image | Document:
        """Return the original of something taken out of a view: an item by its id, or an image or document by its part's id.

        Args:
            session: The log, or a view of it.
            id: The id named by a placeholder, or any item's id.

        Raises:
            RecallError: Nothing has this id, or two things have it; or the session is a view whose log is not available.
            ArgumentError: The session is not a session, or the id is not a string.
        """
        from .recall import recall

        return recall(session, id)

    def recall_tool(self, provider: Provider) -> RecallTool:
        """Return a tool with which the model itself can recall hidden content: its definition, and a handler for its calls.

        Args:
            provider: `anthropic`, `openai`, `openai-responses` or `google`.

        Raises:
            ArgumentError: The provider is not known.
        """
        from .recall import page_of, recall_tool

        return recall_tool(provider, page_of(self._settings.current.budget.tokens))

    # Compaction

    async def manage(self, session: Session, llm: AnySummarizer | None = None) -> Session:
        """Return the view to send, like `aprocess_session`; if the log has outgrown its limits, summarise older turns first.

            view = await manager.manage(session)  # before every call of the model, including those after tool calls

        The log is too large if it costs more than `trigger_ratio` × `max_tokens` (or × the model's limit), or has more than
        `max_context_items` items; earlier summaries count instead of the items they replace. `summary_llm`, or else `llm`, then
        summarises all but the newest `keep_recent_turns`. If fewer than two turns are older than those, or they have less than an eighth
        of the trigger's tokens, it summarises all but the newest units of a message or of tool calls, up to a quarter of the room. The
        summary is appended to the log as a `Compaction`. The items it replaces stay in the log and can be recalled; an earlier summary is
        merged into it. Then the view is trimmed as always. Without a limit or a known model nothing is summarised.

        Never summarised: SYSTEM, instructions, pinned items, the last user message, the last response with its outputs, and anything
        while a response or its calls are unfinished (a response that ends in text counts as finished). A strategy that chooses items to
        summarise, such as `Summarize`, replaces the rules about turns and units; one that never takes anything rules out summaries too.

        A summary may have at most half the tokens of the items it replaces and a third of the trigger. If a summary fails, the log stays
        unchanged, `CompactionFailed` is emitted, and the view is trimmed without it; after repeated failures the next attempts are 1, 2,
        4 … 64 requests apart. An answer may take `llm.timeout` seconds (default 60). A prompt may have `llm.window` tokens (default
        100,000): a longer log is summarised in several prompts, each with the summary so far.

        If several calls for one session overlap, one of them requests the summary and the others go on without. The summariser runs in
        the event loop, so one that never awaits blocks it.

        Args:
            session: The log. At most one `Compaction` is appended to it; a read-only session is left alone.
            llm: The summariser if the window has none: an async function from a prompt to a text, or a `Model`, such as the model in use.

        Raises:
            ContextOverflowError: The protected items do not fit, and the window is `strict`.
            CountingError: The token counter returned something that is not a count.
            StrategyError: The strategy raised, or made a choice that is not allowed.
            ArgumentError: `session` is not a session.
            FormatError: `llm` cannot be called.
        """
        await self._compactor.compact_if_due(session, llm)
        return await self.aprocess_session(session)

    async def compact_if_due(self, session: Session, llm: AnySummarizer | None = None) -> bool:
        """Do the first half of `manage`: summarise if the log has outgrown its limits, and make no view.

            await manager.compact_if_due(session, model)
            request = manager.anthropic_request(session, …)

        Args:
            session: The log. At most one `Compaction` is appended to it.
            llm: As in `manage`.

        Returns:
            True if a summary was appended.

        Raises:
            CountingError: The token counter returned something that is not a count.
            StrategyError: The strategy raised, or made a choice that is not allowed.
            ArgumentError: `session` is not a session.
            FormatError: `llm` cannot be called.
        """
        length = len(session.items) if isinstance(session, Session) else 0
        await self._compactor.compact_if_due(session, llm)
        return len(session.items) > length and isinstance(session.items[-1], Compaction)

    async def compact(self, session: Session, llm: AnySummarizer | None = None, *, focus: str | None = None) -> Compaction | None:
        """Summarise all but the newest turns, or units, now, however much room is left; return None if there is nothing to summarise.

        The same rules apply as in `manage`, except for the limits. If the log ends in a response, it counts as finished.

        Args:
            session: The log; the summary is appended to it.
            llm: As in `manage`.
            focus: What the summary must keep in detail, such as "the API decisions".

        Raises:
            CompactionError: There is no summariser, or its summary is unusable. The log is unchanged.
            CountingError: The token counter returned something that is not a count.
            StrategyError: The strategy raised, or made a choice that is not allowed.
            ArgumentError: `session` is not a session.
            FormatError: `llm` cannot be called.
        """
        return await self._compactor.compact(session, llm, focus)

    def summary_usage(self, session: Session) -> Usage:
        """Return the usage that was reported for the session's summaries since this manager was made, unusable ones included.

        Answers that were cut off, refused or late are not. `AnthropicSummarizer` and a loop's model report it. A function does by
        returning a `session.summarizers.SummaryText`.
        """
        return self._compactor.usage(session)

    # Requests

    def request(
        self, session: Session, provider: Provider, *, model: str, max_tokens: int | None = None, tools: Iterable[Tool] = (), **extra: Any
    ) -> dict[str, Any]:
        """Return a request for a provider: the session's view, its system prompt, and the tools, in that provider's form.

            anthropic.messages.create(**manager.request(session, "anthropic", model="claude-sonnet-5-5"))
            openai.chat.completions.create(**manager.request(session, "openai", model="gpt-5.2"))
            openai.responses.create(**manager.request(session, "openai-responses", model="gpt-5.2", tools=[read_file]))
            google.models.generate_content(**manager.request(session, "google", model="gemini-3-pro", temperature=0.2))

        Append the answer with `session.add_response`. Requests of Responses store nothing at OpenAI: reasoning comes back encrypted.

        Args:
            session: The log; it is not changed.
            provider: `anthropic` (as `anthropic_request`), `openai` (Chat Completions), `openai-responses` or `google`.
            model: The model's name, as the API takes it.
            max_tokens: Tokens that the answer may have. None for the provider's limit; at Anthropic, which needs a figure, for 8,192 or the
                model's limit.
            tools: Functions, or definitions in any provider's form.
            extra: Other arguments of the API, sent unchanged. For Google, fields of its `config`.

        Raises:
            ArgumentError: An argument makes no sense, or the session has no messages yet.
            ContextOverflowError: The protected items do not fit, and the window is `strict`.
            CountingError: The token counter returned something that is not a count.
        """
        from .requests.provider_request import RequestForm
        from .settings.budget import warn_of_other_model

        form = RequestForm.checked(provider, model, max_tokens, tools, extra)
        if form.provider == "anthropic":
            return self.anthropic_request(session, model=model, max_tokens=form.answer_tokens, tools=form.tools, **extra)
        self.count_tools(form.tools, form.extra)
        warn_of_other_model(self._settings.current.budget, model)
        return form.of(self.process_session(session))

    async def arequest(
        self, session: Session, provider: Provider, *, model: str, max_tokens: int | None = None, tools: Iterable[Tool] = (), **extra: Any
    ) -> dict[str, Any]:
        """Like `request`, but counts in a thread so that the event loop keeps running."""
        import asyncio

        from .requests.provider_request import RequestForm
        from .settings.budget import warn_of_other_model

        form = await asyncio.to_thread(RequestForm.checked, provider, model, max_tokens, tools, extra)
        if form.provider == "anthropic":
            return await self.aanthropic_request(session, model=model, max_tokens=form.answer_tokens, tools=form.tools, **extra)
        await asyncio.to_thread(self.count_tools, form.tools, form.extra)
        warn_of_other_model(self._settings.current.budget, model)
        return await asyncio.to_thread(form.of, await self.aprocess_session(session))

    def anthropic_request(
        self, session: Session, *, model: str, max_tokens: int, tools: Iterable[Tool] = (), **extra: Any
    ) -> dict[str, Any]:
        """Return the arguments of `client.messages.create`: the session's view, its system prompt, the tools, and cache marks.

            request = manager.anthropic_request(session, model="claude-sonnet-5-5", max_tokens=8_000, tools=[read_file])
            answer = client.messages.create(**request)

        `integrations.anthropic.create` does both, and sends another view if the API answers that the prompt is too long or that it cannot
        read an image or a document. From now on room is reserved for these tools, and for options that cost tokens (an answer's schema,
        tools that must be called, thinking): for the most expensive combination that any request had.

        Args:
            session: The log; it is not changed.
            model: The model's name, as the API takes it.
            max_tokens: Tokens that the answer may have. Lowered to the longest possible answer of the model and to the rest of its window.
            tools: Functions, or definitions in any provider's form.
            extra: Other arguments of the API, such as `thinking` or `tool_choice`, sent unchanged. With `cache_control`, all cache marks
                get its value.

        Raises:
            ArgumentError: An argument makes no sense, or the session has no messages yet.
            ContextOverflowError: The protected items do not fit, and the window is `strict`.
            CountingError: The token counter returned something that is not a count.
        """
        options = self._requests.options(model, max_tokens, tools, extra)
        return self._requests.payload(session, self.process_session(session), options)

    async def aanthropic_request(
        self, session: Session, *, model: str, max_tokens: int, tools: Iterable[Tool] = (), **extra: Any
    ) -> dict[str, Any]:
        """Like `anthropic_request`, but counts in a thread so that the event loop keeps running."""
        import asyncio

        options = await asyncio.to_thread(self._requests.options, model, max_tokens, tools, extra)
        view = await self.aprocess_session(session)
        return await asyncio.to_thread(self._requests.payload, session, view, options)

    def accept_refusal(self, session: Session, refusal: PromptTooLongError | PartRefusedError) -> bool:
        """Change the session's views so that the provider accepts the next one; return True if it differs from the refused one.

            except anthropic.APIError as error:
                refusal = model_error(error)
                if isinstance(refusal, PromptTooLongError | PartRefusedError) and manager.accept_refusal(session, refusal):
                    ...  # call the model once more with a new view

        After a prompt that was too long, views cost less from now on; `lower_budget` says how much less. Trims at earlier requests stay,
        since those were sent. The lower budget holds until the manager's model changes.

        After a refused image or document, views show a note in its place, with the id to recall it. If the refusal names a place or a
        file, only that part is replaced. Otherwise all parts of its kind since the last answer are, or all of that kind if there are
        none since; if the next attempt fails as well, call `withdraw_refusal`. Notes stay for as long as the manager lives.

        Other sessions, including forks of this one, are not affected, and `total_budget` stays the same.

        Args:
            session: The session whose view was refused, or that view; nothing may have been appended since.
            refusal: The refusal.

        Raises:
            ArgumentError: The session is not a session, or the refusal is neither of these errors.
        """
        return self._requests.accept_refusal(session, refusal)

    def accept_count(self, session: Session, tokens: int) -> None:
        """Let views of a session cost at most the budget by the provider's count, which was higher than the local one.

        Unlike a reported usage (`record_usage`), it changes no figure. It holds until the manager's model changes.

        Args:
            session: The session; nothing may have been appended since its view was sent.
            tokens: The provider's count of that view.
        """
        self._requests.accept_count(session, tokens)

    def withdraw_refusal(self, session: Session) -> None:
        """Show the images and documents again that were only guessed from a refusal, unless the model has answered since.

        Call this if the second attempt failed too, so that the guess did not help. A part that the provider named stays a note.

        Args:
            session: The session that was passed to `accept_refusal`.

        Raises:
            ArgumentError: This is not a session.
        """
        self._refusals.withdraw(session)

    def record_usage(self, usage: object, session: Session | None = None) -> None:
        """Record what the provider reported for the last request. From now on totals start from the report.

            answer = client.messages.create(**manager.anthropic_request(session, …))
            manager.record_usage(answer.usage, session)

        Not needed if the items of the answer carry their `usage`. It does not matter whether the answer has been appended yet.
        `manager.calibration.to_dict()` saves all recorded reports.

        Args:
            usage: A `Usage`, or the usage of Anthropic's, OpenAI's or Google's client: an object or its JSON values.
            session: The session of the request, or its view; by default the session of the last view.

        Raises:
            ArgumentError: The report has no input tokens, or there is no view yet.
        """
        self._reports.record(usage, session)

    def answer_notes(self, session: Session) -> dict[str, Any]:
        """Return notes for `extra` of an answer's first item, which carries its `usage`: the model, and the request's local count.

        With these notes the report stays useful if the log is later replayed under other limits. The local count is missing if no view of
        the session in its present form was returned.

        Args:
            session: The log, before the answer is appended to it.
        """
        return self._reports.answer_notes(session)

    # Settings

    def use_model(self, name: str | ModelConfig | Mapping[str, Any]) -> None:
        """Switch to another model: its window, counter, image rule and request overhead apply from the next call on.

        No session is changed; the figures of the last view are counted again. A `max_tokens` of the `ContextWindow` stays in force, and
        so does one that the manager was given without a model's name. One that was given for a named model applies whenever that model
        is in use. Switching to the model in use changes nothing. Calls that other threads have begun end under the old model.

        Args:
            name: The model's name; or a `ModelConfig` or mapping with its name and limit, remembered for that name.

        Raises:
            UnknownModelError: Nothing is known of the model, or not its window, and no limit was given for it. Nothing changes.
            ModelArgumentError: This is not a model's name. Nothing changes.
            BudgetError: The limits leave no room for the prompt. Nothing changes.
        """
        self._settings.use_model(name)

    def count_tools(self, tools: Iterable[Tool], options: RequestOptions | None = None) -> None:
        """Reserve room for these tools and options in every request from now on, if they cost more than those reserved so far.

        Args:
            tools: Functions, or definitions in any provider's form.
            options: Other options of the request. Those that cost no tokens are ignored.

        Raises:
            ToolsError: One of them is not a tool, or the answer's schema is no JSON.
        """
        from .counting.overhead import COUNTED_OPTIONS
        from .tools import anthropic_tools

        definitions, options = anthropic_tools(tools), options or {}
        if definitions or not COUNTED_OPTIONS.isdisjoint(options):
            self._settings.count_tools(definitions, options)

    def tool_calls(self, session: Session) -> ToolCalls:
        """Return the tool calls made since the last user message, and how many are left of `max_tool_calls_per_turn`.

            if not manager.tool_calls(session).left:
                ...  # answer the call with an error, and call the model without tools

        A user message of category CONTEXT does not begin a turn. The cost is proportional to the length of the turn.

        Args:
            session: The log. A view may have lost calls of a long turn.

        Raises:
            ArgumentError: This is not a session.
        """
        from .usage.tool_calls import tool_calls_of

        return tool_calls_of(session, self.context_window.max_tool_calls_per_turn)

    # Usage

    def analyze_session(self, session: Session) -> SessionStats:
        """Return the cost of the whole session, untrimmed."""
        return self._check.finish(self._calls.analysis(session))

    async def aanalyze_session(self, session: Session) -> SessionStats:
        """Like `analyze_session`, but counts in a thread so that the event loop keeps running."""
        return await self._check.afinish(lambda: self._calls.analysis(session))

    @property
    def total_budget(self) -> int:
        """Tokens that a request may cost, tool definitions included."""
        return self._settings.current.budget.tokens

    @property
    def available_tokens(self) -> int:
        """Tokens left of the budget by the latest figures; negative if over the budget."""
        settings, figures = self._settings.figures()
        return settings.budget.tokens - figures.total

    def get_budget(self, category: MessageCategory | str) -> TokenBudget:
        """Return a category's share of the budget, and its usage.

        Raises:
            ArgumentError: There is no such category.
        """
        from session.units import PRIORITY

        from .decision.limits import portion
        from .settings.shares import TokenBudget
        from .settings.usage_snapshot import checked_category

        checked = checked_category(category)
        share = self.context_window.shares.exact[PRIORITY.index(checked)]
        settings, figures = self._settings.figures()
        return TokenBudget(checked, float(share), portion(share, settings.budget.tokens), figures.used(checked))

    def update_usage(self, category: MessageCategory | str, tokens: int) -> None:
        """Add tokens that are in no session to a category, until the next session is analysed, trimmed or processed.

        Raises:
            ArgumentError: There is no such category, or the number is negative or not a whole number.
        """
        from .settings.usage_snapshot import checked_category
        from .validation import check_amount

        self._settings.usage.add(checked_category(category), check_amount("tokens", tokens, least=0))

    def reset_usage(self, category: MessageCategory | str | None = None) -> None:
        """Set a category's usage to zero; without a category forget all figures, as if no session had been processed.

        Raises:
            ArgumentError: There is no such category.
        """
        from .settings.usage_snapshot import checked_category

        self._settings.usage.reset(None if category is None else checked_category(category))

    def is_over_budget(self, category: MessageCategory | str | None = None) -> bool:
        """True if a category uses more than its share; without a category, true if the request costs more than the budget.

        Raises:
            ArgumentError: There is no such category.
        """
        return (self.available_tokens if category is None else self.get_budget(category).available) < 0

    def get_token_usage(self, session: Session | None = None) -> dict[str, int]:
        """Return tokens by category, with total, budget, available and overhead. Categories and overhead sum to the total.

        Args:
            session: The session to count, untrimmed; by default the figures of the last view or analysis.
        """
        settings, figures = self._calls.figures(session)
        budget, total, rows = settings.budget.tokens, figures.total, figures.rows
        amounts = {"total": total, "budget": budget, "available": budget - total, "overhead": rows.overhead}
        return {**amounts, **{category.value: tokens for category, tokens in rows.by_category.items()}}

    def count_items(self, session: Session, on_counted: Callable[[int], object]) -> None:
        """Count a session's items, so that the next call about it has little to do. For programs that show the progress of long work.

        Args:
            session: The session.
            on_counted: Called with the number of items counted since the last call.
        """
        self._calls.count_items(session, on_counted)

    def usage(self, session: Session | None = None, *, title: str = "") -> UsageReport:
        """Return a report of where the tokens go, to print or to show with rich.

        Args:
            session: The session to report on, untrimmed; by default the last view or analysis.
            title: The report's title.
        """
        return self._calls.usage_report(session, title)

    def timeline(self, session: Session, reports: LogReports | None = None) -> Timeline:
        """Return the window of a session at each of its requests, from one pass over it.

        Args:
            session: The session, untrimmed.
            reports: The requests that its log reports, from `context_window.timeline.log_reports`. Default: the usage that its items carry.
        """
        from .timeline.matches import reports_of_items

        return self._calls.timeline(session, reports or reports_of_items(session))

    def why(self, session: Session, reports: LogReports | None = None) -> Why:
        """Return what the money of a session's requests bought, and what views under this manager's budget would have cost.

        Args:
            session: The session, untrimmed.
            reports: As for `timeline`.
        """
        from .timeline.matches import reports_of_items

        return self._calls.why(session, reports or reports_of_items(session))

    def made_up(self, session: Session, reports: LogReports | None = None) -> list[tuple[Request, Request]]:
        """Return each reported request of a session, and the same with its `makeup`: what its prompt was made of, in tokens.

        `context_window.spend.reasons_by` sums up what that cost.

        Args:
            session: The session, untrimmed.
            reports: As for `timeline`.
        """
        from .timeline.matches import reports_of_items

        return self._calls.made_up(session, reports or reports_of_items(session))

    def contents(self, session: Session, reports: LogReports | None = None) -> WindowContents:
        """Return the items in a session's window at each of its requests: their files and commands, tokens and costs.

        Args:
            session: The session, untrimmed.
            reports: As for `timeline`.
        """
        from .timeline.matches import reports_of_items

        return self._calls.contents(session, reports or reports_of_items(session))

    def format_token_usage(self, session: Session | None = None) -> str:
        """Return the usage report as plain text."""
        return str(self.usage(session))

    def format_token_usage_rich(self, session: Session | None = None) -> str:
        """Return the usage report as text with ANSI colours, at most as wide as the terminal. Prints nothing."""
        from .display.usage import usage_ansi

        return usage_ansi(self.usage(session))


_OWN_MANAGERS: WeakKeyDictionary[Session, ContextWindowManager] = WeakKeyDictionary()


def own_manager(session: Session, window: ContextWindow, model: str | None = None) -> ContextWindowManager:
    """Return the manager of a session for callers who have none. It is kept with the session, since it knows what the provider refused.

    With another window than before, the session gets a new manager.
    """
    from .sessions import check_session

    check_session(session)
    manager = _OWN_MANAGERS.get(session)
    if manager is None or manager.context_window != window:
        manager = _OWN_MANAGERS[session] = ContextWindowManager(model, context_window=window)
    elif model is not None:
        manager.use_model(model)
    return manager


async def manage_window(window: ContextWindow, session: Session, llm: AnySummarizer | None) -> Session:
    """Do the work of `ContextWindow.manage`."""
    return await own_manager(session, window).manage(session, llm)
