"""Writes small logs in Claude Code's format, a line at a time, and describes items in a few words."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from uuid import UUID

from session import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning, Session
from session.transcripts import LineRecord, read_account
from tests.support.pictures import png

Json = dict[str, Any]


def uuid(number: int) -> str:
    """A uuid whose first eight characters name the line."""
    return str(UUID(int=number << 96 | 0x40008000 << 32 | number))


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(call_id: str, name: str = "Read", **given: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(call_id: str, content: Any = "done", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def image(data: bytes | str | None = None) -> Json:
    coded = data if isinstance(data, str) else base64.b64encode(data or png()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": coded}}


class Log:
    """The lines of one file. Every record follows the last one, unless told otherwise."""

    def __init__(self, session: str = "s-1") -> None:
        self.lines: list[str] = []
        self.session = session
        self.last: str | None = None

    def raw(self, line: str) -> Log:
        self.lines.append(line)
        return self

    def add(self, kind: str, **fields: Any) -> str:
        """The record's uuid. `minute=5` sets its time; a field that is `...` is left out."""
        own = uuid(len(self.lines) + 1)
        minute = fields.pop("minute", len(self.lines))
        record = {
            "parentUuid": self.last,
            "isSidechain": False,
            "sessionId": self.session,
            "type": kind,
            "uuid": own,
            "timestamp": f"2026-03-01T{minute // 60:02}:{minute % 60:02}:00.000Z",
            **fields,
        }
        record = {name: value for name, value in record.items() if value is not ...}
        self.lines.append(json.dumps(record, ensure_ascii=False))
        self.last = record.get("uuid", self.last)
        return own

    def user(self, content: Any, **fields: Any) -> str:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def answer(self, message_id: str | None, *blocks: Json, usage: Json | None = None, model: str = "claude-x", **fields: Any) -> str:
        message = {"id": message_id, "role": "assistant", "model": model, "content": list(blocks), "usage": usage}
        return self.add("assistant", message=message, **fields)

    def attachment(self, kind: str, **fields: Any) -> str:
        return self.add("attachment", attachment={"type": kind, **fields})

    def system(self, subtype: str, **fields: Any) -> str:
        return self.add("system", subtype=subtype, **fields)

    def write(self, folder: Path, name: str = "log.jsonl", *, end: str = "\n") -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.lines) + end, encoding="utf-8", newline="")
        return path


def shape(session: Session) -> list[str]:
    """One word an item: enough to see the order."""
    words = []
    for item in session.items:
        match item:
            case Message():
                words.append(f"{item.role}:{item.text}")
            case Reasoning():
                words.append(f"thought:{item.text}")
            case FunctionCall():
                words.append(f"call:{item.call_id}")
            case FunctionCallOutput():
                words.append(f"output:{item.call_id}")
            case Compaction():
                words.append(f"summary:{item.summary}")
            case _:
                words.append(item.type)
    return words


def records_of(path: Path) -> list[LineRecord]:
    return list(read_account(path).lines)


def a_bit_of_everything() -> Log:
    """A short log with one of each."""
    log = Log()
    log.user("look")
    log.answer("m1", {"type": "thinking", "thinking": "hm", "signature": "s"}, usage={"input_tokens": 5, "output_tokens": 2})
    log.answer("m1", call("a", path="x"), usage={"input_tokens": 5, "output_tokens": 9})
    log.user([result("a", [text("see"), image()])])
    log.attachment("skill_listing", content="- x")
    log.system("compact_boundary", compactMetadata={"trigger": "auto"}, parentUuid=None, logicalParentUuid=log.last)
    log.user("So far.", isCompactSummary=True)
    log.user("search", isSidechain=True, parentUuid=None)
    log.answer("m2", text("done"))
    return log
