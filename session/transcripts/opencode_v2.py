"""Translates messages of opencode 2 into those of its exports before, so that one reader knows what they mean."""

from __future__ import annotations

from .values import JsonObject, count_at, json_text, list_at, object_at, objects_at, text_at

SWITCHES = frozenset({"agent-switched", "model-switched", "location-switched", "idle"})
"""Types of messages that the model never sees."""


def export_message(row: JsonObject, value: JsonObject) -> JsonObject:
    """Return a message as `{info, parts}`.

    Args:
        row: The row of `session_message`.
        value: Its `data`.
    """
    kind, text = text_at(row, "type") or text_at(value, "type", "role"), text_at(value, "text")
    info: JsonObject = {"id": row.get("id"), "role": "user", "time": object_at(value, "time") or {"created": row.get("time_created")}}
    if kind == "user":
        return {"info": info, "parts": [_text(text), *(_file(file) for file in objects_at(value, "files"))]}
    if kind == "system":
        return {"info": info | {"system": text}, "parts": []}
    if kind in ("synthetic", "skill"):
        return {"info": info, "parts": [_text(text) | {"synthetic": True}]}
    if kind == "shell":
        output = text_at(value, "output") or text_at(object_at(value, "output"), "output", "text", "content")
        run = f"The user ran this command: {text_at(value, 'command')}\n\n{output}"
        return {"info": info, "parts": [_text(run) | {"synthetic": True}]}
    if kind in ("assistant", "compaction"):
        return _answer(info, value, is_summary=kind == "compaction")
    return {"info": info | {"role": kind}, "parts": []}


def is_answer(message: JsonObject) -> bool:
    """Return True if the message of an export is an answer of the model."""
    return object_at(message, "info").get("role") == "assistant"


def _answer(info: JsonObject, value: JsonObject, *, is_summary: bool) -> JsonObject:
    model, error = object_at(value, "model"), object_at(value, "error")
    provider = text_at(model, "providerID")
    info |= {"role": "assistant", "modelID": text_at(model, "id", "modelID"), "providerID": provider, "cost": value.get("cost")}
    info["tokens"] = _tokens(object_at(value, "tokens"))
    if error:
        info["error"] = {"name": "MessageAbortedError" if text_at(error, "type") in ("aborted", "interrupted") else text_at(error, "type")}
    if is_summary:
        info["summary"] = True
        if text_at(value, "status") in ("running", "failed"):
            info["error"] = {"name": text_at(value, "status")}
        return {"info": info, "parts": [_text(text) for name in ("summary", "recent") if (text := text_at(value, name))]}
    parts = [_part(part, provider) if isinstance(part, dict) else part for part in list_at(value, "content")]
    return {"info": info, "parts": parts}


def _tokens(tokens: JsonObject) -> JsonObject:
    """Return the tokens with their total, which shows that the output is without the reasoning."""
    counts = [count_at(tokens, name) for name in ("input", "output", "reasoning")]
    counts += [count_at(object_at(tokens, "cache"), name) for name in ("read", "write")]
    return tokens | {"total": sum(counts)}


def _part(part: JsonObject, provider: str) -> JsonObject:
    native = object_at(part, "native") or object_at(part, "state")
    time = object_at(part, "time")
    if part.get("type") == "reasoning":
        return part | {"metadata": {provider: native} | native, "time": {"start": time.get("created")}}
    if part.get("type") != "tool":
        return part
    state, content = object_at(part, "state"), objects_at(object_at(part, "state"), "content")
    texts = [text_at(entry, "text") for entry in content if entry.get("type") == "text"]
    given = state.get("input")
    return {
        "id": part.get("id"),
        "type": "tool",
        "tool": text_at(part, "name"),
        "callID": text_at(part, "callID", "id"),
        "metadata": {provider: object_at(part, "native") or object_at(part, "providerState")},
        "state": {
            "status": state.get("status"),
            "input": {} if isinstance(given, str) else given,
            "output": "\n".join(filter(None, texts)) or text_at(object_at(state, "error"), "message") or _result(state),
            "attachments": [_file(entry) for entry in content if entry.get("type") == "file"],
            "time": {"start": time.get("ran") or time.get("created"), "end": time.get("completed"), "compacted": time.get("pruned")},
        },
    }


def _result(state: JsonObject) -> str:
    """Return the output of a tool that gave no content: a text, or a value."""
    output = state.get("output")
    return output if isinstance(output, str) else "" if output is None else json_text(output)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _file(file: JsonObject) -> JsonObject:
    """Return a file as a part. Its content is an address, or base64."""
    address = text_at(file, "uri", "url") or f"data:{text_at(file, 'mime')};base64,{text_at(file, 'data')}"
    return {"type": "file", "mime": text_at(file, "mime"), "url": address, "filename": text_at(file, "name", "filename")}
