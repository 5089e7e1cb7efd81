"""Write a session as contents for Google's Gemini API. Rules G1 to G4 are in docs/provider-rules.md; the validator in `rules.py` is
independent of this file.

Sent but not in the log: `additions.PREAMBLE` or the line about removed items at the beginning, `additions.CLOSING` where a request would
have ended in the model's turn, `additions.INTERRUPTED` for every call without an output, `signatures.DUMMY` for calls without a signature,
notes for content that cannot be sent.

A handoff is sent as a note in the user's voice (`additions.handoff_note`). The instructions of a config update are sent in the system
prompt.

In the log but not sent: replaced instructions, outputs without a call, blank texts, titles of documents, thoughts that Gemini did not
sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Text
from session.providers import additions
from session.providers.conversation import (
    Response,
    Step,
    WireIds,
    append_blocks,
    append_closing,
    arguments_object,
    blocks_in_order,
    copied,
    dialogue_of,
    escape_first,
    safe,
)
from session.providers.media import base64_problem
from session.providers.pieces import GOOGLE
from session.session import Session

from .parts import GooglePart, google_parts, plain, response_media, text_part
from .signatures import DUMMY, KEY, sendable

UNSAFE = r"[^a-zA-Z0-9_.:-]"
NAME_LENGTH = 128
"""Maximum characters of a function's name, which begins with a letter or "_"."""
ID_LENGTH = 128
CARRIED = "google_parts"
"""In `Message.extra`: parts that a session has no words for. They are sent back unchanged."""
CARRIABLE = frozenset({"executable_code", "code_execution_result", "tool_call", "tool_response", "inline_data", "file_data", "text"})
_PAIRED = frozenset({"function_call", "function_response"})


class GoogleContents(NamedTuple):
    """The arguments `contents` and `system_instruction` of `client.models.generate_content`.

    Attributes:
        contents: Contents of role user and model in turn, as JSON values: field names in snake case, bytes as base64.
        system: None, or the system instruction: a content without a role, with a part for each text.

    The JSON objects are typed Any: type checkers accept them where the client expects its own types.
    """

    contents: list[Any]
    system: Any


def to_google(session: Session, *, thought_signatures: Mapping[str, str | bytes] | None = None) -> GoogleContents:
    """Return the session as Gemini's contents and system instruction. The session does not change.

        contents, system = to_google(session)
        client.models.generate_content(model=…, contents=contents, config={"system_instruction": system})

    Roles alternate: neighbours of one role share a content, with function responses first and texts after them. Calls and responses carry
    their `id`, by which the Gemini API pairs them; older versions of Vertex AI refuse that field. Every call without a signature gets
    `signatures.DUMMY`, not only in the current turn: so a longer log extends the contents of a shorter one.

    Args:
        session: A log or a view.
        thought_signatures: Signatures by call id, as base64 or bytes. They take precedence over those of the log.
    """
    dialogue = dialogue_of(session)
    contents: list[GooglePart] = []
    if dialogue.opening is not None:
        append_blocks(contents, "user", "parts", [text_part(dialogue.opening)])
    ids = WireIds(UNSAFE, ID_LENGTH)
    for step in dialogue.steps:
        _write(step, contents, ids, thought_signatures or {})
    if contents and contents[0]["role"] == "model":  # the user's first text was blank
        contents.insert(0, {"role": "user", "parts": [text_part(additions.PREAMBLE)]})
    elif contents and dialogue.opening is None and contents[0]["parts"][0].keys() == {"text"}:
        escape_first(contents, "parts")
    if dialogue.is_request:
        append_closing(contents, "parts", text_part(additions.CLOSING))
    system = [part for message in dialogue.system for part in plain(message.content)]
    return GoogleContents(contents, {"parts": system} if system else None)


def _write(step: Step, contents: list[GooglePart], ids: WireIds, signatures: Mapping[str, str | bytes]) -> None:
    """Append the next step to the contents."""
    if isinstance(step, Response):
        if step.resumes:
            append_closing(contents, "parts", text_part(additions.CLOSING))
        wire_ids = {call.id: ids.take(call.call_id) for call in step.calls}
        append_blocks(contents, "model", "parts", _response(step, wire_ids, signatures))
        # G1, G2: the very next content has the responses, one for each call, in the order of the calls.
        append_blocks(contents, "user", "parts", [_function_response(step, call, wire_ids[call.id]) for call in step.calls])
    elif isinstance(step, Compaction):
        append_blocks(contents, "user", "parts", [text_part(additions.summary_text(step.summary))] if step.summary.strip() else [])
    elif step.role == "user":
        append_blocks(contents, "user", "parts", _carried(step) or list(google_parts(step.content)))
    else:
        append_blocks(contents, "model", "parts", _model_message(step))


def _response(response: Response, wire_ids: dict[str, str], signatures: Mapping[str, str | bytes]) -> list[GooglePart]:
    """Return the parts of a response in the order the model made them, without trailing thoughts: alone, they are no response."""
    first_call = next(iter(response.calls), None)

    def write(item: Message | FunctionCall) -> list[GooglePart]:
        if isinstance(item, FunctionCall):
            return [_call(item, wire_ids[item.id], signatures, is_first=item is first_call)]
        return _model_message(item)

    return blocks_in_order(response, _thought, write)


def _thought(item: Reasoning) -> list[GooglePart]:
    """Return a thought that Gemini made and signed, else nothing: it accepts no other thoughts."""
    signature = sendable(item.signature) if item.extra.get("provider") == GOOGLE else None
    return [{"text": item.text, "thought": True, "thought_signature": signature}] if signature else []


def _call(call: FunctionCall, wire_id: str, signatures: Mapping[str, str | bytes], *, is_first: bool) -> GooglePart:
    part: GooglePart = {"function_call": {"id": wire_id, "name": _name(call), "args": arguments_object(call.arguments)}}
    signature = sendable(signatures.get(call.call_id)) or sendable(call.metadata.get(KEY)) or (DUMMY if is_first else None)
    if signature:  # G4: the first of parallel calls has one
        part["thought_signature"] = signature
    return part


def _name(call: FunctionCall) -> str:
    name = safe(call.name, UNSAFE, NAME_LENGTH, "tool")
    return name if name[0].isalpha() or name[0] == "_" else f"_{name[: NAME_LENGTH - 1]}"


def _function_response(response: Response, call: FunctionCall, wire_id: str) -> GooglePart:
    name = _name(call)
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


def _output(output: FunctionCallOutput) -> tuple[list[str], list[GooglePart]]:
    """Return the texts of an output, and its images and documents."""
    texts: list[str] = []
    media: list[GooglePart] = []
    for part in output.output:
        content = part.text if isinstance(part, Text) else response_media(part)
        if isinstance(content, str):
            texts.append(content)
        else:
            media.append(content)
    return texts, media


def _model_message(message: Message) -> list[GooglePart]:
    """Return the parts of a message of the model. Only images that Gemini made are sent: it takes no others as its own."""
    parts = _carried(message)
    if not parts:
        parts = list((google_parts if message.extra.get("provider") == GOOGLE else plain)(message.content))
    signature = sendable(message.extra.get(KEY))
    if signature:  # on the last part, even a blank text, as Gemini sent it
        last = message.content[-1] if message.content else Text("")
        if not parts or (isinstance(last, Text) and not last.text.strip()):
            parts.append(text_part(last.text if isinstance(last, Text) else ""))
        parts[-1] = {**parts[-1], "thought_signature": signature}
    return parts


def _carried(message: Message) -> list[GooglePart]:
    """Return the carried parts of a message. Calls and responses are never among them: they are items (G2)."""
    carried = message.extra.get(CARRIED)
    parts = carried if isinstance(carried, list) else []
    # A damaged signature or image would have the whole request refused.
    return [
        _damage_note(part) or {key: copied(value) for key, value in part.items() if key != KEY or sendable(value)}
        for part in parts
        if isinstance(part, dict) and _is_carriable(part)
    ]


def _is_carriable(part: GooglePart) -> bool:
    return bool(part.keys() & CARRIABLE) and not part.keys() & _PAIRED and isinstance(part.get("text", ""), str)


def _damage_note(part: GooglePart) -> GooglePart | None:
    """Return a note for a part with damaged bytes, None for other parts."""
    blob = part.get("inline_data")
    if not isinstance(blob, dict):
        return None
    kind = blob.get("mime_type", blob.get("mimeType"))
    problem = base64_problem(blob.get("data"), kind)
    return None if problem is None else text_part(f"[{'image' if str(kind).startswith('image/') else 'document'} {problem}]")
