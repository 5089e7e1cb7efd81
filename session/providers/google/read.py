"""Read Gemini's contents as a session: the inverse of `write.py`, and the entrance for histories that began at Google.

The converter's additions are removed: preamble, closing lines, answers to interrupted calls, dummy signatures. The line about removed items
becomes `Session.removed`. Parts that a session has no words for (code that Gemini ran, server-side tools) are carried unchanged and sent
back unchanged.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from session.errors import FormatError, short
from session.items import FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Document, Image, Part, Text
from session.printable import printable
from session.providers import additions
from session.providers.parsing import (
    ItemFields,
    Placed,
    SessionBuilder,
    expect_base64,
    expect_list,
    expect_object,
    expect_text,
)
from session.providers.pieces import GOOGLE
from session.sanitize import clean_json, json_text
from session.session import Session

from .signatures import KEY, is_dummy
from .write import CARRIABLE, CARRIED

_CAMEL = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "thoughtSignature": KEY,
    "executableCode": "executable_code",
    "codeExecutionResult": "code_execution_result",
    "toolCall": "tool_call",
    "toolResponse": "tool_response",
    "mimeType": "mime_type",
    "fileUri": "file_uri",
}
"""The field names of the REST API, with their names in snake case."""
_TEXT = frozenset({"text"})
_PLAIN = frozenset({"text", "inline_data", "file_data", "thought", KEY})
_CARRIED_TEXT_MAX = 4_000
"""Characters of a carried part that its message repeats, for readers and token counters."""


def from_google(contents: object, system: object = None) -> Session:
    """Return the session of these contents. Ids name places ("m0", "m0.1"; "s" for the system instruction), times are 0.

        session = from_google(contents, system)
        session = from_google([*contents, response.candidates[0].content])

    Args:
        contents: Contents as dicts (field names in snake or camel case) or as SDK objects. A plain text is the user's.
        system: The system instruction: None, a text, a content, or a list of parts.

    Raises:
        FormatError: A value is not in the documented shape; `.where` names its place.
    """
    reader = _GoogleReader()
    if system is not None:
        reader.read_system(system)
    parsed = [_content(content, where) for where, content in expect_list(contents, "contents")]
    for index, (role, parts) in enumerate(parsed):
        is_after_response = index > 0 and parsed[index - 1][0] == "assistant"
        is_before_response = index + 1 < len(parsed) and parsed[index + 1][0] == "assistant"
        reader.read_content(index, role, parts, is_after_response=is_after_response, is_before_response=is_before_response)
    return reader.builder.finish()


def _content(value: object, where: str) -> tuple[Literal["user", "assistant"], Placed]:
    """Return the role of a content, and its parts with their places."""
    if isinstance(value, str):
        return "user", [(where, {"text": value})]
    content = _fields(value, where)
    role = content.get("role", "user")
    if role not in ("user", "model", "function"):  # a tuple: the role may be unhashable
        raise FormatError(f"{where}.role", f"{short(role)} is neither user nor model")
    parts = expect_list(content.get("parts", []), f"{where}.parts")
    return "assistant" if role == "model" else "user", [
        (at, {"text": part} if isinstance(part, str) else _fields(part, at)) for at, part in parts
    ]


def _system_texts(system: object) -> Iterator[str]:
    if isinstance(system, str):
        yield system
        return
    parts = system if isinstance(system, list | tuple) else _fields(system, "system").get("parts") or []
    for where, part in expect_list(parts, "system.parts"):
        yield part if isinstance(part, str) else expect_text(_fields(part, where).get("text"), f"{where}.text")


def _fields(value: object, where: str) -> dict[str, Any]:
    """Return the fields that are not null, by their names in snake case."""
    fields = expect_object(value, where)
    named = ((key if isinstance(key, str) else short(key), member) for key, member in fields.items() if member is not None)
    return {_CAMEL.get(name, name): member for name, member in named}


class _GoogleReader:
    """Reads the contents in order."""

    def __init__(self) -> None:
        self.builder = SessionBuilder()
        self._calls: list[FunctionCall] = []  # of the model's last content
        self._calls_by_id: dict[str, FunctionCall] = {}
        self._responses = 0  # function responses since the model's last content
        self._role: Literal["user", "assistant"] = "user"
        self._parts: list[Part] = []  # of the message that is being read, since its last item
        self._carried: list[dict[str, Any]] = []  # the original parts, if `_parts` only repeats them

    def read_system(self, system: object) -> None:
        self.builder.begin("s")
        for text in _system_texts(system):
            self.builder.add(Message("system", text, **self.builder.fields()))

    def read_content(
        self,
        index: int,
        role: Literal["user", "assistant"],
        parts: Placed,
        *,
        is_after_response: bool,
        is_before_response: bool,
    ) -> None:
        """Add the items of one content: a `Message` for each run of texts and media, an item for every other part."""
        self._role = role
        self.builder.begin(f"m{index}", is_response=role == "assistant")
        if role == "assistant":
            self._calls, self._calls_by_id, self._responses = [], {}, 0
        elif index == 0 or is_after_response:
            parts = self.builder.without_addition(parts, _TEXT, is_opening=index == 0, is_before_response=is_before_response)
        for where, part in parts:
            self._read_part(index, where, part)
        self._end_message()

    def _read_part(self, index: int, where: str, part: dict[str, Any]) -> None:
        signature = _signature(part.get(KEY), f"{where}.{KEY}")
        if "function_call" in part:
            self._end_message()
            call_id = f"call_{index}_{len(self._calls)}"
            call = _call(part["function_call"], signature, f"{where}.function_call", call_id, self.builder.fields())
            self._calls.append(call)
            self._calls_by_id.setdefault(call.call_id, call)
            self.builder.add(call)
        elif "function_response" in part:
            self._end_message()
            self._read_response(part["function_response"], f"{where}.function_response")
        elif part.get("thought"):
            self._end_message()
            text = expect_text(part.get("text", ""), f"{where}.text")
            self.builder.add(Reasoning(text, signature, extra={"provider": GOOGLE}, **self.builder.fields()))
        elif part and part.keys() <= _PLAIN:
            if self._carried:
                self._end_message()
            self._parts.append(_part(part, where))
            if signature and self._role == "assistant":
                self._end_message(signature)
        elif part.keys() & CARRIABLE:
            if not self._carried:
                self._end_message()
            carried = clean_json(part, where, encode=_base64)
            self._parts.append(Text(json_text(carried, where)[:_CARRIED_TEXT_MAX]))
            self._carried.append(carried)
        else:
            raise FormatError(where, f"a part of {printable(', '.join(sorted(part))) or 'nothing'}: none that is known")

    def _end_message(self, signature: str | None = None) -> None:
        """Add a message with the parts since the last item."""
        if not self._parts:
            return
        extra: dict[str, Any] = {KEY: signature} if signature else {}
        if self._carried:
            extra[CARRIED] = self._carried
        elif self._role == "assistant" and not all(isinstance(part, Text) for part in self._parts):
            extra["provider"] = GOOGLE
        message = Message(self._role, self._parts, extra=extra, **self.builder.fields())
        if self._role == "user" and not self._carried:
            self.builder.add_user_message(message)
        else:
            self.builder.add(message)
        self._parts, self._carried = [], []

    def _read_response(self, value: object, where: str) -> None:
        """Add a function response, unless it is the converter's answer to an interrupted call."""
        response = _fields(value, where)
        index, self._responses = self._responses, self._responses + 1
        call = self._answered_call(response, index)
        tool = expect_text(response.get("name", call.name if call else ""), f"{where}.name")
        call_id = call.call_id if call else expect_text(response.get("id", f"call_{index}"), f"{where}.id")
        content = expect_object(response.get("response", {}), f"{where}.response")
        media = [_part(_fields(part, place), place) for place, part in expect_list(response.get("parts", []), f"{where}.parts")]
        if content == {"error": additions.INTERRUPTED} and not media:
            return
        is_error = content.keys() == {"error"} and isinstance(content["error"], str)
        wrapped = content.get("error") if is_error else content.get("output") if content.keys() == {"output"} else None
        text = wrapped if isinstance(wrapped, str) else json_text(dict(content), f"{where}.response")
        text = additions.unescaped(text, additions.INTERRUPTED) if is_error else text
        self.builder.add(FunctionCallOutput(tool, (Text(text), *media), call_id, is_error=is_error, **self.builder.fields()))

    def _answered_call(self, response: Mapping[str, Any], index: int) -> FunctionCall | None:
        """Return the call that a response answers: by its id, else by its position among the calls of the content before."""
        if "id" in response:
            return self._calls_by_id.get(response["id"]) if isinstance(response["id"], str) else None
        return self._calls[index] if index < len(self._calls) else None


def _signature(value: object, where: str) -> str | None:
    """Return the signature as base64, or None for a missing one and for the dummy."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return None if is_dummy(value) else base64.b64encode(value).decode("ascii")
    text = expect_text(value, where)
    return None if is_dummy(text) else text


def _call(value: object, signature: str | None, where: str, call_id: str, fields: ItemFields) -> FunctionCall:
    call = _fields(value, where)
    return FunctionCall(
        expect_text(call.get("name"), f"{where}.name"),
        json_text(dict(expect_object(call.get("args", {}), f"{where}.args")), f"{where}.args"),
        expect_text(call.get("id", call_id), f"{where}.id"),
        metadata={KEY: signature} if signature else {},
        **fields,
    )


def _part(part: Mapping[str, Any], where: str) -> Part:
    """Return the text, image or document in a part."""
    if "inline_data" in part:
        blob = _fields(part["inline_data"], f"{where}.inline_data")
        data = expect_base64(blob.get("data"), f"{where}.inline_data.data")
        kind = expect_text(blob.get("mime_type", ""), f"{where}.inline_data.mime_type")
        if kind.startswith("image/"):
            return Image(data=data, media_type=kind)
        if kind.startswith("text/"):
            try:
                return Document(text=data.decode(), media_type=kind)
            except UnicodeDecodeError:
                pass  # keep it as bytes
        return Document(data=data, media_type=kind or None)
    if "file_data" in part:
        file = _fields(part["file_data"], f"{where}.file_data")
        uri = expect_text(file.get("file_uri"), f"{where}.file_data.file_uri")
        kind = expect_text(file.get("mime_type", ""), f"{where}.file_data.mime_type")
        return Image(url=uri, media_type=kind) if kind.startswith("image/") else Document(url=uri, media_type=kind or None)
    return Text(expect_text(part.get("text", ""), f"{where}.text"))  # missing if the part holds only a signature


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
