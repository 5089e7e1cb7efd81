"""Read one response of a provider: items for the log, the reported usage, the model's name and the stop reason.

The format is recognized by its fields. The readers of the four formats do the rest; streamed pieces are joined in `stream_pieces.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import time
from typing import Any

from session.errors import FormatError, short
from session.items import Item, Message, new_id
from session.sanitize import clean_json
from session.session import Session
from session.session_log import recorded_total
from session.units import is_answer
from session.usage import Usage

from .anthropic import from_anthropic
from .anthropic.blocks import CARRIED, is_server_call, is_server_result
from .google import from_google
from .native_compaction import is_native, linked, with_compactions
from .openai_chat import from_openai_chat
from .openai_responses import from_openai_responses
from .parsing import expect_object, with_unique_call_ids
from .stream_pieces import whole_response

EDITS = "anthropic_context_management"
"""In `extra` of an answer's first item: what Anthropic cleared of the request before the model read it (`applied_edits`)."""
SOURCES = {
    "google_grounding": ("grounding_metadata", "groundingMetadata"),
    "google_url_context": ("url_context_metadata", "urlContextMetadata"),
}
"""In `extra` of an answer's first item: what Gemini searched and read for it. By key, its names in a response. It is not sent back."""
_PARSED = frozenset({"parsed", "parsed_arguments", "parsed_output"})
"""Fields that the clients add to a response: their own reading of a text, which the provider does not know."""


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    """One response of a provider.

    Attributes:
        items: Reasoning, messages, calls and the provider's own compactions, in the order the model made them. They have new ids, and the
            current time.
        usage: Reported usage, including that of a compaction; None if the provider reported none.
        model: The model that answered, by the provider's name for it; None if the response does not say.
        stop: The provider's own stop reason; empty if the response does not say.
    """

    items: tuple[Item, ...]
    usage: Usage | None
    model: str | None
    stop: str


def read_response(response: object) -> ProviderResponse:
    """Return what a response of any provider says.

    Args:
        response: A response of Anthropic's Messages, OpenAI's Chat Completions or Responses, or Google's Gemini: an SDK object, its JSON
            values, or all chunks or events of a stream. Also a single message of such a response, which has no usage.

    Raises:
        FormatError: It is none of these; `.where` names the place.
    """
    payload = whole_response(response)
    if "choices" in payload:
        return _chat(payload)
    if "candidates" in payload or "usage_metadata" in payload or "usageMetadata" in payload or "prompt_feedback" in payload:
        return _google(payload)
    if payload.get("object") == "response" or isinstance(payload.get("output"), list):
        return _openai_responses(payload)
    if "parts" in payload:
        return _google({"candidates": [{"content": payload}]})
    if payload.get("role") == "assistant":
        is_anthropic = isinstance(payload.get("content"), list) and "tool_calls" not in payload
        return _anthropic(payload) if is_anthropic else _chat({"choices": [{"message": payload}]})
    raise FormatError("response", f"{short(response)} is no response of Anthropic, OpenAI or Google")


def append_response(session: Session, response: object, agent_id: str | None, extra: Mapping[str, Any] | None) -> list[Item]:
    """Append the items of a response and return them: see `Session.add_response`."""
    answer = read_response(response)
    items = linked((item if agent_id is None else replace(item, agent_id=agent_id) for item in answer.items), session.items)
    if not items:
        return []
    model = {} if answer.model is None else {"model": answer.model}
    items[0] = replace(items[0], usage=answer.usage, extra={**items[0].extra, **(extra or {}), **model})
    last = session.items[-1] if session.items else None
    if last is not None and is_answer(last) and is_answer(items[0]) and not _is_paused(last):
        session.restore_seams(session.response_breaks | {items[0].id}, session.settled, recorded_total(session))
    for item in items:
        session.append(item)
    return items


def _is_paused(last: Item) -> bool:
    """True if the log ends in a call or result of a tool that runs at Anthropic: the next response continues this one."""
    blocks = last.extra.get(CARRIED) if isinstance(last, Message) else None
    return isinstance(blocks, list) and bool(blocks) and (is_server_call(blocks[-1]) or is_server_result(blocks[-1]))


def _anthropic(payload: Mapping[str, Any]) -> ProviderResponse:
    answer = _response(
        from_anthropic([_without_parsed({**payload, "usage": None})], is_answer=True),
        payload.get("usage"),
        payload.get("model"),
        payload.get("stop_reason"),
    )
    usage = answer.usage
    if usage is not None and any(map(is_native, answer.items)):
        usage = with_compactions(usage, payload["usage"])
    edits = payload.get("context_management")
    extra = {EDITS: clean_json(edits, "response.context_management")} if answer.items and isinstance(edits, Mapping) else {}
    return _with_extra(replace(answer, usage=usage), extra)


def _chat(payload: Mapping[str, Any]) -> ProviderResponse:
    choice = _first(payload["choices"], "choices")
    message = choice.get("message")
    session = Session() if message is None else from_openai_chat([_without_parsed(message)])
    return _response(session, payload.get("usage"), payload.get("model"), choice.get("finish_reason"))


def _openai_responses(payload: Mapping[str, Any]) -> ProviderResponse:
    output = payload.get("output") or []
    if not isinstance(output, list):
        raise FormatError("response.output", f"{short(output)} where a list is expected")
    details = payload.get("incomplete_details")
    stop = details.get("reason") if isinstance(details, Mapping) else payload.get("status")
    session = from_openai_responses({"output": [_without_parsed(item) for item in output]})
    return _response(session, payload.get("usage"), payload.get("model"), stop)


def _google(payload: Mapping[str, Any]) -> ProviderResponse:
    candidates = payload.get("candidates")
    candidate = _first(candidates, "candidates") if candidates else {}
    content = candidate.get("content")
    session = Session() if content is None else from_google([_with_call_ids(content)])
    feedback = payload.get("prompt_feedback", payload.get("promptFeedback"))
    blocked = feedback.get("block_reason", feedback.get("blockReason")) if isinstance(feedback, Mapping) else None
    stop = candidate.get("finish_reason", candidate.get("finishReason", blocked))
    usage = payload.get("usage_metadata", payload.get("usageMetadata"))
    answer = _response(session, usage, payload.get("model_version", payload.get("modelVersion")), stop)
    extra = {
        key: clean_json(candidate[name], f"response.{name}") for key, names in SOURCES.items() for name in names if candidate.get(name)
    }
    return _with_extra(answer, extra)


def _with_extra(answer: ProviderResponse, extra: Mapping[str, Any]) -> ProviderResponse:
    """Return the answer with these entries in the `extra` of its first item, if it has one."""
    if not (answer.items and extra):
        return answer
    first, *later = answer.items
    return replace(answer, items=(replace(first, extra={**first.extra, **extra}), *later))


def _response(session: Session, usage: object, model: object, stop: object) -> ProviderResponse:
    """Return the response with new ids and times for its items."""
    created_at = time()
    items = [replace(item, id=new_id(), created_at=created_at) for item in session.items]
    return ProviderResponse(
        tuple(with_unique_call_ids(items)),
        _usage(usage),
        model if isinstance(model, str) and model else None,
        stop if isinstance(stop, str) else "",
    )


def _usage(report: object) -> Usage | None:
    from session.transcripts.usage import usage_of

    counts = usage_of(report)
    return None if counts is None else Usage(*counts)


def _first(members: object, where: str) -> Mapping[str, Any]:
    """Return the first of several choices; there are more only if the request asks for more."""
    if not isinstance(members, list) or not members:
        raise FormatError(f"response.{where}", f"{short(members)} where a list with a response is expected")
    return expect_object(members[0], f"response.{where}[0]")


def _without_parsed(value: object) -> Any:
    """Return a message or an item without the fields in `_PARSED`, at any depth of its parts."""
    if isinstance(value, Mapping):
        return {key: _without_parsed(member) for key, member in value.items() if key not in _PARSED}
    return [_without_parsed(member) for member in value] if isinstance(value, list) else value


def _with_call_ids(content: object) -> object:
    """Return a content whose calls all have an id. Gemini gives none to most; ids by place would be the same in every response."""
    if not isinstance(content, Mapping) or not isinstance(content.get("parts"), list):
        return content
    return {**content, "parts": [_with_call_id(part) for part in content["parts"]]}


def _with_call_id(part: object) -> object:
    key = "functionCall" if isinstance(part, Mapping) and "functionCall" in part else "function_call"
    call = part.get(key) if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or not isinstance(call, Mapping) or call.get("id"):
        return part
    return {**part, key: {**call, "id": f"call_{new_id()}"}}
