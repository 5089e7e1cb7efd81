"""Shared by the tests of the loop: a manager with easily checked counts, a model with scripted answers, and images."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from context_window import Answer, ContextWindow, ContextWindowManager, Image, Session, TurnResult, Usage, run_turn
from context_window.loop.model import OnText
from session.items import FunctionCall, Item, Message, Reasoning
from tests.support import pictures
from tests.support.counting import Letters
from tests.support.stubs import Block, Call, Say, Think


def manager(max_tokens: int = 100_000, *, tools: Sequence[Any] = (), on_event: Any = None, **window: Any) -> ContextWindowManager:
    """Return a manager that counts one token per character."""
    limits = ContextWindow(max_tokens=max_tokens, **window)
    return ContextWindowManager(token_counter=Letters(), context_window=limits, tools=tools, on_event=on_event)


def png(width: int = 8, height: int = 8) -> Image:
    """Return a small valid image."""
    return Image(pictures.png(width, height))


class ScriptedModel:
    """A `Model` that returns these answers in order: blocks, a complete `Answer`, or an exception to raise.

    Attributes:
        views: The view of each request.
        allowed: For each request, True if it allowed tool calls.
        definitions: The tool definitions of the last request.
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
        self.views.append(Session(view.items))  # a copy: an untrimmed view is the log itself, which grows
        self.allowed.append(allow_tools)
        self.definitions = tools
        script: Any = next(self._answers, [Say("That is all.")])
        if callable(script):
            script = await script(view)
        if isinstance(script, BaseException):
            raise script
        if isinstance(script, Answer):
            return script
        items = [self._item(block) for block in script]
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
        assert isinstance(block, Think)
        return Reasoning(block.text, "signed")


def call(name: str, arguments: Mapping[str, Any] | str, call_id: str) -> FunctionCall:
    """Return a call. Arguments are a mapping, or the text that the model wrote."""
    import json

    return FunctionCall(name, arguments if isinstance(arguments, str) else json.dumps(arguments), call_id)


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def fail() -> None:
    """Fails."""
    raise OSError("disk full")


def turn(
    session: Session, user_input: Any, model: ScriptedModel, *, limits: Any = None, tools: Any = (add, fail), **options: Any
) -> TurnResult:
    """Run one turn."""
    return asyncio.run(run_turn(session, user_input, model=model, tools=tools, manager=limits or manager(), **options))


def texts_of(session: Session) -> list[str]:
    """Return each item's text, name or type."""
    return [str(getattr(item, "text", None) or getattr(item, "name", item.type)) for item in session.items]


def cut_off(stop: str, *items: Any) -> Answer:
    """Return an answer with this stop reason."""
    return Answer(items, stop, Usage(input_tokens=1, output_tokens=1), "scripted-1")
