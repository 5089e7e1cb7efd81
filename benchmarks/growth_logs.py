"""Hostile transcripts for `growth.py`: each repeats something expensive in the records of one log format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def time_at(number: int) -> str:
    return f"2026-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"


def claude(n: int, *, keeps: bool = False, side: int = 0, same_parent: bool = False, queued: bool = False) -> Iterator[Json]:
    """Turns of Claude Code, each compacted."""
    parent: str | None = None
    for number in range(n // 4):
        ids = [f"{4 * number + k:08x}-4000-8000-0000-{4 * number + k:012x}" for k in range(4)]
        fields: Json = {"sessionId": "s", "timestamp": time_at(number), "isSidechain": bool(side)}
        fields |= {"agentId": f"agent{number % side}"} if side else {}
        yield {"type": "user", "uuid": ids[0], "parentUuid": parent, **fields, "message": {"role": "user", "content": f"question {number}"}}
        message = {"id": f"m{number}", "role": "assistant", "model": "claude-x", "content": [{"type": "text", "text": "answer"}]}
        yield {"type": "assistant", "uuid": ids[1], "parentUuid": ids[0], **fields, "message": message}
        if queued:
            yield {"type": "queue-operation", "operation": "enqueue", "content": f"later {number}", **fields}
            yield {"type": "queue-operation", "operation": "remove" if number % 2 else "enqueue", "content": f"more {number}", **fields}
        else:
            first = "00000000-4000-8000-0000-000000000000"
            about: Json = {"trigger": "auto", "preTokens": 5} | (
                {"preservedSegment": {"headUuid": first, "tailUuid": ids[1]}} if keeps else {}
            )
            yield {
                "type": "system",
                "subtype": "compact_boundary",
                "uuid": ids[2],
                "parentUuid": ids[1],
                **fields,
                "compactMetadata": about,
            }
            summary = {"role": "user", "content": "summary"}
            yield {"type": "user", "isCompactSummary": True, "uuid": ids[3], "parentUuid": ids[2], **fields, "message": summary}
        parent = "root" if same_parent else ids[1 if queued else 3]


def codex(n: int, *, history: bool = False, rolled_back: bool = False, copies: bool = False) -> Iterator[Json]:
    """Turns of Codex, each compacted."""

    def line(kind: str, **payload: Any) -> Json:
        return {"timestamp": "2026-03-01T00:00:00Z", "type": kind, "payload": payload}

    def message(role: str, text: str) -> Json:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    for number in range(n // 2 if rolled_back else 0):
        yield line("response_item", **message("user", f"question {number}"))
    for number in range(n // 6 if rolled_back else n // 3):
        yield line("response_item", **message("user", "yes" if copies else f"question {number}"))
        if not rolled_back:
            yield line("response_item", **message("assistant", f"answer {number}"))
        yield line("compacted", message="summary", **({"replacement_history": [message("user", "yes")]} if history else {}))
        if rolled_back:
            yield line("event_msg", type="thread_rolled_back", num_turns=1)


def pi(n: int) -> Iterator[Json]:
    """Turns of pi, each compacted, and the last hundred entries kept."""
    yield {"type": "session", "id": "p", "cwd": "/p", "timestamp": time_at(0)}
    for number in range(n // 2):
        fields = {"timestamp": time_at(number), "id": f"u{number}", "parentId": f"c{number - 1}" if number else None}
        yield {"type": "message", **fields, "message": {"role": "user", "content": f"question {number}"}}
        first_kept = f"u{max(0, number - 50)}"
        yield {
            "type": "compaction",
            "timestamp": time_at(number),
            "id": f"c{number}",
            "parentId": f"u{number}",
            "summary": "s",
            "firstKeptEntryId": first_kept,
        }


def copilot(n: int, *, agents: bool = False) -> Iterator[Json]:
    """Turns of Copilot CLI, each compacted, or each by a different sub-agent."""

    def line(kind: str, record_id: str, **data: Any) -> Json:
        return {"type": kind, "id": record_id, "parentId": None, "timestamp": time_at(0), "data": data}

    yield line("session.start", "s", sessionId="s", copilotVersion="1")
    for number in range(n // 2):
        fields = {"parentToolCallId": f"agent{number}"} if agents else {}
        yield line("user.message", f"u{number}", content=f"question {number}", transformedContent=f"question {number}", **fields)
        if agents:
            yield line("assistant.message", f"a{number}", content="answer", **fields)
        else:
            yield line("session.compaction_complete", f"c{number}", success=True, summaryContent="summary")


def gemini(n: int) -> Iterator[Json]:
    """Turns of Gemini CLI, each rewritten or rewound."""
    yield {"sessionId": "g", "projectHash": "h"}
    for number in range(n // 3):
        yield {"type": "user", "id": f"u{number}", "timestamp": time_at(number), "content": f"question {number}"}
        yield {"type": "gemini", "id": "same", "timestamp": time_at(number), "content": "answer"}
        yield {"$rewindTo": f"u{number}"} if number % 2 else {"type": "user", "id": "same", "content": "again"}


def openhands(n: int, *, ranges: bool = False) -> Iterator[Json]:
    """Events of OpenHands, condensed after every message."""
    events: list[Json] = []
    for number in range(n // 2):
        args: Json = {"content": f"question {number}"}
        events.append({"id": 2 * number, "timestamp": "2026-03-01T00:00:00", "source": "user", "action": "message", "args": args})
        forgotten = {"forgotten_events_start_id": 0, "forgotten_events_end_id": 2 * number} if ranges else {"forgotten_event_ids": [0] * 3}
        events.append({"id": 2 * number + 1, "source": "agent", "action": "condensation", "args": {**forgotten, "summary": "s"}})
    yield {"instance_id": "i", "history": events, "metrics": {}}


def opencode(n: int) -> Iterator[Json]:
    """Turns of opencode, each compacted."""
    messages: list[Json] = []
    for number in range(n // 2):
        for role in ("user", "assistant"):
            info: Json = {
                "id": f"{role}{number}",
                "role": role,
                "time": {"created": number},
                **({"summary": True} if role == "assistant" else {}),
            }
            messages.append({"info": info, "parts": [{"id": f"p{role}{number}", "type": "text", "text": f"words {number}"}]})
    yield {
        "info": {"id": "ses_1", "version": "1", "time": {"created": 1}, "projectID": "p", "directory": "/p", "title": "t"},
        "messages": messages,
    }


def chat(n: int, *, ids: str = "same", lists: bool = False) -> Iterator[Json]:
    """Messages of OpenAI's chat API: the same call id everywhere, or one list per line."""
    for number in range(n // 3):
        call_id = ids or f"c{number}"
        call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": json.dumps({"n": number})}}
        turn: list[Json] = [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": "result"},
        ]
        if lists:
            yield {"messages": turn}
        else:
            yield from turn


def aider(n: int) -> str:
    """Sessions of aider."""
    return "".join(f"# aider chat started at 2026-03-01 00:00:00\n\n#### question {k}  \n\nanswer\n\n" for k in range(n // 6))
