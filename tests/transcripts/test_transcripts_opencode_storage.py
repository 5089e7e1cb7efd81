"""Sessions in opencode's database, in each of its generations, and in its folder."""

from __future__ import annotations

import json
import marshal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend import Ledger, find_logs, read_ledger
from context_window.spend.newest import newest_log
from session import Session, TranscriptError
from session.transcripts import databases, read_account, read_transcript
from session.transcripts.reported_requests import Request
from session.transcripts.storage_readers import read_storage
from tests.fuzz.checks import check_database
from tests.fuzz.mutations import Mutator
from tests.fuzz.seeds import Seed
from tests.support.claude_lines import shape
from tests.support.opencode_storage import Json, with_ids, write_database, write_folder, write_modern
from tests.support.tool_logs import SECONDS, check_account, opencode, opencode_said, opencode_text, picture, some_opencode, write_document

TOKENS = {"input": 5, "output": 7, "reasoning": 3, "cache": {"read": 2, "write": 1}}
MODEL = {"id": "gpt-x", "providerID": "openai"}
TIME = {"created": SECONDS * 1000}
INFO: Json = {"id": "ses_1", "directory": "/p", "version": "2.0.3", "model": MODEL, "time": {"created": 5, "updated": 6}}
MODERN: list[tuple[str, Json]] = [
    ("agent-switched", {"agent": "build"}),
    ("system", {"text": "be brief"}),
    ("user", {"text": "look", "time": TIME}),
    ("synthetic", {"text": "called"}),
    (
        "assistant",
        {
            "model": MODEL,
            "tokens": TOKENS,
            "cost": 0.5,
            "content": [
                {"type": "reasoning", "text": "hm", "native": {"reasoningEncryptedContent": "sealed"}},
                {"type": "text", "text": "I will"},
                {
                    "type": "tool",
                    "id": "a",
                    "name": "read",
                    "time": TIME,
                    "state": {"status": "completed", "input": {"x": 1}, "content": [{"type": "text", "text": "out"}]},
                },
                {"type": "tool", "id": "b", "name": "read", "state": {"status": "error", "input": {}, "error": {"message": "no"}}},
                {"type": "tool", "id": "c", "name": "read", "state": {"status": "streaming", "input": '{"x'}},
            ],
        },
    ),
    ("assistant", {"model": MODEL, "content": [{"type": "text", "text": "bro"}], "error": {"type": "api", "message": "x"}}),
    ("compaction", {"status": "running", "summary": "So", "recent": ""}),
    ("compaction", {"status": "completed", "summary": "So far.", "recent": "", "model": MODEL, "tokens": TOKENS}),
    ("user", {"text": "", "files": [{"uri": f"data:image/png;base64,{picture()}", "mime": "image/png"}]}),
    ("shell", {"command": "ls", "output": {"output": "a.py"}}),
    ("assistant", {"model": MODEL, "content": [{"type": "text", "text": "done"}], "tokens": TOKENS}),
    ("idle", {"outcome": "succeeded"}),
]


def answer(own: str, output: int = 7, **info: Any) -> Json:
    return opencode_said("assistant", own, opencode_text("done"), modelID="gpt-x", tokens={**TOKENS, "output": output}, **info)


def conversation(own: str, *, words: str = "hi", **info: Any) -> Json:
    messages = opencode_said("user", f"{own}_1", opencode_text(words)), answer(f"{own}_2")
    return with_ids(opencode(*messages, id=own, **info))


def only(path: Path) -> Session:
    account = read_account(path)
    check_account(account)
    (session,) = account.sessions
    return session


def test_an_export_the_folder_and_the_database_hold_the_same_items(tmp_path: Path) -> None:
    document = with_ids(some_opencode())
    paths = [
        write_document(tmp_path, document),
        write_folder(tmp_path, document),
        write_database(tmp_path / "opencode.db", document),
        write_database(tmp_path / "copied.sqlite", document),
    ]
    exported, *stored = [only(path) for path in paths]
    for session in stored:
        assert session.items == exported.items
        assert session.id == exported.id
        assert {**session.metadata, "source": None} == {**exported.metadata, "source": None}


def test_messages_of_opencode_2_become_items(tmp_path: Path) -> None:
    session = only(write_modern(tmp_path / "opencode.db", INFO, MODERN))
    expected = ["system:be brief", "user:look", "user:called", "thought:hm", "assistant:I will", "call:a", "call:b", "call:c", "output:a"]
    expected += ["output:b", "summary:So far.", "user:", "user:The user ran this command: ls\n\na.py", "assistant:done"]
    assert shape(session) == expected
    assert (session.metadata["model"], session.metadata["cwd"]) == ("gpt-x", "/p")
    outputs = [item.text for item in session.items if item.type == "function_call_output"]
    assert outputs == ["out", "no"]
    assert session.metadata["warnings"] == []


def totals(ledger: Ledger) -> tuple[int, ...]:
    names = ("input_tokens", "cache_read", "cache_write", "output_tokens")
    return tuple(sum(getattr(request, name) for request in ledger.requests) for name in names)


def reported(path: Path) -> tuple[int, ...]:
    usages = [item.usage for session in read_account(path).sessions for item in session.items if item.usage]
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    return tuple(sum(getattr(usage, name) for usage in usages) for name in names)


def test_spend_has_the_totals_of_the_items(tmp_path: Path) -> None:
    old = write_database(tmp_path / "opencode.db", conversation("ses_1"), conversation("ses_2", parentID="ses_1"), conversation("ses_3"))
    rows = [row for row in MODERN if row[0] != "compaction"]  # what a compaction used is of no item
    new = write_modern(tmp_path / "opencode-2.db", INFO, rows)
    folder = write_folder(tmp_path, conversation("ses_4"))
    for path, count in ((old, 3), (new, 2), (folder, 1)):
        ledger = read_ledger([path])
        assert (len(ledger.requests), ledger.faults) == (count, ())
        assert totals(ledger) == reported(path)
    assert len(read_ledger([write_modern(tmp_path / "opencode-3.db", INFO, MODERN)]).requests) == 3


def test_of_sums_alone_spend_says_that_the_number_of_requests_is_unknown(tmp_path: Path) -> None:
    sums = {"tokens_input": 1000, "tokens_output": 250, "tokens_reasoning": 50, "tokens_cache_read": 3000, "cost": 0.5}
    silent = opencode(opencode_said("user", "m", opencode_text("hi")), id="ses_1", sums=sums, model=MODEL)
    for path in (
        write_database(tmp_path / "opencode.db", with_ids(silent), conversation("ses_2", sums=sums)),
        write_modern(write_database(tmp_path / "opencode-2.db", conversation("ses_2")), {**INFO, "sums": sums}, []),
    ):
        ledger = read_ledger([path])
        (sum_,) = (request for request in ledger.requests if request.session == "ses_1")
        assert (sum_.input_tokens, sum_.cache_read, sum_.output_tokens, sum_.reasoning, sum_.model) == (1000, 3000, 300, 50, "gpt-x")
        assert len(ledger.requests) == 2
        problem = "1 session: only the sum of its requests is known, which counts as one request"
        assert [fault.problem for fault in ledger.faults] == [problem]


def test_answers_without_usage_are_a_fault_and_failed_ones_are_not(tmp_path: Path) -> None:
    mute = [opencode_said("assistant", f"m{number}", opencode_text("x")) for number in range(2)]
    failed = opencode_said("assistant", "f", error={"name": "APIError"})
    documents = [with_ids(opencode(message, id=f"ses_{index}")) for index, message in enumerate([*mute, failed])]
    path = write_database(tmp_path / "opencode.db", *documents, conversation("ses_9"))
    ledger = read_ledger([path])
    assert len(ledger.requests) == 1
    assert [fault.problem for fault in ledger.faults] == ["2 sessions: answers of a model, but no usage of them that can be read"]


def test_older_tables_beside_those_of_opencode_2_are_no_truth(tmp_path: Path) -> None:
    """A session in both is read from the newer tables. One that only the older have is not lost."""
    path = write_database(tmp_path / "opencode.db", conversation("ses_1", words="stale"), conversation("ses_2", words="old"))
    account = read_account(write_modern(path, INFO, [("user", {"text": "new"}), MODERN[4]]))
    assert sorted(session.messages()[0].text for session in account.sessions) == ["new", "old"]
    assert sorted((request.session, request.output_tokens) for request in read_ledger([path]).requests) == [("ses_1", 10), ("ses_2", 7)]


def test_a_session_of_1_x_with_notes_for_opencode_2_keeps_its_messages(tmp_path: Path) -> None:
    path = write_modern(write_database(tmp_path / "opencode.db", conversation("ses_1")), {**INFO, "id": "ses_2"}, [MODERN[4]])
    with closing(sqlite3.connect(path)) as database, database:
        data = '{"agent": "build"}'
        database.execute("INSERT INTO session_message VALUES ('msg_x', 'ses_1', 1, ?, 'agent-switched', 0)", (data,))
    assert [shape(session)[-1] for session in read_account(path).sessions] == ["assistant:done", "output:b"]
    assert len(read_ledger([path]).requests) == 2


def test_a_fork_s_copies_of_answers_count_once(tmp_path: Path) -> None:
    """As 1.18 makes them: with ids of their own, and the times and tokens of the originals."""
    answers = [answer(f"m{number}", output=number) for number in range(3)]
    copies = [answer(f"n{number}", output=number) for number in range(4)]
    for number, message in enumerate([*answers, *copies]):
        created = message["info"]["time"]["created"]
        message["info"]["time"] = {"created": created + number % 3, "completed": created + (50 if number == 6 else 9)}
    documents = [opencode(*answers, id="ses_1"), opencode(*copies, id="ses_2", title="Counting (fork #1)")]
    path = write_database(tmp_path / "opencode.db", *map(with_ids, documents))
    assert sorted((request.session, request.output_tokens) for request in read_ledger([path]).requests) == [
        *(("ses_1", number) for number in range(3)),
        ("ses_2", 3),
    ]
    assert len(read_ledger([path / "ses_2"]).requests) == 4


def test_one_session_is_named_below_the_database_and_its_sub_agents_belong_to_it(tmp_path: Path) -> None:
    family = [conversation("ses_b"), conversation("ses_c", parentID="ses_b"), conversation("ses_d", parentID="ses_c")]
    path = write_database(tmp_path / "opencode.db", conversation("ses_a"), *family)
    account = read_account(path)
    check_account(account)
    assert (account.main_count, [session.id for session in account.sessions]) == (2, ["ses_a", "ses_b", "ses_c", "ses_d"])
    account = read_account(path / "ses_b")
    assert (account.main_count, [session.id for session in account.sessions]) == (1, ["ses_b", "ses_c", "ses_d"])
    assert read_transcript(path / "ses_c").metadata["parent_session"] == "ses_b"
    assert len(read_ledger([path / "ses_b"]).requests) == 3
    with pytest.raises(TranscriptError, match="holds 2 sessions"):
        read_transcript(path)
    with pytest.raises(TranscriptError, match="holds no session ses_x"):
        read_transcript(path / "ses_x")


def test_the_newest_session_of_a_folder_is_found_in_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "opencode").mkdir()
    here = {"directory": str(tmp_path / "shop")}
    times = [{"created": 1, "updated": updated} for updated in (5, 9, 8, 7)]
    path = write_database(
        tmp_path / "opencode" / "opencode.db",
        conversation("ses_a", **here, time=times[0]),
        conversation("ses_b", directory="/other", time=times[1]),
        conversation("ses_c", **here, time=times[2], parentID="ses_a"),
        conversation("ses_d", **here, time=times[3]),
    )
    assert find_logs() == [path]
    assert newest_log(tmp_path / "shop" / "src") == path / "ses_d"
    assert newest_log() == path / "ses_b"
    file = write_folder(tmp_path / "opencode", conversation("ses_e", **here, time={"updated": 99}))
    write_folder(tmp_path / "opencode", conversation("ses_d", **here, time=times[3]))  # what the database has taken over
    assert newest_log() == file
    file.unlink()
    assert newest_log(tmp_path / "shop") == path / "ses_d"


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Path]:
    """A database whose last answer stands in its log of writes alone, while a writer has it open."""
    path = write_database(tmp_path / "opencode.db", conversation("ses_1"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA wal_autocheckpoint = 0")
        with database:
            database.execute("""UPDATE message SET data = replace(data, '"output": 7', '"output": 9')""")
        yield path


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize("ending", ["-wal", "-shm", "both", "neither"])
def test_nothing_beside_the_database_is_touched(written: Path, tmp_path: Path, ending: str) -> None:
    """What is left of a writer that died, in part or whole."""
    folder = tmp_path / "left"
    folder.mkdir()
    for path in [written, *(written.with_name(written.name + name) for name in ("-wal", "-shm") if ending in (name, "both"))]:
        (folder / path.name).write_bytes(path.read_bytes())
    before = state(folder)
    folder.chmod(0o500)
    path = folder / written.name
    assert read_ledger([path]).requests[0].output_tokens == (9 if ending in ("-wal", "both") else 7)
    only(path)
    folder.chmod(0o700)
    assert state(folder) == before


def test_a_writer_in_the_middle_of_its_work_is_not_waited_for(written: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(written)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM part")
        assert len(read_ledger([written]).requests) == 1
        writer.rollback()
    plain = write_database(tmp_path / "opencode-2.db", conversation("ses_1"))
    with closing(sqlite3.connect(plain)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("DELETE FROM part")
        with suppress(TranscriptError):
            read_account(plain)


def test_values_that_are_damaged_or_too_long_cost_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_database(tmp_path / "opencode.db", conversation("ses_1"), conversation("ses_2", words="x" * 3000), conversation("ses_3"))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE message SET data = '{' WHERE id = 'ses_3_1'")
        database.execute("UPDATE message SET data = CAST(data AS BLOB) WHERE id = 'ses_3_2'")
    monkeypatch.setattr(databases, "VALUE_MAX", 1000)
    account = read_account(path)
    check_account(account)
    assert [shape(session) for session in account.sessions] == [["user:hi", "assistant:done"], ["assistant:done"], ["assistant:done"]]
    ledger = read_ledger([path])
    assert (len(ledger.requests), [fault.problem for fault in ledger.faults]) == (3, ["1 line is damaged and was left out"])


@pytest.mark.parametrize("table", ["session", "message", "part", "session_message"])
def test_tables_of_another_shape_are_a_fault(tmp_path: Path, table: str) -> None:
    path = write_database(tmp_path / "opencode.db", conversation("ses_1"))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"DROP TABLE IF EXISTS {table}")
        database.execute(f"CREATE TABLE {table} (x)")
        database.execute(f"INSERT INTO {table} VALUES (1)")
    with pytest.raises(TranscriptError):
        read_account(path)


@pytest.mark.no_cover
@given(st.lists(st.tuples(st.integers(0, 1 << 17), st.binary(min_size=1, max_size=40)), min_size=1, max_size=6), st.booleans())
def test_a_database_with_damaged_bytes_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, damages: list[tuple[int, bytes]], is_cut: bool
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    path = write_modern(write_database(folder / "opencode.db", conversation("ses_2"), conversation("ses_3")), INFO, MODERN)
    raw = bytearray(path.read_bytes())
    for place, damage in damages:
        offset = place % len(raw)
        raw[offset : offset + len(damage)] = damage[: len(raw) - offset]
    path.write_bytes(raw[: damages[0][0] % len(raw)] if is_cut else raw)
    with suppress(TranscriptError):
        check_account(read_account(path))
    read_ledger([path])


@pytest.mark.no_cover
@given(st.integers(0, 1 << 32), st.booleans())
def test_damaged_values_of_messages_and_parts_are_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, seed: int, is_modern: bool
) -> None:
    old = with_ids(some_opencode())
    path = write_database(tmp_path_factory.mktemp("damaged") / "opencode.db", old)
    table = "session_message" if is_modern else "part"
    if is_modern:
        write_modern(path, INFO, MODERN)
    with closing(sqlite3.connect(path)) as database, database:
        rows = [(name, json.loads(data)) for name, data in database.execute(f"SELECT id, data FROM {table}").fetchall()]
        seeded = Seed("", "value", "document", marshal.dumps([value for _, value in rows]))
        mutated = Mutator(Random(seed), recorded=False).mutant(seeded)
        for (name, _), value in zip(rows, mutated if isinstance(mutated, list) else [mutated], strict=False):
            with suppress(ValueError, RecursionError, TypeError):  # a value that JSON cannot hold
                database.execute(f"UPDATE {table} SET data = ? WHERE id = ?", (json.dumps(value), name))
    check_database(path, seed)


@pytest.mark.no_cover
def test_a_database_without_indexes_is_read_in_time_that_grows_with_its_size(tmp_path: Path) -> None:
    """opencode's own has them. Each session of another went through all rows, so 20,000 sessions took a quarter of an hour."""
    answer = json.dumps({"role": "assistant", "modelID": "m", "tokens": {"input": 1, "output": 1}, "time": {"created": 1, "completed": 2}})
    step = json.dumps({"type": "step-finish", "tokens": {"input": 1, "output": 2}})

    def read(sessions: int, *indexes: str) -> tuple[list[Request], float]:
        path = tmp_path / f"opencode{len(list(tmp_path.iterdir()))}.db"
        with closing(sqlite3.connect(path)) as base, base:
            base.execute("CREATE TABLE session (id, directory, time_created INTEGER)")
            base.execute("CREATE TABLE message (id, session_id, data)")
            base.execute("CREATE TABLE part (id, message_id, session_id, data)")
            for index in indexes:
                base.execute(index)
            base.executemany("INSERT INTO session VALUES (?, '/d', ?)", ((f"ses_{n}", n) for n in range(sessions)))
            rows = [(f"m{n}", f"ses_{n % sessions}") for n in range(5 * sessions)]
            base.executemany("INSERT INTO message VALUES (?, ?, ?)", ((*row, answer) for row in rows))
            base.executemany("INSERT INTO part VALUES (?, ?, ?, ?)", ((f"p{row[0]}", *row, step) for row in rows))
        begun = time.process_time()
        requests = read_storage(path)[0]
        return requests, time.process_time() - begun

    own = [f"CREATE INDEX {table}_session ON {table} (session_id)" for table in ("message", "part")]
    odd = [f"CREATE INDEX {table}_odd ON {table} (session_id COLLATE NOCASE)" for table in ("message", "part")]
    assert len(read(300)[0]) == 1_500
    assert read(300)[0] == read(300, *own)[0]
    assert any(read(1_200 + 10 * number, *odd)[1] < 9 * read(300 + number, *odd)[1] for number in range(3))
