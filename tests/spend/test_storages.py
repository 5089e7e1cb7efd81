"""Logs that are more than one stream of values: opencode's database and folder, Cline's tasks in VS Code."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from context_window.spend import SpendCache, cache_file, find_logs, read_ledger
from tests.support.shared import TRANSCRIPTS, needs_transcripts

SESSIONS = [{"id": "ses_a", "directory": "/home/me/shop"}, {"id": "ses_b", "directory": "/home/me/shop", "parentID": "ses_a"}]


def tokens(output: int) -> dict[str, Any]:
    return {"input": 5, "output": output, "reasoning": 1, "cache": {"read": 100, "write": 20}}


def message(session: str, name: str, output: int) -> dict[str, Any]:
    return {
        "id": name,
        "sessionID": session,
        "role": "assistant",
        "modelID": "gpt-5.5",
        "path": {"cwd": "/home/me/shop"},
        "time": {"created": 1773062774681},
        "cost": 0.25,
        "tokens": tokens(output),
    }


def step(name: str, output: int) -> dict[str, Any]:
    return {"messageID": name, "type": "step-finish", "cost": 0.25, "tokens": tokens(output)}


MESSAGES = [message("ses_a", "msg_1", 7), message("ses_b", "msg_2", 9), {"id": "msg_0", "sessionID": "ses_a", "role": "user"}]
STEPS = [step("msg_1", 3), step("msg_1", 7), {"messageID": "msg_1", "type": "text", "text": "a step-finish"}]
FIGURES = [("ses_a", "", 3), ("ses_a", "", 7), ("ses_a", "ses_b", 9)]
"""Session, sub-agent and output tokens of each request."""


def put(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def write_storage(folder: Path) -> None:
    for session in SESSIONS:
        put(folder / "storage/session/p1" / f"{session['id']}.json", session)
    for value in MESSAGES:
        put(folder / "storage/message" / value["sessionID"] / f"{value['id']}.json", value)
    for index, value in enumerate(STEPS):
        put(folder / "storage/part" / value["messageID"] / f"prt_{index}.json", value)


def write_database(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT)")
        database.execute("CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT)")
        database.execute("CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)")
        for session in SESSIONS:
            database.execute("INSERT INTO session VALUES (?, ?, ?)", (session["id"], session.get("parentID"), session["directory"]))
        for value in MESSAGES:
            rest = {name: value[name] for name in value if name not in {"id", "sessionID"}}
            database.execute("INSERT INTO message VALUES (?, ?, ?)", (value["id"], value["sessionID"], json.dumps(rest)))
        for index, value in enumerate(STEPS):
            rest = {name: value[name] for name in value if name != "messageID"}
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (f"prt_{index}", value["messageID"], "ses_a", json.dumps(rest)))
    return path


def figures(paths: list[Path]) -> list[tuple[str, str, int]]:
    ledger = read_ledger(paths)
    assert ledger.faults == ()
    assert {(request.project, request.model, request.cost) for request in ledger.requests} == {
        ("/home/me/shop", "gpt-5.5", Decimal("0.25"))
    }
    return sorted((request.session, request.agent, request.output_tokens) for request in ledger.requests)


class TestOpencode:
    def test_the_database_and_the_folder_have_the_same_requests(self, tmp_path: Path) -> None:
        """Sub-agents belong to the session that started them, and a message that was moved to the database counts once."""
        write_storage(tmp_path / "opencode")
        database = write_database(tmp_path / "opencode" / "opencode.db")
        result = find_logs(environment={"XDG_DATA_HOME": str(tmp_path)}, home=tmp_path / "home")
        assert len(result) == 3
        assert figures([database]) == FIGURES
        assert figures([path for path in result if path != database]) == FIGURES
        ledger = read_ledger(result)
        assert (len(ledger.requests), ledger.repeated) == (3, 3)
        assert find_logs([str(tmp_path)]) == result

    def test_a_changed_message_is_read_again(self, tmp_path: Path) -> None:
        write_storage(tmp_path)
        write_database(tmp_path / "opencode.db")
        for paths in ([tmp_path / "opencode.db"], find_logs([str(tmp_path / "storage")])):
            with SpendCache(cache_file()) as cache:
                read_ledger(paths, cache=cache)
                put(tmp_path / "storage/message/ses_b/msg_3.json", message("ses_b", "msg_3", 11))
                with closing(sqlite3.connect(tmp_path / "opencode.db")) as database, database:
                    data = json.dumps(message("ses_b", "msg_3", 11))
                    database.execute("INSERT OR REPLACE INTO message VALUES ('msg_3', 'ses_b', ?)", (data,))
                assert len(read_ledger(paths, cache=cache).requests) == 4

    def test_a_database_that_is_being_written_is_read(self, tmp_path: Path) -> None:
        path = write_database(tmp_path / "opencode.db")
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            with database:
                database.execute("UPDATE message SET id = 'msg_x' WHERE id = 'msg_2'")
                assert figures([path]) == FIGURES

    @pytest.mark.parametrize("content", [b"", b"no database" * 99, b"SQLite format 3\0" + bytes(500)])
    def test_another_database_is_a_fault(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "opencode.db"
        path.write_bytes(content)
        (fault,) = read_ledger([path]).faults
        assert "is not a database of opencode that we can read" in fault.problem

    def test_damaged_values_cost_themselves(self, tmp_path: Path) -> None:
        write_storage(tmp_path)
        (tmp_path / "storage/message/ses_a/msg_9.json").write_text('{"role": "assis')
        ledger = read_ledger(find_logs([str(tmp_path)]))
        assert len(ledger.requests) == 3
        assert [fault.problem for fault in ledger.faults] == ["1 line is damaged and was left out"]

    @needs_transcripts
    def test_an_export_and_its_folder_have_the_same_requests(self, tmp_path: Path) -> None:
        for export in find_logs([str(TRANSCRIPTS / "opencode")]):
            document = json.loads(export.read_bytes())
            own = document["info"]["id"]
            session = put(tmp_path / "storage/session/p" / f"{own}.json", document["info"])
            for index, entry in enumerate(document["messages"]):
                name = entry["info"]["id"]
                put(tmp_path / "storage/message" / own / f"{index:04}-{name}.json", entry["info"])
                for number, part in enumerate(entry["parts"]):
                    put(tmp_path / "storage/part" / f"{index:04}-{name}" / f"{number:04}.json", part)
            assert _sums([session]) == _sums([export])


def _sums(paths: list[Path]) -> list[tuple[Any, ...]]:
    return [
        (request.time, request.model, request.project, request.total, request.output_tokens, request.cost)
        for request in read_ledger(paths).requests
    ]


def cline_entries() -> Iterator[dict[str, Any]]:
    amounts = {"request": "...", "tokensIn": 12, "tokensOut": 5, "cacheWrites": 30, "cacheReads": 400, "cost": 0.125}
    yield {"ts": 1773062774681, "type": "say", "say": "task", "text": "Do it"}
    yield {"ts": 1773062774999, "type": "say", "say": "api_req_started", "text": json.dumps(amounts), "modelInfo": {"modelId": "gpt-5.5"}}
    yield {"ts": 1773062775999, "type": "say", "say": "api_req_started", "text": json.dumps({"request": "under way"})}


class TestCline:
    def test_a_number_that_python_cannot_convert_costs_nothing_else(self, tmp_path: Path) -> None:
        log = put(tmp_path / "tasks/177/ui_messages.json", list(cline_entries()))
        log.write_text(log.read_text(encoding="utf-8").replace("1773062774681", "9" * 5_000), encoding="utf-8")
        (request,) = read_ledger([log]).requests
        assert (request.input_tokens, request.output_tokens) == (12, 5)

    def test_a_task_in_vs_code(self, tmp_path: Path) -> None:
        log = put(tmp_path / "cfg/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/177/ui_messages.json", list(cline_entries()))
        assert find_logs(environment={"XDG_CONFIG_HOME": str(tmp_path / "cfg")}, home=tmp_path / "home") == [log]
        (request,) = read_ledger([log]).requests
        assert (request.session, request.model, request.cost) == ("177", "gpt-5.5", Decimal("0.125"))
        assert (request.input_tokens, request.cache_read, request.cache_write, request.output_tokens) == (12, 400, 30, 5)

    @pytest.mark.parametrize(
        ("folder", "tool", "protocol", "time", "total", "expected"),
        [
            ("rooveterinaryinc.roo-cline", "roo_code", "anthropic", 1_764_000_000_000, 442, (12, 400, 30)),  # the whole prompt
            ("rooveterinaryinc.roo-cline", "roo_code", "anthropic", 1_760_000_000_000, 442, (442, 400, 30)),  # before: what is not cached
            ("rooveterinaryinc.roo-cline", "roo_code", "openai", 1_760_000_000_000, 442, (12, 400, 30)),
            ("rooveterinaryinc.roo-cline", "roo_code", "anthropic", 1_764_000_000_000, 12, (12, 400, 30)),  # less than what is cached
            ("kilocode.kilo-code", "kilo_code", "anthropic", 1_762_500_000_000, 442, (442, 400, 30)),
            ("kilocode.kilo-code", "kilo_code", "anthropic", 1_763_000_000_000, 442, (12, 400, 30)),
            ("somewhere", "roo_code", "openai", 1_764_000_000_000, 442, (12, 400, 30)),  # only these two write the protocol
            ("somewhere", "cline", "", 1_764_000_000_000, 442, (442, 400, 30)),
        ],
    )
    def test_tasks_of_its_relatives(
        self, folder: str, tool: str, protocol: str, time: int, total: int, expected: tuple[int, int, int], tmp_path: Path
    ) -> None:
        """Roo Code and Kilo Code write the same files, with another meaning of the input tokens."""
        amounts: dict[str, Any] = {"tokensIn": total, "tokensOut": 5, "cacheWrites": 30, "cacheReads": 400, "cost": 0.125}
        amounts |= {"apiProtocol": protocol} if protocol else {}
        entry = {"ts": time, "type": "say", "say": "api_req_started", "text": json.dumps(amounts)}
        log = put(tmp_path / f"cfg/Code/User/globalStorage/{folder}/tasks/177/ui_messages.json", [entry])
        if folder != "somewhere":
            assert find_logs(environment={"XDG_CONFIG_HOME": str(tmp_path / "cfg")}, home=tmp_path / "home") == [log]
        (request,) = read_ledger([log]).requests
        assert (request.tool, request.session, request.cost) == (tool, "177", Decimal("0.125"))
        assert (request.input_tokens, request.cache_read, request.cache_write, request.output_tokens) == (*expected, 5)

    @pytest.mark.parametrize("content", ["", "{}", "[" * 5000, '[{"say": "api_req_started", "text": "{"}, 3]'])
    def test_damage_is_a_fault(self, tmp_path: Path, content: str) -> None:
        log = tmp_path / "ui_messages.json"
        log.write_text(content)
        ledger = read_ledger([log])
        assert (ledger.requests, len(ledger.faults)) == ((), 1)


def test_folders_follow_the_environment(tmp_path: Path) -> None:
    paths = {
        "COPILOT_HOME": "session-state/x/events.jsonl",
        "CODEX_HOME": "sessions/2026/r.jsonl",
        "CLAUDE_CONFIG_DIR": "projects/p/a.jsonl",
        "PI_CODING_AGENT_DIR": "sessions/x/p.jsonl",
        "XDG_CONFIG_HOME": "claude/projects/p/a.jsonl",
        "XDG_DATA_HOME": "opencode/storage/session/p/ses_a.json",
        "APPDATA": "Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1/ui_messages.json",
    }
    for variable, path in paths.items():
        log = put(tmp_path / variable / path, {})
        assert find_logs(environment={variable: str(tmp_path / variable)}, home=tmp_path / "home") == [log]
