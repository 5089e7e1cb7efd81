"""The chat where something breaks that should not, and where what is said cannot be kept: it goes on, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from context_window import Session
from context_window.display.rendering import Draw, text_of
from context_window.loop import Model, Toolbox
from context_window.repl.live import AnthropicAccess, Voice
from context_window.repl.sessions import goodbye, welcome
from context_window.repl.terminal import Terminal, run_chat
from context_window.repl.workspace import Workspace
from session.errors import StoreError
from session.store import SessionStore
from tests.support.stubs import AnthropicStub, Call, Say, in_order
from tests.support.talking import Lines, Screen, started, talk


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "main.py").write_text("print('hello')\n", encoding="utf-8")
    return Workspace(tmp_path / "work")


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[SessionStore]:
    with SessionStore(tmp_path / "sessions.db") as store:
        yield store


class Broken:
    """The way to a model of which something is broken that should not be."""

    def __init__(self) -> None:
        self.tools = Toolbox([])

    def model(self) -> Model:
        raise IndexError("list index\nout of range\x1b[2J")

    async def close(self) -> None:
        pass


def test_a_fault_that_nobody_expects_is_one_line_and_the_chat_goes_on(keeper: SessionStore) -> None:
    chat = started(keeper)
    chat.summarizer = None
    screen = Screen()
    run_chat(chat, Terminal(Lines("Hello?", "/retry", "/help"), screen.voice), Broken())
    assert screen.flat.count("IndexError, which nobody expected here: list index out of range") == 2
    assert "\x1b" not in screen.told
    assert "/retry asks again. --debug shows where it came from." in screen.flat
    assert "/compact" in screen.told
    assert keeper.load(chat.session.id).messages()[-1].text == "Hello?"


def test_so_is_one_in_a_command() -> None:
    def broken(_: str) -> None:
        raise ZeroDivisionError

    chat = started(None)
    chat.check_model = broken
    screen = Screen()
    run_chat(chat, Terminal(Lines("/model x", "/help"), screen.voice), Broken())
    assert "ZeroDivisionError, which nobody expected here. What was said is kept: go on." in screen.flat
    assert "/compact" in screen.told


def test_whoever_mends_the_program_has_the_traceback(keeper: SessionStore) -> None:
    chat = started(keeper)
    with pytest.raises(IndexError):
        run_chat(chat, Terminal(Lines("Hello?"), Screen().voice, debug=True), Broken())
    assert keeper.load(chat.session.id).messages()[-1].text == "Hello?"


def test_the_chat_ends_where_nobody_reads_it_any_more() -> None:
    def show(_: Draw) -> None:
        raise click.exceptions.Exit(141)

    chat = started(None)
    with pytest.raises(click.exceptions.Exit):
        run_chat(chat, Terminal(Lines("/help", "/help"), Voice(show, Screen().write, Screen().layout)), Broken())


def test_a_session_that_waits_for_an_answer_says_so_when_it_is_gone_on_with() -> None:
    chat = started(None)
    chat.session.add_message("user", "Well?")
    assert "/retry asks for one" in "\n".join(text_of(draw, 80) for draw in welcome(chat, "/work"))
    chat.session.add_message("assistant", "Yes.")
    assert "/retry" not in "\n".join(text_of(draw, 80) for draw in welcome(chat, "/work"))


class Full:
    """A disk that is full until it is not."""

    def __init__(self, keeper: SessionStore) -> None:
        self._keeper = keeper
        self.full = True

    def save(self, session: Session) -> int:
        if self.full:
            raise StoreError(self._keeper.path, "the disk is full")
        return self._keeper.save(session)


def test_what_cannot_be_kept_is_said_and_who_leaves_is_told_before_it_is_lost(workspace: Workspace, keeper: SessionStore) -> None:
    chat = started(None)
    disk = Full(keeper)
    chat.keeper = disk  # type: ignore[assignment]  # as much of a store as the chat asks for here
    script = in_order([Call("list_files")], [Say("One file.")], [Say("Two.")])
    told, _ = talk(chat, workspace, script, "Look.", None, "/quit", "Again.")
    flat = " ".join(told.split())
    assert flat.count("the disk is full. What was said is in memory alone: /save FILE writes it elsewhere.") == 2
    assert flat.count("of 20,000 tokens") == 2
    assert flat.count("the disk is full. Not all of this is kept: /save FILE writes it elsewhere, leaving again loses it.") == 1
    assert [message.text for message in chat.session.messages()[1:]] == ["Look.", "One file.", "Again.", "Two."]
    assert "not all of this is kept" in text_of(goodbye(chat)[0], 80)
    disk.full = False
    assert "kept as" in text_of(goodbye(chat)[0], 80)
    assert list(keeper.load(chat.session.id).items) == list(chat.session.items)


@pytest.mark.parametrize("key", ["sk-sec\nret", "sk-sec\rret", "sk-secret\n"])
def test_a_key_that_cannot_be_sent_is_not_shown(workspace: Workspace, key: str) -> None:
    chat = started(None)
    screen = Screen()
    with AnthropicStub() as stub:
        access = AnthropicAccess(chat, workspace, api_key=key, base_url=stub.url, max_retries=0)
        run_chat(chat, Terminal(Lines("Hello?"), screen.voice), access)
        assert stub.requests == []
    assert "Check the API key" in screen.flat
    assert "sec" not in screen.told
