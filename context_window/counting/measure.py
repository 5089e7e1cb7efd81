"""What an item costs, as it is and in the forms a trim may give it. Each item is counted once a counter, and remembers.

An item's tokens are those of its texts and parts plus what the provider writes around them (`framing.py`); what is never sent
(handoffs, config updates) costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock

from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message
from session.parts import Image, Part, Text
from session.providers.additions import ADDED, SUMMARY_HEADER, escaped

from ..trimming.originals import original_of
from ..trimming.placeholders import CLEARED, MARK, cut_text, image_placeholder, output_placeholder, output_text
from ..trimming.plan import Cut
from ..trimming.tally import Measured
from .counter import TokenCounter
from .cutting import longest_cut
from .framing import Framing, framing_of, signature_tokens
from .told import argument_texts

COUNTERS_REMEMBERED = 8
"""Counters whose figures an item keeps; a program that makes a counter a request must not grow its items for ever."""

_BUSY: dict[int, tuple[RLock, list[None]]] = {}
"""By `id` of an item that is being counted: its lock, and an entry for each thread that has or wants it."""
_GUARD = Lock()
"""Held for no longer than it takes to look into `_BUSY`."""


@contextmanager
def _alone_with(item: Item) -> Iterator[None]:
    """No two threads are in here with one item at once, and none waits for another item's."""
    with _GUARD:
        lock, threads = _BUSY.setdefault(id(item), (RLock(), []))
        threads.append(None)
    try:
        with lock:
            yield
    finally:
        with _GUARD:
            threads.pop()
            if not threads:
                del _BUSY[id(item)]


class _Memo:
    """What one counter found of one item. Amounts are tokens.

    Attributes:
        counter: The counter.
        measured: The item as it is.
        name: Of an output: its tool's name, and what every output costs.
        others: Of an output: its parts that are no text.
        images: Each image part.
        cleared: The item once cleared; None until asked for.
        cut: The last limit other than 0 that a cut was asked for, and the cut.
        shortest: The cut for a limit of 0; None until asked for.
    """

    __slots__ = ("cleared", "counter", "cut", "images", "measured", "name", "others", "shortest")

    def __init__(self, counter: TokenCounter, measured: Measured, *, name: int = 0, others: int = 0, images: tuple[int, ...] = ()) -> None:
        self.counter = counter
        self.measured = measured
        self.name = name
        self.others = others
        self.images = images
        self.cleared: int | None = None
        self.cut: tuple[int, Cut] | None = None
        self.shortest: Cut | None = None


class Measurer:
    """Measures items with one counter. Several threads may use it, and several measurers the same items."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._equal = counter  # the same, or the one like it by which items were measured last: asked of every item, so not by `==`
        self._framing = framing_of(counter)

    def measured(self, item: Item) -> Measured:
        """Tokens of the item, and what its images' placeholders would save."""
        return self._memo(item).measured

    def images(self, item: Item) -> list[int]:
        """Tokens of each image part of the item."""
        return list(self._memo(item).images)

    def cleared(self, item: Item) -> int:
        """Tokens of an output with a placeholder for content; of what is cleared already, what it costs now."""
        memo = self._memo(item)
        if memo.cleared is None:
            if not isinstance(item, FunctionCallOutput) or item.extra.get(MARK) == CLEARED:
                memo.cleared = memo.measured.tokens
            else:
                memo.cleared = memo.name + self.counter.count_text(output_placeholder(item))
        return memo.cleared

    def shortened(self, item: Item, limit: int) -> Cut:
        """The longest cut of an output with at most `limit` tokens, else the shortest there is.

        Where there is no text to cut, the cut takes nothing out and costs what the item does.
        """
        assert isinstance(item, FunctionCallOutput)
        memo = self._memo(item)
        if limit == 0:  # asked at every trim, between questions about other limits
            if memo.shortest is None:
                memo.shortest = self._cut(item, memo, 0)
            return memo.shortest
        known = memo.cut
        if known is None or known[0] != limit:
            known = memo.cut = (limit, self._cut(item, memo, limit))
        return known[1]

    def _cut(self, item: FunctionCallOutput, memo: _Memo, limit: int) -> Cut:
        text, was = output_text(item), original_of(item)
        if not text or item.extra.get(MARK) == CLEARED:
            return Cut(0, 0, memo.measured.tokens)
        beside = memo.name + memo.others

        def tokens(head: int, tail: int) -> int:
            return self.counter.count_text(cut_text(item, head, tail))

        head, tail = was.kept(*longest_cut(text, limit - beside, tokens, memo.measured.tokens - beside))
        return Cut(head, tail, beside + tokens(head, tail))

    def _memo(self, item: Item) -> _Memo:
        latest = getattr(item, "memo", None)
        if isinstance(latest, _Memo) and latest.counter is self._equal:  # nearly always, and asked for all items at every report
            return latest
        memo = self._known(item)
        if memo is None:
            with _alone_with(item):
                memo = self._known(item)  # another thread may have been here first
                if memo is None:
                    memo = self._measure(item)
                    others = _memos(item)[: COUNTERS_REMEMBERED - 1]
                    object.__setattr__(item, "memo", (memo, *others) if others else memo)
        return memo

    def _known(self, item: Item) -> _Memo | None:
        for memo in _memos(item):
            if memo.counter is self.counter or memo.counter == self.counter:
                self._equal = memo.counter
                return memo
        return None

    def _measure(self, item: Item) -> _Memo:
        count_text, framing = self.counter.count_text, self._framing
        match item:
            case Message():
                return self._with_parts(item, item.content, _around(item, framing))
            case FunctionCall():
                tokens = framing.call + count_text(item.name) + self._arguments(item.arguments)
                if framing.sealed_calls and isinstance(signature := item.metadata.get("thought_signature"), str):
                    tokens += signature_tokens(signature)
            case FunctionCallOutput():
                return self._with_parts(item, item.output, framing.output + count_text(item.name))
            case AgentHandoff() | AgentConfigUpdate():
                tokens = 0
            case Compaction():
                tokens = framing.message + count_text(SUMMARY_HEADER + item.summary)
            case _:
                sealed = item.data or (item.signature if not item.text else None)
                tokens = framing.message + count_text(item.text) + sealed_tokens(sealed or "")
        return _Memo(self.counter, Measured(tokens))

    def _arguments(self, arguments: str) -> int:
        each = self._framing.argument
        texts = argument_texts(arguments) if each else None
        return self.counter.count_text(arguments) if texts is None else each * len(texts) + self.counter.count_text("\n".join(texts))

    def _with_parts(self, item: Item, parts: tuple[Part, ...], name: int) -> _Memo:
        counts = [self.counter.count_part(_as_sent(part)) for part in parts]
        notes = original_of(item).notes if isinstance(item, FunctionCallOutput) and MARK in item.extra else ()
        pictures = [(place, part, counts[place]) for place, part in enumerate(parts) if isinstance(part, Image)]
        saved = tuple((place, tokens - self.counter.count_text(image_placeholder(item, place, part))) for place, part, tokens in pictures)
        return _Memo(
            self.counter,
            Measured(name + sum(counts), saved),
            name=name,
            others=sum(
                tokens
                for place, (part, tokens) in enumerate(zip(parts, counts, strict=True))
                if not isinstance(part, Text) or place in notes
            ),
            images=tuple(tokens for _, _, tokens in pictures),
        )


def _as_sent(part: Part) -> Part:
    """Return the part with the space that converters put after a text like one of theirs, counted wherever the text stands."""
    return Text(text) if isinstance(part, Text) and (text := escaped(part.text, *ADDED)) is not part.text else part


def _memos(item: Item) -> tuple[_Memo, ...]:
    """What counters found of the item, the latest counter first. A loaded or copied item has no such attribute yet."""
    known = getattr(item, "memo", None)
    if isinstance(known, tuple):
        return known
    return (known,) if isinstance(known, _Memo) else ()


def _around(message: Message, framing: Framing) -> int:
    match message.role:
        case "system" | "developer":
            return framing.system
        case "assistant":
            return framing.answer
        case _:
            return framing.message


def sealed_tokens(payload: str) -> int:
    """Tokens behind an encrypted payload, estimated: base64 holds three bytes in four characters, a token about four bytes."""
    return len(payload) * 3 // 16
