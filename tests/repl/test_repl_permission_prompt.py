"""Permission questions: answers, withdrawal at the end of a turn, and chats without a terminal."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from context_window import FunctionCallOutput
from context_window.repl.chat_loop import with_permission_prompt
from context_window.repl.model_access import AnthropicAccess
from context_window.repl.model_turn import take_turn
from context_window.repl.permission_prompt import PermissionPrompt, QuestionWithdrawnError
from context_window.repl.workspace import Workspace
from tests.support.chat_session import Screen, new_chat, talk
from tests.support.shell import Shell
from tests.support.stubs import AnthropicStub, Call, Say, in_order

TOKEN = "hunter2"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".env").write_text(f"PASSWORD={TOKEN}\n", encoding="utf-8")
    return tmp_path


class Prompt:
    """A terminal whose user answers at once, or never."""

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


def test_the_answer_reaches_the_thread_that_asked() -> None:
    async def turn() -> bool:
        return await asyncio.to_thread(questions.may_read, "a\x1b[2J\n.env")

    prompt = Prompt(answer=True)
    questions = PermissionPrompt(prompt.confirm)

    async def with_turn() -> bool:
        async with questions.during_turn():
            return await turn()

    assert asyncio.run(with_turn())
    assert prompt.questions == ["The model asks to read a[2J .env, which may hold secrets.\nShow it to the model? [y/N] "]
    with pytest.raises(QuestionWithdrawnError, match="the turn is over"):
        asyncio.run(turn())


def test_an_interrupted_turn_withdraws_its_questions_and_leaves_no_thread_waiting(root: Path) -> None:
    """Questions that are open at the end of a turn are withdrawn; the next turn asks again."""
    prompt = Prompt()
    questions = PermissionPrompt(prompt.confirm)
    workspace = Workspace(root, allow_secret=questions.may_read)
    chat = new_chat(None)
    script = in_order([Call("read_file", {"path": ".env"}), Call("read_file", {"path": "./.env"})], [Say("Well.")])

    async def stopped(stub: AnthropicStub) -> None:
        access = AnthropicAccess(chat, workspace, api_key="key", base_url=stub.url, max_retries=0)
        turn = asyncio.create_task(with_permission_prompt(take_turn(chat, "Read it.", access, Screen().output), questions))
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
            return await asyncio.to_thread(workspace.read_file, ".env")

    assert TOKEN in asyncio.run(asked_again())
    assert len(prompt.questions) == 2


def test_the_model_learns_that_nobody_can_be_asked(root: Path) -> None:
    chat = new_chat(None)
    screen, stub = talk(chat, Workspace(root), in_order([Call("read_file", {"path": ".env"})], [Say("I may not.")]), "Read it.")
    (output,) = [item for item in chat.session.items if isinstance(item, FunctionCallOutput)]
    assert output.is_error
    assert "nobody can be asked whether you may read it; go on without it" in output.text
    assert TOKEN not in str(stub.requests)
    assert "I may not." in screen


def test_a_chat_in_a_pipe_asks_no_questions(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal every line is a message: none of them is taken for an answer."""
    script = in_order([Call("read_file", {"path": ".env"})], [Say("I may not.")], [Say("Yes?")])
    reading_end, writing_end = os.pipe()
    with open(writing_end, "w", encoding="utf-8") as typed:
        typed.write("Read it.\ny\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path_factory.mktemp("home")))
    with AnthropicStub(script) as stub, open(reading_end, encoding="utf-8") as piped:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", stub.url)
        monkeypatch.setattr(sys, "stdin", piped)
        code, out, err = Shell(capsys, monkeypatch)("chat")
    assert (code, err) == (0, "")
    assert "[y/N]" not in out
    assert "nobody can be asked" in str(stub.requests)
    assert TOKEN not in str(stub.requests)
    assert len(stub.requests) == 3
