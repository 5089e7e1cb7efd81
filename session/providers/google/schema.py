"""Check the shape of Gemini's contents (G0), and lay out their parts for the rules in `rules.py`.

Written from the API's published types. It shares no code with the converter it checks.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from session.document_check import document_problem
from session.errors import FormatError, short
from session.image_check import image_problem
from session.providers.violations import Payload, text_of

_KINDS = frozenset(
    {
        "text",
        "inline_data",
        "file_data",
        "function_call",
        "function_response",
        "executable_code",
        "code_execution_result",
        "tool_call",
        "tool_response",
    }
)
"""The data fields of a part: it has exactly one."""
_OTHER_FIELDS = frozenset({"thought", "thought_signature", "video_metadata", "media_resolution", "part_metadata", "media_processing"})
_MODEL_ONLY = frozenset({"function_call", "executable_code", "code_execution_result", "tool_call"})
_FIELDS: dict[str, tuple[dict[str, type], frozenset[str]]] = {
    "function_call": ({"name": str}, frozenset({"id", "args"})),
    "function_response": ({"name": str, "response": Mapping}, frozenset({"id", "parts", "will_continue", "scheduling"})),
    "inline_data": ({"mime_type": str, "data": object}, frozenset({"display_name"})),
    "file_data": ({"file_uri": str}, frozenset({"mime_type", "display_name"})),
}
"""For each kind of part: its required fields with their types, and its optional fields."""
_MEDIA = re.compile(r"image/(png|jpeg|webp|heic|heif)|application/pdf|text/[\w.+-]+|(audio|video)/[\w.+-]+")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """One part with its place in the payload. Its own field names are in snake case; deeper ones are unchanged."""

    where: str
    kind: str
    data: Mapping[str, Any]
    signature: object = None


@dataclass(frozen=True, slots=True)
class CheckedContent:
    """One content."""

    where: str
    role: str
    parts: tuple[CheckedPart, ...]

    def of(self, kind: str) -> list[CheckedPart]:
        """Return the parts of one kind."""
        return [part for part in self.parts if part.kind == kind]


@dataclass(slots=True)
class GooglePayload(Payload):
    """A payload laid out for the rules.

    Attributes:
        is_request: True for a whole request.
        turns: The contents, without those that have no valid shape.
        needs_signatures: True if the model needs signatures: Gemini 3 and later, or no model is named.
    """

    shape: ClassVar[str] = "G0"
    is_request: bool
    turns: list[CheckedContent] = field(default_factory=list)
    needs_signatures: bool = True


def read_payload(raw: object) -> GooglePayload:
    """Return the payload laid out for the rules, with the faults of its shape.

    Raises FormatError if it is neither a pair `(contents, system)` nor a mapping with `contents`.
    """
    if isinstance(raw, Mapping) and "contents" in raw:
        payload = GooglePayload(is_request=True)
        config = _snake(raw.get("config"))
        contents = raw["contents"]
        system = _snake(raw).get("system_instruction", config.get("system_instruction"))
        version = re.search(r"gemini-(\d+)", text_of(raw.get("model", "")))
        payload.needs_signatures = version is None or int(version[1][:9]) >= 3
    elif isinstance(raw, tuple) and len(raw) == 2:
        payload = GooglePayload(is_request=False)
        contents, system = raw
    else:
        raise FormatError("payload", "pass (contents, system) as the converter returns them, or a request with `contents`")
    payload.measure(raw)
    _read_system(payload, system)
    if not isinstance(contents, list | tuple):
        payload.fault("contents", "not a list")
        return payload
    for index, content in enumerate(contents):
        _read_content(payload, content, f"contents[{index}]")
    return payload


def _snake(value: object) -> dict[str, Any]:
    """Return the fields of an object that are not null, by their names in snake case; nothing for other values."""
    if not isinstance(value, Mapping):
        return {}
    return {
        re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", text_of(key)): member
        for key, member in value.items()
        if member is not None
    }


def _read_system(payload: GooglePayload, system: object) -> None:
    if system is None or isinstance(system, str):
        return None
    parts = system.get("parts") if isinstance(system, Mapping) else system
    if not isinstance(parts, list | tuple) or not parts:
        return payload.fault("system", "neither a text nor a content with parts")
    for index, part in enumerate(parts):
        text = part if isinstance(part, str) else _snake(part).get("text")
        if not isinstance(text, str) or not text or (not isinstance(part, str) and _snake(part).keys() != {"text"}):
            payload.fault(f"system.parts[{index}]", "a system instruction holds texts only, and none is empty")
    return None


def _read_content(payload: GooglePayload, content: object, where: str) -> None:
    if not isinstance(content, Mapping):
        return payload.fault(where, "not an object")
    payload.refuse_others(where, content, {"role", "parts"}, "unknown name: cannot find field")
    parts = content.get("parts")
    if not isinstance(parts, list | tuple) or not parts:
        return payload.fault(f"{where}.parts", "parts must not be empty")
    pieces = [_part(payload, part, f"{where}.parts[{index}]", content.get("role")) for index, part in enumerate(parts)]
    payload.turns.append(CheckedContent(where, text_of(content.get("role")), tuple(piece for piece in pieces if piece is not None)))
    return None


def _part(payload: GooglePayload, part: object, where: str, role: object) -> CheckedPart | None:
    fields = _snake(part)
    kinds = fields.keys() & _KINDS
    if len(kinds) != 1:
        payload.fault(where, f"{' and '.join(sorted(kinds)) or 'nothing'}: a part has exactly one field of data")
        return None
    (kind,) = kinds
    payload.refuse_others(where, fields, _KINDS | _OTHER_FIELDS, "unknown name: cannot find field")
    if role == "user" and kind in _MODEL_ONLY:
        payload.fault(where, f"a {kind} of the user's")
    if role == "model" and kind == "function_response":
        payload.fault(where, "a function_response of the model's")
    signature = fields.get("thought_signature")
    if signature is not None and not _is_base64(signature):
        payload.fault(f"{where}.thought_signature", "base64 decoding failed")
    if not isinstance(fields.get("thought", False), bool):
        payload.fault(f"{where}.thought", "not a boolean")
    if kind == "text":
        if not isinstance(fields["text"], str):
            payload.fault(f"{where}.text", "not a text")
            return None
        if not fields["text"] and not signature:
            payload.fault(f"{where}.text", "empty: only a text with a signature may be empty")
        return CheckedPart(where, kind, fields, signature)
    if not isinstance(fields[kind], Mapping):
        payload.fault(f"{where}.{kind}", "not an object")
        return None
    data = _snake(fields[kind])
    return CheckedPart(where, kind, data, signature) if _has_fields(payload, kind, data, f"{where}.{kind}") else None


def _has_fields(payload: GooglePayload, kind: str, data: Mapping[str, Any], where: str) -> bool:
    if kind not in _FIELDS:
        return True
    required, optional = _FIELDS[kind]
    before = len(payload.faults)
    for name, expected_type in required.items():
        if not isinstance(data.get(name), expected_type) or name not in data:
            payload.fault(f"{where}.{name}", f"missing, or not of type {expected_type.__name__}")
    payload.refuse_others(where, data, {*required, *optional}, "unknown name: cannot find field")
    if not isinstance(data.get("id", ""), str):
        payload.fault(f"{where}.id", "not a text")
    if not isinstance(data.get("args", {}), Mapping):
        payload.fault(f"{where}.args", "not an object")
    if len(payload.faults) > before:
        return False
    if "function" in kind and not _NAME.fullmatch(data["name"]):
        payload.fault(f"{where}.name", f"{short(data['name'])} is no name of a function")
    if kind == "inline_data":
        _check_blob(payload, data, where)
    if kind == "file_data" and not data["file_uri"]:
        payload.fault(f"{where}.file_uri", "empty")
    if "parts" in data:
        _check_response_parts(payload, data["parts"], f"{where}.parts")
    return len(payload.faults) == before


def _check_blob(payload: GooglePayload, data: Mapping[str, Any], where: str) -> None:
    if not _MEDIA.fullmatch(data["mime_type"]):
        payload.fault(f"{where}.mime_type", f"unsupported MIME type: {short(data['mime_type'])}")
    if not data["data"] or not _is_base64(data["data"]):
        return payload.fault(f"{where}.data", "empty, or no base64")
    problem = _bytes_problem(base64.b64decode(data["data"].replace("-", "+").replace("_", "/") + "==="), data["mime_type"])
    return None if problem is None else payload.fault(f"{where}.data", problem)


def _bytes_problem(raw: bytes, kind: str) -> str | None:
    if kind in ("image/heic", "image/heif"):  # nothing here can decode them
        return None
    problem = image_problem(raw) if kind.startswith("image/") else document_problem(raw, kind)
    return None if problem is None else f"{kind.partition('/')[0]} {problem}"


def _check_response_parts(payload: GooglePayload, parts: object, where: str) -> None:
    if not isinstance(parts, list | tuple):
        return payload.fault(where, "not a list")
    for index, part in enumerate(parts):
        fields = _snake(part)
        if fields.keys() == {"inline_data"} and isinstance(fields["inline_data"], Mapping):
            _has_fields(payload, "inline_data", _snake(fields["inline_data"]), f"{where}[{index}].inline_data")
        else:
            payload.fault(f"{where}[{index}]", "besides its response, a function response may hold only inline data")
    return None


def _is_base64(value: object) -> bool:
    """True for base64 of either alphabet, without extra characters."""
    if not isinstance(value, str):
        return False
    bare = value.rstrip("=")
    if len(value) - len(bare) > 2 or not (re.fullmatch(r"[A-Za-z0-9+/]*", bare) or re.fullmatch(r"[A-Za-z0-9_-]*", bare)):
        return False
    try:
        return bool(base64.b64decode(bare.replace("-", "+").replace("_", "/") + "=" * (-len(bare) % 4), validate=True)) or not value
    except (binascii.Error, ValueError):
        return False
