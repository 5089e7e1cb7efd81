"""Commands that send or write: what a transcript names is not opened, unless it lies in the folder that the user names."""

from __future__ import annotations

import base64
import io
import json
import sys
from pathlib import Path

import pytest

from session import Image, Message, Session
from session.store import SessionStore
from tests.support.pictures import png
from tests.support.shell import Shell
from tests.support.stubs import AnthropicStub, Say, in_order

SECRET = base64.b64encode(png(9, 9)).decode()
HOLIDAY = base64.b64encode(png(5, 5)).decode()


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "home"))
    return Shell(capsys, monkeypatch)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """The user's folder of pictures; a secret one lies beside it."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "holiday.png").write_bytes(png(5, 5))
    (tmp_path / "secret.png").write_bytes(png(9, 9))
    return folder


@pytest.fixture
def evil(tmp_path: Path, pictures: Path) -> Path:
    """A saved session that names files of the machine it is read on."""
    return saved(tmp_path, "/proc/self/environ", "/etc/hosts", str(tmp_path / "secret.png"), "../secret.png", "holiday.png")


def saved(tmp_path: Path, *paths: str) -> Path:
    """A saved session with an image of each path."""
    images = [Image(path=path, media_type="image/png", open_path=False) for path in paths]
    path = tmp_path / "evil.json"
    path.write_text(json.dumps(Session([Message("user", ["Look", *images], id="m", created_at=1)], id="evil").to_dict()), encoding="utf-8")
    return path


PROVIDERS = ("anthropic", "openai", "openai-responses", "google", "session")


@pytest.mark.parametrize("to", PROVIDERS)
@pytest.mark.parametrize("command", ["convert", "process"])
def test_what_a_transcript_names_is_not_opened(
    shell: Shell, evil: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch, command: str, to: str
) -> None:
    monkeypatch.chdir(pictures)
    code, out, err = shell(command, evil, "--to", to, "--strict", "-o", "-")
    assert code == 0, err
    assert "base64," not in out
    assert SECRET not in out
    assert HOLIDAY not in out
    assert "/proc/self/environ" in out  # only its name
    if to != "session":
        assert out.count("[image missing: ") == 5


@pytest.mark.parametrize("to", PROVIDERS)
@pytest.mark.parametrize("command", ["convert", "process"])
def test_images_in_the_folder_that_the_user_names_are_read(shell: Shell, evil: Path, pictures: Path, command: str, to: str) -> None:
    code, out, err = shell(command, evil, "--to", to, "--read-files-below", pictures, "-o", "-")
    assert code == 0, err
    assert out.count(HOLIDAY) == 1
    assert SECRET not in out
    if to != "session":
        assert out.count("[image missing: ") == 4


def test_so_are_they_for_a_transcript_from_standard_input(
    shell: Shell, evil: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, times in (((), 0), (("--read-files-below", pictures), 1)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(evil.read_bytes())))
        code, out, _ = shell("convert", "-", "--to", "anthropic", *options, "-o", "-")
        assert (code, out.count(HOLIDAY)) == (0, times)


@pytest.mark.parametrize("command", ["usage", "plan"])
def test_what_counts_sees_what_is_sent(shell: Shell, evil: Path, pictures: Path, command: str) -> None:
    """An image of 5 x 5 pixels costs less than one of unknown size."""
    model = ("--model", "claude-sonnet-5-5", "--json")
    totals = []
    for options in ((), ("--read-files-below", pictures)):
        summary = json.loads(shell(command, evil, *model, *options)[1])
        totals.append(summary["total" if command == "usage" else "before"])
    assert totals[1] < totals[0]


@pytest.mark.parametrize("command", [("convert",), ("process",), ("plan",), ("usage",)])
@pytest.mark.parametrize("folder", ["gone", "evil.json", ""])
def test_a_folder_that_is_none_is_said_to_be_none(shell: Shell, evil: Path, command: tuple[str, ...], folder: str) -> None:
    out = ("-o", "-") if command[0] in {"convert", "process"} else ()
    code, summary, err = shell(*command, evil, "--read-files-below", folder and evil.parent / folder, *out)
    assert (code, summary) == (2, "")
    assert "--read-files-below" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("path", ["/proc/self/environ", "{folder}/../secret.png", "{folder}/holiday.png"])
def test_a_session_that_the_chat_loads_sends_no_file(
    shell: Shell, pictures: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    """`/load` and one message: what goes over the wire holds no file that the session names."""
    named = path.format(folder=pictures)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"/load {saved(tmp_path, named)}\nWell?\n"))
    with AnthropicStub(in_order([Say("Yes.")])) as stub:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", stub.url)
        code, _, err = shell("chat")
    assert code == 0, err
    requests = json.dumps(stub.requests)
    assert '"base64"' not in requests
    assert HOLIDAY not in requests
    assert f"[image missing: {named}]" in requests
    with SessionStore(tmp_path / "home" / "sessions.db") as keeper:
        [kept] = keeper.list()
        assert '"data"' not in json.dumps(keeper.load(kept.id).to_dict())
