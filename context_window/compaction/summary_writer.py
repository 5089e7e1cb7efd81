"""Have a summary written: in pieces that fit the summariser's window, each within a time limit. Step 5 of the package's charter.

The result is a text within its size limit or a `CompactionError`, whatever the summariser does. The choice of units is in
`unit_selection.py`.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from session.conversation_text import render_items
from session.decisions import with_decisions
from session.errors import SummaryError
from session.items import Compaction
from session.session import Session
from session.summarizers import AnthropicSummarizer, ModelSummarizer, SummaryText
from session.summary import INSTRUCTIONS, request_summary, summary_request, summary_text, text_summary_prompt, without_headers

from ..errors import CompactionError
from ..models import describe_model
from ..settings.budget import Budget
from .record_pieces import MAX_REQUESTS, Count, Piece, has_more_tokens, split_record
from .unit_selection import SummaryUnit

if TYPE_CHECKING:
    from asyncio import Future

T = TypeVar("T")
DEFAULT_WINDOW = 100_000
"""Tokens that a prompt may have if the summariser has no `window`."""
DEFAULT_TIMEOUT = 60.0
"""Seconds that one answer may take if the summariser has no `timeout`."""
CARRIED_PARTS = 4
"""1/4 of the window is reserved for the summary so far, while further pieces are sent."""
FENCE_MARGIN = 64
"""Tokens by which the fence of a prompt may be longer than the one that was counted: each prompt has a different one."""
MAX_WORDS = 1_500
"""Words that a summary is asked to have at most: it is sent with every later request, and answers have limits of their own."""

FOCUS = "Above all, keep this in full detail: {focus}\n"


@dataclass(frozen=True, slots=True)
class Wording:
    """The user's own words for the summariser's prompt: what to write instead of our text, and what to keep in detail."""

    prompt: str | None = None
    focus: str | None = None

    @property
    def instructions(self) -> str:
        """The first lines of the prompt."""
        return INSTRUCTIONS if self.prompt is None else f"{self.prompt.strip()}\n"

    def lines(self, words: int) -> str:
        """Return the lines about the summary's focus and the words that it may have."""
        focus = "" if self.focus is None or not self.focus.strip() else FOCUS.format(focus=self.focus.strip())
        return f"{focus}Write at most {words:,} words.\n"


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """A summary to be written. `pieces` are parts of the record, one for each prompt, `units` those that the summary will stand for.

    `lines` say its focus and length, `instructions` are the rest of the prompt before the record. While there are more pieces to send, it
    may have `carried_tokens`; one answer may take `timeout` seconds.
    """

    pieces: tuple[Piece, ...]
    units: tuple[SummaryUnit, ...]
    lines: str
    instructions: str
    carried_tokens: int
    timeout: float

    @property
    def tokens(self) -> int:
        """Tokens of the units."""
        return sum(unit.tokens for unit in self.units)

    @property
    def characters(self) -> int:
        """Characters of the record."""
        return sum(len(piece.text) for piece in self.pieces)


def prepare_task(
    units: Sequence[SummaryUnit], summariser: object, count: Count, max_tokens: int, window: int, wording: Wording
) -> SummaryTask:
    """Split the record of the units, in order, into prompts that fit the summariser's window. `max_tokens` is the summary's length.

    Raises CompactionError if the window is too small for any of it, or for a unit that is too long, or if reading an attribute of the
    summariser raised.
    """
    words = max(min(max_tokens // 2, MAX_WORDS), 1)  # most words are more than one token, and models exceed the limit they are given
    lines, instructions = wording.lines(words), wording.instructions
    has_earlier = any(unit.is_summary for unit in units)
    record = render_items(item for unit in units for item in unit.items)
    carried_tokens = window // CARRIED_PARTS

    def prompt_tokens(record: str, *, has_summaries: bool) -> int:
        return count(text_summary_prompt(record, has_summaries=has_summaries, extra_lines=lines, instructions=instructions))

    def task(pieces: tuple[Piece, ...], complete_units: Sequence[SummaryUnit]) -> SummaryTask:
        return SummaryTask(pieces, tuple(complete_units), lines, instructions, carried_tokens, _timeout_of(summariser))

    if not has_more_tokens(record, window, count) and prompt_tokens(record, has_summaries=has_earlier) <= window:
        return task((Piece(record, len(units), len(record)),), units)
    room = window - carried_tokens - FENCE_MARGIN - prompt_tokens("", has_summaries=True)
    if room <= 0:
        raise CompactionError(f"a window of {window:,} tokens is too small for the prompt; give the summariser a larger one")
    pieces = tuple(islice(split_record(units, count, room), MAX_REQUESTS))
    complete_units = tuple(units[: pieces[-1].complete_units])
    is_mostly_cut_off = 2 * pieces[-1].complete_characters < sum(len(piece.text) for piece in pieces)
    if all(unit.is_summary for unit in complete_units) or is_mostly_cut_off:
        raise CompactionError(f"the oldest unit needs more than {MAX_REQUESTS} prompts of {window:,} tokens; use a larger window")
    return task(pieces, complete_units)


async def write_summary(
    task: SummaryTask, summariser: Any, fits: Callable[[str, int], Awaitable[bool]], on_usage: Callable[[object], None]
) -> str:
    """Have the summary written: each piece is sent together with the summary of the pieces before.

    `fits` is awaited with a text and a number of tokens: True if the text has no more than that. `on_usage` receives the usage that was
    reported for each answer, usable or not. That of an answer that comes too late arrives later. Raises CompactionError if the summariser
    failed, was too slow, or returned something that is not a summary.
    """
    earlier = [summary_text(item) for unit in task.units if unit.is_summary for item in unit.items]
    text, has_earlier = "", bool(earlier)
    for piece in task.pieces:
        record = piece.text
        if text:
            carried = render_items([Compaction(text)])
            if len(text) > task.characters or not await fits(carried, task.carried_tokens):
                raise CompactionError("the summary so far is too large to send with the next piece")
            record = f"{carried}\n{piece.text}"
        prompt = text_summary_prompt(
            record, has_summaries=has_earlier or bool(text), extra_lines=task.lines, instructions=task.instructions
        )
        answer = await _answer(summariser, _call_summariser(summariser, prompt), task.timeout, on_usage)
        text = with_decisions(without_headers(answer), [text] if text else earlier)
    return text


async def sum_up_in_place(
    task: SummaryTask, summariser: ModelSummarizer, view: Session, tools: Sequence[Any], on_usage: Callable[[object], None]
) -> str | None:
    """Have the model that the conversation is with sum it up: its last request, with a message that asks for the summary.

    The provider reads the conversation from its cache, for a tenth of the price. None if the model called a tool or wrote nothing. Raises
    CompactionError if the summariser failed or was too slow.
    """
    conversation = Session.from_view(view)
    conversation.add_message("user", summary_request(task.instructions, task.lines))
    answer = await _answer(summariser, summariser.sum_up(conversation, tools), task.timeout, on_usage)
    earlier = [summary_text(item) for unit in task.units if unit.is_summary for item in unit.items]
    return None if answer is None else with_decisions(without_headers(answer), earlier)


async def _answer(summariser: Any, work: Coroutine[Any, Any, T], seconds: float, on_usage: Callable[[object], None]) -> T:
    """Return one answer: what the work returns. Raises CompactionError if the summariser failed or was too slow.

    The summariser runs in a task of its own. When the time is up the task is cancelled but not awaited, since it may ignore that. Its usage
    is reported whenever it ends.
    """
    import asyncio

    request = asyncio.ensure_future(work)
    request.add_done_callback(lambda done: _report_usage(done, on_usage))
    try:
        await asyncio.wait({request}, timeout=seconds)
    finally:
        is_late = not request.done()
        request.cancel()
    if is_late:
        raise CompactionError(f"the summariser has not answered within {seconds:g} seconds")
    if request.cancelled():
        raise CompactionError("the summariser was cancelled")
    try:
        return request.result()
    except SummaryError as error:
        raise CompactionError(_message_without_content(error, summariser)) from error


def _report_usage(done: Future[Any], on_usage: Callable[[object], None]) -> None:
    """Pass on the usage of an answer, or of one that is no usable summary. Asyncio would log an exception that nobody looked at."""
    if done.cancelled():
        return
    error = done.exception()
    answer = done.result() if error is None else error
    if isinstance(answer, SummaryText | SummaryError) and answer.usage is not None:
        on_usage(answer.usage)


async def _call_summariser(summariser: Any, prompt: str) -> str:
    import asyncio

    try:
        return await request_summary(summariser, prompt)
    except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a SystemExit would end the event loop, others the task that runs the session
        raise SummaryError("the summariser raised an exception that is not an Exception") from error


def _message_without_content(error: SummaryError, summariser: object) -> str:
    """Describe an error without quoting text of the summariser or its client, which may contain the conversation."""
    if error.__cause__ is not None:
        return f"the summariser failed with {type(error.__cause__).__name__}"
    if type(summariser) in (AnthropicSummarizer, ModelSummarizer):
        return error.problem
    return "the summariser returned no text, returned an empty text, or refused"


# Attributes of the summariser


def prompt_size(summariser: object, budget: Budget, view_budget: int) -> int:
    """Return the tokens that a prompt for the summariser may have.

    A model without a `window` gets its own window, without the room for the answer; if that is not known, the budget. After it refused a
    prompt as too long it gets no more than views may have now: `view_budget`. Raises CompactionError if reading an attribute raised.
    """
    window = _window_of(summariser)
    if window is not None:
        return window
    if not isinstance(summariser, ModelSummarizer | AnthropicSummarizer):
        return DEFAULT_WINDOW
    prompt_limit = _prompt_limit(summariser, budget) or budget.tokens
    return min(DEFAULT_WINDOW, prompt_limit, view_budget if view_budget < budget.tokens else DEFAULT_WINDOW)


def room_of(summariser: ModelSummarizer, budget: Budget) -> int | None:
    """Return the tokens that a whole conversation with a loop's model may have; None if its window is not known.

    Raises CompactionError if reading an attribute of the model raised.
    """
    return _window_of(summariser) or _prompt_limit(summariser, budget)


def _window_of(summariser: object) -> int | None:
    window = _attribute(summariser, "window")
    return window if isinstance(window, int) and not isinstance(window, bool) and window > 0 else None


def _prompt_limit(summariser: ModelSummarizer | AnthropicSummarizer, budget: Budget) -> int | None:
    """Return the tokens of a prompt for a summariser's model by its name; None if its window is not known."""
    name = _attribute(summariser.asked_model if isinstance(summariser, ModelSummarizer) else summariser, "model")
    model = describe_model(name if isinstance(name, str) else budget.model or "")
    return None if model.window is None else max(1, min(model.window - model.output_reserve, model.input_limit or model.window))


def _timeout_of(summariser: object) -> float:
    """Return the seconds that one answer may take."""
    timeout = _attribute(summariser, "timeout")
    return timeout if isinstance(timeout, int | float) and not isinstance(timeout, bool) and 0 < timeout < math.inf else DEFAULT_TIMEOUT


def _attribute(summariser: object, name: str) -> object:
    try:
        return getattr(summariser, name, None)
    except Exception as error:
        raise CompactionError(f"the summariser's {name} raised {type(error).__name__}") from error
