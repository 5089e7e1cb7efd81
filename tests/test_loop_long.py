"""Hundreds of turns against the strict provider over the loopback, through the real client, with everything going wrong that may.

`CONTEXT_WINDOW_TURNS=500 pytest tests/test_loop_long.py` plays as many turns as the promise names; the default is a part of them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import anthropic
import pytest

from context_window import (
    AnthropicModel,
    ContextWindow,
    ContextWindowManager,
    Image,
    ModelConfig,
    ModelOverloadedError,
    Session,
    Toolbox,
    run_turn,
)
from session.items import Compaction, FunctionCall, FunctionCallOutput, Message
from session.providers.anthropic import from_anthropic
from tests.support.counting import Letters
from tests.support.looping import png
from tests.support.stubs import AnthropicStub, Block, Call, Say, Think
from tests.support.stubs.server import Body, Refusal

TURNS = int(os.environ.get("CONTEXT_WINDOW_TURNS", "60"))
WINDOW = 6_000
"""Characters that a request may have."""


def read_page(number: int, long: bool = False) -> str:
    """A page of a book."""
    return f"page {number}: " + "word " * (60 if long else 10)


def draw(width: int) -> list[Any]:
    """A picture of this width."""
    return ["a picture", png(width, 8)]


async def fetch(address: str) -> dict[str, Any]:
    """What lies at an address."""
    if "broken" in address:
        raise ConnectionError(f"{address} does not answer")
    await asyncio.sleep(0)
    return {"address": address, "found": True}


TOOLS: list[Callable[..., Any]] = [read_page, draw, fetch]


class Provider(AnthropicStub):
    """Anthropic with a small window, which counts as the manager does, and has bad days.

    Attributes:
        plan: What the model is to say next.
        trouble: By number of request, what goes wrong with it.
        injected: Troubles so far.
        largest: The largest request that was taken, in characters.
    """

    def __init__(self, trouble: Mapping[int, str], *, binds_thinking: bool) -> None:
        super().__init__(self._next, binds_thinking=binds_thinking)
        self.plan: list[Sequence[Block]] = []
        self.trouble = dict(trouble)
        self.injected: list[str] = []
        self.most = 0
        self._scale = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=10**9), tools=TOOLS)

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        """The stub's answer, its usage in characters: the manager learns from it."""
        answer = super().serve(path, headers, body)
        said = sum(len(block.get("text") or block.get("thinking") or str(block.get("input"))) for block in answer["content"])
        none_cached = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        return {**answer, "usage": {"input_tokens": self._tokens(body), "output_tokens": said, **none_cached}}

    def _tokens(self, request: Mapping[str, Any]) -> int:
        return self._scale.analyze_session(from_anthropic(request["messages"], request.get("system")))["total_tokens"]

    def _next(self, request: Mapping[str, Any]) -> Sequence[Block]:
        tokens = self._tokens(request)
        if tokens > WINDOW:
            raise Refusal(f"prompt is too long: {tokens} tokens > {WINDOW} maximum")
        self.most = max(self.most, tokens)
        kind = self.trouble.pop(len(self.requests), None)
        if kind is not None:
            self.injected.append(kind)
            raise _refusal(kind, tokens)
        if request.get("tool_choice") == {"type": "none"}:
            return [Say("With what I know: done.")]
        return self.plan.pop(0)


def _refusal(kind: str, tokens: int) -> Refusal:
    if kind == "busy":
        return Refusal("This request would exceed your rate limit.", status=429, kind="rate_limit_error")
    if kind == "overloaded":
        return Refusal("Overloaded", status=529, kind="overloaded_error")
    return Refusal(f"prompt is too long: {tokens} tokens > {tokens - tokens // 20} maximum")


class Summarizer:
    """Fails, shrinks nothing, grows, says nothing, or does its work: one after the other."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, prompt: str) -> str:
        self.asked += 1
        match self.asked % 5:
            case 1:
                raise ConnectionError("no summariser today")
            case 2:
                return prompt
            case 3:
                return prompt * 2
            case 4:
                return "   "
        return "The user reads a book page by page."


def _steps(random: Random, turn: int) -> list[Sequence[Block]]:
    """What the model says in a turn."""
    steps: list[Sequence[Block]] = []
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        calls = [_call(random) for _ in range(random.choice((1, 1, 2, 3)))]
        thought = [Think("I should look.")] if random.random() < 0.3 else []
        steps.append([*thought, *([Say("Let me see.")] if random.random() < 0.5 else []), *calls])
    return [*steps, [Say(f"Answer {turn}: " + "so " * random.randrange(1, 40))]]


def _call(random: Random) -> Call:
    return random.choice(
        (
            Call("read_page", {"number": random.randrange(999), "long": random.random() < 0.5}),
            Call("read_page", {"page": 3}),
            Call("draw", {"width": random.randrange(8, 90)}),
            Call("fetch", {"address": "https://example.org/"}),
            Call("fetch", {"address": "https://broken.example.org/"}),
            Call("no_such_tool", {}),
        )
    )


def _trouble(random: Random) -> dict[int, str]:
    """Every twentieth request or so is refused as busy, others in threes, more often than the client tries; a few as too long."""
    trouble = {number: random.choice(("busy", "overloaded")) for number in range(5, 20 * TURNS, 17)}
    for first in range(40, 20 * TURNS, 97):
        trouble.update(dict.fromkeys(range(first, first + 3), "overloaded"))
    return trouble | dict.fromkeys((60, 150), "too long")


@pytest.mark.slow
def test_every_turn_ends_nothing_is_refused_nothing_is_lost_and_the_window_holds() -> None:
    asyncio.run(_played(TURNS, _trouble(Random(6)), binds=False))


@pytest.mark.slow
def test_so_they_do_where_the_model_binds_its_thinking_to_what_was_before_it() -> None:
    asyncio.run(_played(TURNS // 2, _trouble(Random(6)), binds=True))


async def _played(turns: int, trouble: Mapping[int, str], *, binds: bool) -> None:
    random = Random(6)
    summarizer = Summarizer()
    toolbox = Toolbox(TOOLS)
    limits = ContextWindow(max_tokens=WINDOW, summary_llm=summarizer, images_kept=2, max_tool_calls_per_turn=6)
    config = ModelConfig("claude-scripted-1", binds_thinking=binds)
    window = ContextWindowManager(config, Letters(), context_window=limits, tools=TOOLS)
    session = Session()
    session.add_message("system", "You read books.")
    session.add_message("user", "Never call me by my first name.", "rule", pinned=True)
    said: list[str] = []
    gave_up = 0
    with Provider(trouble, binds_thinking=binds) as provider:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
        async with anthropic.AsyncAnthropic(api_key="key", base_url=provider.url, max_retries=2, http_client=http) as client:
            model = AnthropicModel(client, "claude-scripted-1", max_tokens=1_000)
            for turn in range(turns):
                provider.plan = _steps(random, turn)
                said.append(f"Question {turn}? " + "well " * random.randrange(20))
                result, failures = await _to_its_end(session, said[-1], model, toolbox, window)
                gave_up += failures
                assert result.stop == "end_turn"
                assert failures or result.calls + result.calls_refused == window.tool_calls(session).used
        answers = len(provider.answers)
        assert len(provider.requests) == answers + len(provider.injected)  # none but those that the test itself refused
        assert provider.most <= WINDOW
        assert provider.most > WINDOW // 2  # it was worth counting
    _check_log(session, said, answers, window)
    assert gave_up > 0  # some troubles outlasted the client
    assert {"busy", "overloaded", "too long"} == set(provider.injected)
    assert summarizer.asked <= 2 * turns


async def _to_its_end(
    session: Session, said: str, model: AnthropicModel, toolbox: Toolbox, window: ContextWindowManager
) -> tuple[Any, int]:
    """The turn's result, and how often the caller had to go on with it by hand."""
    user: str | None = said
    for failures in range(5):
        try:
            return await run_turn(session, user, model=model, tools=toolbox, manager=window), failures
        except ModelOverloadedError:  # one that outlasted the client
            user = None
    raise AssertionError("a turn that never ends")


def _check_log(session: Session, said: Sequence[str], answers: int, window: ContextWindowManager) -> None:
    """The log holds all that was said, each call has its answer next, and what views left out comes back."""
    items = session.items
    users = [item.text for item in items if isinstance(item, Message) and item.role == "user"]
    assert users == ["Never call me by my first name.", *said]
    assert sum(item.usage is not None for item in items) == answers
    calls = [item.call_id for item in items if isinstance(item, FunctionCall)]
    outputs = [item.call_id for item in items if isinstance(item, FunctionCallOutput)]
    assert calls == outputs
    assert any(isinstance(part, Image) for item in items if isinstance(item, FunctionCallOutput) for part in item.output)
    view = window.process_session(session)
    assert len(view.items) < len(items) // 2
    assert "rule" in [item.id for item in view.items]
    assert all(window.recall(view, item.id) is item for item in items)
    assert all(set(item.replaces) <= {one.id for one in items} for item in items if isinstance(item, Compaction))
