"""What pi's extension pi-subagents keeps of a sub-agent, besides the sub-agent's own log: each request counts once."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from context_window.spend.ledger import read_ledger
from session.transcripts import read_account
from session.transcripts.detect import read_transcript
from tests.spend.logs import write

Json = dict[str, Any]
TIME = "2026-09-07T10:00:00.000Z"
HEADER: Json = {"type": "session", "version": 3, "id": "child", "timestamp": TIME, "cwd": "/w"}
PROMPT: Json = {"role": "user", "content": [{"type": "text", "text": "Look."}], "timestamp": 1_788_775_200_000}


def answer(number: int) -> Json:
    usage = {"input": 100 * number, "output": 10, "cacheRead": 50, "cacheWrite": 0, "cost": {"total": 0.25}}
    content = [{"type": "text", "text": f"Answer {number}"}]
    return {"role": "assistant", "model": "kimi-k3", "content": content, "usage": usage, "timestamp": 1_788_775_200_000 + number}


MESSAGES = [PROMPT, answer(1), answer(2)]


def own_log() -> list[Json]:
    entries = [{"type": "message", "id": f"e{number}", "timestamp": TIME, "message": one} for number, one in enumerate(MESSAGES)]
    return [HEADER, *({**entry, "parentId": f"e{number - 1}" if number else None} for number, entry in enumerate(entries))]


def artifact() -> list[Json]:
    base = {"version": 1, "source": "foreground", "runId": "r1", "agent": "worker", "childIndex": 0, "cwd": "/w", "timestamp": TIME}
    messages = [{**base, "recordType": "message", "role": one["role"], "text": "…", "message": one} for one in MESSAGES]
    return [*messages[:2], {**base, "recordType": "tool_start", "toolName": "read", "argsPreview": "a"}, messages[2]]


def stream() -> list[Json]:
    ends = [{"type": "message_end", "message": one} for one in MESSAGES]
    return [HEADER, *ends, {"type": "turn_end", "message": MESSAGES[-1]}, {"type": "agent_end", "messages": MESSAGES}]


def fork() -> list[Json]:
    later = {"type": "message", "id": "e3", "parentId": "e2", "timestamp": TIME, "message": answer(3)}
    return [{**HEADER, "id": "fork", "parentSession": "child"}, *own_log()[1:], later]


COPIES = {"1_id/run-0/session.jsonl": own_log(), "subagent-artifacts/r1_worker_0_transcript.jsonl": artifact(), "r1.jsonl": stream()}


@pytest.mark.parametrize("kept", [names for size in (1, 2, 3) for names in combinations(COPIES, size)], ids=" and ".join)
def test_a_request_counts_once_whichever_of_its_copies_are_there(kept: tuple[str, ...], tmp_path: Path) -> None:
    ledger = read_ledger(write(tmp_path / name, *COPIES[name]) for name in kept)
    assert sorted((one.tool, one.model, one.prompt, str(one.cost)) for one in ledger.requests) == [
        ("pi", "kimi-k3", 150, "0.25"),
        ("pi", "kimi-k3", 250, "0.25"),
    ]
    assert (ledger.faults, ledger.repeated) == ((), 2 * (len(kept) - 1))


def test_a_fork_counts_only_what_it_adds(tmp_path: Path) -> None:
    ledger = read_ledger([write(tmp_path / "a.jsonl", *own_log()), write(tmp_path / "forks" / "b.jsonl", *fork())])
    assert [one.prompt for one in ledger.requests] == [150, 250, 350]


@pytest.mark.parametrize("name", COPIES)
def test_each_copy_is_the_same_conversation(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", *COPIES[name])
    assert [one.text for one in read_transcript(path).items if hasattr(one, "text")] == ["Look.", "Answer 1", "Answer 2"]
    assert sum(line.unknown_bytes for line in read_account(path).lines) == 0
