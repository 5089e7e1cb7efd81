"""Gemini's contents as a session: the way back of `write.py`, and a way in for histories that began at Google.

What the converter added is stripped: preamble, answers to interrupted calls, dummy signatures. What a session has no words for
(code that Gemini ran, server-side tools) is carried as it came and goes back as it came.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from session.door import clean_json
from session.errors import FormatError, short
from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Document, Image, Part, Text
from session.providers import additions
from session.providers.given import Named, Retold, a_list, a_text, an_object, as_json, some_bytes
from session.session import Session

from .signatures import KEY, is_dummy
from .write import CARRIABLE, CARRIED, PROVIDER

_Parts: TypeAlias = list[tuple[str, dict[str, Any]]]
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
"""The names that REST gives the fields, and those that they have here."""
_PLAIN = frozenset({"text", "inline_data", "file_data", "thought", KEY})
_SHOWN = 4_000
"""Characters of a carried part that its message repeats, for those who read or count the session."""


def from_google(contents: object, system: object = None) -> Session:
    """The session that these contents tell. Ids go by place ("m0", "m0.1"; "s" for system), times are 0.

        session = from_google(contents, system)
        session = from_google([*contents, response.candidates[0].content])

    Args:
        contents: Contents as dicts (field names in snake or camel case) or as objects of the SDK; a text is the user's.
        system: The system instruction: None, a text, a content, or a list of parts.

    Raises:
        FormatError: Something is no content; `.where` names the place.
    """
    told = _Telling()
    if system is not None:
        told.system(system)
    listed = [_content(content, where) for where, content in a_list(contents, "contents")]
    for place, (role, parts) in enumerate(listed):
        following = listed[place + 1][0] if place + 1 < len(listed) else None
        told.content(place, role, parts, before_answer=following == "assistant")
    return told.out.done()


def _content(given: object, where: str) -> tuple[Literal["user", "assistant"], _Parts]:
    """The role, and the parts with their places."""
    if isinstance(given, str):
        return "user", [(where, {"text": given})]
    content = _fields(given, where)
    role = content.get("role", "user")
    if role not in ("user", "model", "function"):  # a tuple: what is given may be unhashable
        raise FormatError(f"{where}.role", f"{short(role)} is neither user nor model")
    parts = a_list(content.get("parts", []), f"{where}.parts")
    return "assistant" if role == "model" else "user", [
        (at, {"text": part} if isinstance(part, str) else _fields(part, at)) for at, part in parts
    ]


def _system_texts(system: object) -> Iterator[str]:
    if isinstance(system, str):
        yield system
        return
    parts = system if isinstance(system, list | tuple) else _fields(system, "system").get("parts") or []
    for where, part in a_list(parts, "system.parts"):
        yield part if isinstance(part, str) else a_text(_fields(part, where).get("text"), f"{where}.text")


def _fields(value: object, where: str) -> dict[str, Any]:
    """The fields that are set, by their names here."""
    found = an_object(value, where)
    named = ((key if isinstance(key, str) else short(key), member) for key, member in found.items() if member is not None)
    return {_CAMEL.get(name, name): member for name, member in named}


class _Telling:
    """One walk over the contents."""

    def __init__(self) -> None:
        self.out = Retold()
        self._calls: list[FunctionCall] = []  # of the last content of the model
        self._by_id: dict[str, FunctionCall] = {}
        self._answered = 0  # how many of them
        self._role: Literal["user", "assistant"] = "user"
        self._said: list[Part] = []
        self._carried: list[dict[str, Any]] = []  # what they are parts of, where the session has no words for it

    def system(self, given: object) -> None:
        self.out.at("s")
        for text in _system_texts(given):
            self.out.add(Message("system", text, **self.out.name()))

    def content(self, place: int, role: Literal["user", "assistant"], parts: _Parts, *, before_answer: bool) -> None:
        """The items of one content: a message a run of texts and media, and one for each part of another kind."""
        self._role = role
        self.out.at(f"m{place}", response=role == "assistant")
        if role == "assistant":
            self._calls, self._by_id, self._answered = [], {}, 0
        elif place == 0 and parts and parts[0][1] == {"text": additions.PREAMBLE}:
            parts = parts[1:]
            if parts or not before_answer:
                # Something earlier is gone, and nothing else tells so: a compaction without a summary. For such a one nothing
                # is sent but the preamble that was there.
                self.out.add(Compaction("", **self.out.name()))
        elif place == 0 and parts and parts[0][1].keys() == {"text"} and isinstance(text := parts[0][1]["text"], str):
            parts = [(parts[0][0], {"text": additions.unescaped(text, additions.PREAMBLE)}), *parts[1:]]
        for where, part in parts:
            self._part(place, where, part)
        self._close()

    def _part(self, place: int, where: str, part: dict[str, Any]) -> None:
        signature = _signature(part.get(KEY), f"{where}.{KEY}")
        if "function_call" in part:
            self._close()
            call_id = f"call_{place}_{len(self._calls)}"
            call = _call(part["function_call"], signature, f"{where}.function_call", call_id, self.out.name())
            self._calls.append(call)
            self._by_id.setdefault(call.call_id, call)
            self.out.add(call)
        elif "function_response" in part:
            self._close()
            self._output(part["function_response"], f"{where}.function_response")
        elif part.get("thought"):
            self._close()
            text = a_text(part.get("text", ""), f"{where}.text")
            self.out.add(Reasoning(text, signature, extra={"provider": PROVIDER}, **self.out.name()))
        elif part and part.keys() <= _PLAIN:
            if self._carried:
                self._close()
            self._said.append(_medium(part, where))
            if signature and self._role == "assistant":
                self._close(signature)
        elif part.keys() & CARRIABLE:
            if not self._carried:
                self._close()
            bare = clean_json(part, where, encode=_base64)
            self._said.append(Text(as_json(bare, where)[:_SHOWN]))
            self._carried.append(bare)
        else:
            raise FormatError(where, f"a part of {', '.join(sorted(part)) or 'nothing'}: none that is known")

    def _close(self, signature: str | None = None) -> None:
        """A message of what was said since the last item."""
        if not self._said:
            return
        extra: dict[str, Any] = {KEY: signature} if signature else {}
        if self._carried:
            extra[CARRIED] = self._carried
        elif self._role == "assistant" and not all(isinstance(part, Text) for part in self._said):
            extra["provider"] = PROVIDER
        self.out.add(Message(self._role, self._said, extra=extra, **self.out.name()))
        self._said, self._carried = [], []

    def _output(self, given: object, where: str) -> None:
        """The output; nothing for the answer to an interrupted call, which a converter gave."""
        response = _fields(given, where)
        number, self._answered = self._answered, self._answered + 1
        call = self._asked(response, number)
        tool = a_text(response.get("name", call.name if call else ""), f"{where}.name")
        call_id = call.call_id if call else a_text(response.get("id", f"call_{number}"), f"{where}.id")
        answer = an_object(response.get("response", {}), f"{where}.response")
        media = [_medium(_fields(part, at), at) for at, part in a_list(response.get("parts", []), f"{where}.parts")]
        if answer == {"error": additions.INTERRUPTED} and not media:
            return
        failed = answer.keys() == {"error"} and isinstance(answer["error"], str)
        only = answer.get("error") if failed else answer.get("output") if answer.keys() == {"output"} else None
        text = only if isinstance(only, str) else as_json(dict(answer), f"{where}.response")
        text = additions.unescaped(text, additions.INTERRUPTED) if failed else text
        self.out.add(FunctionCallOutput(tool, (Text(text), *media), call_id, is_error=failed, **self.out.name()))

    def _asked(self, response: Mapping[str, Any], number: int) -> FunctionCall | None:
        """The call that is answered: by its id, else by its place among the calls of the content before."""
        if "id" in response:
            return self._by_id.get(response["id"]) if isinstance(response["id"], str) else None
        return self._calls[number] if number < len(self._calls) else None


def _signature(value: object, where: str) -> str | None:
    """The signature as base64; None for none and for the one that a converter made up."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return None if is_dummy(value) else base64.b64encode(value).decode("ascii")
    text = a_text(value, where)
    return None if is_dummy(text) else text


def _call(given: object, signature: str | None, where: str, call_id: str, name: Named) -> FunctionCall:
    call = _fields(given, where)
    return FunctionCall(
        a_text(call.get("name"), f"{where}.name"),
        as_json(dict(an_object(call.get("args", {}), f"{where}.args")), f"{where}.args"),
        a_text(call.get("id", call_id), f"{where}.id"),
        metadata={KEY: signature} if signature else {},
        **name,
    )


def _medium(part: Mapping[str, Any], where: str) -> Part:
    """A text, an image or a document."""
    if "inline_data" in part:
        blob = _fields(part["inline_data"], f"{where}.inline_data")
        data = some_bytes(blob.get("data"), f"{where}.inline_data.data")
        kind = a_text(blob.get("mime_type", ""), f"{where}.inline_data.mime_type")
        if kind.startswith("image/"):
            return Image(data=data, media_type=kind)
        if kind.startswith("text/"):
            try:
                return Document(text=data.decode(), media_type=kind)
            except UnicodeDecodeError:
                pass  # then it is bytes
        return Document(data=data, media_type=kind or None)
    if "file_data" in part:
        file = _fields(part["file_data"], f"{where}.file_data")
        uri = a_text(file.get("file_uri"), f"{where}.file_data.file_uri")
        kind = a_text(file.get("mime_type", ""), f"{where}.file_data.mime_type")
        return Image(url=uri, media_type=kind) if kind.startswith("image/") else Document(url=uri, media_type=kind or None)
    return Text(a_text(part.get("text", ""), f"{where}.text"))  # a signature can come alone


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
