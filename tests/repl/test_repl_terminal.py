"""The chat in a real terminal, with every provider's own client: the tests read the screen as a user does."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pexpect", reason="needs a pty, which Windows has not")

from session.items import FunctionCallOutput
from session.store import SessionStore
from tests.support.chatting import APIS, USAGE_LINE, environment, last_text
from tests.support.console import Console, console
from tests.support.screens import long_session, saved
from tests.support.shared import ROOT
from tests.support.stubs import AnthropicStub, Call, Say
from tests.support.stubs.server import Refusal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a pty")

ANSWER = "# Hello\n\nThis is **bold**, and `code`:\n\n1. one\n2. two\n\n```python\nprint(1)\n```\n\n" + "long " * 60
HOSTILE = "\x1b[2J\x1b]0;title\x07 漢字漢字漢字 👩\u200d💻 \u202eabc é\u0301 " * 8 + "word" * 60


class Model:
    """A scripted model. It can wait, fail or call tools, depending on the last message."""

    def __init__(self) -> None:
        self.asked, self.gate, self.is_sick = threading.Event(), threading.Event(), True

    def __call__(self, request: Mapping[str, Any]) -> list[Say | Call]:
        last = last_text(request)
        if "wait" in last and not self.gate.is_set():
            self.asked.set()
            self.gate.wait(30)
        if "fail" in last and self.is_sick:
            raise Refusal("API key not valid", status=401, kind="authentication_error", code="invalid_api_key")
        return [Say(ANSWER)]


def enter(screen: Console, text: str, *, usages: int) -> None:
    """Type a line, and wait for the usage line that ends its turn."""
    screen.type(text)
    screen.until("of 20,000 tokens", times=usages)
    screen.until_prompt()


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("anthropic", 80),
        pytest.param("openai-responses", 120, marks=pytest.mark.long),
        pytest.param("openai", 80, marks=pytest.mark.long),
        pytest.param("google", 120, marks=pytest.mark.long),
    ],
)
def test_errors_and_ctrl_c_lose_nothing_and_the_conversation_can_be_continued(tmp_path: Path, name: str, width: int) -> None:
    model, api = Model(), APIS[name]
    with api.stub(model) as stub:
        start = ("chat", "--max-tokens", "20000", *api.arguments(stub))
        with console(*start, width=width, cwd=str(tmp_path), environment=environment(tmp_path / "home")) as screen:
            screen.until_prompt()
            screen.press("please\x1b\rgreet\x1b[200~\nme\x1b[201~")
            screen.until("\nme")
            enter(screen, "", usages=1)
            assert "**" not in screen.text
            assert "This is bold, and code:" in screen.text
            screen.type("wait for me")
            screen.until(f"waiting for {api.model} · ")
            assert model.asked.wait(30)
            screen.press("\x03")
            screen.until("what was said so far: Enter asks again")
            screen.until_prompt()
            model.gate.set()
            enter(screen, "", usages=3)
            enter(screen, "now fail", usages=4)
            assert "Check the API key, and the permissions and credit of its account. Nothing is lost: Enter asks again." in screen.flat
            model.is_sick = False
            enter(screen, "", usages=5)
            screen.press("\x03")
            screen.until("/quit leaves")
            screen.until_prompt()
            screen.press("\x04")
            assert screen.leave() == 0
        assert screen.beyond == []
        assert "Traceback" not in screen.text
        assert "waiting for" not in screen.text
        lines = USAGE_LINE.findall(screen.text)
        assert len(lines) == 5
        assert sum(float(turn) for *_, turn, _ in lines) == pytest.approx(float(lines[-1][-1]), abs=0.0005)
        assert float(lines[-1][-1]) > 0
        with console("chat", "--continue", *start[1:], width=width, cwd=str(tmp_path), environment=environment(tmp_path / "home")) as again:
            again.until("of 20,000 tokens")
            again.until_prompt()
            assert "> now fail" in again.text
            assert "1 one" in again.text
            again.press("\x1b[A")  # the history
            again.until("\n> now fail", times=2)
            again.press("\x03")
            again.type("/quit")
            assert again.leave() == 0
    with SessionStore(tmp_path / "home" / "sessions.db") as store:
        [info] = store.list()
        texts = [message.text for message in store.load(info.id).messages() if message.role == "user"]
    assert texts == ["please\ngreet\nme", "wait for me", "now fail"]


def test_tools_of_servers_and_functions_are_called_and_ctrl_c_stops_one(tmp_path: Path) -> None:
    (tmp_path / "mytools.py").write_text(
        "import asyncio\ndef double(number: int) -> int:\n    return 2 * number\nasync def sleep() -> None:\n    await asyncio.sleep(60)\n"
    )
    calls = [Call("double", {"number": 21}), Call("add", {"a": 1, "b": 2}), Call("mcp2_fail", {"reason": "broken"})]

    def script(request: Mapping[str, Any]) -> list[Say | Call]:
        last = last_text(request)
        return [*calls] if "use them" in last else [Call("sleep")] if "sleep" in last else [Say("Done.")]

    server = f"{sys.executable} -m tests.support.mcp_server"
    env = environment(tmp_path / "home") | {"PYTHONPATH": str(ROOT)}
    with AnthropicStub(script) as stub:
        tools = ("--tools", "mytools:double,sleep", "--mcp", server, "--mcp", server)
        with console("chat", *APIS["anthropic"].arguments(stub), *tools, width=100, cwd=str(tmp_path), environment=env) as screen:
            screen.until_prompt()
            assert "with double, sleep, add, files_read, fail, draw, mcp2_add, mcp2_files_read, mcp2_fail, mcp2_draw." in screen.flat
            screen.type("use them")
            screen.until("Done.")
            screen.until_prompt()
            for line in ('· double {"number":21}', "  double: 42", "  add: 3", "  mcp2_fail failed"):
                assert line.replace(" ", "") in screen.text.replace(" ", "")
            screen.type("sleep")
            screen.until("running sleep")
            screen.press("\x03")
            screen.until("stopped;")
            screen.until_prompt()
            screen.press("\x04")
            assert screen.leave() == 0
    with SessionStore(tmp_path / "home" / "sessions.db") as store:
        log = store.load(store.list()[0].id)
    outputs = [item for item in log.items if isinstance(item, FunctionCallOutput)]
    assert [item.is_error for item in outputs] == [False, False, True, True]


def test_a_replay_in_a_terminal_that_is_made_wider_stays_inside_it(tmp_path: Path) -> None:
    session = long_session(6, model="claude-sonnet-4-5")
    session.add_message("assistant", HOSTILE)
    session.add_message("user", HOSTILE)
    path = saved(session, tmp_path / "log.json")
    with console("chat", "--replay", path, "--max-tokens", "3000", width=40, cwd=str(tmp_path), environment={}) as screen:
        for left in range(8, 0, -1):
            screen.until(f"{left} turns left>" if left > 1 else "1 turn left>")
            if left == 4:
                screen.widen(120)
            screen.press("\r")
        screen.until("end>")
        screen.press("/us")
        screen.until("/usage")
        screen.press("\t\r")
        screen.until("Largest items")
        screen.until("end>", times=2)
        for times, line in enumerate(("/plan", "/recall", f"/recall {session.items[-1].id}", "/help", "hello", ""), 3):
            screen.type(line)
            screen.until("end>", times=times)
        screen.press("\x04")
        assert screen.leave() == 0
    assert screen.beyond == []
    assert not {"\x1b]0", "\u202e"} & set(screen.sent)
    assert "a replay takes no messages" in screen.flat
    assert "that was the last turn" in screen.flat
