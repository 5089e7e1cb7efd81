"""Files as found in practice: damaged, half-written, of another kind, or missing. And how a file's format is detected."""

from __future__ import annotations

import gc
import json
import math
import os
import tracemalloc
from pathlib import Path

import pytest

from session import FunctionCall, Session, TranscriptError
from session.transcripts import read_account, read_transcript, read_transcripts
from tests.support.claude_lines import Log, a_bit_of_everything, call, result


def write(folder: Path, content: bytes) -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(content)
    return path


# Damage costs only a line


def test_a_half_written_last_line_is_skipped_with_a_warning(tmp_path: Path) -> None:
    log = a_bit_of_everything()
    complete = read_transcript(log.write(tmp_path, "whole.jsonl"))
    cut = "\n".join(log.lines) + '\n{"type":"assistant","message":{"content":[{"ty'
    session = read_transcript(write(tmp_path, cut.encode()))
    assert session.items == complete.items
    assert session.metadata["warnings"] == ["line 10: incomplete line; the tool may still be writing it"]
    assert session.metadata["lines"]["damaged"] == 1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (b'{"type":"user"', "invalid JSON"),
        (b"not json at all", "invalid JSON"),
        (b"42", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b'{"silly":"this"}', "a JSON object without a type"),
        (b'{"type":"user","message":"error"}', "message: is not an object"),
        (b'{"type":"user","message":{"role":"user"}}', "message.content: is neither a text nor a list"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_a_damaged_line_in_the_middle_costs_only_itself(tmp_path: Path, damage: bytes, reason: str) -> None:
    log = Log()
    log.user("one")
    log.user("two")
    first, second = (line.encode() for line in log.lines)
    account = read_account(write(tmp_path, first + b"\n" + damage + b"\n" + second + b"\n"))
    assert [item.text for item in account.sessions[0].messages()] == ["one", "two"]
    assert account.lines[1].fate == "damaged"
    assert reason in account.lines[1].reason
    assert reason in account.sessions[0].metadata["warnings"][0]


def test_values_nested_too_deeply_cost_only_their_line(tmp_path: Path) -> None:
    log = Log()
    log.user("one")
    log.attachment("skill_listing", content="DEEP")
    log.user("two")
    log.lines[1] = log.lines[1].replace('"DEEP"', "[" * 600 + "]" * 600)
    account = read_account(log.write(tmp_path))
    assert [item.text for item in account.sessions[0].messages()] == ["one", "two"]
    assert account.lines[1].fate != "item"


def test_many_warnings_are_limited(tmp_path: Path) -> None:
    log = Log()
    log.user("one")
    for _ in range(50):
        log.raw("{")
    warnings = read_transcript(log.write(tmp_path)).metadata["warnings"]
    assert len(warnings) == 21
    assert warnings[-1] == "30 more warnings"


def test_several_objects_on_one_line_are_all_read(tmp_path: Path) -> None:
    log = Log()
    for words in ("one", "two", "three"):
        log.user(words)
    glued = log.lines[0] + log.lines[1] + "\n" + log.lines[2] + "{\n"
    account = read_account(write(tmp_path, glued.encode()))
    assert [item.text for item in account.sessions[0].messages()] == ["one", "two", "three"]
    assert [len(line.items) for line in account.lines] == [2, 1]
    assert account.lines[1].fate == "item"
    assert account.lines[1].reason.startswith("the rest of the line: invalid JSON")


def test_invalid_bytes_are_tolerated(tmp_path: Path) -> None:
    log = Log()
    log.user("café")
    log.user("two")
    first, second = (line.encode() for line in log.lines)
    raw = b"\xef\xbb\xbf" + first.replace("é".encode(), b"\xff") + b"\r\n\r\n\0\0" + second + b"\0\0\0"
    account = read_account(write(tmp_path, raw))
    assert [item.text for item in account.sessions[0].messages()] == ["caf\ufffd", "two"]
    assert [(line.fate, line.reason) for line in account.lines] == [("item", ""), ("not context", "blank line"), ("item", "")]


def test_lone_surrogates_are_cleaned(tmp_path: Path) -> None:
    log = Log()
    log.user("X")
    path = write(tmp_path, log.lines[0].replace("X", "\\ud800").replace("s-1", "\\udfff").encode())
    json.dumps(read_transcript(path).to_dict(), ensure_ascii=False).encode()


def test_numbers_unknown_to_json_or_python(tmp_path: Path) -> None:
    log = Log()
    log.answer("m1", call("a", one="HUGE", two=["NAN"]))
    line = log.lines[0].replace('"HUGE"', "9" * 5_000).replace('"NAN"', "NaN")
    item = read_transcript(write(tmp_path, line.encode())).items[0]
    assert isinstance(item, FunctionCall)
    assert json.loads(item.arguments) == {"one": "9" * 5_000, "two": [None]}
    assert not any(math.isnan(number) for number in json.loads(item.arguments)["two"] if number is not None)


# Files without a transcript


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "no transcript of a known format found (known: qwen, claude_code, "),
        (b"# A readme\n\nWith words.\n", "no transcript of a known format"),
        (b'{"a": 1}\n', "no transcript of a known format"),
        (b'{"type":"response_item","payload":{}}\n', "no transcript of a known format"),
        (b"\x89PNG\r\n\x1a\n\0\0\xff\xfe", "no transcript of a known format"),
        (b'{"type":"summary","summary":"t","leafUuid":"u"}\n', "none of its 1 lines is a message (line 1: a title"),
        (b'{"version":7,"items":[]}', "cannot read the saved session: version: 7 is not"),
        (b'{"version":1,"id":"s","items":[{"type":"message"}]}', "items[0].id: missing"),
    ],
)
def test_a_file_without_a_transcript_is_a_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path, content)
    for read in (read_transcript, read_transcripts, read_account):
        with pytest.raises(TranscriptError) as caught:
            read(path)
        assert caught.value.path == str(path)
        assert message in str(caught.value)


def test_a_file_that_cannot_be_opened_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="no such file"):
        read_transcript(tmp_path / "missing.jsonl")
    with pytest.raises(TranscriptError, match="is a folder; pass one of the files in it"):
        read_transcript(tmp_path)
    with pytest.raises(TranscriptError, match="cannot be opened"):
        read_transcript("a\0b")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TranscriptError, match="not a regular file"):
        read_transcript(tmp_path / "pipe")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_read_permission_is_a_clear_error(tmp_path: Path) -> None:
    path = a_bit_of_everything().write(tmp_path)
    path.chmod(0)
    with pytest.raises(TranscriptError, match="may not read it"):
        read_transcript(path)


# Formats


def test_the_format_is_detected_from_content_not_from_the_name(tmp_path: Path) -> None:
    log = a_bit_of_everything()
    log.lines[:0] = ["garbage", '{"unknown": true}']
    assert read_transcript(log.write(tmp_path, "notes.txt")).metadata["source"] == {"format": "claude_code", "path": "notes.txt"}


@pytest.mark.parametrize("indent", [None, 2])
def test_saved_sessions_are_read_unchanged(tmp_path: Path, indent: int | None) -> None:
    session = Session(metadata={"made": "by hand"})
    session.add_message("user", "look")
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(session.to_dict(), indent=indent), encoding="utf-8")
    assert read_transcript(path).to_dict() == session.to_dict()
    account = read_account(path)
    assert (account.format, account.main_count, account.lines[0].items) == ("session_json", 1, (session.items[0].id,))


def test_a_read_session_can_be_saved_and_read_again(tmp_path: Path) -> None:
    session = read_transcript(a_bit_of_everything().write(tmp_path))
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(session.to_dict()), encoding="utf-8")
    again = read_transcript(path)
    assert again.items == session.items
    assert again.response_breaks == session.response_breaks


def test_the_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_bit_of_everything().write(tmp_path, "log.jsonl")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert read_transcript("~/log.jsonl").id == "s-1"


# Cost


@pytest.mark.no_cover  # the tracer's own memory would count
def test_a_long_file_takes_little_more_memory_than_its_session(tmp_path: Path) -> None:
    log = Log()
    for turn in range(400):
        log.user(f"{turn} " + "words " * 200)
        log.answer(f"m{turn}", call(f"a{turn}"))
        log.user([result(f"a{turn}", f"{turn} " * 800)], toolUseResult={"copy": "y" * 8_000})
    path = log.write(tmp_path)
    del log
    read_transcript(path)  # fills the free lists of the interpreter, which would count as memory of the session
    gc.collect()
    tracemalloc.start()
    try:
        session = read_transcript(path)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        gc.collect()
        session_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(session.items) == 1_200
    assert peak_bytes < 1.75 * session_bytes < path.stat().st_size
