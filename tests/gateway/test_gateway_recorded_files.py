"""What `--record` writes is private, leads nowhere else, and harms no answer when it cannot be written."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from context_window.gateway import recorded_files
from context_window.gateway.recorded_files import CALL_BYTES, RecordedFiles
from context_window.gateway.recording import Recorder
from tests.gateway.test_gateway_http import WAIT, long_body, post, says, upstream_that
from tests.gateway.test_gateway_recording import recording_gateway, streams
from tests.support.gateways import gateway


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with recording_gateway(says(200, b"{}"), tmp_path / "a" / "b") as (url, _):
            post(url, body=long_body())
    finally:
        os.umask(old)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "a" / "b").iterdir()}
    assert modes == {0o600}
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700, 0o700]


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_no_link_is_followed_and_no_file_replaced(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "seen"
    victim.write_text("mine")
    folder.mkdir()
    (folder / "x.request.json").symlink_to(victim)
    (folder / "x.new.json").symlink_to(tmp_path / "new")
    (folder / "y.request.json").write_text("mine")
    files = RecordedFiles(folder)
    for recording, suffix in (("x", "request.json"), ("x2", "request.json"), ("y", "request.json")):
        files.write(recording, suffix, b"theirs", bytes)
        files.end(recording)
    files.write("x", "new.json", b"theirs", bytes)
    files.close()
    assert (files.complete, files.incomplete, files.problem) == (1, 3, "File exists")
    assert (victim.read_text(), (folder / "y.request.json").read_text()) == ("mine", "mine")
    assert not (tmp_path / "new").exists()
    assert (folder / "x2.request.json").read_bytes() == b"theirs"


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
def test_a_folder_that_is_swapped_for_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    files = RecordedFiles(tmp_path / "seen")
    (tmp_path / "seen").rename(tmp_path / "moved")
    (tmp_path / "seen").symlink_to(elsewhere)
    files.write("a", "request.json", b"{}", bytes)
    files.close()
    assert [*elsewhere.iterdir()] == []
    assert (tmp_path / "moved" / "a.request.json").read_bytes() == b"{}"
    with pytest.raises(NotADirectoryError):
        RecordedFiles(tmp_path / "seen")


# Faults


class FullDisk:
    """A file on a disk that is full after a number of bytes."""

    def __init__(self, file: BinaryIO, room: int) -> None:
        self._file, self._room = file, room

    def write(self, content: bytes) -> int:
        self._room -= len(content)
        if self._room < 0:
            raise OSError(28, "No space left on device")
        return self._file.write(content)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


@pytest.mark.parametrize("room", [0, 100, 300, 800])
def test_a_write_that_fails_harms_no_answer_and_is_said_once(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever the disk is full: before the request, in the answer, or at the end."""
    created = RecordedFiles._created
    monkeypatch.setattr(
        RecordedFiles, "_created", lambda files, name: FullDisk(created(files, name), room if "answer" in name else room - 200)
    )
    pieces = [b"data: " + b"x" * 90 + b"\n\n"] * 10
    with upstream_that(streams(*pieces)) as upstream, Recorder(tmp_path) as recorder:
        with gateway(upstream.url, 2_000, recorder=recorder) as address:
            answers = [post(address).content for _ in range(3)]
        recorder.close()
        assert answers == [b"".join(pieces)] * 3
        assert recorder.line() == f"recorded 0 requests in {tmp_path}; 3 are incomplete: No space left on device"
    assert [record.getMessage() for record in caplog.records if record.name == recorded_files.__name__] == [
        "a request was not recorded completely: No space left on device; answers are not affected"
    ]
    assert not [*tmp_path.glob("*.about.json")]


def test_a_disk_slower_than_the_answers_bounds_what_waits_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_files, "MOST_PENDING", 2 * (400 + CALL_BYTES))
    goes_on = threading.Event()
    created = RecordedFiles._created

    def slow(files: RecordedFiles, name: str) -> BinaryIO:
        assert goes_on.wait(WAIT)
        return created(files, name)

    monkeypatch.setattr(RecordedFiles, "_created", slow)
    files = RecordedFiles(tmp_path)
    for number in range(5):
        files.write(str(number), "request.json", b"x" * 400, bytes)
        files.end(str(number))
    goes_on.set()
    files._thread.submit(lambda: None).result(WAIT)
    files.write("last", "request.json", b"x" * 400, bytes)
    files.end("last")
    files.close()
    assert (files.complete, files.incomplete, files.problem) == (3, 3, "the disk is slower than the answers")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0.request.json", "1.request.json", "last.request.json"]


def test_a_fault_while_keys_are_taken_out_ends_one_recording(tmp_path: Path) -> None:
    """It was counted as complete, with an empty file."""
    files = RecordedFiles(tmp_path)

    def faulty(content: bytes) -> bytes:
        raise MemoryError

    files.write("0", "request.json", b"x", faulty)
    files.end("0")
    files.write("1", "request.json", b"x", bytes)
    files.end("1")
    files.close()
    assert (files.complete, files.incomplete, files.problem) == (1, 1, "MemoryError")


def test_nothing_is_recorded_after_the_end(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.close()
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 2_000, recorder=recorder) as address:
        assert post(address).content == b"{}"
    assert [*tmp_path.iterdir()] == []
