"""The o200k vocabulary as package data: no download, at first use or ever."""

from __future__ import annotations

import hashlib
import lzma
from functools import cache
from importlib.resources import files
from threading import Lock
from typing import TYPE_CHECKING

from ..errors import ContextWindowError

if TYPE_CHECKING:
    import tiktoken

FILE = "o200k_base.lc.xz"
SHA256 = "536f26bf9396002856d40f146569cc49f7af10c9bb4329669cd4123da7627dec"
TOKENS = 199_998
SPECIAL = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}

# How o200k_base splits text before merging, one alternative a line; tiktoken's `openai_public` documents it.
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_SUFFIX}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_SUFFIX}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


_loading = Lock()


def o200k() -> tiktoken.Encoding:
    """The encoding, loaded once a process, in about 0.4 s.

    Raises:
        ContextWindowError: The package's vocabulary file is missing or damaged.
    """
    with _loading:  # `cache` alone lets two threads that come first load it twice
        return _loaded()


@cache
def _loaded() -> tiktoken.Encoding:
    import tiktoken  # 30 ms, and a compiled extension: only those who count pay for it

    return tiktoken.Encoding("o200k_base", pat_str=PATTERN, mergeable_ranks=_ranks(), special_tokens=SPECIAL)


def _ranks() -> dict[bytes, int]:
    """Layout of the file after xz: one length byte a token, then the tokens' bytes, both in order of rank."""
    try:
        packed = (files("context_window") / "data" / FILE).read_bytes()
    except OSError as error:
        raise ContextWindowError(f"the vocabulary {FILE} is missing from the package; install context-window-manager again") from error
    if hashlib.sha256(packed).hexdigest() != SHA256:
        raise ContextWindowError(f"the vocabulary {FILE} is damaged (its hash differs); install context-window-manager again")
    unpacked = lzma.decompress(packed)
    ranks: dict[bytes, int] = {}
    start = TOKENS
    for rank, length in enumerate(unpacked[:TOKENS]):
        ranks[unpacked[start : start + length]] = rank
        start += length
    return ranks
