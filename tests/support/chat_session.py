"""Runs the chat without a terminal: a screen, a scripted user, and a conversation with the stub."""

from __future__ import annotations

from context_window import ContextWindow, ContextWindowManager
from context_window.display.glyphs import UNICODE, Glyphs
from context_window.display.lines import width_of
from context_window.display.render import Draw, text_of
from context_window.repl.chat import Chat, Notices
from context_window.repl.chat_loop import run_chat
from context_window.repl.model_access import AnthropicAccess, new_session
from context_window.repl.terminal import Output, Terminal
from context_window.repl.workspace import Workspace
from session.store import SessionStore
from tests.support.stubs import AnthropicStub, Script

NAME = "claude-sonnet-5-5"
WIDTH = 60


class Screen:
    """Collects the output as text."""

    def __init__(self) -> None:
        self.text = ""

    def show(self, draw: Draw) -> None:
        self.text += f"{text_of(draw, WIDTH)}\n"

    def write(self, text: str) -> None:
        self.text += text

    def layout(self) -> tuple[int, Glyphs]:
        return WIDTH, UNICODE

    @property
    def output(self) -> Output:
        return Output(self.show, self.write, self.layout)

    @property
    def flat(self) -> str:
        return " ".join(self.text.split())


class TypedLines:
    """A user who types these lines. None means Ctrl-C."""

    def __init__(self, *lines: str | None) -> None:
        self._lines = iter(lines)

    def read(self, prompt: str) -> str | None:
        line = next(self._lines, "")
        if line is None:
            raise KeyboardInterrupt
        return line or None


def new_chat(store: SessionStore | None, *, tokens: int = 20_000) -> Chat:
    notices = Notices()
    manager = ContextWindowManager(NAME, context_window=ContextWindow(max_tokens=tokens), on_event=notices.add_event)
    session = new_session("/work")
    return Chat(manager, session, notices, model=NAME, store=store)


def talk(chat: Chat, workspace: Workspace, script: Script, *lines: str | None, url: str | None = None) -> tuple[str, AnthropicStub]:
    """Return the output after these lines, and the stub."""
    screen = Screen()
    chat.is_over = False
    with AnthropicStub(script) as stub:
        access = AnthropicAccess(chat, workspace, api_key="key", base_url=url or stub.url, max_retries=0)
        run_chat(chat, Terminal(TypedLines(*lines), screen.output), access)
    assert all(width_of(line) <= WIDTH for line in screen.text.split("\n"))
    return screen.text, stub
