"""`run_turn`: one user turn to its end. The package's charter (`__init__.py`) lists the steps; "step 4" below refers to that list."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import isawaitable
from traceback import extract_tb
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from session.errors import FormatError
from session.items import FunctionCall, Item, Message, Reasoning, new_id
from session.parts import Part
from session.providers.native_compaction import linked, sum_usage
from session.providers.parsing import with_unique_call_ids
from session.session import Session
from session.session_log import recorded_total
from session.usage import Usage

from ..errors import ArgumentError, ModelArgumentError
from ..manager import ContextWindowManager, own_manager
from ..model_errors import PartRefusedError, PromptTooLongError
from ..sessions import check_session
from ..settings.context_window import ContextWindow
from ..strategies import Extract
from ..threads import in_thread
from .interceptor import Interceptor, with_interceptors
from .model import CUT_OFF, PAUSES, Answer, CompactingModel, Model, OnText, check_answer
from .retries import RefusalRetries
from .tool_runner import output_for, run_calls
from .toolbox import Toolbox, ToolSource, error_result
from .unanswered import awaits_model, unanswered_calls

logger = logging.getLogger(__name__)

UserInput: TypeAlias = str | Sequence[Part | str] | Message | None
"""The user's message; None to resume a log that ends without an answer."""

_ACTIVE_TURNS: WeakKeyDictionary[Session, object] = WeakKeyDictionary()
"""Sessions with a turn under way. Two turns at once would mix their answers in the log."""

PROVIDER_PART = 0.875
"""Part of the trigger above which the provider compacts: before a trim is due."""
MAX_PAUSES = 10
"""Requests in a row that only let a paused model continue (step 6)."""

INTERRUPTED = "The call was interrupted: whether it was done is not known."
"""Output of a call that had none when its turn was resumed (step 1). The model reads it."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The outcome of a turn. Its items are in the session.

    Attributes:
        text: Text of the last answer; empty if the model refused, or was cut off, before any text.
        stop: Stop reason of the last answer: `end_turn`, `max_tokens`, `model_context_window_exceeded`, `refusal`, `pause_turn`,
            `stop_sequence`, or `tool_use` if the model still called tools when it was asked without them.
        requests: Requests sent, refused ones included.
        calls: Tool calls that were run, or rejected for their name or arguments.
        calls_refused: Tool calls that were not run: over the limit, or in an answer that was cut off.
        usage: Reported usage, summed over the answers.
        summary_usage: Reported usage of the summaries that the turn needed. It is not part of `usage`.
    """

    text: str
    stop: str
    requests: int
    calls: int
    calls_refused: int
    usage: Usage
    summary_usage: Usage = field(default_factory=Usage)


async def run_turn(
    session: Session,
    user_input: UserInput,
    *,
    model: Model,
    tools: Toolbox | Iterable[ToolSource] = (),
    manager: ContextWindowManager | None = None,
    interceptors: Iterable[Interceptor] = (),
    on_text: OnText | None = None,
    on_item: Callable[[Item], None] | None = None,
) -> TurnResult:
    """Run one turn: ask the model, run its calls, and repeat until it answers with text.

        model = AnthropicModel(anthropic.AsyncAnthropic(), "claude-sonnet-5-5")
        result = await run_turn(session, "Plan my trip to Bergen.", model=model, tools=[find_flights, book])

    The manager makes a view before each request (`manager.manage`). If the log has outgrown its limits, `model` writes a summary of its
    older part, unless the window has another summariser or `compaction=False`.

    Calls of one answer run concurrently; one that fails gets an error as its output. Calls beyond `max_tool_calls_per_turn` get an error
    output too, and the model is then asked once more without tools.

    The log is kept whatever happens. After an error or a cancellation, continue with `user_input=None` or with the user's next message.
    If the turn is cancelled, finished calls keep their outputs and the others get an error output. Text that has arrived is kept as an
    interrupted message; only a new user message can continue from there. A session can have one turn at a time.

    Args:
        session: The log. The turn appends to it.
        user_input: A text, parts, a user message, or None.
        model: The model to ask.
        tools: Functions with type hints, a manager's recall tool, definitions of server-side tools.
        manager: The manager that makes the views, by its own strategy. None for one that is kept for the session: for `model.model` if the
            model has this attribute, and with `Extract()`.
        interceptors: Hooks around each call of the model, the first one outermost. They get the manager's view and may show another one.
        on_text: Receives the answers' texts piece by piece, if the model streams.
        on_item: Receives each item that the turn appends.

    Raises:
        FormatError: There is nothing to answer, or another turn of the session is under way.
        UnknownModelError: There is no manager, and the window of `model.model` is not known.
        ArgumentError: An argument has the wrong type, or the model's `answer` returned something that is not an `Answer`.
        PromptTooLongError: The provider refused the prompt as too long, and the smaller one after it too.
        PartRefusedError: The provider refused an image or a document, and another one in the request without it.
        ModelError: The request failed for another reason.
        ContextOverflowError: The protected items alone exceed the budget, and the window is `strict`.
        CountingError: The token counter returned something that is not a count.
    """
    _check(session, model, manager)
    if manager is None:
        name = getattr(model, "model", None)
        manager = own_manager(session, ContextWindow(strategy=Extract()), name if isinstance(name, str) else None)
    compacting = _compacting(model, manager)
    model = with_interceptors(compacting or model, interceptors)
    toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
    manager.count_tools(toolbox.definitions)
    token = object()
    if _ACTIVE_TURNS.setdefault(session, token) is not token:  # one atomic step: threads may call at once
        raise FormatError("run_turn.session", "another turn of it is under way; await that one first")
    try:
        turn = _Turn(session, model, toolbox, manager, on_text, on_item, summarises=compacting is None)
        turn.begin(user_input)
        return await turn.run()
    finally:
        del _ACTIVE_TURNS[session]


def _compacting(model: Model, manager: ContextWindowManager) -> Model | None:
    """Return the model with requests that have its provider compact the conversation before a trim; None if it is not to, or cannot."""
    if manager.context_window.compaction != "provider" or not isinstance(model, CompactingModel):
        return None
    trigger = manager.context_window.trigger_ratio * manager.total_budget
    return model.compacting(int(trigger * PROVIDER_PART))


def _check(session: object, model: object, manager: object) -> None:
    check_session(session)
    if isinstance(model, type) or not callable(getattr(model, "answer", None)):
        raise ModelArgumentError("model", model if isinstance(model, str) else type(model), "pass a Model, such as an AnthropicModel")
    if not isinstance(manager, ContextWindowManager | None):
        raise ArgumentError("manager", type(manager), "pass a ContextWindowManager, or None")


class _Turn:
    """A turn under way."""

    def __init__(
        self,
        session: Session,
        model: Model,
        toolbox: Toolbox,
        manager: ContextWindowManager,
        on_text: OnText | None,
        on_item: Callable[[Item], None] | None,
        *,
        summarises: bool,
    ) -> None:
        self._summariser = model if summarises else None
        self._session, self._model, self._toolbox, self._manager = session, model, toolbox, manager
        self._on_text, self._on_item = on_text, on_item
        self._streamed_text: list[str] = []
        self._requests = self._calls = self._calls_refused = 0
        self._usage = Usage()
        self._earlier_summaries = manager.summary_usage(session)

    def begin(self, user_input: UserInput) -> None:
        """Append the user's message, or make the log ready to be resumed (step 1)."""
        if user_input is None:
            if not awaits_model(self._session):
                raise FormatError("run_turn.user_input", "None, and nothing in the session waits for an answer; pass the user's message")
            for call in unanswered_calls(self._session):  # without an output, the next answer would count as the same response
                self._append(output_for(call, error_result(INTERRUPTED)))
            return
        message = user_input if isinstance(user_input, Message) else Message("user", user_input)
        if message.role != "user":
            raise FormatError("run_turn.user_input", f"a message of role {message.role}; pass one of role user")
        if not any(getattr(part, "text", None) is None or str(getattr(part, "text", "")).strip() for part in message.content):
            raise FormatError("run_turn.user_input", "the message is blank; pass a text")
        self._append(message)

    async def run(self) -> TurnResult:
        """Ask the model and run its calls until the turn ends (steps 2 to 8)."""
        texts: list[str] = []
        pauses = 0
        while True:
            calls_left = self._calls_left()
            answer = self._append_answer(await self._request_with_retries(allow_tools=calls_left > 0))
            if not answer.calls:
                texts.append(answer.text)
                pauses += 1
                if answer.stop not in PAUSES or pauses > MAX_PAUSES:
                    return self._result("".join(texts), answer.stop)
                continue
            texts, pauses = [], 0
            if answer.stop in CUT_OFF:
                self._refuse(answer.calls, f"The call was not run: your answer was cut off ({answer.stop}), so it may not be whole.")
                return self._result(answer.text, answer.stop)
            await self._run_calls(answer.calls, calls_left)
            if calls_left <= 0:  # the model was asked without tools and called them all the same
                return self._result(answer.text, answer.stop)

    def _calls_left(self) -> int:
        """Tool calls left in this turn. A tool that appends user messages to the log does not renew the limit."""
        limit = self._manager.context_window.max_tool_calls_per_turn
        return min(self._manager.tool_calls(self._session).left, limit - self._calls - self._calls_refused)

    async def _request_with_retries(self, *, allow_tools: bool) -> Answer:
        """Return the model's answer, with the retries of `RefusalRetries` (steps 2 to 4)."""
        summariser = self._summariser
        with RefusalRetries(self._manager, self._session) as retries:
            while True:
                view = await self._manager.manage(self._session, summariser)
                summariser = None  # the model has just refused a prompt: the retry is trimmed
                try:
                    return await self._request(view, allow_tools=allow_tools)
                except (PromptTooLongError, PartRefusedError) as error:
                    refusal = error
                    if not await in_thread(lambda: retries.accept(refusal)):  # noqa: B023 - run before the loop goes on
                        raise

    async def _request(self, view: Session, *, allow_tools: bool) -> Answer:
        import asyncio

        self._requests += 1
        self._streamed_text = []
        try:
            answer: object = self._model.answer(view, self._toolbox.definitions, allow_tools=allow_tools, on_text=self._receive_text)
            return check_answer(await answer if isawaitable(answer) else answer, self._model)
        except asyncio.CancelledError:
            text = "".join(self._streamed_text)
            if text.strip():
                self._append(Message("assistant", text, interrupted=True))
            raise

    def _append_answer(self, answer: Answer) -> Answer:
        """Append the answer (step 5) and return it as it now stands in the log."""
        items = linked(with_unique_call_ids(answer.items), self._session.items)
        if items:
            extra = self._manager.answer_notes(self._session) | ({} if answer.model is None else {"model": answer.model})
            items[0] = replace(items[0], usage=answer.usage, extra={**items[0].extra, **extra})
        self._separate_from_paused(items)
        for index, item in enumerate(items):
            if self._session.get_by_id(item.id) is not None:
                items[index] = replace(item, id=new_id())
            self._append(items[index])
        if answer.usage is not None:
            self._usage = sum_usage([self._usage, answer.usage])
        return replace(answer, items=tuple(items))

    def _separate_from_paused(self, items: list[Item]) -> None:
        """Start a new response if the log ends in a paused answer that requests cannot repeat unchanged.

        Converters do not send trailing reasoning or trailing whitespace. If the two answers were one response, both would be sent before
        the new answer's reasoning, which was signed without them.
        """
        log = self._session.items
        last = log[-1] if log else None
        is_changed = isinstance(last, Reasoning) or (isinstance(last, Message) and last.role == "assistant" and last.text[-1:].isspace())
        if is_changed and items:
            if self._session.get_by_id(items[0].id) is not None:
                items[0] = replace(items[0], id=new_id())
            session = self._session
            session.restore_seams(session.response_breaks | {items[0].id}, session.settled, recorded_total(session))

    async def _run_calls(self, calls: Sequence[FunctionCall], calls_left: int) -> None:
        """Run the calls within the limit and append an output for each (steps 7 to 9)."""
        import asyncio

        allowed, excess = calls[: max(0, calls_left)], calls[max(0, calls_left) :]
        self._calls += len(allowed)
        outputs, is_cancelled = await run_calls(allowed, self._toolbox, self._session)
        for output in outputs:
            self._append(output)
        limit = self._manager.context_window.max_tool_calls_per_turn
        self._refuse(excess, f"The call was not run: a turn may have {limit} tool calls. Answer with what you know now, without tools.")
        if is_cancelled:
            raise asyncio.CancelledError

    def _refuse(self, calls: Sequence[FunctionCall], reason: str) -> None:
        self._calls_refused += len(calls)
        for call in calls:
            self._append(output_for(call, error_result(reason)))

    def _append(self, item: Item) -> None:
        self._session.append(item)
        if self._on_item is not None:
            _notify(self._on_item, item)

    def _receive_text(self, text: str) -> None:
        self._streamed_text.append(text)
        if self._on_text is not None:
            _notify(self._on_text, text)

    def _result(self, text: str, stop: str) -> TurnResult:
        summaries = _difference(self._manager.summary_usage(self._session), self._earlier_summaries)
        return TurnResult(text, stop, self._requests, self._calls, self._calls_refused, self._usage, summaries)


def _difference(total: Usage, earlier: Usage) -> Usage:
    return Usage(*(getattr(total, spec.name) - getattr(earlier, spec.name) for spec in fields(Usage)))


def _notify(listener: Callable[[Any], None], value: object) -> None:
    """Call a listener and log the exceptions it raises: a fault in a display must not cost the user an answer."""
    try:
        listener(value)
    except Exception as error:  # noqa: BLE001 - logged, as the docstring says
        frame = extract_tb(error.__traceback__)[-1]  # neither the message nor the traceback: they may contain the user's content
        logger.error("a listener of the turn failed: %s at %s:%s", type(error).__name__, frame.filename, frame.lineno)  # noqa: TRY400
