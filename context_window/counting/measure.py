"""What an item costs, as it is and in the forms a trim may give it. Each item is counted once a counter, and remembers.

An item's tokens are those of its texts and parts plus `ITEM_TOKENS`, for calls and outputs `CALL_TOKENS` more; what is
never sent (handoffs, config updates) costs nothing.
"""

from __future__ import annotations

from session.estimate import CALL_TOKENS, ITEM_TOKENS
from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message
from session.parts import Image, Part, Text

from ..trimming.state import Measured
from ..trimming.placeholders import MARK, cut_text, image_placeholder, output_placeholder
from ..trimming.plan import Cut
from .counter import TokenCounter
from .cutting import longest_cut

COUNTERS_REMEMBERED = 8
"""Counters whose figures an item keeps; a program that makes a counter a request must not grow its items for ever."""


class _Memo:
    """What one counter found of one item."""

    __slots__ = ("cleared", "counter", "measured")

    def __init__(self, counter: TokenCounter, measured: Measured) -> None:
        self.counter = counter
        self.measured = measured
        self.cleared: int | None = None


class Measurer:
    """Measures items with one counter."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter

    def measured(self, item: Item) -> Measured:
        """Tokens of the item, and what its images' placeholders would save."""
        return self._memo(item).measured

    def images(self, item: Item) -> list[int]:
        """Tokens of each image part of the item."""
        parts = item.content if isinstance(item, Message) else item.output if isinstance(item, FunctionCallOutput) else ()
        return [self.counter.count_part(part) for part in parts if isinstance(part, Image)]

    def cleared(self, item: Item) -> int:
        """Tokens of an output with a placeholder for content; of what is cleared already, what it costs now."""
        memo = self._memo(item)
        if memo.cleared is None:
            if not isinstance(item, FunctionCallOutput) or item.extra.get(MARK) == "cleared":
                memo.cleared = memo.measured.tokens
            else:
                memo.cleared = self._frame(item) + self.counter.count_text(output_placeholder(item))
        return memo.cleared

    def shortened(self, item: Item, limit: int) -> Cut:
        """The longest cut of an output with at most `limit` tokens, else the shortest there is."""
        assert isinstance(item, FunctionCallOutput)
        beside = self._frame(item) + sum(self.counter.count_part(part) for part in item.output if not isinstance(part, Text))
        text = item.text

        def tokens(head: int, tail: int) -> int:
            return self.counter.count_text(cut_text(item, head, tail))

        head, tail = longest_cut(text, limit - beside, tokens, self.counter.count_text(text))
        return Cut(head, tail, beside + tokens(head, tail))

    def _memo(self, item: Item) -> _Memo:
        known = getattr(item, "memo", None)
        if isinstance(known, _Memo):
            if known.counter is self.counter:
                return known
            known = (known,)
        for memo in known or ():
            if memo.counter is self.counter or memo.counter == self.counter:
                return memo
        memo = _Memo(self.counter, self._measure(item))
        object.__setattr__(item, "memo", (memo, *known[: COUNTERS_REMEMBERED - 1]) if known else memo)
        return memo

    def _measure(self, item: Item) -> Measured:
        count_text = self.counter.count_text
        match item:
            case Message():
                return self._with_parts(item, ITEM_TOKENS, item.content)
            case FunctionCall():
                return Measured(ITEM_TOKENS + CALL_TOKENS + count_text(item.name) + count_text(item.arguments))
            case FunctionCallOutput():
                return self._with_parts(item, self._frame(item), item.output)
            case AgentHandoff() | AgentConfigUpdate():
                return Measured(0)
            case Compaction():
                return Measured(ITEM_TOKENS + count_text(item.summary))
            case _:
                sealed = item.data or (item.signature if not item.text else None)
                return Measured(ITEM_TOKENS + count_text(item.text) + sealed_tokens(sealed or ""))

    def _with_parts(self, item: Item, frame: int, parts: tuple[Part, ...]) -> Measured:
        total = frame
        images = []
        for place, part in enumerate(parts):
            tokens = self.counter.count_part(part)
            total += tokens
            if isinstance(part, Image):
                images.append((place, tokens - self.counter.count_text(image_placeholder(item, place, part))))
        return Measured(total, tuple(images))

    def _frame(self, item: FunctionCallOutput) -> int:
        return ITEM_TOKENS + CALL_TOKENS + self.counter.count_text(item.name)


def sealed_tokens(payload: str) -> int:
    """Tokens behind an encrypted payload, estimated: base64 holds three bytes in four characters, a token about four bytes."""
    return len(payload) * 3 // 16
