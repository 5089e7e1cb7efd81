"""`-o` and `/save` replace only their own earlier output of the same session, and write files that only the owner can read."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindowManager, Session
from context_window.cli import safe_write as saving
from context_window.cli.output import BadInputError
from context_window.cli.safe_write import Target, saved_session
from session.store import SessionStore
from session.transcripts import read_transcript
from tests.support.screens import long_session, saved
from tests.support.shell import POSIX, Shell

COMMANDS = [("convert",), ("process",), ("process", "--one-shot")]
PROVIDERS = ("anthropic", "openai", "openai-responses", "google")


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capsys, monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return saved(long_session(), tmp_path / "session.json")


def another(path: Path, session_id: str = "another") -> bytes:
    """The bytes of a saved session with this id, written to the path."""
    session = Session(id=session_id)
    session.add_message("user", "Hello", message_id="1", created_at=1)
    return Path(saved(session, path)).read_bytes()


def same() -> Session:
    """The session that `another` writes, under the id of the tests' transcript."""
    session = Session(id="long")
    session.add_message("user", "Hello", message_id="1", created_at=1)
    return session


# Which files are replaced


@pytest.mark.parametrize("command", COMMANDS)
def test_a_second_run_replaces_the_output_of_the_first(shell: Shell, path: str, tmp_path: Path, command: tuple[str, ...]) -> None:
    out = tmp_path / "out.json"
    for tokens in (3_000, 2_000):
        options = ("--max-tokens", tokens) if command[0] == "process" else ()
        code, summary, err = shell(*command, path, "-o", out, *options)
        assert (code, err, "wrote" in summary) == (0, "", True)
    assert read_transcript(out).id == "long"


def test_nothing_of_an_earlier_save_is_lost(shell: Shell, path: str, tmp_path: Path) -> None:
    """A trimmed view, or a shorter copy of the session, does not take the place of a save that has more in it, unless forced."""
    out = tmp_path / "out.json"
    assert shell("convert", path, "-o", out)[0] == 0
    first_content = out.read_bytes()
    code, summary, err = shell("process", path, "-o", out, "--max-tokens", 2_000)
    assert (code, summary) == (2, "")
    assert "items that would be lost; add --force" in err
    assert out.read_bytes() == first_content
    assert shell("process", path, "-o", out, "--max-tokens", 2_000, "--force")[0] == 0
    assert len(read_transcript(out).items) < len(Session.from_dict(json.loads(first_content)).items)
    assert shell("convert", path, "-o", out)[0] == 0  # a view gives way: the transcript has all of it


def test_a_view_of_another_log_under_the_same_id_is_not_lost(shell: Shell, path: str, tmp_path: Path) -> None:
    """The id of a session comes from data: a view gives way only to a log that has its items."""
    out, other = tmp_path / "out.json", tmp_path / "other.json"
    assert shell("process", path, "-o", out, "--max-tokens", 2_000)[0] == 0
    before = out.read_bytes()
    another(other, "long")
    for command in COMMANDS:
        code, summary, err = shell(*command, other, "-o", out)
        assert (code, summary) == (2, "")
        assert "items that would be lost" in err
        assert out.read_bytes() == before


def test_metadata_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    log, longer = same(), same()
    longer.metadata["notes"] = ["precious"]
    saved(longer, out)
    with pytest.raises(BadInputError, match=r"holds metadata that would be lost"):
        target(out).permit(log)
    target(out).permit(longer)


def test_a_view_that_was_gone_on_with_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    log = same()
    view = Session.from_view(Session.showing(log, list(log.items), breaks=frozenset(), settled=1))
    view.add_message("user", "Said to the view alone")
    saved(view, out)
    with pytest.raises(BadInputError, match=r"holds 1 of 2 items that would be lost"):
        target(out).permit(log)
    target(out).permit(view)


FOREIGN: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("precious"),
    "one byte": lambda path: path.write_bytes(b"\n"),
    "another session": another,
    "messages": lambda path: path.write_text('{"messages": [{"role": "user", "content": "Hi"}]}'),
    "two sessions": lambda path: path.write_bytes(another(path, "long") + another(path, "long")),
    "a session with more in it": lambda path: path.write_bytes(another(path, "long").replace(b"{", b'{"note": 1, ', 1)),
    "a session that was cut off": lambda path: path.write_bytes(another(path, "long")[:-2]),
    "deep": lambda path: path.write_text('{"version": 1, "id": "long", "items": ' + "[" * 100_000),
    "a long number": lambda path: path.write_text('{"version": 1, "id": "long", "settled": ' + "9" * 100_000 + "}"),
    "not UTF-8": lambda path: path.write_bytes(b'{"version": 1, "id": "\xff"}'),
    "an id that is a list": lambda path: path.write_text('{"version": 1, "id": [], "items": []}'),
}


@pytest.mark.parametrize("content", FOREIGN)
@pytest.mark.parametrize("command", COMMANDS[:2])
def test_any_other_file_is_left_alone_unless_forced(
    shell: Shell, path: str, tmp_path: Path, command: tuple[str, ...], content: str
) -> None:
    """`-o` refuses to overwrite a file of another origin without `--force`: exit code 2, one line that names the file."""
    out = tmp_path / "out.json"
    FOREIGN[content](out)
    before = out.read_bytes()
    code, summary, err = shell(*command, path, "-o", out)
    assert (code, summary) == (2, "")
    assert err.count("\n") == 1
    assert str(out) in err
    assert "--force" in err
    assert out.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.json", "session.json"]
    code, summary, err = shell(*command, path, "-o", out, "--force")
    assert (code, err) == (0, "")
    assert read_transcript(out).id == "long"


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("command", COMMANDS[:2])
def test_a_payload_has_no_mark_and_needs_force_to_be_replaced(
    shell: Shell, path: str, tmp_path: Path, command: tuple[str, ...], provider: str
) -> None:
    out = tmp_path / "messages.json"
    line = (*command, path, "--to", provider, "-o", out)
    assert shell(*line)[0] == 0
    first = out.read_bytes()
    code, summary, err = shell(*line)
    assert (code, summary) == (2, "")
    assert f"{out} already exists" in err
    assert "--force" in err
    assert out.read_bytes() == first
    assert shell(*line, "--force")[0] == 0


def test_a_payload_does_not_replace_a_session(shell: Shell, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert shell("convert", path, "-o", out)[0] == 0
    assert shell("convert", path, "--to", "openai", "-o", out)[0] == 2
    assert read_transcript(out).id == "long"


def test_an_empty_file_may_be_written_over(shell: Shell, path: str, tmp_path: Path) -> None:
    for to in ("session", *PROVIDERS):
        out = tmp_path / to
        out.touch()
        assert shell("convert", path, "--to", to, "-o", out)[0] == 0
        assert out.stat().st_size


def test_the_source_is_not_overwritten_even_with_force(shell: Shell, path: str, tmp_path: Path) -> None:
    before = Path(path).read_bytes()
    aliases: list[Path | str] = [path]
    if os.name == "posix":
        (tmp_path / "link").symlink_to(path)
        (tmp_path / "hard link").hardlink_to(path)
        aliases += [tmp_path / "link", tmp_path / "hard link"]
    for alias in aliases:
        for command in COMMANDS:
            code, summary, err = shell(*command, path, "-o", alias, "--force")
            assert (code, summary) == (2, "")
            assert "never overwritten" in err
            assert "--force" not in err
    assert Path(path).read_bytes() == before


def test_a_file_is_refused_before_any_work(shell: Shell, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is the transcript read where the target is no session, nor is anything counted where it is another."""
    out = tmp_path / "out.json"
    out.write_text("precious")
    code, _, err = shell("process", tmp_path / "nowhere", "-o", out)
    assert code == 2
    assert "out.json already exists" in err
    another(out)
    for work in ("process_session", "plan_session", "usage"):
        monkeypatch.setattr(ContextWindowManager, work, lambda *_, **__: pytest.fail("work was begun"))
    code, _, err = shell("process", path, "-o", out)
    assert code == 2
    assert "another session" in err


@POSIX
def test_a_large_file_is_not_looked_into(shell: Shell, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terabyte, which is a hole: reading it would take hours."""
    out = tmp_path / "out.json"
    another(out, "long")
    os.truncate(out, 1 << 40)
    code, _, err = shell("convert", path, "-o", out)
    assert code == 2
    assert "too large" in err
    assert "--force" in err
    out.unlink()
    size = len(another(out, "long"))
    monkeypatch.setattr(saving, "LARGEST_CHECKED", size)
    assert saved_session(io.BytesIO(out.read_bytes())) is not None
    monkeypatch.setattr(saving, "LARGEST_CHECKED", size - 1)
    assert saved_session(io.BytesIO(out.read_bytes())) is None


@given(st.text(min_size=1), st.sampled_from([None, 1]), st.booleans())
def test_a_saved_session_is_recognised_whatever_its_id_and_layout(session_id: str, indent: int | None, ascii_only: bool) -> None:
    session = Session(id=session_id)
    content = json.dumps(session.to_dict(), indent=indent, ensure_ascii=ascii_only).encode()
    saved = saved_session(io.BytesIO(content))
    assert saved is not None
    assert saved.id == session.id


@given(st.binary(max_size=200) | st.from_regex(r'\{"version": 1, "id": "[a-z]*", ?"items": \[?.{,20}', fullmatch=True).map(str.encode))
def test_anything_else_is_not(content: bytes) -> None:
    """Any bytes are judged without an error; only what reads as a saved session has an id."""
    session = saved_session(io.BytesIO(content))
    assert session is None or Session.from_dict(json.loads(content)).to_dict() == session.to_dict()


@pytest.mark.parametrize("name", ["--force", "-f", "--overwrite out.json"])
@pytest.mark.parametrize("command", COMMANDS[:2])
def test_an_option_is_not_taken_for_a_name(shell: Shell, path: str, tmp_path: Path, command: tuple[str, ...], name: str) -> None:
    """`-o --force` has forgotten the name: no file called `--force` comes of it, unless that is spelled out."""
    with chdir(tmp_path):
        code, summary, err = shell(*command, path, "-o", name)
        assert (code, summary) == (2, "")
        assert err == f"context-window: {name} looks like an option, not a file name; for a file of that name, write ./{name}\n"
        assert [file.name for file in tmp_path.iterdir()] == ["session.json"]
        assert shell(*command, path, "-o", f"./{name}")[0] == 0
    assert read_transcript(tmp_path / name).id == "long"


# A file that appears while the command works


def target(out: Path, *, force: bool = False) -> Target:
    return Target(str(out), [], session=True, force=force)


@pytest.mark.parametrize("existing", ["nothing", "an empty file", "our own", pytest.param("a link to nothing", marks=POSIX)])
@pytest.mark.parametrize("atomic", [True, False], ids=["links", "no links"])
def test_a_file_that_appears_meanwhile_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: str, atomic: bool) -> None:
    """No window in which another's file is lost."""
    out = tmp_path / "out.json"
    if existing == "an empty file":
        out.touch()
    elif existing == "our own":
        another(out, "long")
    elif existing == "a link to nothing":
        out.symlink_to(tmp_path / "elsewhere.json")
    if not atomic:
        monkeypatch.setattr(os, "link", _no_links)
    checked = target(out)
    checked.permit(same())
    (tmp_path / "new").write_text("precious")
    (tmp_path / "new").replace(out.resolve())
    with pytest.raises(BadInputError, match=r"out\.json .*in the meantime.*--force"):
        checked.write(b"ours")
    assert out.read_text() == "precious"
    assert sorted(file.name for file in tmp_path.iterdir()) in (["out.json"], ["elsewhere.json", "out.json"])


def _no_links(*_: object, **__: object) -> None:
    raise PermissionError(1, "Operation not permitted")  # as FAT has it


@pytest.mark.parametrize("atomic", [True, False], ids=["links", "no links"])
def test_a_file_that_appears_at_the_last_moment_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, atomic: bool) -> None:
    """The other file comes into being between the last look at the target and the call that creates it."""
    out = tmp_path / "out.json"
    link = os.link

    def late(source: str | Path, name: str | Path) -> None:
        out.write_text("precious")
        if not atomic:
            _no_links()
        link(source, name)

    monkeypatch.setattr(os, "link", late)
    checked = target(out)
    checked.permit(same())
    with pytest.raises(BadInputError, match="in the meantime"):
        checked.write(b"ours")
    assert out.read_text() == "precious"
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


def test_a_file_that_changed_meanwhile_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    another(out, "long")
    checked = target(out)
    checked.permit(same())
    with out.open("a") as file:
        file.write("precious")
    with pytest.raises(BadInputError, match="in the meantime"):
        checked.write(b"ours")
    assert out.read_text().endswith("precious")


def test_force_replaces_what_appears_meanwhile(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    checked = target(out, force=True)
    checked.permit(same())
    out.write_text("precious")
    checked.write(b"ours")
    assert out.read_bytes() == b"ours"
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


def test_files_are_written_where_the_disk_knows_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", _no_links)
    out = tmp_path / "out.json"
    for content in (b"{}", b"ours"):
        checked = target(out, force=content == b"ours")
        checked.permit(same())
        checked.write(content)
        assert out.read_bytes() == content
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize("force", [True, False])
def test_a_name_may_be_as_long_as_the_disk_allows(tmp_path: Path, force: bool) -> None:
    """255 bytes, and few characters: the temporary file has a name of its own."""
    out = tmp_path / ("日" * 85)
    try:
        out.touch()
    except OSError:
        pytest.skip("no such name there")
    out.unlink()
    checked = target(out, force=force)
    checked.permit(same())
    checked.write(b"ours")
    assert out.read_bytes() == b"ours"


# Devices and pipes


@POSIX
def test_devices_and_pipes_are_written_to(shell: Shell, path: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    for to in ("session", "openai"):
        reader = Thread(target=lambda: received.append(pipe.read_bytes()))
        reader.start()
        assert shell("convert", path, "--to", to, "-o", pipe)[0] == 0
        reader.join(10)
        assert shell("convert", path, "--to", to, "-o", "/dev/null")[0] == 0
    assert json.loads(received[0])["id"] == "long"
    assert "messages" in json.loads(received[1])
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_by_its_path_is_standard_output(shell: Shell, path: str, name: str) -> None:
    """Nothing but the document goes there, and a file that output is appended to loses nothing."""
    code, out, err = shell("convert", path, "-o", name)
    assert code == 0
    assert json.loads(out) == long_session().to_dict() | {"items": json.loads(out)["items"]}
    assert "wrote standard output" in err


# Permissions


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


MASKS = pytest.mark.parametrize("mask", [0, 0o022], ids=["umask 000", "umask 022"])


@POSIX
@MASKS
@pytest.mark.parametrize("to", ["session", *PROVIDERS])
@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_what_is_written_is_for_its_owner_alone(
    shell: Shell, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int, to: str, force: tuple[str, ...], links: bool
) -> None:
    out = tmp_path / "out.json"
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    with umask(mask):
        assert shell("convert", path, "--to", to, "-o", out, *force)[0] == 0
    assert mode(out) == 0o600


@POSIX
@MASKS
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o644, 0o666, 0o200, 0o260])
def test_a_file_that_is_replaced_keeps_its_permissions_and_no_temporary_file_is_wider(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int, permissions: int
) -> None:
    out = tmp_path / "out.json"
    another(out, "long")
    out.chmod(permissions)
    modes_seen: list[int] = []
    sync = os.fsync

    def look(descriptor: int) -> None:  # all is written, and nothing is in its place yet
        modes_seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    with umask(mask):
        checked = target(out, force=True)
        checked.permit(same())
        checked.write(b"ours")
    assert mode(out) == permissions
    assert [mode_seen & ~permissions for mode_seen in modes_seen] == [0]
    assert [mode_seen & 0o077 for mode_seen in modes_seen] == [0]


@POSIX
@MASKS
def test_what_the_chat_keeps_is_for_its_owner_alone(
    shell: Shell, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    """The store and SQLite's own files, the input history, saved files, and every folder created for them."""
    home = tmp_path / "made" / "for" / "the chat"
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(home))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    modes: dict[str, int] = {}

    def lines() -> Iterator[str]:
        yield f"/load {path}\n"
        yield f"/save {tmp_path / 'kept.json'}\n"
        modes.update((file.name, mode(file)) for file in (*home.iterdir(), *tmp_path.iterdir(), home.parent, home))
        yield "/quit\n"

    monkeypatch.setattr(sys, "stdin", _Typed(lines()))
    with umask(mask):
        assert shell("chat")[0] == 0
    assert modes.pop("session.json")
    assert modes == {
        "made": 0o700,
        "for": 0o700,
        "the chat": 0o700,
        "sessions.db": 0o600,
        "sessions.db-wal": 0o600,
        "sessions.db-shm": 0o600,
        "history": 0o600,
        "kept.json": 0o600,
    }


class _Typed(io.StringIO):
    """Standard input that is asked line by line."""

    def __init__(self, lines: Iterator[str]) -> None:
        super().__init__()
        self._lines = lines

    def readline(self, _: object = -1) -> str:  # type: ignore[override]
        return next(self._lines, "")


@POSIX
@MASKS
def test_a_new_store_is_for_its_owner_alone(tmp_path: Path, mask: int) -> None:
    place = tmp_path / "made" / "for it"
    with umask(mask), SessionStore(place / "sessions.db") as store:
        session = store.create("kept")
        session.add_message("user", "x")
        modes = {file.name: mode(file) for file in (*place.iterdir(), place, place.parent)}
    assert modes == {"made": 0o700, "for it": 0o700, **dict.fromkeys(("sessions.db", "sessions.db-wal", "sessions.db-shm"), 0o600)}
    assert [file.name for file in place.iterdir()] == ["sessions.db"]


@POSIX
@MASKS
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o644])
def test_what_sqlite_puts_beside_a_store_is_no_wider_than_the_store(tmp_path: Path, mask: int, permissions: int) -> None:
    path = tmp_path / "sessions.db"
    SessionStore(path).close()
    path.chmod(permissions)
    with umask(mask), SessionStore(path) as store:
        store.create("kept").add_message("user", "x")
        assert {mode(file) for file in tmp_path.iterdir()} == {permissions}


@POSIX
@MASKS
def test_a_store_without_a_log_has_a_private_journal(tmp_path: Path, mask: int) -> None:
    """On a disk without shared memory, SQLite keeps a journal instead of a log."""
    with umask(mask), SessionStore(tmp_path / "sessions.db") as store:
        store.create("kept")
        with store._database.read() as connection:
            pass
        assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == (b"delete",)
        with store._database.write("kept") as connection:
            connection.execute("UPDATE sessions SET updated = updated + 1")
            modes = {file.name: mode(file) for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("sessions.db", "sessions.db-journal"), 0o600)
