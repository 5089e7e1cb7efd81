"""Vocabularies, without any download: o200k ships with the package, others are read from tiktoken's cache.

tiktoken's own functions make the encodings. They are called with another reader of files, so patterns and special tokens are tiktoken's.

Gemini's own vocabulary is not public. o200k's tokens, split where Gemini splits text, stand in for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, ContextWindowError
from .claude_weights import CLAUDE_3, CLAUDE_4_7, TokenWeights

if TYPE_CHECKING:
    import tiktoken

FILE = "o200k_base.tokens"
SHA256 = "2389893ec9091bbd4f21a3a65be87b3e5eeeab662157f16c65d7706b4c892338"
O200K = "o200k_base"
GEMINI = "o200k_gemini"
CLAUDE, CLAUDE_HIGH = "o200k_claude_3", "o200k_claude_4.7"
"""o200k with a weight for each token (`claude_weights.py`), as it stands in for Claude's vocabularies: to 4.6, and from 4.7 on."""
WEIGHTS = {CLAUDE: CLAUDE_3, CLAUDE_HIGH: CLAUDE_4_7}
OLDER = ("cl100k_base", "p50k_base", "r50k_base")
"""Vocabularies of OpenAI's models before 4o."""

_WORD_END = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GEMINI_PATTERN = "|".join(
    (
        r"\n+",
        r" {2,}",
        r"\t+",
        rf" ?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_WORD_END}",
        rf" ?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_WORD_END}",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+",
        r"\s",
    )
)
"""How Gemini splits text, as far as reported tokens show: each digit is a token, and newlines and indents stand apart from the text
around them. Within 1.2 % (median) of 136 steps of 300 tokens and more in agents' sessions with Gemini 3, where o200k's own split is 16 %
low; within 2 tokens of the recorded requests with Gemini 2.5 that are plain text (4 files, 2 of them held out)."""

_loading = Lock()


def o200k() -> tiktoken.Encoding:
    """Return the o200k encoding. It is loaded once per process, in about 0.3 s.

    Raises ContextWindowError if the package's vocabulary file is missing or damaged.
    """
    return load(O200K)


def load(name: str) -> tiktoken.Encoding:
    """Return the encoding with this name. It is loaded once per process and never downloaded.

    Raises:
        ArgumentError: The name is unknown, or the vocabulary is not in tiktoken's cache.
        ContextWindowError: The package's own vocabulary is missing or damaged.
        ImportError: tiktoken's compiled part cannot be imported.
    """
    if name not in {O200K, GEMINI, *WEIGHTS, *OLDER}:
        raise ArgumentError("encoding", name, f"is unknown; pass one of {', '.join((O200K, GEMINI, *WEIGHTS, *OLDER))}")
    with _loading:  # `cache` alone would let two threads load it at the same time
        return _loaded(O200K if name in WEIGHTS else name)


@cache
def weights_of(name: str) -> TokenWeights | None:
    """Return the weights of the tokens; None if each of this vocabulary counts as one."""
    return TokenWeights(WEIGHTS[name], load(name).decode_single_token_bytes) if name in WEIGHTS else None


@cache
def _loaded(name: str) -> tiktoken.Encoding:
    import tiktoken  # 30 ms and a compiled extension: imported only when something is counted

    encodings = import_module("tiktoken_ext.openai_public")
    if name in OLDER:
        arguments = _rebound(getattr(encodings, name), load_tiktoken_bpe=_offline_reader(name))()
    else:
        arguments = _rebound(encodings.o200k_base, load_tiktoken_bpe=lambda *_, **__: token_ranks())()
    if name == GEMINI:
        arguments |= {"name": GEMINI, "pat_str": GEMINI_PATTERN}
    return tiktoken.Encoding(**arguments)


def _offline_reader(name: str) -> Callable[..., Any]:
    """Return tiktoken's function that reads a vocabulary, without the download. It raises ArgumentError in its place."""
    from tiktoken import load as files

    def refuse(_url: str) -> bytes:
        problem = "its vocabulary is not in tiktoken's cache (TIKTOKEN_CACHE_DIR), and is never downloaded here"
        raise ArgumentError("encoding", name, f"{problem}; load it once with tiktoken, or count with {O200K}")

    return _rebound(files.load_tiktoken_bpe, read_file_cached=_rebound(files.read_file_cached, read_file=refuse))


def _rebound(function: Callable[..., Any], **names: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a function in which a global name has another value. The function itself and its module stay as they are.

    Raises ContextWindowError if the function uses no such name, so it might download something.
    """
    if not names.keys() <= {*function.__code__.co_names}:
        raise ContextWindowError(f"this version of tiktoken reads vocabularies in a way that is not known: {function.__name__}")
    return FunctionType(function.__code__, {**function.__globals__, **names}, argdefs=function.__defaults__)


def token_ranks() -> dict[bytes, int]:
    """Return the rank of each token of o200k.

    Layout of the file, in order of rank: the 256 tokens of one byte, then the others with a byte 255 between two of them. No longer token
    has that byte, since text in UTF-8 never does. So the file is read without a loop in Python, in a fifth of the time of a first count.

    Raises:
        ContextWindowError: The package's vocabulary file is missing or damaged.
    """
    from importlib.resources import files

    try:
        content = (files("context_window") / "data" / FILE).read_bytes()
    except OSError as error:
        raise ContextWindowError(f"the vocabulary {FILE} is missing from the package; reinstall context-window") from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise ContextWindowError(f"the vocabulary {FILE} is damaged (its hash differs); reinstall context-window")
    tokens = [*map(int.to_bytes, content[:256]), *content[256:].split(b"\xff")]
    return dict(zip(tokens, range(len(tokens)), strict=True))
