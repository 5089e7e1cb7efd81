"""Writes small logs in the formats of several tools, each with a bit of everything in it, and reads them back."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from session import Session
from session.transcripts import TranscriptAccount, read_account
from tests.support.pictures import png

Json = dict[str, Any]


def at(minute: int) -> str:
    """A time that many minutes after a fixed one."""
    return f"2026-03-01T{minute // 60:02}:{minute % 60:02}:00.000Z"


SECONDS = 1_772_323_200
"""Unix seconds of `at(0)`."""


def picture() -> str:
    return base64.b64encode(png()).decode()


def write_lines(folder: Path, records: list[Any], name: str = "log.jsonl") -> Path:
    """A file with a record a line; a record that is a text is a line as it is."""
    path = folder / name
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_bytes(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
    return path


def write_document(folder: Path, document: Any, name: str = "log.json", indent: int | None = 2) -> Path:
    """A file that is one JSON document."""
    path = folder / name
    path.write_text(json.dumps(document, indent=indent))
    return path


def fates(account: TranscriptAccount) -> list[str]:
    """What became of each record, in order."""
    return [line.fate for line in account.lines]


def check_account(account: TranscriptAccount) -> None:
    """Every item is in the account once, and every record says what became of it."""
    message = sorted((line.session, item) for line in account.lines for item in line.items)
    held = sorted((session.id, item.id) for session in account.sessions for item in session.items)
    assert message == held
    for line in account.lines:
        assert bool(line.items) == (line.fate == "item")
        assert line.items or line.reason
    for session in account.sessions:
        json.dumps(session.to_dict(), allow_nan=False).encode()


def only(path: Path, form: str) -> Session:
    """The only session in a file of this format, its account checked."""
    account = read_account(path)
    assert account.format == form
    check_account(account)
    (session,) = account.sessions
    return session


# Codex


def codex(kind: str, minute: int = 0, **payload: Any) -> Json:
    return {"timestamp": at(minute), "type": kind, "payload": payload}


def codex_item(kind: str, minute: int = 0, **payload: Any) -> Json:
    return codex("response_item", minute, type=kind, **payload)


def codex_said(role: str, *texts: str, minute: int = 0) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex_item("message", minute, role=role, content=[{"type": kind, "text": text} for text in texts])


def codex_call(call_id: str, name: str = "exec_command", arguments: str = "{}") -> Json:
    return codex_item("function_call", call_id=call_id, name=name, arguments=arguments)


def codex_output(call_id: str, output: Any = "done") -> Json:
    return codex_item("function_call_output", call_id=call_id, output=output)


def codex_tokens(total: int, **last: int) -> Json:
    return codex("event_msg", type="token_count", info={"total_token_usage": {"total_tokens": total}, "last_token_usage": last})


def some_codex() -> list[Json]:
    return [
        codex("session_meta", id="c-1", cwd="/p", cli_version="1.0", base_instructions={"text": "You are Codex."}),
        codex_said("developer", "be brief"),
        codex_said("user", "# AGENTS.md instructions for /p\n\nx", "<environment_context>x</environment_context>"),
        codex("turn_context", model="gpt-x", cwd="/p"),
        codex_said("user", "look", minute=1),
        codex_item("reasoning", 2, summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="sealed"),
        codex_said("assistant", "I will", minute=3),
        codex_call("a"),
        codex_output("a"),
        codex_tokens(10, input_tokens=8, cached_input_tokens=3, output_tokens=2),
        codex("compacted", 4, message="So far.", replacement_history=[codex_said("user", "look")["payload"]]),
        codex_said("user", "again", minute=5),
        codex("event_msg", type="thread_rolled_back", num_turns=1),
        codex_said("user", "go on", minute=6),
        codex_item("custom_tool_call", call_id="b", name="apply_patch", input="*** x"),
        codex_item("custom_tool_call_output", call_id="b", output="ok"),
    ]


# Copilot CLI


def copilot(kind: str, own: str, minute: int = 0, **data: Any) -> Json:
    return {"type": kind, "data": data, "id": own, "timestamp": at(minute), "parentId": None}


def copilot_request(call_id: str, name: str = "bash", **arguments: Any) -> Json:
    return {"toolCallId": call_id, "name": name, "arguments": arguments, "type": "function"}


def some_copilot() -> list[Json]:
    call = copilot_request("t1", command="ls")
    return [
        copilot("session.start", "e0", sessionId="s-1", copilotVersion="1.0", context={"cwd": "/p"}),
        copilot("system.message", "e1", role="system", content="You are Copilot."),
        copilot("user.message", "e2", 1, content="look", transformedContent="<now>x</now>\n\nlook\n\n<system_reminder>y</system_reminder>"),
        copilot("assistant.message", "e3", 2, apiCallId="r1", content="so", model="claude-x", toolRequests=[call], outputTokens=7),
        copilot("tool.execution_complete", "e4", 3, toolCallId="t1", success=True, result={"content": "files"}),
        copilot("subagent.started", "e5", toolCallId="t2", agentName="task"),
        copilot("assistant.message", "e6", 4, apiCallId="r2", content="inner", model="claude-x", toolRequests=[], parentToolCallId="t2"),
        copilot("session.compaction_complete", "e7", 5, success=True, summaryContent="So far.", preCompactionTokens=9),
        copilot("user.message", "e8", 6, content="more", transformedContent="more"),
        copilot("session.snapshot_rewind", "e9", 7, upToEventId="e8"),
        copilot("assistant.message", "ea", 8, apiCallId="r3", content="done", model="claude-x", reasoningText="hm", toolRequests=[]),
    ]


# opencode


def opencode(*messages: Json, **info: Any) -> Json:
    return {"info": {"id": "ses_1", "directory": "/p", "version": "1.0", **info}, "messages": list(messages)}


def opencode_said(role: str, own: str, *parts: Json, minute: int = 0, **info: Any) -> Json:
    time = {"created": (SECONDS + minute * 60) * 1000}
    return {"info": {"role": role, "id": own, "time": time, **info}, "parts": list(parts)}


def opencode_text(text: str, **more: Any) -> Json:
    return {"type": "text", "text": text, **more}


def opencode_tool(call_id: str, status: str = "completed", **state: Any) -> Json:
    return {"type": "tool", "callID": call_id, "tool": "read", "state": {"status": status, "input": {"x": 1}, **state}}


def some_opencode() -> Json:
    tokens = {"input": 5, "output": 7, "reasoning": 3, "cache": {"read": 2, "write": 1}, "total": 15}
    thought = {"type": "reasoning", "text": "hm", "metadata": {"openai": {"reasoningEncryptedContent": "sealed"}}}
    return opencode(
        opencode_said("user", "m1", opencode_text("look"), opencode_text("called", synthetic=True)),
        opencode_said(
            *(
                "assistant",
                "m2",
                {"type": "step-start"},
                thought,
                opencode_tool("a", output="out"),
                {"type": "step-finish", "tokens": tokens},
            ),
            modelID="gpt-x",
            minute=1,
        ),
        opencode_said("assistant", "m3", opencode_text("So far."), summary=True, minute=2),
        opencode_said("user", "m4", {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{picture()}"}, minute=3),
        opencode_said("assistant", "m5", opencode_text("done"), opencode_tool("b", "error", error="no"), minute=4),
    )


# Gemini CLI


def gemini(*messages: Json, **more: Any) -> Json:
    return {"sessionId": "g-1", "projectHash": "h", "startTime": at(0), "messages": list(messages), **more}


def gemini_said(kind: str, own: str, content: Any, minute: int = 0, **more: Any) -> Json:
    return {"id": own, "timestamp": at(minute), "type": kind, "content": content, **more}


def gemini_call(call_id: str, response: Any = None, status: str = "success", **more: Any) -> Json:
    answer = {"functionResponse": {"id": call_id, "name": "read_file", "response": response or {"output": "text"}}}
    return {"id": call_id, "name": "read_file", "args": {"p": 1}, "result": [answer], "status": status, **more}


def some_gemini() -> Json:
    thought = {"subject": "Look", "description": "first"}
    tokens = {"input": 10, "output": 2, "cached": 4, "thoughts": 3, "tool": 1, "total": 16}
    return gemini(
        gemini_said("user", "u1", "look"),
        gemini_said("gemini", "g1", "", 1, thoughts=[thought], toolCalls=[gemini_call("a")], tokens=tokens, model="gemini-x"),
        gemini_said("info", "i1", "note"),
        gemini_said("user", "u2", [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": picture()}}], 2),
        gemini_said("gemini", "g2", "done", 3),
    )


# pi


def pi(role: str, content: Any, minute: int = 0, **more: Any) -> Json:
    entry: Json = {name: more.pop(name) for name in ("id", "parentId") if name in more}
    return {"type": "message", "timestamp": at(minute), "message": {"role": role, "content": content, **more}, **entry}


def pi_call(call_id: str, name: str = "read", **arguments: Any) -> Json:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def pi_text(text: str) -> Json:
    return {"type": "text", "text": text}


def some_pi() -> list[Json]:
    usage = {"input": 5, "output": 2, "cacheRead": 3, "cacheWrite": 1}
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    return [
        {"type": "session", "id": "p-1", "timestamp": at(0), "cwd": "/p", "provider": "anthropic", "modelId": "claude-x"},
        pi("user", [pi_text("look")], 1),
        pi("assistant", [thought, pi_text("so"), pi_call("a", path="x")], 2, usage=usage, model="claude-x", stopReason="toolUse"),
        pi("toolResult", [pi_text("out"), {"type": "image", "data": picture(), "mimeType": "image/png"}], 3, toolCallId="a"),
        {"type": "compaction", "timestamp": at(4), "summary": "So far.", "firstKeptEntryIndex": 2, "tokensBefore": 9},
        pi("assistant", [pi_text("bro")], 5, stopReason="aborted"),
        {"type": "thinking_level_change", "timestamp": at(5), "thinkingLevel": "low"},
        pi("user", "more", 6),
        pi("assistant", [pi_text("done")], 7, stopReason="stop"),
    ]


LINES = {"codex": some_codex, "copilot_cli": some_copilot, "pi": some_pi}
"""Formats that are a record a line."""
DOCUMENTS = {"opencode": some_opencode, "gemini_cli": some_gemini}
"""Formats that are one document."""
