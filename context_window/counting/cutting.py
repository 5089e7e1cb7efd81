"""Cutting a text in the middle so that it costs at most so many tokens: found by counting, not by proportion."""

from __future__ import annotations

from collections.abc import Callable

WINDOW = 64
"""Characters around a cut that are looked at for what a reader sees as one character."""
LINE_SLACK = 4
"""The head may give up a fourth of itself to end at a line's end; the tail gets the room."""


def longest_cut(text: str, limit: int, tokens: Callable[[int, int], int], whole: int) -> tuple[int, int]:
    """How many characters of head and tail to keep, as many as `limit` allows; (0, 0) where even the marker is too much.

    The head ends at a line's end where one is near; the tail then fills what is left. No cut splits what a reader sees as
    one character.

    Args:
        text: What is cut.
        limit: Tokens that the result may have.
        tokens: Tokens of the result for a head and a tail, the marker between them included.
        whole: Tokens of the whole text, to guess from.
    """
    if not text or tokens(0, 0) > limit:
        return 0, 0
    guess = max(1, limit * len(text) // max(1, whole))

    def both(kept: int) -> tuple[int, int]:
        return _back_to_boundary(text, kept - kept // 2), _forward_to_boundary(text, kept // 2)

    kept = _largest(lambda count: tokens(*both(count)) <= limit, len(text) - 1, guess)
    head, tail = both(kept)
    newline = text.rfind("\n", head - head // LINE_SLACK, head)
    if newline >= 0:
        head = newline + 1
    filled = _largest(lambda count: tokens(head, _forward_to_boundary(text, count)) <= limit, len(text) - 1 - head, tail)
    return head, _forward_to_boundary(text, filled)


def _largest(fits: Callable[[int], bool], highest: int, guess: int) -> int:
    """The largest number that fits, where 0 does and larger ones fit less: asks near the guess first."""
    low, high = 0, highest + 1  # `low` fits, `high` does not
    step = max(1, guess // 32)
    probe = min(max(guess, 1), highest)
    while high - low > 1:
        if fits(probe):
            low = probe
            probe = min(low + step, high - 1) if high > highest else (low + high) // 2
        else:
            high = probe
            probe = max(high - step, low + 1) if low == 0 else (low + high) // 2
        step *= 4
    return low


def _back_to_boundary(text: str, end: int) -> int:
    return _boundary(text, end)


def _forward_to_boundary(text: str, length: int) -> int:
    """The length of the tail, made shorter where it would begin inside a character."""
    start = len(text) - length
    boundary = _boundary(text, start)
    while boundary < start:  # the first boundary at or after `start`
        boundary = next_boundary(text, boundary)
    return len(text) - boundary


def _boundary(text: str, place: int) -> int:
    """The last place at or before `place` that is no inside of a character."""
    if place <= 0 or place >= len(text) or _plain(text, place):
        return max(0, min(place, len(text)))
    start = place
    while start > max(0, place - WINDOW) and not _plain(text, start):
        start -= 1
    while (after := next_boundary(text, start)) <= place:
        start = after
    return start


def _plain(text: str, place: int) -> bool:
    """Whether a cut here is between two ASCII characters (and not inside a line end), so that no one would see it."""
    before, after = text[place - 1], text[place]
    return before.isascii() and after.isascii() and not (before == "\r" and after == "\n")


def next_boundary(text: str, place: int) -> int:
    """Where the character that begins at `place` ends: a grapheme cluster, as Unicode's annex 29 has it."""
    import regex  # tiktoken brings it; only cuts in other texts than ASCII need it

    found = regex.compile(r"\X").match(text, place)
    return found.end() if found else len(text)
