"""`context-window convert`, and the bar that shows while a command works."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from context_window import ContextWindowManager
from context_window.cli import progress
from context_window.cli.problem_text import refused
from context_window.cli.progress import progress_bar
from session import Session, Text
from session.providers import Violation, validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.transcripts import read_transcript
from tests.support.claude_lines import a_bit_of_everything
from tests.support.screens import long_session, saved
from tests.support.shared import ROOT
from tests.support.shell import Shell

PROVIDERS = {
    "anthropic": validate_anthropic,
    "openai": validate_openai_chat,
    "openai-responses": validate_openai_responses,
    "google": validate_google,
}


def asking(tmp_path: Path) -> str:
    """A saved session that ends where the model is called."""
    session = Session(long_session().items, id="asking")
    session.add_message("user", "And now?", message_id="last", created_at=1e9)
    return saved(session, tmp_path / "asking.json")


def test_a_tools_log_becomes_a_session_that_can_be_read_again(shell: Shell, tmp_path: Path) -> None:
    log, out = a_bit_of_everything().write(tmp_path, "log.jsonl"), tmp_path / "out.json"
    code, summary, err = shell("convert", log, "-o", out)
    session = read_transcript(log)
    assert (code, err) == (0, "")
    assert re.fullmatch(rf"{len(session.items)} items -> {len(session.items)} items; wrote .*out\.json\n", summary)
    assert read_transcript(out).to_dict() == session.to_dict()


def texts(session: Session) -> list[str]:
    return [part.text for message in session.messages() for part in message.content if isinstance(part, Text) and part.text.strip()]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_session_becomes_what_each_provider_takes(shell: Shell, tmp_path: Path, provider: str) -> None:
    out = tmp_path / "payload.json"
    code, _, err = shell("convert", asking(tmp_path), "--to", provider, "-o", out)
    assert (code, err) == (0, "")
    assert PROVIDERS[provider](json.loads(out.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_a_provider_takes_is_a_transcript_itself(shell: Shell, tmp_path: Path, provider: str) -> None:
    source, payload, again = asking(tmp_path), tmp_path / "payload.json", tmp_path / "again.json"
    assert shell("convert", source, "--to", provider, "-o", payload)[0] == 0
    assert shell("convert", payload, "-o", again)[0] == 0
    # Texts one by one: some providers take neighbours of one role as one message.
    assert texts(read_transcript(again)) == texts(read_transcript(source))


def test_a_log_that_ends_in_an_answer_is_written_and_said_to_be_no_request(shell: Shell, tmp_path: Path) -> None:
    session = Session(id="answered")
    session.add_message("user", "Hi", message_id="1", created_at=1)
    session.add_message("assistant", "Hello", message_id="2", created_at=2)
    path, out = saved(session, tmp_path / "answered.json"), tmp_path / "payload.json"
    code, summary, err = shell("convert", path, "--to", "anthropic", "-o", out)
    assert code == 0
    assert "2 items -> 2 messages" in summary
    assert err.startswith("context-window: the provider would refuse this as a request: messages[1]: the last message")
    code, summary, err = shell("convert", path, "--to", "anthropic", "-o", tmp_path / "none.json", "--strict")
    assert (code, summary) == (1, "")
    assert "Nothing was written" in err
    assert not (tmp_path / "none.json").exists()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_process_objects_to_what_convert_objects_to(shell: Shell, tmp_path: Path, provider: str) -> None:
    session = Session(long_session().items, id="answered")
    session.add_message("user", "And now?", message_id="last", created_at=1e9)
    session.add_message("assistant", "Now this.", message_id="answer", created_at=2e9)
    path, out = saved(session, tmp_path / "answered.json"), tmp_path / "payload.json"
    messages = [shell(command, path, "--to", provider, "-o", out, "--force")[2] for command in ("convert", "process")]
    none = tmp_path / "none.json"
    strict = [shell(command, path, "--to", provider, "-o", none, "--strict", "--force") for command in ("convert", "process")]
    assert messages[0] == messages[1]
    assert bool(messages[0]) == (provider in {"anthropic", "google"})
    assert [code for code, _, _ in strict] == ([1, 1] if messages[0] else [0, 0])
    assert none.exists() == (not messages[0])
    violations = json.loads(shell("process", path, "--to", provider, "-o", out, "--force", "--json")[1])["violations"]
    assert [violation["message"] in messages[0] for violation in violations] == ([True] if messages[0] else [])


def test_what_process_did_is_json_alone_where_standard_output_is_taken(shell: Shell, tmp_path: Path) -> None:
    source, out = asking(tmp_path), tmp_path / "view.json"
    summary = json.loads(shell("process", source, "-o", out, "--json")[1])
    code, piped, err = shell("process", source, "-o", "-", "--json")
    assert (code, piped.encode()) == (0, out.read_bytes())
    assert json.loads(err) == summary | {"output": "-"}
    assert shell("process", source, "-o", "-")[2].startswith("context-window: none of ")


def test_figures_are_there_as_json(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "payload.json"
    summary = json.loads(shell("convert", asking(tmp_path), "--to", "google", "-o", out, "--json")[1])
    assert summary["to"] == "google"
    assert summary["length"] == len(json.loads(out.read_text(encoding="utf-8"))["contents"])
    assert summary["violations"] == []
    code, piped, err = shell("convert", asking(tmp_path), "--to", "google", "-o", "-", "--json")
    assert code == 0
    assert json.loads(err) == summary | {"output": "-"}
    assert piped.encode() == out.read_bytes()


def test_many_violations_are_told_one_a_rule() -> None:
    several = (Violation("A2", "messages[1]", "b"), Violation("A1", "messages[0]", "a"), Violation("A2", "messages[3]", "c"))
    assert refused(several) == "the provider would refuse this as a request: messages[0]: a; messages[1]: b (and 1 more)"
    assert refused(tuple(Violation(f"A{n}", "messages", "x") for n in range(4))).endswith("messages: x; …")


def test_wrong_input_is_one_line_and_code_2(shell: Shell, tmp_path: Path) -> None:
    source = asking(tmp_path)
    for args, message in (
        (("convert", tmp_path / "nothing.json", "-o", tmp_path / "o.json"), "no such file"),
        (("convert", source, "-o", source), "never overwritten"),
        (("convert", source, "-o", tmp_path / "o.json", "--to", "word"), "'word' is not one of"),
        (("convert", source, "-o", tmp_path / "o.json", "--session", "zzz"), "begins with 'zzz'"),
        (("convert", source), "Missing option '-o'"),
    ):
        code, summary, err = shell(*args)
        assert (code, summary, err.count("\n")) == (2, "", 1)
        assert message in err


# The bar


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """In the place of standard error. No fixture: pytest puts its own stream there once fixtures are set up."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    return screen


def test_long_work_shows_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = a_screen(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    with progress_bar("reading log.jsonl", 100) as done:
        done(20)
        give_up = time.monotonic() + 20
        while "reading log.jsonl" not in screen.getvalue() and time.monotonic() < give_up:
            time.sleep(0.01)
        done(30)
        while "50%" not in screen.getvalue() and time.monotonic() < give_up:
            time.sleep(0.01)
    output = screen.getvalue()
    assert "reading log.jsonl" in output
    assert "50%" in output
    assert output.rstrip().endswith("\x1b[2K")  # the line is erased


def test_short_work_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = a_screen(monkeypatch)
    with progress_bar("reading log.jsonl", 100) as done:
        done(100)
    assert screen.getvalue() == ""


def test_work_that_fails_takes_its_bar_along(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = a_screen(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)

    def fails() -> None:
        with progress_bar("counting"):
            give_up = time.monotonic() + 20
            while "counting" not in screen.getvalue() and time.monotonic() < give_up:
                time.sleep(0.01)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert screen.getvalue().rstrip().endswith("\x1b[2K")


def test_what_is_no_terminal_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress_bar("counting"):
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_counting_tells_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bar knows the number of items, and all are counted before the command asks for figures."""
    session = long_session(300)
    bars: list[tuple[str, int | None]] = []
    counted: list[int] = []

    @contextmanager
    def bar(description: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        bars.append((description, total))
        yield counted.append

    monkeypatch.setattr(progress, "progress_bar", bar)
    progress.count_with_bar(ContextWindowManager(), session)
    assert bars == [("counting tokens", len(session.items))]
    assert len(counted) > 1
    assert sum(counted) == len(session.items)


def test_a_bar_within_a_bar_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = a_screen(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress_bar("reading sessions", 2), progress_bar("within"):
        give_up = time.monotonic() + 20
        while "reading sessions" not in screen.getvalue() and time.monotonic() < give_up:
            time.sleep(0.01)
        time.sleep(0.2)
    assert "within" not in screen.getvalue()


def test_a_command_that_takes_long_shows_it_on_the_terminal(tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect", reason="needs a pty, which Windows has not")
    path = saved(long_session(), tmp_path / "session.json")
    code = (
        "import time, sys\nimport session.transcripts as t\nfrom context_window.cli import main, progress\n"
        "progress.PATIENCE = 0.0\nread = t.read_account\n"
        "def slow(path, *, on_read, **more):\n    account = read(path, on_read=on_read, **more)\n    time.sleep(1)\n    return account\n"
        "t.read_account = slow\nmain(sys.argv[1:])"
    )
    child = pexpect.spawn(sys.executable, ["-c", code, "usage", path], dimensions=(24, 80), encoding="utf-8", timeout=60, cwd=str(ROOT))
    child.expect("reading session.json")
    child.expect("100%")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_one_message_is_told_as_one(shell: Shell, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    code, summary, _ = shell("convert", log, "--to", "google", "-o", tmp_path / "out.json")
    assert (code, summary.partition(";")[0]) == (0, "1 item -> 1 content")
