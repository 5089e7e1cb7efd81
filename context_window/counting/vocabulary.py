"""Vocabularies, without any download: o200k ships with the package, others are read from tiktoken's cache.

Gemini's own vocabulary is not public. o200k's tokens, split where Gemini splits text, stand in for it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from base64 import b64decode
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ArgumentError, ContextWindowError

if TYPE_CHECKING:
    import tiktoken

FILE = "o200k_base.tokens"
SHA256 = "2389893ec9091bbd4f21a3a65be87b3e5eeeab662157f16c65d7706b4c892338"
SPECIAL = {"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018}
O200K = "o200k_base"
GEMINI = "o200k_gemini"

# How o200k_base splits text before merging, one alternative per line, as in tiktoken's `openai_public`.
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

GEMINI_PATTERN = "|".join(
    (
        r"\n+",
        r" {2,}",
        r"\t+",
        rf" ?[{_UPPER}]*[{_LOWER}]+{_SUFFIX}",
        rf" ?[{_UPPER}]+[{_LOWER}]*{_SUFFIX}",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+",
        r"\s",
    )
)
"""How Gemini splits text, as far as reported tokens show: each digit is a token, and newlines and indents stand apart from the text
around them. Within 1.2 % (median) of 136 steps of 300 tokens and more in agents' sessions with Gemini 3, where o200k's own split is 16 %
low; within 2 tokens of the recorded requests with Gemini 2.5 that are plain text (4 files, 2 of them held out)."""


class CachedVocabulary(NamedTuple):
    """A vocabulary that tiktoken keeps in its cache after it has downloaded it.

    Attributes:
        key: Name of the file in the cache.
        sha256: Hash of the file, as tiktoken expects it.
        pattern: Regular expression that splits text before merging.
    """

    key: str
    sha256: str
    pattern: str


_WORDS = r"\s+(?!\S)|\s+"
_GPT2 = rf"'(?:s|t|re|ve|m|ll|d)| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_WORDS}"
_GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    rf"\s+$|\s*[\r\n]+|{_WORDS}"  # white space at the very end is one piece, with or without newlines
)

CACHED = {
    "cl100k_base": CachedVocabulary(
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", _GPT4
    ),
    "p50k_base": CachedVocabulary(
        "ec7223a39ce59f226a68acc30dc1af2788490e15", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069", _GPT2
    ),
    "r50k_base": CachedVocabulary(
        "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930", _GPT2
    ),
}
"""Vocabularies of OpenAI's models before 4o. They have no special tokens: text that looks like one is counted as text."""


LONGEST_TOKEN = 128
"""Bytes of o200k's longest token."""

_loading = Lock()


def o200k() -> tiktoken.Encoding:
    """Return the o200k encoding. It is loaded once per process, in about 0.3 s.

    Raises:
        ContextWindowError: The package's vocabulary file is missing or damaged.
    """
    return _load_own(O200K, PATTERN)


def _load_own(name: str, pattern: str) -> tiktoken.Encoding:
    with _loading:  # `cache` alone would let two threads load it at the same time
        return _loaded(name, pattern)


@cache
def _loaded(name: str, pattern: str) -> tiktoken.Encoding:
    import tiktoken  # 30 ms and a compiled extension: imported only when something is counted

    encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=_own_ranks(), special_tokens=SPECIAL)
    _own_ranks.cache_clear()
    return encoding


def check_o200k() -> None:
    """Check that o200k can be loaded. This reads it, in a third of the time that loading takes.

    Raises:
        ContextWindowError: The package's vocabulary file is missing or damaged.
        ImportError: tiktoken's compiled part cannot be imported.
    """
    import tiktoken  # noqa: F401 - whether it can be

    with _loading:
        if not _loaded.cache_info().currsize:
            _own_ranks()


def first_count(text: str) -> int:
    """Return the o200k tokens of a short text, without the two thirds of loading that build tiktoken's tables.

    Raises:
        ContextWindowError: The package's vocabulary file is missing or damaged.
    """
    with _loading:
        if _loaded.cache_info().currsize:
            return len(_loaded(O200K, PATTERN).encode_ordinary(text))
        ranks = _own_ranks()
    return count_with(ranks, text)


def count_with(ranks: Mapping[bytes, int], text: str) -> int:
    """Return the tokens of a short text by those ranks, of which only the tokens that are a part of the text are given to tiktoken.

    It splits as with all of them, since every merge makes a part of the text. Takes 20 µs a byte.
    """
    import tiktoken

    content = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()  # tiktoken replaces lone surrogates too
    parts = {content[start:end] for start in range(len(content)) for end in range(start + 2, start + 1 + LONGEST_TOKEN)}
    subset = {bytes([byte]): ranks[bytes([byte])] for byte in range(256)} | {part: ranks[part] for part in parts & ranks.keys()}
    return len(tiktoken.Encoding(O200K, pat_str=PATTERN, mergeable_ranks=subset, special_tokens={}).encode_ordinary(text))


@cache
def _own_ranks() -> dict[bytes, int]:
    """Return the rank of each token of o200k. Dropped when an encoding has been built from them, since they take 30 MB."""
    return token_ranks()


def token_ranks() -> dict[bytes, int]:
    """Return the rank of each token.

    Layout of the file, in order of rank: the 256 tokens of one byte, then the others with a byte 255 between two of them. No longer token
    has that byte, since text in UTF-8 never does. So the file is read without a loop in Python, in a fifth of the time of a first count.
    """
    try:
        content = (files("context_window") / "data" / FILE).read_bytes()
    except OSError as error:
        raise ContextWindowError(f"the vocabulary {FILE} is missing from the package; reinstall context-window") from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise ContextWindowError(f"the vocabulary {FILE} is damaged (its hash differs); reinstall context-window")
    tokens = [*map(int.to_bytes, content[:256]), *content[256:].split(b"\xff")]
    return dict(zip(tokens, range(len(tokens)), strict=True))


def load(name: str) -> tiktoken.Encoding:
    """Return the encoding with this name. It is loaded once per process and never downloaded.

    Raises:
        ArgumentError: The name is unknown, or the vocabulary is not in tiktoken's cache.
        ContextWindowError: The package's own vocabulary is missing or damaged.
    """
    if name == O200K:
        return o200k()
    if name == GEMINI:
        return _load_own(GEMINI, GEMINI_PATTERN)
    if name not in CACHED:
        raise ArgumentError("encoding", name, f"is unknown; pass one of {', '.join((O200K, GEMINI, *CACHED))}")
    with _loading:
        encoding = _read_cached(name, _cache_directory())
    if encoding is None:
        problem = "its vocabulary is not in tiktoken's cache (TIKTOKEN_CACHE_DIR), and is never downloaded here"
        raise ArgumentError("encoding", name, f"{problem}; load it once with tiktoken, or count with {O200K}")
    return encoding


def has_encoding(name: str) -> bool:
    """True if `load` can return this encoding."""
    try:
        if name == O200K:
            check_o200k()
        else:
            load(name)
    except ArgumentError:
        return False
    return True


def _cache_directory() -> str:
    """Return tiktoken's cache directory; empty if its cache is disabled."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        if variable in os.environ:
            return os.environ[variable]
    return str(Path(tempfile.gettempdir()) / "data-gym-cache")


@cache
def _read_cached(name: str, directory: str) -> tiktoken.Encoding | None:
    """Return the encoding from that directory, or None if it is missing or damaged: tiktoken itself would then download it."""
    vocabulary = CACHED[name]
    if not directory:
        return None
    try:
        content = (Path(directory) / vocabulary.key).read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content).hexdigest() != vocabulary.sha256:
        return None
    import tiktoken

    pairs = (line.split() for line in content.splitlines() if line)
    ranks = {b64decode(token): int(rank) for token, rank in pairs}
    return tiktoken.Encoding(name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={})
