"""Reading logs of Kimi Code and of Kimi CLI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend.newest import newest_log
from session import Session, TranscriptError
from session.items import Compaction, FunctionCallOutput, Message
from session.transcripts import read_transcript
from session.transcripts.detect import read_account
from session.transcripts.reported_requests import read_requests
from tests.support.shared import TRANSCRIPTS
from tests.support.tool_logs import write_lines

Json = dict[str, Any]
EXAMPLES = TRANSCRIPTS.parent / "other_tools" / "kimi"
USAGE = {"inputOther": 100, "output": 20, "inputCacheRead": 60, "inputCacheCreation": 5}


def prompt(text: str, kind: str = "user", **origin: str) -> Json:
    message = {"role": "user", "content": [{"type": "text", "text": text}], "toolCalls": [], "origin": {"kind": kind, **origin}}
    return {"type": "context.append_message", "message": message, "time": 1785612812820}


def loop(kind: str, **fields: Any) -> Json:
    return {"type": "context.append_loop_event", "event": {"type": kind, **fields}, "time": 1785612812825}


def step(name: str, *events: Json, usage: Json | None = None) -> list[Json]:
    """A step: its beginning, its parts and calls, its end and the usage that repeats it."""
    end = [loop("step.end", uuid=name, usage=usage), {"type": "usage.record", "model": "k/kimi-k2", "usage": usage, "time": 1}]
    return [loop("step.begin", uuid=name), *events, *(end if usage else [loop("step.end", uuid=name)])]


def part(name: str, text: str, kind: str = "text") -> Json:
    return loop("content.part", stepUuid=name, part={"type": kind, kind: text})


def call(name: str, call_id: str) -> Json:
    return loop("tool.call", stepUuid=name, toolCallId=call_id, name="Read", args={"path": "a"})


KIMI: list[Json] = [
    {"type": "metadata", "protocol_version": "1.4", "created_at": 1785612803281},
    {"type": "config.update", "modelAlias": "k/kimi-k2", "cwd": "/w", "systemPrompt": "You are Kimi.", "time": 1785612803281},
    {"type": "llm.tools_snapshot", "hash": "h", "tools": [{"name": "Read"}], "time": 1785612803281},
    {"type": "turn.prompt", "input": [{"type": "text", "text": "Read it"}], "origin": {"kind": "user"}, "time": 1785612812819},
    prompt("Read it"),
    prompt("<system-reminder>", "injection", variant="plan_mode"),
    *step("s1", part("s1", "I read.", "think"), call("s1", "Read_0"), usage=USAGE),
    loop("tool.result", toolCallId="Read_0", result={"output": "text of the file", "note": "<system>1 line</system>"}),
    *step("s2", part("s2", "Done."), usage=USAGE),
]


def wire(kind: str, **payload: Any) -> Json:
    return {"timestamp": 1776162403.5, "message": {"type": kind, "payload": payload}}


def status(message: str, output: int) -> Json:
    usage = {"input_other": 10, "input_cache_read": 2, "input_cache_creation": 3, "output": output}
    return wire("StatusUpdate", token_usage=usage, message_id=message)


KIMI_CLI: list[Json] = [
    {"type": "metadata", "protocol_version": "1.3"},
    wire("TurnBegin", user_input="Read it"),
    wire("StepBegin", n=1),
    wire("ContentPart", type="think", think="I read.", encrypted=None),
    wire("ToolCall", type="function", id="c1", function={"name": "ReadFile", "arguments": '{"path": "a"}'}),
    status("m1", 7),
    wire("ToolResult", tool_call_id="c1", return_value={"is_error": False, "output": "text", "message": "Read.", "display": []}),
    wire("SubagentEvent", agent_id="a1", event={"type": "StatusUpdate", "payload": status("m2", 9)["message"]["payload"]}),
    wire("StepBegin", n=2),
    wire("ContentPart", type="text", text="Done."),
    status("m3", 8),
    wire("TurnEnd"),
]


def seen(session: Session) -> list[str]:
    """The texts that the model sees: the messages and summaries that no summary replaces."""
    gone = {item for summary in session.items if isinstance(summary, Compaction) for item in summary.replaces}
    items = [item for item in session.items if item.id not in gone]
    return [item.summary if isinstance(item, Compaction) else item.text for item in items if isinstance(item, Compaction | Message)]


def test_a_log_of_kimi_code_is_read(tmp_path: Path) -> None:
    session = read_transcript(write_lines(tmp_path, KIMI))
    kinds = [type(item).__name__ for item in session.items]
    assert kinds == ["Message", "Message", "Message", "Reasoning", "FunctionCall", "FunctionCallOutput", "Message"]
    assert [item.usage.output_tokens for item in session.items if item.usage] == [20, 20]
    assert (session.metadata["model"], session.metadata["tools"]) == ("kimi-k2", [{"name": "Read"}])
    output = next(item for item in session.items if isinstance(item, FunctionCallOutput))
    assert (output.name, output.text) == ("Read", "text of the file\n<system>1 line</system>")


def test_a_step_counts_once_and_a_compaction_s_request_counts(tmp_path: Path) -> None:
    """A step's usage stands in two records, a compaction's in one."""
    compaction = {"type": "usage.record", "model": "k/kimi-k2", "usage": {**USAGE, "output": 900}, "usageScope": "session", "time": 2}
    log = read_requests(write_lines(tmp_path, [*KIMI, compaction]))
    assert [request.output_tokens for request in log.requests] == [20, 20, 900]
    assert {(request.input_tokens, request.cache_read, request.cache_write) for request in log.requests} == {(100, 60, 5)}
    assert {(request.model, request.project) for request in log.requests} == {("kimi-k2", "/w")}


def test_a_new_system_prompt_stands_for_the_first_only_before_the_conversation(tmp_path: Path) -> None:
    later = {"type": "config.update", "systemPrompt": "You are Kimi, later.", "time": 1}
    assert seen(read_transcript(write_lines(tmp_path, [*KIMI[:2], later, *KIMI[2:]])))[0] == "You are Kimi, later."
    account = read_account(write_lines(tmp_path, [*KIMI, later]))
    assert (seen(account.sessions[0])[0], account.lines[-1].fate) == ("You are Kimi.", "merged")


def test_an_undo_of_what_is_not_there_is_damage(tmp_path: Path) -> None:
    session = read_transcript(write_lines(tmp_path, [*KIMI, {"type": "context.undo", "count": 3, "time": 1}]))
    assert "an undo of messages that are not in the log" in session.metadata["warnings"][0]


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["prompt", "injection", "step", "clear"]), st.just(0), st.just(0)),
        st.tuples(st.just("undo"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("first"), st.integers(0, 6), st.just(0)),
        st.tuples(st.just("kept"), st.integers(0, 4), st.integers(0, 2)),
    ),
    max_size=14,
)


@given(operations=OPERATIONS)
def test_the_context_is_what_a_list_of_messages_makes_of_the_records(
    operations: list[tuple[str, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every undo, clearing and compaction leaves the texts that a plain list of messages has after it."""
    records, texts, users = [*KIMI[:2], prompt("0")], ["0"], ["0"]
    anchors = ["0"]
    for number, (kind, count, head) in enumerate(operations, 1):
        name = str(number)
        if kind == "prompt":
            records.append(prompt(name))
            texts.append(name)
            users.append(name)
            anchors.append(name)
        elif kind == "injection":
            records.append(prompt(name, "injection", variant="x"))
            texts.append(name)
        elif kind == "step":
            records += step(name, part(name, name))
            texts.append(name)
        elif kind == "clear":
            records.append({"type": "context.clear", "time": 1})
            texts, users, anchors = [""], [], []
        elif kind == "undo" and count <= len(anchors):
            records.append({"type": "context.undo", "count": count, "time": 1})
            gone = texts[texts.index(anchors[-count]) :]
            texts = texts[: len(texts) - len(gone)]
            users, anchors = [text for text in users if text in texts], anchors[:-count]
        elif kind == "first" and count <= len(texts):
            records.append({"type": "context.apply_compaction", "summary": name, "compactedCount": count, "time": 1})
            texts = [name, *texts[count:]]
            users, anchors = [text for text in users if text in texts], []
        elif kind == "kept" and head <= count <= len(users):
            last = users[len(users) - (count - head) :]
            kept = {"keptUserMessageCount": count, "keptHeadUserMessageCount": head}
            records.append({"type": "context.apply_compaction", "summary": "s", "contextSummary": name, "time": 1, **kept})
            texts, users, anchors = [name, *users[:head], *last], users[:head] + last, []
    path = write_lines(tmp_path_factory.mktemp("logs"), records)
    assert sorted(seen(read_transcript(path))) == sorted(["You are Kimi.", *texts])


def test_a_log_of_kimi_cli_is_read(tmp_path: Path) -> None:
    session = read_transcript(write_lines(tmp_path, KIMI_CLI))
    assert [type(item).__name__ for item in session.items] == ["Message", "Reasoning", "FunctionCall", "FunctionCallOutput", "Message"]
    assert [item.usage.output_tokens for item in session.items if item.usage] == [7, 8]
    log = read_requests(write_lines(tmp_path, KIMI_CLI))
    assert [(request.agent, request.output_tokens, request.prompt) for request in log.requests] == [("", 7, 15), ("a1", 9, 15), ("", 8, 15)]
    assert "whose model" in log.note


def test_the_context_of_kimi_cli_is_read_whole_and_has_no_usage(tmp_path: Path) -> None:
    records: list[Json] = [
        {"role": "_system_prompt", "content": "You are Kimi."},
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": [{"type": "text", "text": "Read it"}]},
        {
            "role": "assistant",
            "content": [{"type": "think", "think": "I read."}],
            "tool_calls": [{"type": "function", "id": "c1", "function": {"name": "ReadFile", "arguments": "{}"}}],
        },
        {"role": "_usage", "token_count": 12345},
        {"role": "tool", "content": [{"type": "text", "text": "text"}], "tool_call_id": "c1"},
        {"role": "assistant", "content": "Done."},
    ]
    path = write_lines(tmp_path, records, "context.jsonl")
    account = read_account(path)
    kinds = [type(item).__name__ for item in account.sessions[0].items]
    assert kinds == ["Message", "Message", "Reasoning", "FunctionCall", "FunctionCallOutput", "Message"]
    assert (account.format, sum(line.unknown_bytes for line in account.lines)) == ("kimi", 0)
    with pytest.raises(TranscriptError, match="no usage of them"):
        read_requests(path)


def test_a_compaction_of_kimi_cli_says_that_its_summary_is_missing(tmp_path: Path) -> None:
    session = read_transcript(write_lines(tmp_path, [*KIMI_CLI, wire("CompactionBegin"), wire("CompactionEnd")]))
    assert seen(session) == [""]
    assert "whose summary is not in the log" in session.metadata["warnings"][0]


def test_the_path_names_session_agent_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".kimi-code" / "sessions" / "wd_1" / "session_1"
    for agent in ("main", "agent-0"):
        (folder / "agents" / agent).mkdir(parents=True)
        write_lines(folder / "agents" / agent, KIMI[:1] + KIMI[4:], "wire.jsonl")
    (folder / "state.json").write_text(json.dumps({"workDir": str(tmp_path)}), encoding="utf-8")
    logs = {agent: read_requests(folder / "agents" / agent / "wire.jsonl").requests[0] for agent in ("main", "agent-0")}
    assert {(request.session, request.project) for request in logs.values()} == {("session_1", str(tmp_path))}
    assert [logs[agent].agent for agent in ("main", "agent-0")] == ["", "agent-0"]
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("KIMI_CODE_HOME", raising=False)
    assert newest_log(tmp_path) == folder / "agents" / "main" / "wire.jsonl"


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not there")
def test_the_examples_of_kimi_are_read_whole() -> None:
    """Every text that a record of the context has is in an item, and the tokens are those of a count of our own."""
    for path in sorted(EXAMPLES.glob("*.jsonl")):
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        account = read_account(path)
        assert account.format == "kimi"
        assert sum(line.unknown_bytes for line in account.lines) == 0
        items = json.dumps(account.sessions[0].to_dict(), ensure_ascii=False)
        for record in records:
            message, event = record.get("message", {}), record.get("event", {})
            texts = [block["text"] for block in message.get("content", [])]
            texts += [event.get("part", {}).get(kind) for kind in ("text", "think")] + [event.get("result", {}).get("output")]
            for text in filter(None, texts):
                assert json.dumps(text, ensure_ascii=False)[1:-1] in items
        reported = [sum(record["usage"].values()) for record in records if record["type"] == "usage.record"]
        assert sum(request.total for request in read_requests(path).requests) == sum(reported)
