"""The chat in a real terminal, at 40, 80 and 120 columns: the tests read the screen as a user does."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pexpect", reason="needs a pty, which Windows has not")

from context_window import ContextWindow, ContextWindowManager, Extract, Session
from context_window.display.lines import width_of
from context_window.repl.replay import turns_of
from session.store import SessionStore
from tests.support.console import Console, console
from tests.support.screens import long_session, read_report, saved
from tests.support.stubs import AnthropicStub, Call, Say
from tests.support.stubs.server import Refusal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pty")

BUDGET = 3_000
HOSTILE = "\x1b[2J\x1b]0;title\x07 漢字漢字漢字 👩\u200d💻 \u202eabc é\u0301 " * 8 + "word" * 60
NAME = "claude-sonnet-4-5"


def transcript() -> Session:
    session = long_session(6, model=NAME)
    session.add_function_call("run\x1b[2J\u202e", {"command": HOSTILE}, "hostile")
    session.add_function_output("run\x1b[2J\u202e", HOSTILE, "hostile")
    session.add_message("assistant", HOSTILE)
    session.add_message("user", HOSTILE)
    return session


def usages(log: Session) -> list[dict[str, int]]:
    """Return the token usage after each turn."""
    manager = ContextWindowManager(NAME, context_window=ContextWindow(max_tokens=BUDGET, keep_first_message=True, strategy=Extract()))
    grown = Session()
    usages_after_turns = []
    for turn in turns_of(log):
        for item in turn.items:
            grown.append(item)
        manager.process_session(grown)
        usages_after_turns.append(manager.get_token_usage())
    return usages_after_turns


def figures(screen: Console) -> list[int]:
    """Return the totals of the usage lines on the screen."""
    flat = " ".join(line.strip("■▣▦▤◆· ") for line in screen.lines)
    return [int(total.replace(",", "")) for total in re.findall(rf"([\d,]+) of {BUDGET:,} tokens(?! ·? ?\d+\.\d% used)", flat)]


def test_a_replay_in_a_terminal_that_is_made_wider(tmp_path: Path) -> None:
    log = transcript()
    expected = usages(log)
    widths = {1: 40, 4: 80, 7: 120}
    width = 40
    path = saved(log, tmp_path / "a log.json")
    with console("chat", "--replay", path, "--max-tokens", str(BUDGET), width=width, cwd=str(tmp_path), environment={}) as screen:
        for number in range(1, len(expected) + 1):
            screen.until(f"turn {number} of {len(expected)}")
            screen.until(
                f"{len(expected) - number} turn{'s' if number < len(expected) - 1 else ''} left>" if number < len(expected) else "end>"
            )
            assert max(map(width_of, screen.lines)) <= width
            if number in widths:
                width = widths[number]
                screen.widen(width)
            if number < len(expected):
                screen.press("\r")
        assert figures(screen) == [usage["total"] for usage in expected]
        screen.press("/conte")
        screen.until("/context")
        screen.press("\t")
        screen.until("end> /context")
        screen.press("\r")
        screen.until("total ")
        screen.until("end>", times=2)
        report = read_report(screen.text[screen.text.index("/context") :])
        assert report.total == expected[-1]["total"]
        assert report.rows == {name: expected[-1][name] for name in report.rows}
        for place, command in enumerate(("/plan", "/trims", "/help", f"/recall {log.items[-1].id}", "hello"), 3):
            screen.type(command)
            screen.until("end>", times=place)
        screen.press("\x04")
        assert screen.leave() == 0
    assert screen.beyond == []
    assert "\x1b]0" not in screen.sent
    assert "\u202e" not in screen.sent
    assert "a replay does not take messages" in screen.flat


class Model:
    """A scripted model. It can wait, fail, or call tools, depending on the last message."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.asked = threading.Event()
        self.sick = True

    def __call__(self, request: Mapping[str, Any]) -> list[Say | Call]:
        content = request["messages"][-1]["content"]
        last = content if isinstance(content, str) else content[-1].get("text", "")
        if "wait" in last and not self.asked.is_set():
            self.asked.set()
            self.gate.wait(30)
        if "fail" in last and self.sick:
            raise Refusal("invalid x-api-key", status=401, kind="authentication_error")
        if "look" in last:
            return [Say("I look."), Call("list_files"), Call("read_file", {"path": "../outside"})]
        return [Say(f"Answer to {len(request['messages'])}: {HOSTILE}")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "main.py").write_text("print('hello')\n", encoding="utf-8")
    (tmp_path / "outside").write_text("the secret outside", encoding="utf-8")
    return tmp_path


def test_a_conversation_with_errors_and_ctrl_c_loses_nothing_and_can_be_continued(place: Path) -> None:
    model = Model()
    with AnthropicStub(model) as stub:
        environment = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": stub.url, "CONTEXT_WINDOW_HOME": str(place / "home")}
        with console("chat", "--max-tokens", "20000", width=80, cwd=str(place / "work"), environment=environment) as screen:
            screen.until("\n>")
            screen.press("please\x1b\rlook\x1b[200~\ntwice\x1b[201~\r")
            screen.until("of 20,000 tokens")
            screen.until_prompt()
            screen.type("wait for me")
            assert model.asked.wait(30)
            screen.press("\x03")
            screen.until("/retry asks again")
            screen.until_prompt()
            model.gate.set()  # the stub answers one at a time
            screen.type("now fail")
            screen.until("Nothing is lost: /retry asks again.")
            screen.until_prompt()
            model.sick = False
            screen.type("/retry")
            screen.until("Answer to", times=2)
            screen.until("of 20,000 tokens", times=3)
            screen.until_prompt()
            screen.press("\x03")
            screen.until("/quit to leave")
            screen.until_prompt()
            screen.press("\x04")
            assert screen.leave() == 0
        assert screen.beyond == []
        assert "· list_files" in screen.text
        assert "failed: " in screen.text
        assert "Check the API key" in screen.flat
        assert "Traceback" not in screen.text
        assert "the secret outside" not in str(stub.requests)
        with SessionStore(place / "home" / "sessions.db") as store:
            saved_sessions = store.list()
            assert len(saved_sessions) == 1
            log = store.load(saved_sessions[0].id)
        messages = [message.text for message in log.messages() if message.role == "user"]
        assert messages == ["please\nlook\ntwice", "wait for me", "now fail"]

        with console("chat", "--continue", "--max-tokens", "20000", width=120, cwd=str(place / "work"), environment=environment) as again:
            again.until("of 20,000 tokens")
            again.until("\n>")
            assert "> now fail" in again.text
            again.type("/quit")
            assert again.leave() == 0
        assert again.beyond == []
    assert os.stat(place / "home").st_mode & 0o077 == 0


def _reading(path: str) -> Call:
    return Call("read_file", {"path": path})


def test_the_user_is_asked_before_a_secret_is_read_and_once_for_each_file(place: Path) -> None:
    """A file that may hold secrets is shown to the model only after a yes. Enter, Ctrl-C and Ctrl-D mean no. Each answer is remembered."""
    for name in ("yes", "no", "enter", "interrupt", "end"):
        (place / "work" / f"{name}.env").write_text(f"PASSWORD=hunter2-{name}\n", encoding="utf-8")
    names = ["yes", "no", "enter", "interrupt", "end"]

    def model(request: Mapping[str, Any]) -> list[Say | Call]:
        content = request["messages"][-1]["content"]
        last = content if isinstance(content, str) else content[-1].get("text", "")
        if last in {"first", "second"}:
            return [*(_reading(f"{name}.env") for name in names), _reading("main.py")]
        return [Say(f"Turn over {len(request['messages'])}.")]

    question = "which may hold secrets. Show it to the model? [y/N]"
    with AnthropicStub(model) as stub:
        environment = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": stub.url, "CONTEXT_WINDOW_HOME": str(place / "home")}
        with console("chat", "--max-tokens", "20000", width=80, cwd=str(place / "work"), environment=environment) as screen:
            screen.until("\n>")
            screen.type("first")
            answers = {"yes": "y\r", "no": "no\r", "enter": "\r", "interrupt": "\x03", "end": "\x04"}
            for number in range(1, len(names) + 1):
                screen.until(question, times=number)
                assert screen.flat.count(question) == number, "one question at a time"
                files_asked_for = re.findall(r"asks to read (\w+)\.env, which", screen.flat)
                screen.press(answers[files_asked_for[-1]])
            screen.until("of 20,000 tokens")
            screen.until_prompt()
            screen.type("second")
            screen.until("of 20,000 tokens", times=2)
            screen.until_prompt()
            assert screen.flat.count(question) == len(names)
            screen.press("\x04")
            assert screen.leave() == 0
        assert "Traceback" not in screen.text
        requests = str(stub.requests)
        assert requests.count("hunter2-yes") >= 2
        assert [name for name in names[1:] if f"hunter2-{name}" in requests] == []
        assert requests.count("the user does not let you read no.env") >= 2
        assert "print('hello')" in requests
        history = (place / "home" / "history").read_text(encoding="utf-8")
        assert "first" in history
        assert "+y" not in history


def test_keys_pressed_before_the_question_do_not_answer_it_and_ctrl_c_stops_the_turn(place: Path) -> None:
    (place / "work" / ".env").write_text("PASSWORD=hunter2\n", encoding="utf-8")
    gate, is_asked = threading.Event(), threading.Event()

    def model(request: Mapping[str, Any]) -> list[Say | Call]:
        if "look" in str(request["messages"][-1]["content"]):
            is_asked.set()
            gate.wait(30)
            return [_reading(".env")]
        is_asked.set()
        gate.wait(30)
        return [Say("Too late.")]

    with AnthropicStub(model) as stub:
        environment = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": stub.url, "CONTEXT_WINDOW_HOME": str(place / "home")}
        with console("chat", "--max-tokens", "20000", width=80, cwd=str(place / "work"), environment=environment) as screen:
            screen.until("\n>")
            screen.type("look")
            assert is_asked.wait(30)
            is_asked.clear()
            screen.press("y\r")
            screen.until("\ny")  # the terminal's echo: it has been typed
            gate.set()
            screen.until("[y/N]")
            gate.clear()
            screen.press("\r")
            assert is_asked.wait(30)
            screen.press("\x03")
            screen.until("interrupted;")
            gate.set()
            screen.until_prompt()
            screen.press("\x04")
            assert screen.leave() == 0
        assert "hunter2" not in str(stub.requests)
        assert "the user does not let you read .env" in str(stub.requests)
