"""The chat after unexpected errors, and with a store that cannot be written: it continues and reports the problem."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from context_window import Session
from context_window.display.render import Draw, text_of
from context_window.loop import Model, Toolbox
from context_window.repl.chat_loop import run_chat
from context_window.repl.model_access import AnthropicAccess
from context_window.repl.session_commands import goodbye, welcome
from context_window.repl.terminal import Output, Terminal
from context_window.repl.workspace import Workspace
from session.errors import StoreError
from session.store import SessionStore
from tests.support.chat_session import Screen, TypedLines, new_chat, talk
from tests.support.stubs import AnthropicStub, Call, Say, in_order


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "main.py").write_text("print('hello')\n", encoding="utf-8")
    return Workspace(tmp_path / "work")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    with SessionStore(tmp_path / "sessions.db") as store:
        yield store


class Broken:
    """Access to a model that raises an unexpected error."""

    def __init__(self) -> None:
        self.tools = Toolbox([])

    def model(self) -> Model:
        raise IndexError("list index\nout of range\x1b[2J")

    async def close(self) -> None:
        pass


def test_an_unexpected_error_is_one_line_and_the_chat_continues(store: SessionStore) -> None:
    chat = new_chat(store)
    chat.summarizer = None
    screen = Screen()
    run_chat(chat, Terminal(TypedLines("Hello?", "/retry", "/help"), screen.output), Broken())
    assert screen.flat.count("unexpected IndexError: list index out of range") == 2
    assert "\x1b" not in screen.text
    assert "/retry asks again. Run with --debug for a traceback." in screen.flat
    assert "/compact" in screen.text
    assert store.load(chat.session.id).messages()[-1].text == "Hello?"


def test_an_unexpected_error_in_a_command_is_one_line() -> None:
    def broken(_: str) -> None:
        raise ZeroDivisionError

    chat = new_chat(None)
    chat.check_model = broken
    screen = Screen()
    run_chat(chat, Terminal(TypedLines("/model x", "/help"), screen.output), Broken())
    assert "unexpected ZeroDivisionError. The conversation is intact: you can continue." in screen.flat
    assert "/compact" in screen.text


def test_debug_raises_unexpected_errors(store: SessionStore) -> None:
    chat = new_chat(store)
    with pytest.raises(IndexError):
        run_chat(chat, Terminal(TypedLines("Hello?"), Screen().output, debug=True), Broken())
    assert store.load(chat.session.id).messages()[-1].text == "Hello?"


def test_the_chat_ends_if_its_output_is_closed() -> None:
    def show(_: Draw) -> None:
        raise click.exceptions.Exit(141)

    chat = new_chat(None)
    with pytest.raises(click.exceptions.Exit):
        run_chat(chat, Terminal(TypedLines("/help", "/help"), Output(show, Screen().write, Screen().layout)), Broken())


def test_welcome_suggests_a_retry_for_an_unanswered_message() -> None:
    chat = new_chat(None)
    chat.session.add_message("user", "Well?")
    assert "/retry asks for one" in "\n".join(text_of(draw, 80) for draw in welcome(chat, "/work"))
    chat.session.add_message("assistant", "Yes.")
    assert "/retry" not in "\n".join(text_of(draw, 80) for draw in welcome(chat, "/work"))


class Full:
    """A store on a full disk."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self.full = True

    def save(self, session: Session) -> int:
        if self.full:
            raise StoreError(self._store.path, "the disk is full")
        return self._store.save(session)


def test_a_full_disk_is_reported_after_each_turn_and_before_leaving(workspace: Workspace, store: SessionStore) -> None:
    chat = new_chat(None)
    disk = Full(store)
    chat.store = disk  # type: ignore[assignment]  # as much of a store as the chat asks for here
    script = in_order([Call("list_files")], [Say("One file.")], [Say("Two.")])
    output, _ = talk(chat, workspace, script, "Look.", None, "/quit", "Again.")
    flat = " ".join(output.split())
    assert flat.count("the disk is full. The conversation is only in memory: /save FILE writes it to another place.") == 2
    assert flat.count("of 20,000 tokens") == 2
    assert (
        flat.count(
            "the disk is full. The session is not fully saved: /save FILE writes it to another place; leaving again discards the rest."
        )
        == 1
    )
    assert [message.text for message in chat.session.messages()[1:]] == ["Look.", "One file.", "Again.", "Two."]
    assert "the session is not fully saved" in text_of(goodbye(chat)[0], 80)
    disk.full = False
    assert "saved as" in text_of(goodbye(chat)[0], 80)
    assert list(store.load(chat.session.id).items) == list(chat.session.items)


@pytest.mark.parametrize("key", ["sk-sec\nret", "sk-sec\rret", "sk-secret\n"])
def test_an_invalid_key_is_not_shown(workspace: Workspace, key: str) -> None:
    chat = new_chat(None)
    screen = Screen()
    with AnthropicStub() as stub:
        access = AnthropicAccess(chat, workspace, api_key=key, base_url=stub.url, max_retries=0)
        run_chat(chat, Terminal(TypedLines("Hello?"), screen.output), access)
        assert stub.requests == []
    assert "Check the API key" in screen.flat
    assert "sec" not in screen.text
