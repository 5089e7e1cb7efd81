"""What somebody may have meant by a word that is none of a vocabulary's."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST = 3
"""Words that are named at most."""


def alike(word: str, words: Iterable[str]) -> list[str]:
    """Return `MOST` words: those with this one, in any case, as a part, then those spelled much like it, then those with such a part."""
    from difflib import get_close_matches  # slow to import, and only for mistakes

    known = {each.lower(): each for each in words}
    part = word.lower()
    holding = sorted((each for each in known if len(part) > 1 and part in each), key=len)
    close = get_close_matches(part, known, MOST)
    pieces = {piece: each for each in reversed(known) for piece in re.split(r"[-_./ ]", each) if len(piece) > MOST}
    found = [*holding, *close, *(pieces[piece] for piece in get_close_matches(part, pieces, MOST, cutoff=0.75))]
    return [known[each] for each in dict.fromkeys(found)][:MOST]


def did_you_mean(word: str, words: Iterable[str], otherwise: str = "") -> str:
    """Return a question that names what may have been meant, such as `did you mean week or month?`; else what is to be said otherwise."""
    found = alike(word, words)
    return f"did you mean {' or '.join(found)}?" if found else otherwise
