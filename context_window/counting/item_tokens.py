"""Tokens of an item, as it is and in the shorter forms that a trim can give it. Each item is counted once per counter and remembers.

An item's tokens are those of its texts and parts, plus the framing that the provider writes around them (`framing.py`). Items that
are never sent (config updates without instructions) cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock, RLock

from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Document, Image, Part, Text
from session.providers.additions import ADDED, escaped, handoff_note, summary_text
from session.providers.native_compaction import sealed_text

from ..decision.edits import LinePrice, Measured
from ..decision.extracts import section, texts_of
from ..decision.placeholders import (
    CLEARED,
    GAP,
    MARK,
    arguments_once_cleared,
    changed,
    cut_call,
    cut_text,
    image_placeholder,
    longest_text,
    middle_cut,
    original_of,
    output_placeholder,
    output_text,
)
from ..decision.plan import Cut
from ..decision.tool_rules import LOADED_TOOLS
from .anthropic_options import argument_texts
from .counter import TokenCounter
from .ctok_counter import CtokCounter
from .documents import text_of
from .framing import Framing, framing_of, signature_tokens
from .gemini_tools import argument_strings, escaped_arguments
from .gigatoken_counter import GigatokenCounter
from .images_gemini import gemini_output_pages, gemini_pages
from .text_truncation import longest_cut, longest_length
from .tiktoken_counter import TiktokenCounter

COUNTERS_REMEMBERED = 8
"""Counters whose results an item keeps. Items must not grow without end in a program that makes a new counter per request."""

OPENAI_SEAL, OPENAI_SEAL_BYTES = "gAAAA", 765
"""How OpenAI's encrypted reasoning begins, and the bytes of it that are not reasoning."""

LOADED_TOOLS_MAX = 1_000
"""The most tools that an output is believed to load."""

_LOCKS = tuple(RLock() for _ in range(256))
"""Locks for threads that count the same item with a counter of ours, which are fast: the one chosen by the item's `id`. A lock for each
item takes as long as all the work besides its tokens."""
_ALIGNED = 6
"""Lowest bits of an item's `id`, which say little: items are larger than 64 bytes."""


_ITEM_LOCKS: dict[int, tuple[RLock, list[None]]] = {}
"""Locks of the items that callers' counters are counting, by `id` of the item. The list has an entry per thread that holds or awaits the
lock. Such a counter may take long or count other items, so no other item may wait for it."""
_ITEM_LOCKS_GUARD = Lock()
"""Protects `_ITEM_LOCKS`. Held only for the moment of looking a lock up."""


class _Exclusive:
    """Lets one thread at a time count an item. Threads that count different items do not wait for each other."""

    __slots__ = ("_key", "_lock", "_threads")

    def __init__(self, item: Item) -> None:
        """Take an item, which the caller keeps for as long as this is in use."""
        self._key = id(item)

    def __enter__(self) -> None:
        with _ITEM_LOCKS_GUARD:
            self._lock, self._threads = _ITEM_LOCKS.setdefault(self._key, (RLock(), []))
            self._threads.append(None)
        try:
            self._lock.acquire()
        except BaseException:
            self._leave()
            raise

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        with _ITEM_LOCKS_GUARD:
            self._threads.pop()
            if not self._threads:
                del _ITEM_LOCKS[self._key]


class _ItemCounts:
    """One counter's results for one item. Amounts are tokens; None until asked for.

    Of an output, `base` is its framing and its tool's name, `fixed_parts` are the parts that cannot be truncated. `cleared_cut` is the last
    cut of a call that was cleared, with the tokens after that; `cut` the last limit other than 0 that a cut was made for, with the cut;
    `shortest` the cut for a limit of 0; `line_price` what its lines cost.
    """

    __slots__ = ("base", "cleared", "cleared_cut", "counter", "cut", "fixed_parts", "images", "line_price", "measured", "shortest")

    def __init__(
        self, counter: TokenCounter, measured: Measured, *, base: int = 0, fixed_parts: int = 0, images: tuple[int, ...] = ()
    ) -> None:
        self.counter = counter
        self.measured = measured
        self.base = base
        self.fixed_parts = fixed_parts
        self.images = images
        self.cleared: int | None = None
        self.cleared_cut: tuple[Cut, int] | None = None
        self.cut: tuple[int, Cut] | None = None
        self.shortest: Cut | None = None
        self.line_price: LinePrice | None = None


class Measurer:
    """Measures items with one counter. Thread-safe; several measurers may share items."""

    def __init__(self, counter: TokenCounter, deferred: Iterable[tuple[str, int]] = ()) -> None:
        """`deferred` has name and tokens of each tool whose definition is sent with the output of the search that found it."""
        self.counter = counter
        self._deferred = dict(deferred)
        self._equal_counter = counter  # the counter of the last memo that was used: comparing by `is` is faster than by `==`
        self._framing = framing_of(counter)
        self._is_own = type(counter) in (TiktokenCounter, GigatokenCounter, CtokCounter)  # then a part that is a text counts as that text

    def measure(self, item: Item) -> Measured:
        """Return the item's tokens, and the tokens that a placeholder would save for each image."""
        measured = self._memo(item).measured
        loaded = self._found_tools_tokens(item) if self._deferred else 0
        return measured._replace(tokens=measured.tokens + loaded) if loaded else measured

    def measure_all(self, items: Iterable[Item]) -> list[Measured]:
        """Return `measure` of each item.

        This is faster than to measure them among other work, which takes the place of the tokenizer's tables in the processor's cache.
        """
        return list(map(self.measure, items)) if self._deferred else [self._memo(item).measured for item in items]

    def image_tokens(self, item: Item) -> list[int]:
        """Return the tokens of each image part of the item."""
        return list(self._memo(item).images)

    def cleared_tokens(self, item: Item, cut: Cut | None = None) -> int:
        """Return the tokens of an output or call once cleared. An item that cannot be cleared keeps its tokens.

        Of a call that is truncated already, only the values that are still long are cleared.
        """
        memo = self._memo(item)
        if cut is not None and isinstance(item, FunctionCall):
            if memo.cleared_cut is None or memo.cleared_cut[0] != cut:
                memo.cleared_cut = (cut, self._cleared_call_tokens(cut_call(item, cut)))
            return memo.cleared_cut[1]
        if memo.cleared is None:
            if isinstance(item, FunctionCall):
                memo.cleared = self._cleared_call_tokens(item, memo.measured.tokens)
            elif isinstance(item, FunctionCallOutput) and item.extra.get(MARK) != CLEARED:
                memo.cleared = memo.base + self.counter.count_text(output_placeholder(item))
            else:
                memo.cleared = memo.measured.tokens
        return memo.cleared

    def _file_framing(self, item: Item, part: Part) -> int:
        if not isinstance(part, Document):
            return 0
        if self._framing.sharp_pages and isinstance(item, FunctionCallOutput) and text_of(part) is None:
            return (gemini_output_pages(part) or 0) - (gemini_pages(part) or 0)
        return self._framing.file if self._framing.file and text_of(part) is not None else 0

    def _found_tools_tokens(self, item: Item) -> int:
        """Return the tokens of the deferred tools that an output names: Claude's `tool_reference` is read as the tool's name."""
        if not isinstance(item, FunctionCallOutput):
            return 0
        return sum(self._deferred.get(part.text, 0) for part in item.output if isinstance(part, Text))

    def _cleared_call_tokens(self, call: FunctionCall, tokens: int | None = None) -> int:
        """Return the tokens of a call once cleared; `tokens`, if given, are those of the call as it is."""
        arguments = arguments_once_cleared(call)
        return self._call_tokens(call, arguments) if tokens is None or arguments != call.arguments else tokens

    def line_price(self, item: Item) -> LinePrice:
        """Return what the lines of the item cost (`decision/extracts.py`). Images do not count."""
        memo = self._memo(item)
        if memo.line_price is None:
            tokens = memo.measured.tokens - sum(memo.images)
            memo.line_price = LinePrice(self.counter.count_text(GAP), tokens, max(1, sum(map(len, texts_of(item)))))
        return memo.line_price

    def section_tokens(self, item: Item, lines: Sequence[int], call: FunctionCall | None = None) -> int:
        """Return the tokens of what a digest shows of the item if it shows these lines; `call` is that of an output."""
        return self.counter.count_part(_as_sent(Text(section(item, lines, call))))

    def truncated(self, item: Item, limit: int) -> Cut:
        """Return the longest cut of an item that costs at most `limit` tokens, or the shortest cut if none fits.

        An output without text is left whole, and so is one that names a deferred tool, and a call whose arguments are not a JSON object:
        the cut has the tokens of the item.
        """
        memo = self._memo(item)
        if self._deferred and self._found_tools_tokens(item):
            return Cut(0, 0, self.measure(item).tokens)
        if limit == 0:  # every trim asks for this one, between other limits
            if memo.shortest is None:
                memo.shortest = self._cut(item, memo, 0)
            return memo.shortest
        latest = memo.cut
        if latest is None or latest[0] != limit:
            latest = memo.cut = (limit, self._cut(item, memo, limit))
        return latest[1]

    def cut_tokens(self, item: Item, cut: Cut) -> int:
        """Return the tokens of an item with this cut."""
        return self._count(changed(item, (), cut)).measured.tokens

    def _cut(self, item: Item, memo: _ItemCounts, limit: int) -> Cut:
        return self._cut_output(item, memo, limit) if isinstance(item, FunctionCallOutput) else self._cut_middle(item, memo, limit)

    def _cut_middle(self, item: Item, memo: _ItemCounts, limit: int) -> Cut:
        """Return the cut of a user's message or of a call: every longer text of it keeps the same number of characters."""
        longest = longest_text(item)
        if not longest:
            return Cut(0, 0, memo.measured.tokens)

        def tokens(length: int) -> int:
            return self._count(changed(item, (), middle_cut(length))).measured.tokens

        length = longest_length(longest, limit, tokens, memo.measured.tokens)
        return middle_cut(length, tokens(length))

    def _cut_output(self, item: FunctionCallOutput, memo: _ItemCounts, limit: int) -> Cut:
        text, original = output_text(item), original_of(item)
        if not text or item.extra.get(MARK) == CLEARED:
            return Cut(0, 0, memo.measured.tokens)
        fixed = memo.base + memo.fixed_parts

        def tokens(head: int, tail: int) -> int:
            return self.counter.count_text(cut_text(item, head, tail))

        head, tail = original.available(*longest_cut(text, limit - fixed, tokens, memo.measured.tokens - fixed))
        return Cut(head, tail, fixed + tokens(head, tail))

    def _memo(self, item: Item) -> _ItemCounts:
        latest = getattr(item, "memo", None)
        if type(latest) is _ItemCounts and latest.counter is self._equal_counter:  # the usual case; every report asks for all items
            return latest
        memo = None if latest is None else self._find_memo(item)
        if memo is None:
            with _LOCKS[(id(item) >> _ALIGNED) % len(_LOCKS)] if self._is_own else _Exclusive(item):
                if getattr(item, "memo", None) is not None:  # of another counter, or another thread has counted the item meanwhile
                    memo = self._find_memo(item)
                if memo is None:
                    memo = self._count(item)
                    older = _memos(item)[: COUNTERS_REMEMBERED - 1]
                    object.__setattr__(item, "memo", (memo, *older) if older else memo)
        return memo

    def _find_memo(self, item: Item) -> _ItemCounts | None:
        for memo in _memos(item):
            if memo.counter is self.counter or memo.counter == self.counter:
                self._equal_counter = memo.counter
                return memo
        return None

    def _count(self, item: Item) -> _ItemCounts:
        count_text, framing = self.counter.count_text, self._framing
        match item:
            case Message():
                return self._count_parts(item, item.content, _message_framing(item, framing))
            case FunctionCall():
                return _ItemCounts(self.counter, Measured(self._call_tokens(item, item.arguments), thinking=self._sealed_tokens(item)))
            case FunctionCallOutput():
                return self._count_parts(
                    item, item.output, framing.output + count_text(item.name), framing.loaded_tool * loaded_tools(item)
                )
            case AgentHandoff():
                tokens = framing.message + count_text(handoff_note(item.to_agent, item.from_agent, item.reason))
            case AgentConfigUpdate():
                text = item.instructions or ""
                tokens = framing.system + count_text(text) if text.strip() else 0  # sent as a system message
            case Compaction():
                sealed_summary = sealed_text(item)
                tokens = framing.message + count_text(summary_text(item.summary)) + sealed_tokens(sealed_summary or "")
            case _:
                if framing.drops_reasoning and isinstance(item, Reasoning):
                    return _ItemCounts(self.counter, Measured(0))
                hidden = int(len("" if item.text or item.data else item.signature or "") * framing.signature)
                tokens = framing.message + count_text(item.text) + sealed_tokens(item.data or "") + hidden
                return _ItemCounts(self.counter, Measured(tokens, thinking=hidden if framing.sealed_calls else tokens))
        return _ItemCounts(self.counter, Measured(tokens))

    def _call_tokens(self, call: FunctionCall, arguments: str) -> int:
        """Return the tokens of a call with these arguments."""
        framing = self._framing
        tokens = framing.call + self.counter.count_text(call.name) + self._argument_tokens(arguments)
        return tokens + self._sealed_tokens(call)

    def _sealed_tokens(self, call: FunctionCall) -> int:
        """Return the tokens of the thinking in the signature of a call."""
        signature = call.metadata.get("thought_signature") if self._framing.sealed_calls else None
        return signature_tokens(signature, self._framing.sealed_calls) if isinstance(signature, str) else 0

    def _argument_tokens(self, arguments: str) -> int:
        match self._framing.tool_form:
            case "strings":
                return sum(map(self.counter.count_text, argument_strings(arguments)))
            case "escaped":
                return self.counter.count_text(escaped_arguments(arguments))
        per_argument = self._framing.argument
        texts = argument_texts(arguments) if per_argument else None
        if texts is None:
            return self.counter.count_text(arguments)
        return per_argument * len(texts) + self.counter.count_text("\n".join(texts))

    def _count_parts(self, item: Item, parts: tuple[Part, ...], base: int, added: int = 0) -> _ItemCounts:
        if len(parts) == 1 and isinstance(parts[0], Text) and MARK not in item.extra:  # nearly all items
            if self._is_own:
                tokens = base + self.counter.count_text(escaped(parts[0].text, *ADDED, at_opening=True)) + added
            else:
                tokens = base + self.counter.count_part(_as_sent(parts[0])) + added
            return _ItemCounts(self.counter, Measured(tokens), base=base, fixed_parts=added)
        counts = [self.counter.count_part(_as_sent(part)) + self._file_framing(item, part) for part in parts]
        notes = original_of(item).notes if isinstance(item, FunctionCallOutput) and MARK in item.extra else ()
        images = [(index, part, counts[index]) for index, part in enumerate(parts) if isinstance(part, Image)]
        saved = tuple((index, tokens - self.counter.count_text(image_placeholder(item, index, part))) for index, part, tokens in images)
        return _ItemCounts(
            self.counter,
            Measured(base + sum(counts) + added, saved),
            base=base,
            fixed_parts=added
            + sum(
                tokens
                for index, (part, tokens) in enumerate(zip(parts, counts, strict=True))
                if not isinstance(part, Text) or index in notes
            ),
            images=tuple(tokens for _, _, tokens in images),
        )


def _as_sent(part: Part) -> Part:
    """Return the part with the space that converters put after a text that looks like one of their own additions.

    The space is counted wherever the text stands.
    """
    return Text(text) if isinstance(part, Text) and (text := escaped(part.text, *ADDED, at_opening=True)) is not part.text else part


def _memos(item: Item) -> tuple[_ItemCounts, ...]:
    """Return the item's memos, the latest counter's first. A loaded or copied item does not have the attribute yet."""
    memo = getattr(item, "memo", None)
    if isinstance(memo, tuple):
        return memo
    return (memo,) if isinstance(memo, _ItemCounts) else ()


def loaded_tools(output: FunctionCallOutput) -> int:
    """Return the number of tools whose definitions the provider adds where the output stands: those that a search of tools found."""
    count = output.extra.get(LOADED_TOOLS)
    return count if type(count) is int and 0 < count <= LOADED_TOOLS_MAX else 0


def _message_framing(message: Message, framing: Framing) -> int:
    match message.role:
        case "system" | "developer":
            return framing.system
        case "assistant":
            return framing.answer
        case _:
            return framing.message


def sealed_tokens(payload: str) -> int:
    """Return an estimate of the tokens behind an encrypted payload.

    Base64 holds three bytes in four characters, and a token is about four bytes. OpenAI's reasoning comes with some 765 bytes besides:
    fitted on 1 record, and 3 to 7 tokens off in 3 others.
    """
    size = len(payload) * 3 // 4
    return max(0, size - OPENAI_SEAL_BYTES) // 4 if payload.startswith(OPENAI_SEAL) else size // 4
