"""Cutting a text in the middle so that it costs at most so many tokens: found by counting, not by proportion."""

from __future__ import annotations

from collections.abc import Callable

LINE_SLACK = 4
"""The head may give up a fourth of itself to end at a line's end; the tail gets the room."""
AIMS = 3
"""Times that the search follows the proportion before it closes in step by step."""
NEAR = 8
"""Characters that a good aim may be off."""
LOOK_BACK = (64, 1_024, 16_384)
"""Characters before a cut in which the beginning of what a reader sees as one character is looked for: first in few, then in more."""
HALF_FLAGS = r"\U0001F1E6-\U0001F1FF"
"""The regional indicators, two of which make a flag."""


def longest_cut(text: str, limit: int, tokens: Callable[[int, int], int], whole: int) -> tuple[int, int]:
    """How many characters of head and tail to keep, as many as `limit` allows; (0, 0) where even the marker is too much.

    The head ends at a line's end where one is near; the tail then fills what is left. No cut splits what a reader sees as
    one character. At least one character is taken out.

    A tokenizer may charge a longer text less, so there may be a longer cut yet; but what is given has been counted, and
    fits. It takes some dozen counts of results, however long the text is.

    Args:
        text: What is cut.
        limit: Tokens that the result may have.
        tokens: Tokens of the result for a head and a tail, the marker between them included.
        whole: Tokens of the whole text, to guess from.
    """
    if not text or (least := tokens(0, 0)) > limit:
        return 0, 0

    def both(kept: int) -> tuple[int, int]:
        return _head(text, kept - kept // 2), _tail(text, kept // 2)

    guess = limit * len(text) // max(1, whole)
    kept = _largest(lambda count: tokens(*both(count)), limit, len(text) - 1, guess, least)
    head, tail = both(kept)
    newline = text.rfind("\n", head - head // LINE_SLACK, head)
    if newline < 0 and head + tail == kept:
        return head, tail
    end = newline + 1 if newline >= 0 else head
    filled = _largest(lambda count: tokens(end, _tail(text, count)), limit, len(text) - 1 - end, kept - end, least)
    longer = _tail(text, filled)
    if not longer and tokens(end, 0) > limit:  # the search takes for granted that nothing fits
        return head, tail
    return end, longer


def _largest(cost: Callable[[int], int], limit: int, highest: int, guess: int, least: int) -> int:
    """The largest number up to `highest` whose cost is within the limit; what it gives, 0 aside, has been asked about.

    Args:
        cost: What a number costs. It should rise with the number; where it does not, there may be a larger one.
        limit: What it may cost. 0 is taken to be within it.
        highest: The largest number that may be.
        guess: Where to begin.
        least: What 0 costs, roughly.
    """
    low, high = 0, highest + 1  # `low` fits; `high` does not, or is out of bounds
    probe, aims, step = guess, AIMS, NEAR
    while high - low > 1:  # each turn asks about one strictly between them
        probe = min(max(probe, low + 1), high - 1)
        found = cost(probe)
        if found <= limit:
            low = probe
        else:
            high = probe
        aim = probe * (limit - least) // max(1, found - least)
        if aims and abs(aim - probe) > NEAR:
            aims -= 1
            probe = aim
            continue
        aims = 0
        middle = (low + high) // 2
        probe = min(low + step, middle) if found <= limit else max(high - step, middle)
        step *= 4
    return low


def _head(text: str, length: int) -> int:
    """The length of the head, made shorter where it would end inside a character."""
    return _boundary(text, length)


def _tail(text: str, length: int) -> int:
    """The length of the tail, made shorter where it would begin inside a character."""
    start = len(text) - length
    boundary = _boundary(text, start)
    return length if boundary == start else len(text) - _end(text, boundary)


def _boundary(text: str, place: int) -> int:
    """The last place at or before `place` that is not inside a character: a grapheme cluster, as Unicode's annex 29 has it.

    A cluster that goes on for more than `LOOK_BACK` is no one's character, and may be cut.
    """
    if place <= 0 or place >= len(text) or _plain(text, place):
        return max(0, min(place, len(text)))
    import regex  # tiktoken brings it; only cuts beside other characters than ASCII need it

    if _half_flag(text[place - 1]) and _half_flag(text[place]):  # by hand: `regex` counts a run anew at each of its places
        return _boundary(text, place - 1) if (place - _run_of_flags(text, place)) % 2 else place
    for back in LOOK_BACK:
        start = max(0, place - back)
        certain = start == 0
        if _half_flag(text[start]):  # to the last flag of the run, for the same reason
            after = regex.compile(rf"[^{HALF_FLAGS}]").search(text, start, place + 1)
            end = after.start() if after else place
            run = _run_of_flags(text, end)
            if end - run > 2:
                start, certain = end - 2 + (end - run) % 2, True
        found = [start] if certain else []
        # A match ends at a boundary wherever it began. It may look at the character at `place`, which may belong to those before.
        found += [end for match in regex.compile(r"\X").finditer(text, start, place + 1) if (end := match.end()) <= place]
        if found:
            return found[-1]
    return place


def _run_of_flags(text: str, end: int) -> int:
    """Where the run of half flags that ends at `end` begins."""
    import regex

    before = regex.compile(rf"(?r)[^{HALF_FLAGS}]").search(text, 0, end)
    return before.end() if before else 0


def _end(text: str, place: int) -> int:
    """Where the character that begins at `place` ends."""
    import regex

    match = regex.compile(r"\X").match(text, place)
    return match.end() if match else len(text)


def _half_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _plain(text: str, place: int) -> bool:
    """Whether a cut here is between two ASCII characters (and not inside a line end), so that no one would see it."""
    before, after = text[place - 1], text[place]
    return before.isascii() and after.isascii() and not (before == "\r" and after == "\n")
