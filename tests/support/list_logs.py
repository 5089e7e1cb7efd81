"""Small logs of benchmarks and of tools that keep whole message lists: written to a file, read, and shown in few words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from session import Compaction, FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Session, Text
from session.items import Item
from session.transcripts import TranscriptAccount, read_account

Json = dict[str, Any]


def account(folder: Path, log: Any, name: str = "log.json") -> TranscriptAccount:
    """The session read from a file with this log: a text or bytes as they are, a list of texts as lines, else one JSON document."""
    path = folder / name
    if isinstance(log, bytes):
        path.write_bytes(log)
    else:
        path.write_text(log if isinstance(log, str) else json.dumps(log), encoding="utf-8")
    return read_account(path)


def lines(*values: Any) -> str:
    """One JSON value a line."""
    return "".join(json.dumps(value) + "\n" for value in values)


def shown(session: Session) -> list[str]:
    """Each item in few words."""
    return [_shown(item) for item in session.items]


def _shown(item: Item) -> str:
    match item:
        case Message():
            about = f" ({item.extra['source']})" if "source" in item.extra else ""
            return f"{item.role}{about}: {_parts(item.content)}"
        case Reasoning():
            return f"thought: {item.text or item.data or item.signature}"
        case FunctionCall():
            return f"call {item.call_id} {item.name} {item.arguments}"
        case FunctionCallOutput():
            return f"{'error' if item.is_error else 'output'} {item.call_id} {item.name}: {_parts(item.output)}"
        case Compaction():
            return f"compaction: {item.summary}"
    return type(item).__name__


def _parts(parts: tuple[Any, ...]) -> str:
    return " + ".join(part.text if isinstance(part, Text) else "image" if isinstance(part, Image) else "document" for part in parts)


def called(call_id: str, name: str = "ls", arguments: str = "{}") -> Json:
    """A call as OpenAI's chat messages have it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def system(text: str) -> Json:
    """A system message."""
    return {"role": "system", "content": text}


def user(content: Any) -> Json:
    """A user's message."""
    return {"role": "user", "content": content}


def assistant(content: Any, *calls: Json, **more: Any) -> Json:
    """An answer."""
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {}), **more}


def tool(call_id: str, content: Any = "done", **more: Any) -> Json:
    """A tool's answer."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}
