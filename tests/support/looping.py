"""What tests of the loop share: a manager with figures that a reader can check, a model that says what it is told to, and pictures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from context_window import Answer, ContextWindow, ContextWindowManager, Image, Session, TurnResult, Usage, run_turn
from context_window.loop.model import OnText
from session.items import FunctionCall, Item, Message, Reasoning
from tests.support import pictures
from tests.support.counting import Letters
from tests.support.stubs import Block, Call, Say


def manager(max_tokens: int = 100_000, *, tools: Sequence[Any] = (), on_event: Any = None, **window: Any) -> ContextWindowManager:
    """A token a character."""
    limits = ContextWindow(max_tokens=max_tokens, **window)
    return ContextWindowManager(token_counter=Letters(), context_window=limits, tools=tools, on_event=on_event)


def png(width: int = 8, height: int = 8) -> Image:
    """A small picture that is one."""
    return Image(pictures.png(width, height))


class ScriptedModel:
    """A `Model` that gives these answers one after the other: blocks, a whole `Answer`, or what it raises.

    Attributes:
        views: What it was shown, by request.
        allowed: By request, whether it might call tools.
        definitions: The tools it was told of last.
    """

    def __init__(self, *answers: Sequence[Block] | Answer | BaseException | Callable[[Session], Any]) -> None:
        self._answers = iter(answers)
        self.views: list[Session] = []
        self.allowed: list[bool] = []
        self.definitions: Sequence[Mapping[str, Any]] = ()
        self._calls = 0

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        self.views.append(Session(view.items))  # as it is now: where nothing is trimmed it is the log itself, which grows
        self.allowed.append(allow_tools)
        self.definitions = tools
        said: Any = next(self._answers, [Say("That is all.")])
        if callable(said):
            said = await said(view)
        if isinstance(said, BaseException):
            raise said
        if isinstance(said, Answer):
            return said
        items = [self._item(block) for block in said]
        for item in items:
            if isinstance(item, Message) and on_text is not None:
                on_text(item.text)
        stop = "tool_use" if any(isinstance(item, FunctionCall) for item in items) else "end_turn"
        return Answer(tuple(items), stop, Usage(input_tokens=10, output_tokens=1), "scripted-1")

    def _item(self, block: Block) -> Item:
        if isinstance(block, Say):
            return Message("assistant", block.text)
        if isinstance(block, Call):
            self._calls += 1
            return call(block.name, dict(block.arguments), f"call-{self._calls}")
        return Reasoning(block.text, "signed")


def call(name: str, arguments: Mapping[str, Any] | str, call_id: str) -> FunctionCall:
    """A call with arguments as JSON, or as whatever the model wrote."""
    import json

    return FunctionCall(name, arguments if isinstance(arguments, str) else json.dumps(arguments), call_id)


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def fail() -> None:
    """Fails."""
    raise OSError("disk full")


def turn(session: Session, said: Any, model: ScriptedModel, *, limits: Any = None, tools: Any = (add, fail), **more: Any) -> TurnResult:
    """A whole turn."""
    return asyncio.run(run_turn(session, said, model=model, tools=tools, manager=limits or manager(), **more))


def told(session: Session) -> list[str]:
    """A log in few words."""
    return [str(getattr(item, "text", None) or getattr(item, "name", item.type)) for item in session.items]


def cut_off(stop: str, *items: Any) -> Answer:
    """An answer that stops so."""
    return Answer(items, stop, Usage(input_tokens=1, output_tokens=1), "scripted-1")
