"""The screen in the guide to the chat is what a user sees who types the same lines, but for prices and single tokens."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

pytest.importorskip("pexpect", reason="needs a pty, which Windows has not")

from tests.support.chatting import APIS, environment
from tests.support.console import console
from tests.support.shared import ROOT
from tests.support.stubs import Call, Say, in_order

GUIDE = (ROOT / "docs" / "guides" / "chat.md").read_text(encoding="utf-8")
ANSWERS = in_order(
    [Call("read_file", {"path": "server.log"})],
    [Say("It was restarted **three times**, always after `OutOfMemory`:\n\n- at 02:30\n- at 05:50\n- at 09:10\n")],
    [Call("read_file", {"path": "server.toml"})],
    [Say("Yes: `memory_mb = 512`, and the log shows 700 MB in use before each restart.")],
)


@pytest.mark.skipif(os.name != "posix", reason="needs a pty")
def test_the_guide_shows_the_screen_as_it_is(tmp_path: Path) -> None:
    [tools] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    [shown] = re.findall(r"```text\n(.*?)\n?```", GUIDE, re.DOTALL)
    (tmp_path / "mytools.py").write_text(tools, encoding="utf-8")
    (tmp_path / "server.log").write_text("".join(map(line_of_log, range(163))), encoding="utf-8")
    (tmp_path / "server.toml").write_text("[server]\nport = 8080\nmemory_mb = 512\n", encoding="utf-8")
    api = APIS["openai-responses"]
    with api.stub(ANSWERS) as stub:
        options = ("--tools", "mytools:read_file", "--max-tokens", "2000")
        with console("chat", *api.arguments(stub), *options, width=80, cwd=str(tmp_path), environment=environment(tmp_path)) as screen:
            for turn, question in enumerate(("How often was the server restarted?", "Is the limit in server.toml too low?"), 1):
                screen.until_prompt()
                screen.type(question)
                screen.until("of 2,000 tokens", times=turn)
            screen.until_prompt()
            screen.press("\x04")
            screen.leave()
    seen = re.sub(r" at \S+ \(the key in OPENAI_API_KEY\) with (\S+)\s", r" with \1 ", screen.text.partition("\n\n>\nsaved")[0])
    problem = f"replace the screen in the guide by this:\n{seen}"
    assert words_of(seen) == words_of(shown), problem
    assert tokens_of(seen) == pytest.approx(tokens_of(shown), rel=0.03), problem


def line_of_log(number: int) -> str:
    time = f"2026-11-24T{number // 12:02}:{number % 12 * 5:02}"
    return f"{time} OutOfMemory at 700 MB, restarted\n" if number in (30, 70, 110) else f"{time} GET /orders/{number * 7919} 200\n"


def words_of(screen: str) -> str:
    """Return the screen without bars, tokens and prices: ids, which are random, cost a token more or less."""
    return re.sub(r"^[^\w\s]{10}  |[\d,]+ of|[\d,]+ tokens freed|\d+%|\$[\d.]+", "#", screen, flags=re.MULTILINE)


def tokens_of(screen: str) -> list[int]:
    return [int(amount.replace(",", "")) for amount in re.findall(r"([\d,]+) (?:of|tokens freed)", screen)]
