"""Converts exceptions of the clients of Anthropic, OpenAI and Google to our errors, by status and message, so that none need be imported.

Retries nothing; the loop and the integrations do that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from session.redaction import redacted

from ..model_errors import (
    ModelAccessError,
    ModelError,
    ModelNetworkError,
    ModelOverloadedError,
    ModelRateLimitError,
    PartKind,
    PartRefusedError,
    PlaceApi,
    PromptTooLongError,
)
from ..printable import printable
from ..validation import as_whole

LONGEST = 300
"""Maximum characters of the provider's message in an error: it may quote the request."""

_HEADER = "Illegal header value"
"""The beginning of the transport's message about an invalid header."""
_NUMBER = r"([0-9][0-9,]{0,14})"
_TOO_LONG = re.compile(rf"prompt is too long(?:: {_NUMBER} tokens > {_NUMBER} maximum)?", re.IGNORECASE)
_WITH_ANSWER = re.compile(rf"exceeds? context limit(?:: {_NUMBER} \+ {_NUMBER} > {_NUMBER})?", re.IGNORECASE)
_OPENAI = re.compile(
    rf"maximum context length is {_NUMBER} tokens\b.*?"
    rf"(?:resulted in|requested(?: about)?|your (?:request|prompt) (?:has|contains)(?: at least)?) {_NUMBER} (?:input )?tokens"
    rf"(?:.*?{_NUMBER} (?:in|for) the completion)?",
    re.IGNORECASE | re.DOTALL,
)
"""Message of OpenAI's Chat Completions, and of vLLM and OpenRouter: the window, the tokens requested, and those of the answer among them
(reported in webtimemachine/wtm2 issue 579, refly issue 1177, chat-your-data issue 10)."""
_OPENAI_WINDOW = re.compile(r"input exceeds the context window of this model", re.IGNORECASE)
"""Message of OpenAI's Responses API; it has no figures (opencode issue 6071)."""
_GEMINI = re.compile(rf"input token count \({_NUMBER}\) exceeds the maximum number of tokens allowed \({_NUMBER}\)", re.IGNORECASE)
"""Message of Gemini (gemini-cli issue 6678)."""
_GEMINI_WINDOW = re.compile(r"input token count (?:is \S+ but|exceeds)", re.IGNORECASE)
"""Older messages of Gemini, and those of Vertex AI; not all have both figures."""
_GEMINI_KEY = re.compile(r"api key (?:not valid|not found|expired)", re.IGNORECASE)
"""Gemini refuses a wrong key with status 400."""
TOO_LONG_CODE = "context_length_exceeded"
"""OpenAI's code for a prompt that is too long, in a response or in a stream."""
_AT_AMAZON = re.compile(r"\binput is too long for requested model", re.IGNORECASE)
"""Message of Amazon Bedrock for the same models; it has no figures."""
_PLACE = re.compile(
    r"\bmessages\.(\d{1,6})\.content\.(\d{1,6})(?:(?:\.tool_result)?\.content\.(\d{1,6}))?(?:\.(image|document|pdf)\b)?(\.source\b)?"
)
"""The place of a problem in Anthropic's words: `messages.5.content.0.tool_result.content.1.image.source.base64.data: …`."""
_OPENAI_PLACE = re.compile(r"\b(messages|input)\[(\d{1,6})\]\.(?:content|output)\[(\d{1,6})\](?:\.(image_url|file|file_data|file_url)\b)?")
"""The place in OpenAI's words: `messages[3].content[1].image_url` in Chat Completions, `input[101].output[0].image_url` in the
Responses API (opencode issue 23983, rig issue 879). It is the error's `param`, and often in the message too."""
_PART_PHRASES: tuple[tuple[PartKind | None, re.Pattern[str]], ...] = (
    (
        "image",
        re.compile(
            r"could not process image|image exceeds [\d.]+ ?[km]b maximum|image dimensions exceed max|image was specified using"
            r"|image does not match the provided media type|image cannot be empty|provided image url"
            r"|uploaded an unsupported image|image data you provided does not represent a valid image|\binvalid image\b"
            r"|invalid base64 image|expected a base64-encoded data url with an image mime type"
            r"|unable to process input image|provided image is not valid",
            re.IGNORECASE,
        ),
    ),
    (
        "document",
        re.compile(
            r"could not process (?:the )?(?:pdf|document)|\bpdf specified |\d pdf pages may be provided"
            r"|expected context stuffing file type|unable to process input document|the document has no pages",
            re.IGNORECASE,
        ),
    ),
    (
        None,
        re.compile(
            r"unable to download the file|url is disallowed by the website's robots|too much media:|too many images and documents:"
            r"|file not found: file_|(?:error|timeout) while downloading https?:|failed to download (?:image|file) from"
            r"|unsupported mime type: |cannot fetch content from the provided url",
            re.IGNORECASE,
        ),
    ),
)
"""By kind of part, the phrases with which Anthropic, OpenAI and Gemini refuse one. Users report Anthropic's with and without a place before
them; those of the others (gptpdf issue 6, dewhale issue 315; gemini-cli issues 5064, 13808 and 27244, python-genai issue 829) have none, or
that of `_OPENAI_PLACE`."""
_IMAGE_CODES = re.compile(
    r"(?:invalid|unsupported|empty)_(?:base64_)?image(?!_content)|image_(?:too_|parse_error|file_)|failed_to_download_image"
)
"""OpenAI's codes for images that it refuses (the client's `ResponseError`), for responses and in streams."""
_BY_KIND: Mapping[str, type[ModelError]] = {
    "rate_limit_error": ModelRateLimitError,
    "overloaded_error": ModelOverloadedError,
    "api_error": ModelOverloadedError,
    "timeout_error": ModelOverloadedError,
    "authentication_error": ModelAccessError,
    "permission_error": ModelAccessError,
    "billing_error": ModelAccessError,
}
"""The documented error types (platform.claude.com, "Errors"). An error in the middle of a stream has status 200 and one of these."""
_BY_CODE: Mapping[str, type[ModelError]] = {
    "rate_limit_exceeded": ModelRateLimitError,
    "server_error": ModelOverloadedError,
    "server_is_overloaded": ModelOverloadedError,
    "slow_down": ModelOverloadedError,
    "insufficient_quota": ModelAccessError,
    "invalid_api_key": ModelAccessError,
}
"""OpenAI's codes (platform.openai.com/docs/guides/error-codes; those in streams: the client's `ResponseError`)."""


def model_error(error: BaseException) -> ModelError | None:
    """Return the exception as one of our errors; None if it is not about the provider, such as a bug in the program."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "APIConnectionError" in names:
        cause = error.__cause__
        if _HEADER in str(cause):  # the client's message contains the header's value, which is the key
            return ModelAccessError("a header cannot be sent: the API key contains a line break or another invalid character")
        return ModelNetworkError(_one_line(f"{type(error).__name__}: {cause or error}"))
    if _is_transport(type(error).__mro__):  # a stream that breaks in the middle raises what the transport raised
        return ModelNetworkError(_one_line(f"{type(error).__name__}: {error}"))
    if "CredentialsError" in names or (isinstance(error, TypeError) and "authentication method" in str(error)):
        return ModelAccessError(_one_line(str(error)))
    if "APIError" not in names:
        return None
    status = as_whole(getattr(error, "status_code", getattr(error, "code", None)))  # Google's client calls it `code`
    kind, code, param, reason = _details(error)
    request_id = _one_line(_text(getattr(error, "request_id", None)))
    return _converted(reason, status, kind, code, param, request_id, _retry_after(error))


def answered_error(status: int, body: object) -> ModelError:
    """Return our error for an answer that reports one, as the provider's API sends it: its HTTP status, and its body read as JSON."""
    inner = body.get("error") if isinstance(body, Mapping) else None
    details = inner if isinstance(inner, Mapping) else {}
    kind, code, param, message = (_text(details.get(name)) for name in ("type", "code", "param", "message"))
    return _converted(message or f"status {status}", status, kind, code, param, "", None)


def reported_error(code: object, message: object, param: object = None) -> ModelError:
    """Return our error for one that a provider reports inside a stream. `param` is OpenAI's place of the problem in the request."""
    reason = _text(message) or _text(code) or "the provider reported an error"
    return _converted(reason, 200, _text(code), _text(code), _text(param), "", None)


def _converted(reason: str, status: int | None, kind: str, code: str, param: str, request_id: str, retry_after: float | None) -> ModelError:
    arguments = (_one_line(reason), status, _one_line(kind), request_id, retry_after)
    figures = too_long(reason) if status in (None, 200, 400, 413) else None
    if figures is not None or status == 413 or kind == "request_too_large" or code == TOO_LONG_CODE:
        tokens, limit = figures or (None, None)
        return PromptTooLongError(*arguments, tokens=tokens, limit=limit)
    refusal = part_refused(reason, code, param)
    if status in (None, 200, 400, 404) and refusal is not None:
        return PartRefusedError(*arguments, part_kind=refusal.kind, place=refusal.place, api=refusal.api)
    if status == 400 and _GEMINI_KEY.search(reason):
        return ModelAccessError(*arguments)
    return (_BY_CODE.get(code) or _BY_KIND.get(kind) or _by_status(status))(*arguments)


def too_long(message: str) -> tuple[int | None, int | None] | None:
    """Return the provider's count and its limit if the message says that a prompt is too long; None for other messages.

    The figures are None if the message has none. For `input length and max_tokens exceed context limit`, the limit excludes the room for
    the answer.
    """
    if match := _TOO_LONG.search(message):
        tokens, limit = match.groups()
        return _number(tokens), _number(limit)
    if match := _WITH_ANSWER.search(message):
        prompt, answer, limit = map(_number, match.groups())
        return prompt, None if answer is None or limit is None else max(0, limit - answer)
    message = message[: 4 * LONGEST]
    if match := _OPENAI.search(message):
        limit, requested, answer = (_number(digits) or 0 for digits in match.groups())
        return max(0, requested - answer), max(0, limit - answer)
    if match := _GEMINI.search(message):
        tokens, limit = match.groups()
        return _number(tokens), _number(limit)
    has_no_figures = any(phrase.search(message) for phrase in (_AT_AMAZON, _OPENAI_WINDOW, _GEMINI_WINDOW))
    return (None, None) if has_no_figures else None


class RefusedPart(NamedTuple):
    """The image or document that a message is about. Its fields are those of `PartRefusedError`."""

    kind: PartKind | None
    place: tuple[int, ...] | None
    api: PlaceApi | None


def part_refused(message: str, code: str = "", param: str = "") -> RefusedPart | None:
    """Return the image or document that a refusal is about; None if it is about something else.

    A refusal that names the content of an image or document is about that part, whatever else it says.
    """
    message = message[: 4 * LONGEST]
    place, api, named_kind = _place_in(message, param[:LONGEST])
    if named_kind is not None:
        return RefusedPart(named_kind, place, api)
    if any(phrases.search(message) for _, phrases in _PART_PHRASES):
        kinds = (kind for kind, phrases in _PART_PHRASES if phrases.search(message))
        return RefusedPart(next(kinds), place, api)
    return RefusedPart("image", place, api) if _IMAGE_CODES.match(code) else None


def _place_in(message: str, param: str) -> tuple[tuple[int, ...] | None, PlaceApi | None, PartKind | None]:
    """Return the place that a refusal names, the API whose request it is in, and the kind of the part if it names the part's content."""
    if match := _OPENAI_PLACE.search(param) or _OPENAI_PLACE.search(message):
        kind: PartKind | None = None if match[4] is None else "image" if match[4] == "image_url" else "document"
        return (int(match[2]), int(match[3])), "openai" if match[1] == "messages" else "openai-responses", kind
    if match := _PLACE.search(message):
        kind = None if not (match[4] and match[5]) else "image" if match[4] == "image" else "document"
        return tuple(int(index) for index in match.group(1, 2, 3) if index is not None), "anthropic", kind
    return None, None, None


def refusal_phrase(message: str) -> str:
    """Return the phrase that marks a message as the refusal of an image or a document; empty if it has none.

    The rest of the message is left out, since it may quote the request.
    """
    matches = (phrases.search(message[: 4 * LONGEST]) for _, phrases in _PART_PHRASES)
    return next((match[0] for match in matches if match is not None), "")


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits.replace(",", ""))


def _is_transport(kinds: Iterable[type]) -> bool:
    tops = {(kind.__name__, kind.__module__.partition(".")[0]) for kind in kinds}
    return ("ClientError", "aiohttp") in tops or any(name == "TransportError" and top.startswith("httpx") for name, top in tops)


def _by_status(status: int | None) -> type[ModelError]:
    if status is None:
        return ModelNetworkError
    if status == 429:
        return ModelRateLimitError
    if status in (401, 402, 403):
        return ModelAccessError
    return ModelOverloadedError if status >= 500 or status in (408, 409) else ModelError


def _details(error: BaseException) -> tuple[str, str, str, str]:
    """Return the provider's error type, code, `param` and message: from the response body, else from the exception itself."""
    body: Any = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    details = inner if isinstance(inner, Mapping) else body if isinstance(body, Mapping) else {}
    kind = _text(details.get("type")) or ("" if details else _text(getattr(error, "status", None)))
    own_message = "" if details else _text(getattr(error, "message", None))
    return kind, _text(details.get("code")), _text(details.get("param")), _text(details.get("message")) or own_message or str(error)


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
    if len(text) > 4 * LONGEST and len(line) < LONGEST:  # its last word may be half an API key, which is not recognised as one
        line = re.sub(r"(?<![\w.~+/=-])[\w.~+/=-]+\Z", "…", line)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
