"""What a client of Anthropic's raised, as one of our errors: told by status and words, so that the client need not be imported.

Nothing is retried here, and nothing decided: the loop and the integrations do that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from session.redaction import redacted

from .model_errors import (
    ModelAccessError,
    ModelError,
    ModelNetworkError,
    ModelOverloadedError,
    ModelRateLimitError,
    PartKind,
    PartRefusedError,
    PromptTooLongError,
)
from .printable import printable
from .whole import as_whole

LONGEST = 300
"""Characters of the provider's words that an error repeats: they may quote the request."""

_HEADER = "Illegal header value"
"""How the client's transport begins to say that a header's value is none."""
_NUMBER = r"([0-9][0-9,]{0,14})"
_TOO_LONG = re.compile(rf"prompt is too long(?:: {_NUMBER} tokens > {_NUMBER} maximum)?", re.IGNORECASE)
_WITH_ANSWER = re.compile(rf"exceeds? context limit(?:: {_NUMBER} \+ {_NUMBER} > {_NUMBER})?", re.IGNORECASE)
_AT_AMAZON = re.compile(r"\binput is too long for requested model", re.IGNORECASE)
"""Amazon's Bedrock says so of the same models, without figures."""
_PLACE = re.compile(
    r"\bmessages\.(\d{1,6})\.content\.(\d{1,6})(?:(?:\.tool_result)?\.content\.(\d{1,6}))?(?:\.(image|document|pdf)\b)?(\.source\b)?"
)
"""Where in a request something is wrong: `messages.5.content.0.tool_result.content.1.image.source.base64.data: …`."""
_PART_WORDS: tuple[tuple[PartKind | None, re.Pattern[str]], ...] = (
    (
        "image",
        re.compile(
            r"could not process image|image exceeds [\d.]+ ?[km]b maximum|image dimensions exceed max|image was specified using"
            r"|image does not match the provided media type|image cannot be empty|provided image url",
            re.IGNORECASE,
        ),
    ),
    ("document", re.compile(r"could not process (?:the )?(?:pdf|document)|\bpdf specified |\d pdf pages may be provided", re.IGNORECASE)),
    (
        None,
        re.compile(
            r"unable to download the file|url is disallowed by the website's robots|too much media:|too many images and documents:"
            r"|file not found: file_",
            re.IGNORECASE,
        ),
    ),
)
"""By kind of part, the words with which Anthropic's API refuses one. Users report them with and without a place before them."""
_BY_KIND: Mapping[str, type[ModelError]] = {
    "rate_limit_error": ModelRateLimitError,
    "overloaded_error": ModelOverloadedError,
    "api_error": ModelOverloadedError,
    "timeout_error": ModelOverloadedError,
    "authentication_error": ModelAccessError,
    "permission_error": ModelAccessError,
    "billing_error": ModelAccessError,
}
"""The documented types of errors (platform.claude.com, "Errors"). An error in the middle of a stream comes with status 200 and its type."""


def model_error(error: BaseException) -> ModelError | None:
    """What the exception says of the model's provider; None where it is something else, such as a fault in the program.

    Args:
        error: What `client.messages.create` or a stream of it raised.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    if "APIConnectionError" in names:
        cause = error.__cause__
        if _HEADER in str(cause):  # the client's words hold the value, and the value is the key
            return ModelAccessError("a header cannot be sent: the key holds a line break or another sign that no key has")
        return ModelNetworkError(_one_line(f"{type(error).__name__}: {cause or error}"))
    if _is_transport(type(error).__mro__):  # a stream that breaks in the middle raises what the transport raised
        return ModelNetworkError(_one_line(f"{type(error).__name__}: {error}"))
    if "CredentialsError" in names or (isinstance(error, TypeError) and "authentication method" in str(error)):
        return ModelAccessError(_one_line(str(error)))
    if "APIError" not in names:
        return None
    status = as_whole(getattr(error, "status_code", None))
    kind, reason = _said(error)
    given = (_one_line(reason), status, _one_line(kind), _one_line(_text(getattr(error, "request_id", None))), _retry_after(error))
    found = too_long(reason) if status in (None, 200, 400, 413) else None
    if found is not None or status == 413 or kind == "request_too_large":
        tokens, limit = found or (None, None)
        return PromptTooLongError(*given, tokens=tokens, limit=limit)
    if status in (None, 200, 400, 404) and (refused := part_refused(reason)) is not None:
        part_kind, place = refused
        return PartRefusedError(*given, part_kind=part_kind, place=place)
    return (_BY_KIND.get(kind) or _by_status(status))(*given)


def too_long(message: str) -> tuple[int | None, int | None] | None:
    """What the provider counts and what it allows, where its message says that a prompt is too long; None where it does not.

    The figures are None where the message has none. With `input length and max_tokens exceed context limit` what it allows is what
    the room for the answer leaves.
    """
    if found := _TOO_LONG.search(message):
        tokens, limit = found.groups()
        return _whole(tokens), _whole(limit)
    if found := _WITH_ANSWER.search(message):
        prompt, answer, limit = map(_whole, found.groups())
        return prompt, None if answer is None or limit is None else max(0, limit - answer)
    return (None, None) if _AT_AMAZON.search(message) else None


def part_refused(message: str) -> tuple[PartKind | None, tuple[int, ...] | None] | None:
    """Return the kind and the place of the image or document that a message is about, both as in `PartRefusedError`.

    Return None for a message about something else. A message that names the `source` of an image or document is about that one, however
    it is worded.
    """
    message = message[: 4 * LONGEST]
    found = _PLACE.search(message)
    place = None if found is None else tuple(int(index) for index in found.group(1, 2, 3) if index is not None)
    if found is not None and found[4] and found[5]:
        return "image" if found[4] == "image" else "document", place
    return next(((kind, place) for kind, words in _PART_WORDS if words.search(message)), None)


def refusal_phrase(message: str) -> str:
    """Return the phrase of a message by which it is known as a refusal of an image or a document; empty if it holds none.

    The rest of the message may quote the request.
    """
    matches = (words.search(message[: 4 * LONGEST]) for _, words in _PART_WORDS)
    return next((match[0] for match in matches if match is not None), "")


def _whole(digits: str | None) -> int | None:
    return None if digits is None else int(digits.replace(",", ""))


def _is_transport(kinds: Iterable[type]) -> bool:
    return any(kind.__name__ == "TransportError" and kind.__module__.partition(".")[0].startswith("httpx") for kind in kinds)


def _by_status(status: int | None) -> type[ModelError]:
    if status is None:
        return ModelNetworkError
    if status == 429:
        return ModelRateLimitError
    if status in (401, 402, 403):
        return ModelAccessError
    return ModelOverloadedError if status >= 500 or status in (408, 409) else ModelError


def _said(error: BaseException) -> tuple[str, str]:
    """The provider's type of error and its message, where the body has them."""
    body: Any = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    told = inner if isinstance(inner, Mapping) else body if isinstance(body, Mapping) else {}
    return _text(told.get("type")), _text(told.get("message")) or str(error)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    try:
        seconds = float(headers.get("retry-after")) if headers is not None else math.nan
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds <= 86_400 else None


def _one_line(text: str) -> str:
    """Return the text as one line of at most `LONGEST` characters, safe to print on a terminal."""
    line = redacted(printable(" ".join(text[: 4 * LONGEST].split())))
    if len(text) > 4 * LONGEST and len(line) < LONGEST:  # its last word may be half a key, which does not look like one
        line = re.sub(r"(?<![\w.~+/=-])[\w.~+/=-]+\Z", "…", line)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
