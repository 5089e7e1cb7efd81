"""What the browser reads, what it does not read again, and the words that it finds for a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from context_window import ContextWindowManager
from context_window import Session as Conversed
from context_window.spend import read_ledger
from context_window.spend.log_files import LogFile
from context_window.top import library as library_module
from context_window.top.conversations import Conversation, Grown
from context_window.top.library import KeptRows, Library
from context_window.top.titles import HEAD, LONGEST, place_of, title_of
from tests.support.claude_lines import Log
from tests.support.databases import write_rows
from tests.support.opencode_storage import with_ids, write_database
from tests.support.tool_logs import some_codex, some_opencode, some_pi, write_lines
from tests.transcripts.test_transcripts_goose import MESSAGES, SESSION

from .logs import Session, library, two_projects, written


def test_only_a_changed_log_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    put = KeptRows.put

    def noted(self: KeptRows, log: LogFile, rows: bytes, *, keep: bool = False) -> None:
        read.append(Path(log.name).stem)
        put(self, log, rows, keep=keep)

    monkeypatch.setattr(KeptRows, "put", noted)
    logs = two_projects(tmp_path / "logs")
    found = library(logs, tmp_path)
    assert (found.look(), sorted(read)) == (True, ["s-door", "s-garden", "s-till"])
    assert (found.look(), len(read)) == (False, 3)
    barn = Session("s-door", asks="Paint the door.")
    barn.turn()
    barn.says("Done.")
    written(barn, logs)
    before = {entry.key: entry for entry in found.entries}
    assert (found.look(), read[3:]) == (True, ["s-door"])
    same = [entry for entry in found.entries if before[entry.key] is entry]
    assert sorted(entry.key.session for entry in same) == ["s-garden", "s-till"]
    requests = read_ledger(sorted(logs.rglob("*.jsonl"))).requests
    assert sum(len(entry.requests) for entry in found.entries) == len(requests)


def test_what_earlier_runs_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = two_projects(tmp_path / "logs")
    first, second = library(logs, tmp_path), library(logs, tmp_path)
    assert first.look()
    monkeypatch.setattr(KeptRows, "put", lambda *_, **__: pytest.fail("it was read again"))
    assert second.look()
    assert second.entries == first.entries


def test_an_open_session_is_the_same_until_its_log_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it has the new request, and its earlier items were counted once."""
    logs = tmp_path / "logs"
    till = Session("s-till")
    till.turn()
    written(till, logs)
    counted: list[int] = []
    found = library(logs, tmp_path)
    make = found._new_grown

    def counting() -> Grown:
        grown = make()

        def noted(session: Conversed) -> tuple[Conversed, ContextWindowManager, str]:
            result = grown(session)
            counted.append(id(result[0]))
            return result

        return noted

    monkeypatch.setattr(found, "_new_grown", counting)
    found.look()
    opened = found.open(found.entries[0])
    assert found.open(found.entries[0]) is opened
    till.turn(file="coin.py")
    written(till, logs)
    found.look()
    again = found.open(found.entries[0])
    assert [len(one.conversations[0].timeline.points) for one in (opened, again)] == [2, 3]
    assert counted == [counted[0]] * 2, "one session, which has grown"


def items_at(conversation: Conversation, number: int) -> list[str]:
    assert conversation.contents is not None
    return [item.what for _, item in conversation.contents.at(number)]


def test_a_log_whose_answers_lack_their_usage_shows_the_requests(tmp_path: Path) -> None:
    till = Session("s-till")
    till.turn()
    path = written(till, tmp_path / "logs")
    found = library(tmp_path / "logs", tmp_path)
    found.look()
    path.write_text("{}\n" * 3, encoding="utf-8")
    opened = found.open(found.entries[0])
    (conversation,) = opened.conversations
    assert (conversation.contents, [point.total for point in conversation.timeline.points]) == (None, [10_510])
    assert len(opened.problems) == 1


def test_the_items_of_a_session_are_those_of_its_window(tmp_path: Path) -> None:
    till = Session("s-till")
    till.turn()
    till.shell("pytest -q")
    written(till, tmp_path / "logs")
    found = library(tmp_path / "logs", tmp_path)
    found.look()
    (conversation,) = found.open(found.entries[0]).conversations
    first = ["user message: Mend the till."]
    second = ["Read call: /work/shop/src/till.py", "Read output: /work/shop/src/till.py"]
    third = ["Bash call: pytest -q", "Bash output: pytest -q"]
    assert [items_at(conversation, number) for number in (1, 2, 3)] == [first, first + second, first + second + third]


@pytest.mark.parametrize("size", [0, 2 * HEAD])
def test_a_session_is_named_by_its_title_or_its_users_first_words(tmp_path: Path, size: int) -> None:
    """Also in a log that is much longer than what is read of it."""
    log = Log("s-1")
    log.add("user", message={"role": "user", "content": "<command-name>/clear</command-name>"})
    log.user(f"Mend\nthe  till. {'words ' * 99}")
    log.user("y" * size)
    path = log.write(tmp_path)
    title = title_of(str(path), "s-1")
    assert title.startswith("Mend the till. words words")
    assert len(title) == LONGEST
    log.lines.insert(1, json.dumps({"type": "custom-title", "customTitle": 'The "till"', "sessionId": "s-1"}))
    assert title_of(str(log.write(tmp_path)), "s-1") == 'The "till"'


def test_logs_of_other_tools_are_named(tmp_path: Path) -> None:
    database = write_database(
        tmp_path / "opencode.db", with_ids({**some_opencode(), "info": {**some_opencode()["info"], "title": "Beans"}})
    )
    logs = [
        (write_lines(tmp_path, some_codex(), "c.jsonl"), "c-1"),
        (write_lines(tmp_path, some_pi(), "p.jsonl"), "p-1"),
        (database, "ses_1"),
    ]
    assert [title_of(str(path), session) for path, session in logs] == ["look", "look", "Beans"]


def test_a_session_of_a_database_opens_alone(tmp_path: Path) -> None:
    """By its id below the database's path. An id that is a path of its own leads nowhere else."""
    beans, peas = some_opencode(), some_opencode()
    peas["info"]["id"] = "ses_2"
    for message in peas["messages"]:
        message["info"]["id"] += "-2"
    (tmp_path / "logs").mkdir()
    database = write_database(tmp_path / "logs" / "opencode.db", with_ids(beans), with_ids(peas))
    found = library(tmp_path / "logs", tmp_path)
    found.look()
    assert {entry.key.session for entry in found.entries} == {"ses_1", "ses_2"}
    for entry in found.entries:
        opened = found.open(entry)
        assert opened.problems == ()
        assert {one.timeline.session_id for one in opened.conversations} == {entry.key.session}
    assert place_of(str(database), "ses_1") == database / "ses_1"
    assert place_of(str(database), "../x") == place_of(str(database), "/etc/x") == place_of(str(database), "") == database


def test_a_session_of_gooses_database_has_its_name(tmp_path: Path) -> None:
    database = write_rows(tmp_path / "sessions.db", sessions=[SESSION], messages=MESSAGES)
    assert title_of(str(database), "20260525_1") == "A session"


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 999, b'{"customTitle": "\\ud800 \\uzzzz"}', b"[" * 300_000])
def test_a_log_that_cannot_be_read_has_no_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    assert title_of(str(path), "s") == ""
    assert title_of(str(tmp_path / "gone.jsonl"), "s") == title_of(str(tmp_path), "s") == ""


def test_a_session_without_words_is_not_looked_at_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def noted(log: str, session: str) -> str:
        looked.append(session)
        return ""

    monkeypatch.setattr(library_module, "title_of", noted)
    logs = two_projects(tmp_path / "logs")
    found: Library = library(logs, tmp_path)
    found.look()
    assert len(found.unnamed(found.entries)) == 3
    assert (found.name(found.entries), found.name(found.entries)) == (False, False)
    assert sorted(looked) == ["s-door", "s-garden", "s-till"]
