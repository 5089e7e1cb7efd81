"""Questions of the chat's tools: what becomes of one that nobody answers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from context_window import FunctionCallOutput
from context_window.repl.live import AnthropicAccess, take_turn
from context_window.repl.questions import Questions, QuestionWithdrawnError
from context_window.repl.terminal import _with_questions
from context_window.repl.workspace import Workspace
from tests.support.shared import ROOT
from tests.support.stubs import AnthropicStub, Call, Say, in_order
from tests.support.talking import Screen, started, talk

TOKEN = "hunter2"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".env").write_text(f"PASSWORD={TOKEN}\n", encoding="utf-8")
    return tmp_path


class Prompt:
    """A terminal in which nobody answers, or somebody does at once."""

    def __init__(self, answer: bool | None = None) -> None:
        self.answer = answer
        self.questions: list[str] = []
        self.asked = threading.Event()
        self.withdrawn = 0

    async def confirm(self, question: str) -> bool:
        self.questions.append(question)
        self.asked.set()
        try:
            if self.answer is None:
                await asyncio.sleep(60)
            return bool(self.answer)
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise


def test_an_answer_comes_back_to_the_thread_that_asked() -> None:
    async def turn() -> bool:
        return await asyncio.to_thread(questions.may_read, "a\x1b[2J\n.env")

    prompt = Prompt(answer=True)
    questions = Questions(prompt.confirm)

    async def with_turn() -> bool:
        async with questions.during_turn():
            return await turn()

    assert asyncio.run(with_turn())
    assert prompt.questions == ["The model asks to read a[2J .env, which may hold secrets.\nShow it to the model? [y/N] "]
    with pytest.raises(QuestionWithdrawnError, match="the turn is over"):
        asyncio.run(turn())


def test_a_turn_that_is_stopped_withdraws_its_questions_and_leaves_no_thread_waiting(root: Path) -> None:
    """Questions that are open at the end of a turn are withdrawn; the next turn asks again."""
    prompt = Prompt()
    questions = Questions(prompt.confirm)
    shown = Workspace(root, allow_secret=questions.may_read)
    chat = started(None)
    script = in_order([Call("read_file", {"path": ".env"}), Call("read_file", {"path": "./.env"})], [Say("Well.")])

    async def stopped(stub: AnthropicStub) -> None:
        access = AnthropicAccess(chat, shown, api_key="key", base_url=stub.url, max_retries=0)
        turn = asyncio.create_task(_with_questions(take_turn(chat, "Read it.", access, Screen().voice), questions))
        assert await asyncio.to_thread(prompt.asked.wait, 20)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await access.close()

    with AnthropicStub(script) as stub:
        asyncio.run(stopped(stub))  # ends only when all threads have
    assert len(prompt.questions) == 1
    assert prompt.withdrawn == 1
    outputs = [item for item in chat.session.items if isinstance(item, FunctionCallOutput)]
    assert len(outputs) == 2
    assert all(item.is_error for item in outputs)
    assert TOKEN not in str(chat.session.items)

    prompt.answer = True

    async def asked_again() -> str:
        async with questions.during_turn():
            return await asyncio.to_thread(shown.read_file, ".env")

    assert TOKEN in asyncio.run(asked_again())
    assert len(prompt.questions) == 2


def test_where_nobody_can_be_asked_the_model_is_told_so(root: Path) -> None:
    chat = started(None)
    told, stub = talk(chat, Workspace(root), in_order([Call("read_file", {"path": ".env"})], [Say("I may not.")]), "Read it.")
    (output,) = [item for item in chat.session.items if isinstance(item, FunctionCallOutput)]
    assert output.is_error
    assert "nobody can be asked whether you may read it; go on without it" in output.text
    assert TOKEN not in str(stub.requests)
    assert "I may not." in told


def test_a_chat_in_a_pipe_asks_nobody(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without a terminal, what comes in is messages: none of it is taken for an answer."""
    script = in_order([Call("read_file", {"path": ".env"})], [Say("I may not.")], [Say("Yes?")])
    with AnthropicStub(script) as stub:
        home = tmp_path_factory.mktemp("home")
        settings = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": stub.url, "CONTEXT_WINDOW_HOME": str(home), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-m", "context_window", "chat"],
            input="Read it.\ny\n",
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=root,
            env={**os.environ, **settings, "PYTHONIOENCODING": "utf-8"},
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "[y/N]" not in done.stdout
    assert "nobody can be asked" in str(stub.requests)
    assert TOKEN not in str(stub.requests)
    assert len(stub.requests) == 3
