"""Shared by the tests of compaction: scripted summarisers, and a manager that records its events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from context_window import Compacted, Compaction, CompactionFailed, ContextWindow, ContextWindowManager, Session, WindowEvent
from tests.support.counting import Letters

SHORT = "Earlier in this conversation: q and a."


class Writer:
    """A summariser with scripted answers. It records its prompts.

    Attributes:
        prompts: The prompts it received.
        window: Its declared prompt size, in tokens.
        timeout: Its declared time limit, in seconds.
    """

    def __init__(
        self, *answers: Any, window: int | None = None, timeout: float | None = None, meanwhile: Callable[[], object] | None = None
    ) -> None:
        self.answers = answers or (SHORT,)
        self.prompts: list[str] = []
        self.meanwhile = meanwhile
        self.window = window
        self.timeout = timeout

    async def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        await asyncio.sleep(0)
        if self.meanwhile is not None:
            self.meanwhile()
        answer = self.answers[min(len(self.prompts), len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        text: str = answer(prompt) if callable(answer) else answer
        return text


class Watched(ContextWindowManager):
    """A manager that counts letters and records its events."""

    def __init__(self, max_tokens: int | None = 2000, model: object = None, **window: Any) -> None:
        self.events: list[WindowEvent] = []
        super().__init__(model, Letters(), context_window=ContextWindow(max_tokens=max_tokens, **window), on_event=self.events.append)

    @property
    def compacted(self) -> list[Compacted]:
        return [event for event in self.events if isinstance(event, Compacted)]

    @property
    def failed(self) -> list[CompactionFailed]:
        return [event for event in self.events if isinstance(event, CompactionFailed)]


def managed(manager: ContextWindowManager, session: Session, llm: Any = None) -> Session:
    """Return the view, made in a new event loop."""
    view: Session = asyncio.run(manager.manage(session, llm))
    return view


def compactions(session: Session) -> list[Compaction]:
    return [item for item in session.items if isinstance(item, Compaction)]


async def together(*work: Awaitable[Any]) -> list[Any]:
    return await asyncio.gather(*work)
