"""Finds keys and passwords in text, however they are spelled: as they are, escaped for a program, JSON, an address or a page, or encoded
in Base64, Base32 or hexadecimal.

`secrets_in` is what `--record`, `--warn-secrets` and `redaction.py` share. A span that it returns is one of the text as it was given.
"""

from __future__ import annotations

import base64
import binascii
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

_ESCAPE = re.compile(
    r'\\(?:[0-3][0-7]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|["\\/abfnrtv0])|%[0-9a-fA-F]{2}'
    r"|&#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});"
)
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
LAYERS = 3
"""Escapes within escapes that are read: JSON in JSON in an address."""

PREFIXES = {
    "sk-ant-": ("an Anthropic key", r"[a-z]{2,9}[0-9]{2}-[\w.~+/=-]{8,}"),
    "sk-or-v1-": ("an OpenRouter key", r"[0-9a-f]{32,}"),
    "sk-": ("an API key", r"(?:(?:proj|svcacct|admin)-[\w-]{12,}|[A-Za-z0-9]{32,})"),
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), ("a GitHub token", r"[A-Za-z0-9]{30,}")),
    "github_pat_": ("a GitHub token", r"\w{30,}"),
    "glpat-": ("a GitLab token", r"[\w-]{20,}"),
    **dict.fromkeys(("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), ("a Slack token", r"[\w-]{10,}")),
    "AIza": ("a Google key", r"[\w-]{35}"),
    "GOCSPX-": ("a Google client secret", r"[\w-]{20,}"),
    "ya29.": ("a Google token", r"[\w-]{20,}"),
    "AQ.": ("a Google key", r"[\w-]{30,}"),
    **dict.fromkeys(("AKIA", "ASIA"), ("an AWS key", r"[A-Z0-9]{16}(?![A-Za-z0-9])")),
    "ABSK": ("a Bedrock key", r"[A-Za-z0-9+/=]{40,}"),
    **dict.fromkeys(("sk_live_", "sk_test_", "rk_live_", "rk_test_"), ("a Stripe key", r"[A-Za-z0-9]{16,}")),
    "whsec_": ("a webhook's secret", r"[A-Za-z0-9+/=]{24,}"),
    "hf_": ("a Hugging Face token", r"[A-Za-z0-9]{30,}"),
    "gsk_": ("a Groq key", r"[A-Za-z0-9]{40,}"),
    "xai-": ("an xAI key", r"[A-Za-z0-9]{40,}"),
    "pplx-": ("a Perplexity key", r"[A-Za-z0-9]{32,}"),
    "nvapi-": ("an NVIDIA key", r"[\w-]{20,}"),
    "tvly-": ("a Tavily key", r"[\w-]{12,}"),
    "csk-": ("a Cerebras key", r"[a-z0-9]{32,}"),
    "pcsk_": ("a Pinecone key", r"\w{32,}"),
    "lsv2_": ("a LangSmith key", r"(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    "pypi-AgE": ("a PyPI token", r"[\w-]{50,}"),
    "npm_": ("an npm token", r"[A-Za-z0-9]{36}"),
    "SG.": ("a SendGrid key", r"[\w-]{16,40}\.[\w-]{16,}"),
    **dict.fromkeys(("dop_v1_", "doo_v1_", "dor_v1_"), ("a DigitalOcean token", r"[0-9a-f]{64}")),
    "dapi": ("a Databricks token", r"[0-9a-f]{32}"),
    "r8_": ("a Replicate token", r"[A-Za-z0-9]{36,}"),
    "ntn_": ("a Notion token", r"[A-Za-z0-9]{40,}"),
    "lin_api_": ("a Linear key", r"[A-Za-z0-9]{32,}"),
    **dict.fromkeys(("shpat_", "shpca_", "shppa_", "shpss_"), ("a Shopify token", r"[0-9a-fA-F]{32}")),
    **dict.fromkeys(("sbp_", "sbt_"), ("a Supabase token", r"[0-9a-f]{40}")),
    "sb_secret_": ("a Supabase key", r"[\w-]{20,}"),
    **dict.fromkeys(("hvs.", "hvb.", "hvr."), ("a Vault token", r"[\w-]{24,}")),
    "AGE-SECRET-KEY-1": ("an age key", r"[0-9A-Z]{50,}"),
    "eyJ": ("a JSON web token", r"[\w-]{10,400}\.eyJ[\w-]{10,4000}\.[\w-]{10,}"),
}
"""How a key goes on after its first letters, which give away what it is."""
_AFTER = {prefix: (kind, re.compile(rest, re.ASCII)) for prefix, (kind, rest) in PREFIXES.items()}
_COLOUR = re.compile(r"\[[0-9]{1,2}m$")
_PEM = re.compile(
    r"-----BEGIN (?P<kind>(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?)-----"
    r"(?:(?!-----BEGIN )[^-]|-(?!----)){0,20000}(?:-----END (?P=kind)-----)?"
)
_LOGIN = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/@:\"'<>]{0,80}:(?P<value>[^\s/@\"'<>${}]{4,200})@")
_BEARER = re.compile(r"\b[Bb]earer\s+(?P<value>[\w.~+/=-]{16,})", re.ASCII)
_BASIC = re.compile(r"\b[Bb]asic\s+(?P<value>[A-Za-z0-9+/_-]{8,}={0,2})", re.ASCII)
_NAMED_VALUE = re.compile(
    r"(?P<name>passw(?:or)?d|passphrase|pwd|secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|auth[_-]?token|access[_-]?token"
    r"|client[_-]?secret|secret[_-]?key|token)(?P<quote>[\"']?)\s{0,3}(?:=>|[:=])\s{0,3}(?P<open>[\"'])?(?P<value>[^\s\"',;&<>(){}\[\]`$\\]{6,500})",
    re.IGNORECASE,
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{16,}={0,2}", re.ASCII)
_PLACEHOLDER = re.compile(
    r"example|your|placeholder|changeme|change_me|dummy|redacted|xxxx|\*\*\*\*|0123456789|123456789|abcdefgh|\.\.\.|…", re.IGNORECASE
)
_IDENTIFIER = re.compile(
    r"[A-Za-z_]\w*(?:\.\w+)+|[A-Z_][A-Z0-9_]*|[a-z]+(?:_[a-z0-9]+)+|(?:[a-z]+(?:-[a-z0-9]+){1,8})|[a-z]+(?:[A-Z][a-z]+)+[0-9]?", re.ASCII
)
STEP, LONGEST = 100_000, 25_000
"""Characters that are searched at once, and those that a bounded pattern may reach beyond them."""
_DISTINCT = 6
"""Different characters of a value that is no placeholder."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A key or a password between two characters of a text.

    `kind` is what it is, for a reader: `a GitHub key`, `a password`. `value` is without escapes and out of Base64.
    """

    start: int
    end: int
    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Layer:
    """A text without some layers of escapes."""

    text: str
    _at: tuple[int, ...] = (0,)
    _stood: tuple[int, ...] = (0,)
    _before: Layer | None = None

    def place(self, index: int) -> int:
        """Return where the character with this index began in the text as it was given."""
        piece = bisect_right(self._at, index) - 1
        stood = self._stood[piece] + index - self._at[piece]
        return stood if self._before is None else self._before.place(stood)


def layers(text: str) -> list[Layer]:
    """Return the text, and then the text without one layer of escapes after another."""
    found = [Layer(text)]
    while len(found) <= LAYERS and _ESCAPE.search(found[-1].text):
        found.append(_unescaped(found[-1]))
    return found


def _unescaped(layer: Layer) -> Layer:
    text = layer.text
    pieces: list[str] = []
    at, stood = [0], [0]
    length = end = 0
    for match in _ESCAPE.finditer(text):
        pieces += text[end : match.start()], _character(match[0])
        length += match.start() - end
        at += length, length + 1
        stood += match.span()
        length, end = length + 1, match.end()
    return Layer("".join((*pieces, text[end:])), tuple(at), tuple(stood), layer)


def _character(escape: str) -> str:
    """Return the one character that an escape stands for."""
    if escape[0] == "\\" and escape[1] not in "uUx":
        return chr(int(escape[1:], 8)) if len(escape) > 2 else _NAMED.get(escape[1], escape[1])
    is_decimal = escape[0] == "&" and escape[2] not in "xX"
    code = int(escape.strip("\\%&#uUxX{};"), 10 if is_decimal else 16)
    return chr(code) if code <= sys.maxunicode else "\N{REPLACEMENT CHARACTER}"


def secrets_in(text: str) -> list[Secret]:
    """Return the keys and passwords in a text, in order; none overlaps another.

    What is returned is meant as one: a placeholder, an identifier or a call such as `password = get_password()` is not.
    """
    found = [
        Secret(layer.place(start), layer.place(end), kind, layers(value)[-1].text)
        for layer in layers(text)
        for start, end, kind, value in (*_spans(layer.text), *_encoded_spans(layer.text))
    ]
    found.sort(key=lambda secret: (secret.start, -secret.end))
    kept: list[Secret] = []
    for secret in found:
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
    return kept


def _spans(text: str) -> Iterator[tuple[int, int, str, str]]:
    for prefix, (kind, rest) in _AFTER.items():
        start = text.find(prefix)
        while start >= 0:
            is_begun = prefix == "sk-ant-" or _is_word_start(text, start)
            match = rest.match(text, start + len(prefix)) if is_begun else None
            end = start + len(prefix) if match is None else match.end()
            if match is not None and _is_varied(match[0]):
                yield start, end, kind, text[start:end]
            start = text.find(prefix, end)
    for match in _matches(_PEM, text):
        yield *match.span(), "a private key", match[0]
    for pattern, kind in ((_LOGIN, "a password in an address"), (_BEARER, "a bearer token")):
        for match in _matches(pattern, text):
            if _is_varied(match["value"]):
                yield *match.span("value"), kind, match["value"]
    for match in _matches(_NAMED_VALUE, text):
        if _is_value(match):
            yield *match.span("value"), f"a value named {match['name']}", match["value"]


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield what `finditer` does. One search of a long text would keep all other threads waiting, so each is of a part."""
    at = 0
    while at < len(text):
        match = pattern.search(text, at, at + STEP + LONGEST)
        if match is None or match.start() >= at + STEP:
            at += STEP
            continue
        match = pattern.match(text, match.start()) or match  # it may go on beyond the part
        yield match
        at = match.end()


def _is_word_start(text: str, index: int) -> bool:
    """True if a key may begin here: after no letter and no digit, or after a terminal's colour."""
    before = text[max(0, index - 5) : index]
    return not before or not (before[-1].isascii() and before[-1].isalnum()) or _COLOUR.search(before) is not None


def _is_varied(value: str) -> bool:
    return len(set(value)) >= _DISTINCT and _PLACEHOLDER.search(value) is None


def _is_value(match: re.Match[str]) -> bool:
    """True if a named value is one, and not the name of one: it has a digit and a letter, or a mark that names do not have."""
    value = match["value"]
    is_mixed = re.search("[0-9]", value) and re.search("[A-Za-z]", value)
    is_name = not match["open"] and _IDENTIFIER.fullmatch(value)
    is_strange = is_mixed or re.search(r"[!@#%^*+?~]\w", value)
    return bool(is_strange and not is_name and not value.startswith(("/", "./", "~/", "http")) and _is_varied(value))


def _encoded_spans(text: str) -> Iterator[tuple[int, int, str, str]]:
    for match in _matches(_BASIC, text):
        _, colon, password = (decoded(match["value"]) or "").partition(":")
        if colon:
            yield *match.span("value"), "a login", password
    for match in _matches(_BASE64, text):
        plain = decoded(match[0])
        if plain is not None and (inner := next(_spans(plain), None)):
            yield *match.span(), f"{inner[2]}, encoded", inner[3]


def decoded(encoded: str) -> str | None:
    """Return the text that hexadecimal, Base32 or Base64 holds; None if it holds none."""
    for letters, read in _CODES:
        start = read(encoded[:16]) if letters.match(encoded) else None
        if start is not None and start.isascii() and all(byte >= ord(" ") or byte in b"\r\n\t" for byte in start):
            content = read(encoded)
            with suppress(UnicodeDecodeError):
                if content is not None:
                    return content.decode()
    return None


def _from_hex(encoded: str) -> bytes | None:
    try:
        return bytes.fromhex(encoded.removeprefix("0x"))
    except ValueError:
        return None


def _from_base32(encoded: str) -> bytes | None:
    try:
        return base64.b32decode(encoded + "=" * (-len(encoded) % 8))
    except binascii.Error:
        return None


def _from_base64(encoded: str) -> bytes | None:
    try:
        stripped = encoded.rstrip("=").replace("-", "+").replace("_", "/")
        return base64.b64decode(stripped + "=" * (-len(stripped) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


_CODES: tuple[tuple[re.Pattern[str], Callable[[str], bytes | None]], ...] = (
    (re.compile("(?:0x)?(?:[2-7][0-9a-fA-F]){7}"), _from_hex),
    (re.compile("[A-Z2-7]{16}"), _from_base32),
    (re.compile(""), _from_base64),
)
"""How a text begins that is encoded so, and what decodes it."""
