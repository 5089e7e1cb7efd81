"""The chat talked to without a terminal: a screen, a user who types, and a conversation with the stub."""

from __future__ import annotations

from context_window import ContextWindow, ContextWindowManager
from context_window.display.glyphs import UNICODE, Glyphs
from context_window.display.lines import width_of
from context_window.display.rendering import Draw, text_of
from context_window.repl.chat import Chat, News
from context_window.repl.live import AnthropicAccess, Voice, begun
from context_window.repl.terminal import Terminal, run_chat
from context_window.repl.workspace import Workspace
from session.store import SessionStore
from tests.support.stubs import AnthropicStub, Script

NAME = "claude-sonnet-5-5"
WIDTH = 60


class Screen:
    """What was told, in order."""

    def __init__(self) -> None:
        self.told = ""

    def show(self, draw: Draw) -> None:
        self.told += f"{text_of(draw, WIDTH)}\n"

    def write(self, text: str) -> None:
        self.told += text

    def layout(self) -> tuple[int, Glyphs]:
        return WIDTH, UNICODE

    @property
    def voice(self) -> Voice:
        return Voice(self.show, self.write, self.layout)

    @property
    def flat(self) -> str:
        return " ".join(self.told.split())


class Lines:
    """A user who types these lines, and presses Ctrl-C where there is none."""

    def __init__(self, *lines: str | None) -> None:
        self._lines = iter(lines)

    def read(self, prompt: str) -> str | None:
        line = next(self._lines, "")
        if line is None:
            raise KeyboardInterrupt
        return line or None


def started(keeper: SessionStore | None, *, tokens: int = 20_000) -> Chat:
    news = News()
    manager = ContextWindowManager(NAME, context_window=ContextWindow(max_tokens=tokens), on_event=news.hear)
    session = begun("/work")
    return Chat(manager, session, news, model=NAME, keeper=keeper)


def talk(chat: Chat, workspace: Workspace, script: Script, *lines: str | None, url: str | None = None) -> tuple[str, AnthropicStub]:
    """What stands on the screen after these lines."""
    screen = Screen()
    chat.over = False
    with AnthropicStub(script) as stub:
        access = AnthropicAccess(chat, workspace, api_key="key", base_url=url or stub.url, max_retries=0)
        run_chat(chat, Terminal(Lines(*lines), screen.voice), access)
    assert all(width_of(line) <= WIDTH for line in screen.told.split("\n"))
    return screen.told, stub
