"""Truncates a text in the middle so that it fits a token limit. The cut is found by counting candidates, not by proportion."""

from __future__ import annotations

from collections.abc import Callable

LINE_SLACK = 4
"""The head may give up a quarter of its length to end at a line's end. The tail gets the room."""
AIMS = 3
"""Guesses by proportion before the search closes in step by step."""
NEAR = 8
"""A guess within this many characters of the last one is close enough to stop guessing."""
LOOK_BACK = 1_024
"""Characters before a cut that are searched for the start of a user-perceived character."""


def longest_cut(text: str, limit: int, tokens: Callable[[int, int], int], total: int) -> tuple[int, int]:
    """Return how many characters of head and tail to keep: as many as fit `limit`, or (0, 0) if even the marker does not fit.

    The head ends at a line's end if one is near; the tail then fills the remaining room. No user-perceived character is split.
    At least one character is removed.

    A tokenizer may charge less for a longer text, so a longer cut may exist; but the returned one has been counted and fits.
    The search counts a few dozen candidates, however long the text is.

    Args:
        text: The text to truncate.
        limit: Maximum tokens of the result.
        tokens: Returns the tokens of the result for a length of head and tail, including the marker between them.
        total: Tokens of the whole text, for the first guess.
    """
    if not text or (marker_tokens := tokens(0, 0)) > limit:
        return 0, 0

    def split(length: int) -> tuple[int, int]:
        return _boundary(text, length - length // 2), _tail(text, length // 2)

    guess = limit * len(text) // max(1, total)
    length = _largest(lambda count: tokens(*split(count)), limit, len(text) - 1, guess, marker_tokens)
    head, tail = split(length)
    newline = text.rfind("\n", head - head // LINE_SLACK, head)
    if newline < 0 and head + tail == length:
        return head, tail
    end = newline + 1 if newline >= 0 else head
    room = _largest(lambda count: tokens(end, _tail(text, count)), limit, len(text) - 1 - end, length - end, marker_tokens)
    longer_tail = _tail(text, room)
    if not longer_tail and tokens(end, 0) > limit:  # the search assumes that a tail of 0 fits
        return head, tail
    return end, longer_tail


def longest_length(longest: int, limit: int, tokens: Callable[[int], int], total: int) -> int:
    """Return the largest number of characters, up to `longest`, with which a text costs at most `limit` tokens; 0 if none fits.

    `tokens` returns the tokens of the result for a number of characters that are kept, marker included; `total` those of the whole text,
    for the first guess.
    """
    marker_tokens = tokens(0)
    return 0 if marker_tokens > limit else _largest(tokens, limit, longest, limit * longest // max(1, total), marker_tokens)


def _largest(cost: Callable[[int], int], limit: int, highest: int, guess: int, base_cost: int) -> int:
    """Return the largest number up to `highest` whose cost is within the limit. Any result but 0 has been tried.

    The cost should rise with the number; otherwise a larger result may exist. That of 0 is about `base_cost`, and assumed to be within the
    limit. `guess` is tried first.
    """
    low, high = 0, highest + 1  # `low` fits; `high` does not fit or is out of bounds
    probe, aims, step = guess, AIMS, NEAR
    while high - low > 1:  # each round tries a number strictly between them
        probe = min(max(probe, low + 1), high - 1)
        probe_cost = cost(probe)
        if probe_cost <= limit:
            low = probe
        else:
            high = probe
        aim = probe * (limit - base_cost) // max(1, probe_cost - base_cost)
        if aims and abs(aim - probe) > NEAR:
            aims -= 1
            probe = aim
            continue
        aims = 0
        middle = (low + high) // 2
        probe = min(low + step, middle) if probe_cost <= limit else max(high - step, middle)
        step *= 4
    return low


def _tail(text: str, length: int) -> int:
    """Return the length of the tail, shortened if it would begin inside a character."""
    start = len(text) - length
    boundary = _boundary(text, start)
    if boundary == start:
        return length
    import regex

    match = regex.compile(r"\X").match(text, boundary)
    return len(text) - match.end() if match else 0


def _boundary(text: str, index: int) -> int:
    """Return the last index up to this one that is not inside a character (a grapheme cluster of Unicode's annex 29).

    A cluster longer than `LOOK_BACK` is no real character and may be cut.
    """
    if index <= 0 or index >= len(text) or _is_between_ascii(text, index):
        return max(0, min(index, len(text)))
    import regex  # installed with tiktoken; needed only for cuts next to non-ASCII characters

    start = max(0, index - LOOK_BACK)
    # A match ends at a boundary wherever it began. The pattern sees `text[index]`, which may belong to the cluster before it.
    ends = [end for match in regex.finditer(r"\X", text[start : index + 1]) if (end := start + match.end()) <= index]
    return ends[-1] if ends else index if start else 0


def _is_between_ascii(text: str, index: int) -> bool:
    """True if `index` is between two ASCII characters that are not a CRLF, so that a cut there splits nothing."""
    before, after = text[index - 1], text[index]
    return before.isascii() and after.isascii() and not (before == "\r" and after == "\n")
