"""Gemini's generateContent on the loopback: turns in their order, and signatures that it knows again."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .answers import Block, Call, Raw, Say, Script
from .caching import PrefixCache, Spent, tokens
from .pictures import decoded, is_pdf, is_readable
from .server import Body, Refusal, Stub, canonical

PATH = re.compile(r"/v1(?:beta)?/models/([^:/]+):(generateContent|streamGenerateContent)")
PIECE = 40
"""Characters of a text that one chunk of a stream brings."""
PARAMETERS = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent", "labels"}
DATA = {"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}
"""The fields of a part of which it has exactly one."""
BESIDE = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}
NAME = re.compile(r"[A-Za-z_][\w.:-]{0,127}", re.ASCII)
DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""The documented signatures for calls that another model made."""
MEDIA = re.compile(r"(image/(png|jpeg|webp|heic|heif)|application/pdf|text/[\w.+-]+|audio/[\w.+-]+|video/[\w.+-]+|application/json)")


class GeminiStub(Stub):
    """`POST /v1beta/models/{model}:generateContent`; a model of generation 3 or later demands signatures."""

    largest = 20 * 1024 * 1024
    finish = "STOP"
    """The finish reason of every answer."""

    def __init__(self, script: Script | None = None, *, cache_minimum: int = 1024) -> None:
        super().__init__(script)
        self._cache = PrefixCache(cache_minimum)

    def envelope(self, refusal: Refusal) -> Body:
        """Their error."""
        return {"error": {"code": refusal.status, "message": refusal.message, "status": refusal.kind}}

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        """A response with one candidate."""
        try:
            return self._serve(path, headers, body)
        except Refusal as refusal:
            if refusal.status == 400:
                refusal.kind = "INVALID_ARGUMENT"
            raise

    def _serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        model = PATH.fullmatch(path.partition("?")[0])
        if model is None:
            raise Refusal("Not found", status=404, kind="NOT_FOUND")
        if "x-goog-api-key" not in headers:
            raise Refusal("Method doesn't allow unregistered callers", status=403, kind="PERMISSION_DENIED")
        body = _camel(body)
        for name in body:
            if name not in PARAMETERS:
                raise Refusal(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
        if not isinstance(body.get("contents"), list) or not body["contents"]:
            raise Refusal("* GenerateContentRequest.contents: contents is not specified")
        for number, content in enumerate(body["contents"]):
            _check_content(content, f"GenerateContentRequest.contents[{number}]")
        if body.get("systemInstruction") is not None:
            system = body["systemInstruction"]
            _check_content({**system, "role": "user"} if isinstance(system, dict) else system, "GenerateContentRequest.system_instruction")
            if any("text" not in part for part in system["parts"]):
                raise Refusal("* GenerateContentRequest.system_instruction.parts: only text is supported")
        _check_turns(body["contents"])
        self._check_signatures(body["contents"], required=_generation(model[1]) >= 3)
        spent = self._cache.whole([body.get("systemInstruction"), body.get("tools") or [], *body["contents"]])
        self._streams = model[2] == "streamGenerateContent"
        return self._answer(model[1], self.script(body), spent)

    def written(self, raw: bytes, status: int, body: Body) -> tuple[str, bytes]:
        """An answer as a stream of chunks, where the request asks for one."""
        if status != 200 or not self._streams:
            return super().written(raw, status, body)
        return "text/event-stream", b"".join(f"data: {json.dumps(chunk)}\r\n\r\n".encode() for chunk in self._chunks(body))

    def _chunks(self, answer: Body) -> Iterator[Body]:
        """Chunks that each bring one part or a piece of a text. A signed text ends in a part of its own: an empty text with a signature."""
        [candidate] = answer["candidates"]
        rest = {name: value for name, value in answer.items() if name != "candidates"}
        for part in candidate["content"]["parts"]:
            pieces = [part]
            if "text" in part:
                bare = {name: value for name, value in part.items() if name != "thoughtSignature"}
                pieces = [{**bare, "text": part["text"][at : at + PIECE]} for at in range(0, len(part["text"]), PIECE)]
                if "thoughtSignature" in part:
                    pieces.append({**bare, "text": "", "thoughtSignature": self.sign({**bare, "text": ""})})
            for piece in pieces:
                yield {"candidates": [{"content": {"role": "model", "parts": [piece]}, "index": 0}], **rest}
        yield {"candidates": [{**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}], **rest}

    def sign(self, part: Body) -> str:
        """The signature that goes with a part, which holds for no other."""
        return base64.b64encode(b"gemini" + self.mac("part", canonical(_signed(part)))).decode()

    # G4

    def _check_signatures(self, contents: Sequence[Body], *, required: bool) -> None:
        starts = [number for number, content in enumerate(contents) if _says(content)]
        turn = starts[-1] if starts else 0
        for number, content in enumerate(contents):
            for part in content["parts"]:
                signature = part.get("thoughtSignature")
                if signature is not None and not _is_dummy(signature) and not self._is_ours(signature, part):
                    raise Refusal("Thought signature is not valid.")
            calls = [part for part in content["parts"] if "functionCall" in part]
            if required and number > turn and calls and "thoughtSignature" not in calls[0]:
                raise Refusal(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and "
                    "missing thought_signature may lead to degraded model performance. Additional data, function call "
                    f"`default_api:{calls[0]['functionCall']['name']}`, position {number + 1}. Please refer to "
                    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
                )

    def _is_ours(self, signature: object, part: Body) -> bool:
        return isinstance(signature, str) and _bytes(signature) == _bytes(self.sign(part))

    # The answer

    def _answer(self, model: str, said: Sequence[Block], spent: Spent) -> Body:
        parts = [self._part(block) for block in said]
        calls = [part for part in parts if "functionCall" in part]
        texts = [part for part in parts if "text" in part and not part.get("thought")]
        for part in calls[:1] or texts[-1:]:  # parallel calls carry it on the first; an answer in words on its last part
            part["thoughtSignature"] = self.sign(part)
        output, thought = tokens(parts), tokens([part for part in parts if part.get("thought")])
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": self.finish, "index": 0}],
            "usageMetadata": {
                "promptTokenCount": spent.total,
                "cachedContentTokenCount": spent.read,
                "candidatesTokenCount": max(1, output - thought),
                "thoughtsTokenCount": thought,
                "totalTokenCount": spent.total + max(1, output - thought) + thought,
            },
            "modelVersion": model,
            "responseId": self.new_id("r"),
        }

    def _part(self, block: Block) -> Body:
        if isinstance(block, Say):
            return {"text": block.text}
        if isinstance(block, Call):
            return {"functionCall": {"id": self.new_id(""), "name": block.name, "args": dict(block.arguments)}}
        if isinstance(block, Raw):
            return dict(block.fields)
        return {"text": block.text or "…", "thought": True}


def _generation(model: str) -> int:
    result = re.match(r"gemini-(\d+)", model)
    return int(result[1]) if result else 0


def _signed(part: Body) -> Body:
    """What of a part its signature is for: ids of calls and empty arguments come and go."""
    if "functionCall" in part:
        return {"name": part["functionCall"]["name"], "args": part["functionCall"].get("args") or {}}
    return {name: value for name, value in part.items() if name in DATA}


def _bytes(signature: str) -> bytes:
    """A signature's bytes: base64 of either alphabet, with or without its padding."""
    plain = signature.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _is_dummy(signature: object) -> bool:
    """Whether it is a documented dummy, as a text or as the base64 of one."""
    return isinstance(signature, str) and (signature in DUMMIES or _bytes(signature) in [dummy.encode() for dummy in DUMMIES])


def _camel(value: Any) -> Any:
    """The request with the names that JSON has for them; the API takes the others too. What callers name themselves stays."""
    if isinstance(value, list):
        return [_camel(member) for member in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): member for name, member in value.items()}
    return {name: member if name in ("args", "response", "functionDeclarations") else _camel(member) for name, member in named.items()}


def _check_content(content: object, where: str) -> None:
    if not isinstance(content, dict) or not set(content) <= {"role", "parts"}:
        raise Refusal(f"* {where}: Invalid value")
    if content.get("role") not in ("user", "model"):
        raise Refusal("Please use a valid role: user, model.")
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        raise Refusal(f"* {where}.parts: contents.parts must not be empty.")
    for number, part in enumerate(parts):
        _check_part(part, f"{where}.parts[{number}]", content["role"])


def _check_part(part: object, where: str, role: str) -> None:
    data = [name for name in part if name in DATA] if isinstance(part, dict) else []
    if not isinstance(part, dict) or len(data) != 1:
        raise Refusal(f"* {where}.data: required oneof field 'data' must have one initialized field")
    for name in part:
        if name not in DATA and name not in BESIDE:
            raise Refusal(f"Invalid JSON payload received. Unknown name \"{name}\" at '{where}': Cannot find field.")
    kind, value = data[0], part[data[0]]
    if kind == "text":
        if not isinstance(value, str) or not (value or "thoughtSignature" in part):
            raise Refusal("Unable to submit request because it has an empty text parameter. Add a value to the parameter and try again.")
    elif kind == "functionCall":
        _check_function(value, where, "args", {"id", "name", "args"})
        if role != "model":
            raise Refusal("Please ensure that function call turn comes from the model.")
    elif kind == "functionResponse":
        _check_function(value, where, "response", {"id", "name", "response", "parts", "scheduling", "willContinue"})
        if not isinstance(value.get("response"), dict):
            raise Refusal(f"* {where}.function_response.response: Value is not a struct")
        parts = value.get("parts") or []
        if not isinstance(parts, list):
            raise Refusal(f"* {where}.function_response.parts: Value is not a list")
        for number, medium in enumerate(parts):
            _check_media(medium, f"{where}.function_response.parts[{number}]")
        if role != "user":
            raise Refusal("Please ensure that function response turn comes from the user.")
    elif kind in ("inlineData", "fileData"):
        _check_media(part, where)


def _check_function(value: object, where: str, holds: str, known: set[str]) -> None:
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(name, str) or not name:
        raise Refusal(f"* {where}.name: Name cannot be empty.")
    if not NAME.fullmatch(name):
        raise Refusal(
            f"* {where}.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
            "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
        )
    if not isinstance(value.get(holds) or {}, dict):
        raise Refusal(f"* {where}.{holds}: Value is not a struct")
    if not set(value) <= known:
        raise Refusal(f"Invalid JSON payload received. Unknown name \"{min(set(value) - known)}\" at '{where}': Cannot find field.")


def _check_media(part: Any, where: str) -> None:
    inline, file = part.get("inlineData"), part.get("fileData")
    if inline is not None:
        data = decoded(str(inline.get("data", "")).replace("-", "+").replace("_", "/"))
        if not data:
            raise Refusal(f"* {where}.inline_data.data: Base64 decoding failed")
        if not MEDIA.fullmatch(str(inline.get("mimeType"))):
            raise Refusal(f"Unsupported MIME type: {inline.get('mimeType')}")
        if inline["mimeType"] in ("image/png", "image/jpeg", "image/webp") and not is_readable(data):
            raise Refusal("Unable to process input image. Please retry or report in https://developers.generativeai.google")
        if inline["mimeType"] == "application/pdf" and not is_pdf(data):
            raise Refusal("The document has no pages.")
    elif file is None or not file.get("fileUri"):
        raise Refusal(f"* {where}.file_data.file_uri: must not be empty")


def _calls(content: Body) -> list[Body]:
    return [part["functionCall"] for part in content["parts"] if "functionCall" in part]


def _responses(content: Body) -> list[Body]:
    return [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]


def _says(content: Body) -> bool:
    """True if a turn of the user begins here, and not a tool's answer."""
    return content["role"] == "user" and not _responses(content)


def _check_turns(contents: Sequence[Body]) -> None:
    """G1, G2 and G3: calls after the user or a response, responses after calls and as many, and the user last."""
    unequal = (
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
    )
    for number, content in enumerate(contents):
        before = contents[number - 1] if number else None
        asked = _calls(before) if before is not None else []
        answered = _responses(content)
        if answered and not asked:
            raise Refusal("Please ensure that function response turn comes immediately after a function call turn.")
        if len(asked) != len(answered):
            raise Refusal(unequal)
        for call, response in zip(asked, answered, strict=True):
            ids = (call.get("id"), response.get("id"))
            if call["name"] != response["name"] or (None not in ids and ids[0] != ids[1]):
                raise Refusal(f"{unequal} They come in the same order; `{response['name']}` was found for `{call['name']}`.")
        if _calls(content) and (before is None or before["role"] != "user"):
            raise Refusal("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
    if _calls(contents[-1]):
        raise Refusal(unequal)
    if contents[0]["role"] != "user":
        raise Refusal("Please ensure that multiturn requests start with a user role.")
    if contents[-1]["role"] != "user":
        raise Refusal("Please ensure that multiturn requests ends with a user role or a function response.")
