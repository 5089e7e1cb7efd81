"""`run_turn`: one user turn to its end. What is asked of a model is in `model.py`, how calls are run in `running.py`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable
from itertools import chain
from traceback import extract_tb
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from session.errors import FormatError
from session.items import FunctionCall, Item, Message, Reasoning, new_id
from session.parts import Part
from session.session import Session
from session.usage import Usage

from ..attempts import Attempts
from ..errors import BudgetError
from ..folding import check_session
from ..manager import ContextWindowManager
from ..model_errors import PartRefusedError, PromptTooLongError
from ..threads import in_thread
from .model import CUT_OFF, PAUSE_TURN, Answer, Model, OnText, answer_of
from .pending import awaits_model, unanswered
from .running import output_of, run_calls
from .toolbox import Toolbox, ToolSource, failed

logger = logging.getLogger(__name__)

UserInput: TypeAlias = str | Sequence[Part | str] | Message | None
"""What the user says; None to go on with a log that waits for an answer."""

_UNDER_WAY: WeakKeyDictionary[Session, object] = WeakKeyDictionary()
"""Sessions in a turn: two at once would put one's answers among the other's."""

MOST_PAUSES = 10
"""How often in a row a model that pauses is asked to go on."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What came of a turn. The items are in the session.

    Attributes:
        text: What the model said last; empty where it refused, or was cut off, before it said anything.
        stop: Why it stopped: `end_turn`, `max_tokens`, `model_context_window_exceeded`, `refusal`, `pause_turn`, `stop_sequence`, or
            `tool_use` where it goes on calling tools although it was asked without them.
        requests: How often the model was asked, refused requests included.
        calls: Tool calls that were answered by their tools, or by what is wrong with them.
        calls_refused: Tool calls that were not run: over the limit, or in an answer that was cut off.
        usage: What the provider reported, summed over the answers.
    """

    text: str
    stop: str
    requests: int
    calls: int
    calls_refused: int
    usage: Usage


async def run_turn(
    session: Session,
    user_input: UserInput,
    *,
    model: Model,
    tools: Toolbox | Iterable[ToolSource] = (),
    manager: ContextWindowManager,
    on_text: OnText | None = None,
    on_item: Callable[[Item], None] | None = None,
) -> TurnResult:
    """What came of one turn: the model is asked, its calls are run, and so on until it answers in text.

        manager = ContextWindowManager("claude-sonnet-5-5")
        model = AnthropicModel(anthropic.AsyncAnthropic(), "claude-sonnet-5-5")
        result = await run_turn(session, "Plan my trip to Bergen.", model=model, tools=[find_flights, book], manager=manager)

    Before each call of the model the session is managed (`manager.manage`). Calls of one answer run together; one that fails is
    answered with an error. Where the turn's tool calls are spent (`max_tool_calls_per_turn`), those over the limit are answered with
    an error that says so, and the model is asked once more without tools.

    What was said stays in the session whatever happens: after an error or a cancel, go on with `user_input=None`, or with what the user
    says next. A cancel leaves the calls that had ended with their outputs, the others with an error, and the text that had come as an
    interrupted message, which only the user can go on from. One session takes one turn at a time.

    Args:
        session: The log, which grows.
        user_input: A text, parts, a user message, or None.
        model: Who is asked.
        tools: Functions with type hints, a manager's recall tool, definitions of the provider's own tools.
        manager: Who decides what the model sees.
        on_text: Is told the answers' texts piece by piece, where the model streams.
        on_item: Is told each item that the turn adds to the log.

    Raises:
        FormatError: There is nothing to answer, or another turn of the session is under way.
        BudgetError: The session, the model, the manager or a tool is none; or the model's `answer` gave something that is no `Answer`.
        PromptTooLongError: The provider refused a prompt as too long, and the smaller one after it too.
        PartRefusedError: The provider refused an image or a document, and another one in the request without it.
        ModelError: The provider gave no answer.
        ContextOverflowError: What must be kept does not fit, and the window is `strict`.
        CountingError: The token counter gave something that is no count.
    """
    _check(session, model, manager)
    toolbox = tools if isinstance(tools, Toolbox) else Toolbox(tools)
    manager.count_tools(toolbox.definitions)
    mine = object()
    if _UNDER_WAY.setdefault(session, mine) is not mine:  # in one step: threads may come at once
        raise FormatError("run_turn.session", "another turn of it is under way; await that one first")
    try:
        turn = _Turn(session, model, toolbox, manager, on_text, on_item)
        turn.begin(user_input)
        return await turn.run()
    finally:
        del _UNDER_WAY[session]


def _check(session: object, model: object, manager: object) -> None:
    check_session(session)
    if isinstance(model, type) or not callable(getattr(model, "answer", None)):
        raise BudgetError("model", model if isinstance(model, str) else type(model), "pass what can be asked, such as an AnthropicModel")
    if not isinstance(manager, ContextWindowManager):
        raise BudgetError("manager", type(manager), "pass a ContextWindowManager")


INTERRUPTED = "The call was interrupted: whether it was done is not known."
"""The answer to a call that had none when a session was gone on with."""


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
    ) -> None:
        self._session, self._model, self._toolbox, self._manager = session, model, toolbox, manager
        self._on_text, self._on_item = on_text, on_item
        self._pieces: list[str] = []
        self._requests = self._calls = self._refused = 0
        self._usage = Usage()

    def begin(self, user_input: UserInput) -> None:
        """Records what the user says."""
        if user_input is None:
            if not awaits_model(self._session):
                raise FormatError("run_turn.user_input", "None, and nothing in the session waits for an answer; pass what the user says")
            for call in unanswered(self._session):  # else what the model says next would join the answer that has them
                self._add(output_of(call, failed(INTERRUPTED)))
            return
        message = user_input if isinstance(user_input, Message) else Message("user", user_input)
        if message.role != "user":
            raise FormatError("run_turn.user_input", f"a message of role {message.role}; pass one of role user")
        if not any(getattr(part, "text", None) is None or str(getattr(part, "text", "")).strip() for part in message.content):
            raise FormatError("run_turn.user_input", "it says nothing; pass a text that is not blank")
        self._add(message)

    async def run(self) -> TurnResult:
        """What came of it."""
        said: list[str] = []
        pauses = 0
        while True:
            left = self._left()
            answer = self._recorded(await self._asked(allow_tools=left > 0))
            if not answer.calls:
                said.append(answer.text)
                pauses += 1
                if answer.stop != PAUSE_TURN or pauses > MOST_PAUSES:
                    return self._result("".join(said), answer.stop)
                continue
            said, pauses = [], 0
            if answer.stop in CUT_OFF:
                self._refuse(answer.calls, f"The call was not run: your answer was cut off ({answer.stop}), so it may not be whole.")
                return self._result(answer.text, answer.stop)
            await self._run(answer.calls, left)
            if left <= 0:  # it was asked without tools, and calls them all the same
                return self._result(answer.text, answer.stop)

    def _left(self) -> int:
        """Tool calls that are left, also where a tool itself writes user messages into the log."""
        most = self._manager.context_window.max_tool_calls_per_turn
        return min(self._manager.tool_calls(self._session).left, most - self._calls - self._refused)

    async def _asked(self, *, allow_tools: bool) -> Answer:
        """Return the model's answer; to a second view where the provider refuses the first, as `Attempts` says."""
        with Attempts(self._manager, self._session) as attempts:
            while True:
                view = await self._manager.manage(self._session)
                try:
                    return await self._answer(view, allow_tools=allow_tools)
                except (PromptTooLongError, PartRefusedError) as error:
                    refusal = error
                    if not await in_thread(lambda: attempts.gives_way(refusal)):  # noqa: B023 - run before the loop goes on
                        raise  # there is nothing left to take

    async def _answer(self, view: Session, *, allow_tools: bool) -> Answer:
        import asyncio

        self._requests += 1
        self._pieces = []
        try:
            said: object = self._model.answer(view, self._toolbox.definitions, allow_tools=allow_tools, on_text=self._heard)
            return answer_of(await said if isawaitable(said) else said, self._model)
        except asyncio.CancelledError:
            said = "".join(self._pieces)
            if said.strip():
                self._add(Message("assistant", said, interrupted=True))
            raise

    def _recorded(self, answer: Answer) -> Answer:
        """The answer as the log now has it: its usage and model with its first item, each call with a call id of its own."""
        items = _told_apart(answer.items)
        if items:
            notes = self._manager.answer_notes(self._session) | ({} if answer.model is None else {"model": answer.model})
            items[0] = replace(items[0], usage=answer.usage, extra={**items[0].extra, **notes})
        self._part_from_paused(items)
        for place, item in enumerate(items):
            if self._session.get_by_id(item.id) is not None:
                items[place] = replace(item, id=new_id())
            self._add(items[place])
        if answer.usage is not None:
            self._usage = _sum(self._usage, answer.usage)
        return replace(answer, items=tuple(items))

    def _part_from_paused(self, items: list[Item]) -> None:
        """Mark an answer as one of its own where the request ended in a paused answer that a request cannot show as it came.

        Trailing thinking and trailing whitespace are not sent. Unmarked, the two would be one answer, and both would be sent before
        the new answer's thinking, which was signed without them.
        """
        log = self._session.items
        last = log[-1] if log else None
        is_changed = isinstance(last, Reasoning) or (isinstance(last, Message) and last.role == "assistant" and last.text[-1:].isspace())
        if is_changed and items:
            if self._session.get_by_id(items[0].id) is not None:
                items[0] = replace(items[0], id=new_id())
            session = self._session
            session.restore_seams(session.response_breaks | {items[0].id}, session.settled, session.settled_tokens)

    async def _run(self, calls: Sequence[FunctionCall], left: int) -> None:
        import asyncio

        allowed, over = calls[: max(0, left)], calls[max(0, left) :]
        self._calls += len(allowed)
        outputs, cancelled = await run_calls(allowed, self._toolbox, self._session)
        for output in outputs:
            self._add(output)
        most = self._manager.context_window.max_tool_calls_per_turn
        self._refuse(over, f"The call was not run: a turn may have {most} tool calls. Answer with what you know now, without tools.")
        if cancelled:
            raise asyncio.CancelledError

    def _refuse(self, calls: Sequence[FunctionCall], why: str) -> None:
        self._refused += len(calls)
        for call in calls:
            self._add(output_of(call, failed(why)))

    def _add(self, item: Item) -> None:
        self._session.append(item)
        if self._on_item is not None:
            _tell(self._on_item, item)

    def _heard(self, text: str) -> None:
        self._pieces.append(text)
        if self._on_text is not None:
            _tell(self._on_text, text)

    def _result(self, text: str, stop: str) -> TurnResult:
        return TurnResult(text, stop, self._requests, self._calls, self._refused, self._usage)


def _told_apart(items: Sequence[Item]) -> list[Item]:
    """The items, with call ids that are not one another's: else an output would answer the wrong call."""
    taken: set[str] = set()
    apart: list[Item] = []
    for item in items:
        if isinstance(item, FunctionCall):
            names = chain([item.call_id], (f"{item.call_id or 'call'}_{number}" for number in range(2, len(items) + 3)))
            call_id = next(name for name in names if name and name not in taken)
            taken.add(call_id)
            apart.append(item if call_id == item.call_id else replace(item, call_id=call_id))
        else:
            apart.append(item)
    return apart


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        cache_read_tokens=one.cache_read_tokens + other.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + other.cache_write_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
    )


def _tell(listener: Callable[[Any], None], told: object) -> None:
    """Tells a listener. What it raises is logged: a display's fault must not cost the user an answer."""
    try:
        listener(told)
    except Exception as error:  # noqa: BLE001 - as said above
        where = extract_tb(error.__traceback__)[-1]  # neither the message nor the traceback: they may hold content
        logger.error("a listener of the turn failed: %s at %s:%s", type(error).__name__, where.filename, where.lineno)  # noqa: TRY400
