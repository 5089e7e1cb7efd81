"""How a summary comes to be written: in pieces that its writer can read, each in time, the text checked. What is due is decided elsewhere.

Whatever a writer does, what comes out is a text that is smaller than it may be, or a `CompactionError`.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from session.errors import SummaryError
from session.items import Compaction
from session.rendering import INDENT, render_items
from session.summarizers import AnthropicSummarizer
from session.summary import bare, prompt_around, written

from ..errors import CompactionError
from .due import Told

WINDOW = 100_000
"""Tokens that a prompt for a summary may have, where its writer has no `window` that says so."""
TIMEOUT = 60.0
"""Seconds that one answer may take, where its writer has no `timeout` that says so."""
CALLS = 8
"""Answers that one summary may take. What has not been told by then stays in the log, and has its turn at the next request point."""
CALLS_MOST = 64
"""Answers that it may take where less would leave it in the middle of what is most of it: one unit of many pieces."""
CARRIED = 4
"""Of a window, one part in so many is kept for what has been summed up so far, while the rest is told."""
FENCES = 64
"""Tokens by which the fence of a prompt, which differs from prompt to prompt, may be longer than the one that was counted."""
WORDS = 1_500
"""Words that a summary is asked for at the most: who reads it reads it with every request, and answers have limits of their own."""
OPENING = 'Your text will stand after the newest messages: begin it with "Earlier in this conversation:". '

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the record that fits into one prompt.

    Attributes:
        text: The part.
        told: How many units are told to their end with it.
        characters: Of these units.
    """

    text: str
    told: int
    characters: int


@dataclass(frozen=True, slots=True)
class Task:
    """A summary to be written.

    Attributes:
        pieces: What is told, one prompt after the other.
        told: The units that it then stands for.
        words: About how many words it may have.
        carried: Tokens that it may have while there is more to tell.
        seconds: What one answer may take.
    """

    pieces: tuple[Piece, ...]
    told: tuple[Told, ...]
    words: int
    carried: int
    seconds: float

    @property
    def tokens(self) -> int:
        """What the units cost."""
        return sum(one.tokens for one in self.told)

    @property
    def characters(self) -> int:
        """Characters of what is told."""
        return sum(len(piece.text) for piece in self.pieces)


def task(told: Sequence[Told], writer: object, count: Count, most: int) -> Task:
    """The summary of these units, made ready for its writer.

    Args:
        told: The units, in order.
        writer: Who will write it. Its `window` says how many tokens its prompt may have, its `timeout` how many seconds it may take.
        count: Tokens of a text.
        most: Tokens that the summary may have.

    Raises:
        CompactionError: The writer's window is too small to tell it anything, or one unit is larger than it may be told of at once; or
            what it says of itself cannot be had.
    """
    window = _window_of(writer)
    words = max(min(most // 2, WORDS), 1)  # most words are more than a token, and who is given a limit goes over it
    earlier = any(one.is_summary for one in told)
    whole = render_items(item for one in told for item in one.items)
    carried = window // CARRIED
    if count(prompt_around(whole, earlier=earlier, more=_wishes(words))) <= window:
        return Task((Piece(whole, len(told), len(whole)),), tuple(told), words, carried, _timeout_of(writer))
    room = window - carried - FENCES - count(prompt_around("", earlier=True, more=_wishes(words)))
    if room <= 0:
        raise CompactionError(f"a window of {window:,} tokens is too small for the prompt; give the summariser a larger one")
    pieces = _enough(_pieces(told, count, room))
    reached = tuple(told[: pieces[-1].told])
    if all(one.is_summary for one in reached) or 2 * pieces[-1].characters < sum(len(piece.text) for piece in pieces):
        raise CompactionError(f"the oldest of it is more than {CALLS_MOST} prompts of {window:,} tokens; give the summariser a larger one")
    return Task(pieces, reached, words, carried, _timeout_of(writer))


async def summed_up(due: Task, writer: Any, fits: Callable[[str, int], Awaitable[bool]]) -> str:
    """What the writer makes of it: each piece is told with what it has made of those before.

    Args:
        due: The task.
        writer: Who writes.
        fits: Awaited with what is carried over and the tokens it may have: whether it is within them.

    Raises:
        CompactionError: It failed, was too slow, or gave something that is no summary.
    """
    text, earlier = "", any(one.is_summary for one in due.told)
    for piece in due.pieces:
        record = piece.text
        if text:
            carried = render_items([Compaction(text)])
            if len(text) > due.characters or not await fits(carried, due.carried):
                raise CompactionError("the summariser's text is too large to go on with")
            record = f"{carried}\n{piece.text}"
        text = await _answer(writer, prompt_around(record, earlier=earlier or bool(text), more=_wishes(due.words)), due.seconds)
    return text


async def _answer(writer: Any, prompt: str, seconds: float) -> str:
    """One answer, without the headers that its writer put there.

    The writer works in a task of its own, which is cancelled when its time is up and not waited for: it may refuse to go.

    Raises:
        CompactionError: There is none.
    """
    import asyncio

    asked = asyncio.ensure_future(_written(writer, prompt))
    asked.add_done_callback(lambda done: done.cancelled() or done.exception())  # who is no longer waited for fails in silence
    try:
        await asyncio.wait({asked}, timeout=seconds)
    finally:
        late = not asked.done()
        asked.cancel()
    if late:
        raise CompactionError(f"the summariser has not answered within {seconds:g} seconds")
    if asked.cancelled():
        raise CompactionError("the summariser was cancelled")
    try:
        return bare(asked.result())
    except SummaryError as error:
        raise CompactionError(_told_of(error, writer)) from error


async def _written(writer: Any, prompt: str) -> str:
    import asyncio

    try:
        return await written(writer, prompt)
    except (Exception, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a SystemExit would end the event loop, others whatever the session's next call is part of
        raise SummaryError("the summariser raised what is no Exception") from error


def _told_of(error: SummaryError, writer: object) -> str:
    """What went wrong, without a word that others wrote: it may be content."""
    if error.__cause__ is not None:
        return f"the summariser failed with {type(error.__cause__).__name__}"
    if type(writer) is AnthropicSummarizer:
        return error.problem
    return "the summariser gave no text, or an empty one, or refused"


# In pieces


def _pieces(told: Sequence[Told], count: Count, room: int) -> Iterator[Piece]:
    """The units as texts of at most so many tokens. One that is larger is told in several."""
    texts: list[str] = []
    size = characters = 0
    for number, one in enumerate(told):
        text = render_items(one.items)
        for part in _parts(text, count, room):
            tokens = count(part) + 1  # and the end of the line before it
            if texts and size + tokens > room:
                yield Piece("\n".join(texts), number, characters)
                texts, size = [], 0
            texts.append(part)
            size += tokens
        characters += len(text)
    yield Piece("\n".join(texts), len(told), characters)


def _enough(pieces: Iterator[Piece]) -> tuple[Piece, ...]:
    """The first pieces: as many as may be told, or as it takes until most of what was told is told to its end."""
    found: list[Piece] = []
    told = 0
    for piece in islice(pieces, CALLS_MOST):
        found.append(piece)
        told += len(piece.text)
        if len(found) >= CALLS and 2 * piece.characters >= told:
            break
    return tuple(found)


def _parts(text: str, count: Count, room: int) -> Iterator[str]:
    """The text in parts of fewer tokens than there is room for. All but the first are indented: none begins an item."""
    left = [text] if text else []
    first = True
    while left:
        part = left.pop()
        shown = part if first else INDENT + part.lstrip("\n")
        tokens = count(shown)
        if tokens < room:
            yield shown
            first = False
            continue
        if len(part) < 2:
            raise CompactionError("the summariser's window is too small for a prompt; give it a larger one")
        step = max(1, min(len(part) // 2, len(part) * max(room, 1) // (tokens + 1)))
        left += reversed([part[at : at + step] for at in range(0, len(part), step)])


# What the writer says of itself


def _wishes(words: int) -> str:
    return f"{OPENING}Write at most {words:,} words.\n"


def _window_of(writer: object) -> int:
    """Tokens that its prompt may have."""
    said = _said(writer, "window")
    return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else WINDOW


def _timeout_of(writer: object) -> float:
    """Seconds that one answer may take."""
    said = _said(writer, "timeout")
    return said if isinstance(said, int | float) and not isinstance(said, bool) and 0 < said < math.inf else TIMEOUT


def _said(writer: object, name: str) -> object:
    try:
        return getattr(writer, name, None)
    except Exception as error:
        raise CompactionError(f"the summariser's {name} raised {type(error).__name__}") from error
