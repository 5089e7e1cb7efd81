"""A session as contents for Google's Gemini API. The rules it keeps are cited as G1 to G4 (docs/provider-rules.md); the validator in
`rules.py` knows nothing of this file.

What is on the wire and not in the log: `additions.PREAMBLE` at the head, `additions.INTERRUPTED` for every call without an
output, `signatures.DUMMY` for calls without a signature, notes for what cannot be sent. What is in the log and not on the wire:
handoffs, config updates, outputs without a call, blank texts, titles of documents, thoughts that Gemini did not sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Text
from session.providers import additions
from session.providers.calls import CallIds, arguments_object, safe
from session.providers.media import coded_problem
from session.providers.steps import Response, conversation
from session.session import Session

from .parts import WirePart, plain, response_media, rich, text_part
from .signatures import DUMMY, KEY, sendable

UNSAFE = r"[^a-zA-Z0-9_.:-]"
NAME_LENGTH = 128
"""Characters of a function's name. It begins with a letter or "_"."""
ID_LENGTH = 128
PROVIDER = "google"
"""Whose reasoning it is, as `extra["provider"]` says; the same key marks messages whose images Gemini made itself."""
CARRIED = "google_parts"
"""In `Message.extra`: parts that a session has no words for, as they came. They go back as they are."""


CARRIABLE = frozenset({"executable_code", "code_execution_result", "tool_call", "tool_response", "inline_data", "file_data", "text"})
_PAIRED = frozenset({"function_call", "function_response"})


class GoogleContents(NamedTuple):
    """What `client.models.generate_content(contents=…, config={"system_instruction": …})` takes.

    Attributes:
        contents: Contents of role user and model in turn, as JSON values: field names in snake case, bytes as base64.
        system: None, or the system instruction: a content without a role, a part for each text.
    """

    contents: list[dict[str, Any]]
    system: dict[str, Any] | None


def to_google(session: Session, *, thought_signatures: Mapping[str, str | bytes] | None = None) -> GoogleContents:
    """The session as Gemini's contents and system instruction. The session is left as it is.

        contents, system = to_google(session)
        client.models.generate_content(model=…, contents=contents, config={"system_instruction": system})

    Neighbours of one role are one content, so roles alternate: responses stand first in theirs, texts after them. Calls and
    responses carry their `id`, which the Gemini API pairs them by; older versions of Vertex AI refuse that field. A call without
    a signature gets `signatures.DUMMY` wherever it stands, not in the current turn alone: what was sent once is sent again,
    so that a longer log extends the contents of a shorter one.

    Args:
        session: A log or a view.
        thought_signatures: By call id: signatures that the log does not have, or other ones than it has; base64, or bytes.
    """
    told = conversation(session)
    contents: list[dict[str, Any]] = []
    if told.preamble:
        _add(contents, "user", [text_part(additions.PREAMBLE)])
    ids = CallIds(UNSAFE, ID_LENGTH)
    for step in told.steps:
        if isinstance(step, Response):
            wire_ids = {call.id: ids.take(call.call_id) for call in step.calls}
            _add(contents, "model", _answer(step, wire_ids, thought_signatures or {}))
            # G1, G2: the responses are the very next content, as many as there are calls and in their order.
            _add(contents, "user", [_response(step, call, wire_ids[call.id]) for call in step.calls])
        elif isinstance(step, Compaction):
            _add(contents, "user", [text_part(additions.SUMMARY_HEADER + step.summary)] if step.summary.strip() else [])
        elif step.role == "user":
            _add(contents, "user", _carried(step) or list(rich(step.content)))
        else:
            _add(contents, "model", _said(step))
    if contents and contents[0]["role"] == "model":  # where `preamble_due` does not see it: the user's first text is blank
        contents.insert(0, {"role": "user", "parts": [text_part(additions.PREAMBLE)]})
    elif contents and not told.preamble and (first := contents[0]["parts"][0]).keys() == {"text"}:
        first["text"] = additions.escaped(first["text"], additions.PREAMBLE)
    system = [part for message in told.system for part in plain(message.content)]
    return GoogleContents(contents, {"parts": system} if system else None)


def _add(contents: list[dict[str, Any]], role: Literal["user", "model"], parts: list[WirePart]) -> None:
    """Appends parts; to the last content where that has the same role, and none where there are none."""
    if not parts:
        return
    if contents and contents[-1]["role"] == role:
        contents[-1]["parts"].extend(parts)
    else:
        contents.append({"role": role, "parts": parts})


def _answer(response: Response, wire_ids: dict[str, str], given: Mapping[str, str | bytes]) -> list[WirePart]:
    """The parts of a response, in the order the model said them."""
    parts: list[WirePart] = []
    waiting: list[WirePart] = []  # a thought is sent when something follows it: alone it is no answer
    called = False
    for item in response.items:
        if isinstance(item, Reasoning):
            waiting.extend(_thought(item))
            continue
        if isinstance(item, FunctionCall):
            said = [_call(item, wire_ids[item.id], given, first=not called)]
            called = True
        else:
            said = _said(item)
        if said:
            parts += [*waiting, *said]
            waiting = []
    return parts


def _thought(item: Reasoning) -> Iterator[WirePart]:
    """A thought that Gemini had and signed; no other: what is not its own it does not take back."""
    signature = sendable(item.signature)
    if item.extra.get("provider") == PROVIDER and signature:
        yield {"text": item.text, "thought": True, "thought_signature": signature}


def _call(call: FunctionCall, wire_id: str, given: Mapping[str, str | bytes], *, first: bool) -> WirePart:
    name = safe(call.name, UNSAFE, NAME_LENGTH, "tool")
    if not (name[0].isalpha() or name[0] == "_"):
        name = f"_{name[: NAME_LENGTH - 1]}"
    part: WirePart = {"function_call": {"id": wire_id, "name": name, "args": arguments_object(call.arguments)}}
    signature = sendable(given.get(call.call_id)) or sendable(call.metadata.get(KEY)) or (DUMMY if first else None)
    if signature:  # G4: of parallel calls the first one has it
        part["thought_signature"] = signature
    return part


def _response(response: Response, call: FunctionCall, wire_id: str) -> WirePart:
    name = _call(call, wire_id, {}, first=False)["function_call"]["name"]
    wire: dict[str, Any] = {"id": wire_id, "name": name, "response": {}}
    output = response.outputs.get(call.id)
    if output is None:
        wire["response"] = {"error": additions.INTERRUPTED}
        return {"function_response": wire}
    texts, media = _output(output)
    text = "\n".join(texts)
    error = additions.escaped(text, additions.INTERRUPTED) if text.strip() else additions.FAILED
    wire["response"] = {"error": error} if output.is_error else {"output": text}
    if media:
        wire["parts"] = media
    return {"function_response": wire}


def _output(output: FunctionCallOutput) -> tuple[list[str], list[WirePart]]:
    """The texts of an output, and what stands beside them."""
    texts: list[str] = []
    media: list[WirePart] = []
    for part in output.output:
        told = part.text if isinstance(part, Text) else response_media(part)
        if isinstance(told, str):
            texts.append(told)
        else:
            media.append(told)
    return texts, media


def _said(message: Message) -> list[WirePart]:
    """The parts of what the model said; images only where Gemini made them, for it takes no others as its own."""
    parts = _carried(message)
    if not parts:
        parts = list((rich if message.extra.get("provider") == PROVIDER else plain)(message.content))
    signature = sendable(message.extra.get(KEY))
    if signature:  # on the last part, also where that is a blank text: so it came
        last = message.content[-1] if message.content else Text("")
        if not parts or (isinstance(last, Text) and not last.text.strip()):
            parts.append(text_part(last.text if isinstance(last, Text) else ""))
        parts[-1] = {**parts[-1], "thought_signature": signature}
    return parts


def _carried(message: Message) -> list[WirePart]:
    """The parts that a way back found no words for. Calls and responses are items of their own and never among them (G2)."""
    carried = message.extra.get(CARRIED)
    parts = [part for part in carried if isinstance(part, dict)] if isinstance(carried, list) else []
    known = (part for part in parts if part.keys() & CARRIABLE and not part.keys() & _PAIRED and isinstance(part.get("text", ""), str))
    # What is no signature, or no image, would have the whole request refused.
    return [_noted(part) or {key: value for key, value in part.items() if key != KEY or sendable(value)} for part in known]


def _noted(part: WirePart) -> WirePart | None:
    """Return a note in place of bytes that are damaged; None for all else."""
    blob = part.get("inline_data")
    if not isinstance(blob, dict):
        return None
    kind = blob.get("mime_type", blob.get("mimeType"))
    problem = coded_problem(blob.get("data"), kind)
    return None if problem is None else text_part(f"[{'image' if str(kind).startswith('image/') else 'document'} {problem}]")
