"""Vocabularies without a download, at first use or ever: o200k is package data, others are read where tiktoken has kept them."""

from __future__ import annotations

import hashlib
import lzma
import os
import tempfile
from base64 import b64decode
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from ..errors import BudgetError, ContextWindowError

if TYPE_CHECKING:
    import tiktoken

FILE = "o200k_base.lc.xz"
SHA256 = "536f26bf9396002856d40f146569cc49f7af10c9bb4329669cd4123da7627dec"
TOKENS = 199_998
SPECIAL = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}
O200K = "o200k_base"

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


class Cached(NamedTuple):
    """A vocabulary that tiktoken keeps in its cache once somebody has let it download it.

    Attributes:
        key: The file's name there.
        sha256: Of its content, as tiktoken expects it.
        pattern: How it splits text before merging.
    """

    key: str
    sha256: str
    pattern: str


_WORDS = r"\s+(?!\S)|\s+"
_GPT2 = rf"'(?:s|t|re|ve|m|ll|d)| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_WORDS}"
_GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    rf"\s+$|\s*[\r\n]+|{_WORDS}"  # white space at the very end is one piece, newlines or not
)

CACHED = {
    "cl100k_base": Cached(
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", _GPT4
    ),
    "p50k_base": Cached(
        "ec7223a39ce59f226a68acc30dc1af2788490e15", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069", _GPT2
    ),
    "r50k_base": Cached(
        "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", _GPT2
    ),
}
"""The vocabularies of OpenAI's models before 4o. Special tokens are left out: text that looks like one is text."""


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

    return tiktoken.Encoding(O200K, pat_str=PATTERN, mergeable_ranks=_ranks(), special_tokens=SPECIAL)


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


def load(name: str) -> tiktoken.Encoding:
    """The encoding with this name, loaded once a process, and never downloaded.

    Raises:
        BudgetError: It is not known, or not where tiktoken keeps what it has downloaded.
        ContextWindowError: The package's own vocabulary is missing or damaged.
    """
    if name == O200K:
        return o200k()
    if name not in CACHED:
        raise BudgetError("encoding", name, f"is not known; pass one of {', '.join((O200K, *CACHED))}")
    with _loading:
        found = _from_cache(name, _cache_directory())
    if found is None:
        where = "in tiktoken's cache (TIKTOKEN_CACHE_DIR), and nothing is downloaded here"
        raise BudgetError("encoding", name, f"its vocabulary is not {where}; load it once with tiktoken, or count with {O200K}")
    return found


def has_encoding(name: str) -> bool:
    """Whether `load` has this one, without a download."""
    try:
        load(name)
    except BudgetError:
        return False
    return True


def _cache_directory() -> str:
    """Where tiktoken keeps what it has downloaded; empty where it is told to keep nothing."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable]
    return str(Path(tempfile.gettempdir()) / "data-gym-cache")


@cache
def _from_cache(name: str, directory: str) -> tiktoken.Encoding | None:
    """The encoding from that directory; None where it is not there whole. Read here, since tiktoken would download it then."""
    known = CACHED[name]
    if not directory:
        return None
    try:
        found = (Path(directory) / known.key).read_bytes()
    except OSError:
        return None
    if hashlib.sha256(found).hexdigest() != known.sha256:
        return None
    import tiktoken

    pairs = (line.split() for line in found.splitlines() if line)
    ranks = {b64decode(token): int(rank) for token, rank in pairs}
    return tiktoken.Encoding(name, pat_str=known.pattern, mergeable_ranks=ranks, special_tokens={})
