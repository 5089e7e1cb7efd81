"""Mends requests that a provider refuses: blank texts, calls without a result, doubled ids, roles, thinking, images and documents.

1. Structure: the messages are read as a session and written again. Converters write nothing that the validators of
   `session/providers/*/rules.py` find fault with.
2. Thinking: signed thoughts of the messages so far are left out. They cannot be mended. Anthropic's requests go without thinking until the
   user speaks again: a turn that calls tools must begin with a thought if it is on.
3. Media: a text stands for an image or a document. Without a place, for all of them.

What is mended in a request is mended in the same way in each later one, so the provider's cache still knows the beginning.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from session.providers import Violation, validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.providers.additions import CLOSING
from session.providers.anthropic.thinking_order import THINKING
from session.session import Session
from session.transcripts.values import text_at

from .model_errors import ModelError, PartRefusedError, PromptTooLongError
from .recall import Provider

Json: TypeAlias = dict[str, Any]
FIELDS: Mapping[Provider, str] = {"anthropic": "messages", "openai": "messages", "openai-responses": "input", "google": "contents"}
"""By provider, the field of a request that holds its messages."""
MEDIA_RULE, THINKING_RULE = "A8", "A4"
"""Rules about images, documents and thinking that can be seen in a request: Anthropic's."""
REFUSED = "[an image or a document that the provider did not accept]"
_MEDIA = ("image", "document", "image_url", "file", "input_image", "input_file", "input_audio")
_THINKING = re.compile(r"thinking`? block|`thinking`|signature|encrypted[ _]content|of type 'reasoning'|'reasoning' item", re.IGNORECASE)
"""Words about thoughts in messages. Those about the settings of thinking are the client's own fault, and reach it."""
_STRUCTURE = re.compile(
    r"tool_use|tool_result|tool_calls?\b|tool call|role ['\"]?tool|function.?call|function response|no tool output|call_id"
    r"|non-?empty|non-whitespace|trailing whitespace|must be unique|prefill|must end with"
    r"|roles? must alternate|first message|at least one message|blank",
    re.IGNORECASE,
)


_TOO_MUCH = re.compile(r"too (?:much|many) (?:media|images|documents)|pdf pages may be provided", re.IGNORECASE)
BODY_TOO_LARGE = 413
"""Status of the answer to a body with too many bytes."""


class Cause(StrEnum):
    """Why a request was refused, in words for the user."""

    THINKING = "thinking that the provider did not accept"
    MEDIA = "an image or a document that it could not read"
    AMOUNT = "more images or documents than it takes at once"
    STRUCTURE = "calls, results, roles or blank texts"


def cause_of(error: ModelError) -> Cause | None:
    """Return the cause that a refusal names; None if it names none that can be mended."""
    if isinstance(error, PartRefusedError):
        return Cause.AMOUNT if _TOO_MUCH.search(error.reason) else Cause.MEDIA
    if isinstance(error, PromptTooLongError):
        return Cause.AMOUNT if error.status == BODY_TOO_LARGE else None
    if _THINKING.search(error.reason):
        return Cause.THINKING
    return Cause.STRUCTURE if _STRUCTURE.search(error.reason) else None


def violations_of(provider: Provider, body: Mapping[str, Any]) -> list[Violation]:
    """Return the rules of its provider that a request breaks. Raises FormatError if it is no request of this provider."""
    messages = body[FIELDS[provider]]
    match provider:
        case "anthropic":
            return validate_anthropic(body)
        case "openai":
            return validate_openai_chat(messages)
        case "openai-responses":
            return validate_openai_responses(messages)
        case "google":
            return validate_google(body)


class Repair(NamedTuple):
    """A request that was mended, the rules that it broke before and does not break any more, and those that it still breaks."""

    body: Json
    mended: Sequence[Violation]
    broken: Sequence[Violation]


def repaired(provider: Provider, body: Json) -> Repair:
    """Return a request mended wherever it breaks a rule of its provider. One that breaks none is the same object.

    Raises FormatError if it is no request of this provider, or a message cannot be read.
    """
    found = broken = violations_of(provider, body)
    mended = body
    places = [tuple(map(int, re.findall(r"\[(\d+)\]", violation.where))) for violation in found if violation.rule == MEDIA_RULE]
    if places:
        hashes = {each for place in places for each in media_at(body, provider, place)}
        mended = without_media(provider, mended, hashes)
        broken = violations_of(provider, mended)
    if any(violation.rule == MEDIA_RULE for violation in broken):  # each can be read: there are too many
        mended = without_media(provider, mended, older_media(mended, provider))
        broken = violations_of(provider, mended)
    if any(violation.rule == THINKING_RULE for violation in broken):
        mended = without_thinking(provider, mended, len(mended[FIELDS[provider]]))
        broken = violations_of(provider, mended)
    if broken:
        mended = mended_structure(provider, mended)
        broken = violations_of(provider, mended)
    still = {(violation.rule, violation.message) for violation in broken}
    return Repair(mended, [each for each in found if (each.rule, each.message) not in still], broken)


def provider_of(body: object) -> Provider | None:
    """Return the provider whose request this is; None if it is none."""
    if not isinstance(body, dict):
        return None
    if isinstance(body.get("contents"), list):
        return "google"
    if isinstance(body.get("input"), list):
        return "openai-responses"
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    objects = [message for message in messages if isinstance(message, dict)]
    roles = {text_at(message, "role") for message in objects}
    is_openais = bool(roles & {"system", "developer", "tool"}) or any("tool_calls" in message for message in objects)
    blocks = [block for message in objects for block in _list(message.get("content"))]
    types = {text_at(block, "type") for block in blocks if isinstance(block, dict)}
    is_anthropics = "system" in body or "claude" in str(body.get("model")) or bool(types & {"tool_use", "tool_result", *THINKING})
    return "openai" if is_openais or not is_anthropics else "anthropic"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def mended_structure(provider: Provider, body: Json) -> Json:
    """Return a request whose calls, results, roles and texts are as the provider wants them.

    Raises FormatError if a message cannot be read.
    """
    messages = _WRITTEN_AGAIN[provider](body[FIELDS[provider]])
    if provider == "anthropic" and messages and messages[-1]["role"] == "assistant":
        messages.append({"role": "user", "content": CLOSING})
    if provider == "google" and messages and messages[-1]["role"] == "model":
        messages.append({"role": "user", "parts": [{"text": CLOSING}]})
    return {**body, FIELDS[provider]: messages}


def without_thinking(provider: Provider, body: Json, end: int) -> Json:
    """Return a request without the signed thoughts of its first `end` messages."""
    field = FIELDS[provider]
    messages: Sequence[Json] = body[field]
    kept = [message for message in map(_thoughtless, messages[:end]) if message is not None]
    result = {**body, field: [*kept, *messages[end:]]}
    if provider == "anthropic" and "thinking" in body and not any(map(_is_asked, messages[end:])):
        result = {name: value for name, value in result.items() if name not in ("thinking", "context_management")}
    return result


def _thoughtless(message: Json) -> Json | None:
    """Return a message without signed thoughts; None if nothing is left."""
    if message.get("type") == "reasoning":
        return None
    for name in ("content", "parts"):
        blocks = message.get(name)
        if isinstance(blocks, list):
            left = [_unsigned(block) for block in blocks if not (isinstance(block, dict) and block.get("type") in THINKING)]
            if left != blocks:
                return {**message, name: left} if left else None
    return message


def _unsigned(block: Any) -> Any:
    names = ("thoughtSignature", "thought_signature")
    return {name: value for name, value in block.items() if name not in names} if isinstance(block, dict) else block


def _is_asked(message: Json) -> bool:
    """True if a message holds words of the user's."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text"}]
    return message.get("role") == "user" and any(isinstance(block, dict) and block.get("type") != "tool_result" for block in blocks)


def media_at(body: Json, provider: Provider, place: Sequence[int] | None) -> set[bytes]:
    """Return hashes of the images and documents at a place of a request, or of all of them if there is none at it.

    A place has the indices of the message, of its block, and of a block within that.
    """
    value: Any = body[FIELDS[provider]]
    for index in place or ():
        inner = value if isinstance(value, list) else value.get("content", value.get("output", value.get("parts")))
        if not isinstance(inner, list) or index >= len(inner):
            value = None
            break
        value = inner[index]
    found = _media_in(value) if place else set()
    return found or _media_in(body[FIELDS[provider]])


def older_media(body: Json, provider: Provider) -> set[bytes]:
    """Return hashes of the older images and documents of a request: those before the newest ones that have half of all bytes."""
    found = _media_of(body[FIELDS[provider]])
    sizes = [len(json.dumps(block)) for block in found]
    kept = 0
    for number in range(len(found) - 1, -1, -1):
        kept += sizes[number]
        if 2 * kept > sum(sizes):
            newest = {_hash_of(block) for block in found[number + 1 :]}
            return {_hash_of(block) for block in found[: number + 1]} - newest
    return set()


def without_media(provider: Provider, body: Json, hashes: Collection[bytes]) -> Json:
    """Return a request with a text in place of these images and documents."""
    text = (
        {"text": REFUSED} if provider == "google" else {"type": "input_text" if provider == "openai-responses" else "text", "text": REFUSED}
    )
    return {**body, FIELDS[provider]: _replaced(body[FIELDS[provider]], hashes, text)}


def _media_in(value: Any) -> set[bytes]:
    return set(map(_hash_of, _media_of(value)))


def _media_of(value: Any) -> list[Json]:
    """Return the images and documents in a value, in their order."""
    if isinstance(value, list):
        return [found for member in value for found in _media_of(member)]
    if not isinstance(value, dict):
        return []
    return [value] if _is_medium(value) else [found for member in value.values() for found in _media_of(member)]


def _replaced(value: Any, hashes: Collection[bytes], text: Json) -> Any:
    if isinstance(value, list):
        return [_replaced(member, hashes, text) for member in value]
    if not isinstance(value, dict):
        return value
    if _is_medium(value):
        return text if _hash_of(value) in hashes else value
    return {name: _replaced(member, hashes, text) for name, member in value.items()}


def _is_medium(block: Mapping[str, Any]) -> bool:
    return block.get("type") in _MEDIA or any(name in block for name in ("inlineData", "inline_data", "fileData", "file_data"))


def _hash_of(block: Mapping[str, Any]) -> bytes:
    bare = {name: value for name, value in block.items() if name != "cache_control"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True).encode(errors="replace")).digest()


def _anthropic_again(messages: list[Any]) -> list[Any]:
    return list(Session.from_anthropic(_with_unique_ids(messages)).to_anthropic_messages()[0])


def _google_again(contents: list[Any]) -> list[Any]:
    from session.providers.google import to_google

    return list(to_google(Session.from_google(contents))[0])


def _with_unique_ids(messages: list[Any]) -> list[Any]:
    """Return Anthropic's messages with other ids for calls that have an earlier one's, and for the results after them."""
    counts: dict[str, Counter[str]] = {"id": Counter(), "tool_use_id": Counter()}

    def renamed(block: Any) -> Any:
        name = {"tool_use": "id", "tool_result": "tool_use_id"}.get(text_at(block, "type")) if isinstance(block, dict) else None
        if name is None or not isinstance(id := block.get(name), str):
            return block
        counts[name][id] += 1
        return block if counts[name][id] < 2 else {**block, name: f"{id}_{counts[name][id]}"}

    return [
        {**message, "content": [renamed(block) for block in message["content"]]}
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        else message
        for message in messages
    ]


_WRITTEN_AGAIN: Mapping[Provider, Callable[[list[Any]], list[Any]]] = {
    "anthropic": _anthropic_again,
    "openai": lambda messages: Session.from_openai(messages).to_openai_messages(),
    "openai-responses": lambda items: Session.from_openai_responses(items).to_openai_responses(),
    "google": _google_again,
}
