"""Hundreds of turns with the real client and a strict provider on the loopback, with every kind of failure injected.

`CONTEXT_WINDOW_TURNS=500 pytest tests/loop/test_loop_long.py` runs as many turns as the promise names; the default is fewer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

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
from tests.support.lazy import LazyModule
from tests.support.looping import png
from tests.support.stubs import AnthropicStub, Block, Call, Say, Think
from tests.support.stubs.server import Body, Refusal

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")

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
    """The page at an address."""
    if "broken" in address:
        raise ConnectionError(f"{address} does not answer")
    await asyncio.sleep(0)
    return {"address": address, "found": True}


TOOLS: list[Callable[..., Any]] = [read_page, draw, fetch]


class Provider(AnthropicStub):
    """A stub of Anthropic with a small window and injected failures. It counts like the manager.

    Attributes:
        plan: The model's next answers.
        trouble: The failure of each request, by its number.
        injected: Failures so far.
        largest: Characters of the largest accepted request.
    """

    def __init__(self, trouble: Mapping[int, str], *, binds_thinking: bool) -> None:
        super().__init__(self._next, binds_thinking=binds_thinking)
        self.plan: list[Sequence[Block]] = []
        self.trouble = dict(trouble)
        self.injected: list[str] = []
        self.most = 0
        self._scale = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=10**9), tools=TOOLS)

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        """Return the stub's answer with its usage in characters, for the manager's calibration."""
        answer = super().serve(path, headers, body)
        output_characters = sum(len(block.get("text") or block.get("thinking") or str(block.get("input"))) for block in answer["content"])
        none_cached = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        return {**answer, "usage": {"input_tokens": self._tokens(body), "output_tokens": output_characters, **none_cached}}

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
    """In turn: fails, returns the same size, a longer text, an empty text, or a good summary."""

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
    """Return the model's answers in a turn."""
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
    """Return failures: about 1 request in 20 is overloaded, some three in a row (more than the client retries); a few are too long."""
    trouble = {number: random.choice(("busy", "overloaded")) for number in range(5, 20 * TURNS, 17)}
    for first in range(40, 20 * TURNS, 97):
        trouble.update(dict.fromkeys(range(first, first + 3), "overloaded"))
    return trouble | dict.fromkeys((60, 150), "too long")


def test_every_turn_ends_nothing_is_refused_nothing_is_lost_and_the_window_holds() -> None:
    asyncio.run(_play(TURNS, _trouble(Random(6)), binds=False))


def test_the_same_holds_for_a_model_that_binds_reasoning_to_its_prefix() -> None:
    asyncio.run(_play(TURNS // 2, _trouble(Random(6)), binds=True))


async def _play(turns: int, trouble: Mapping[int, str], *, binds: bool) -> None:
    random = Random(6)
    summarizer = Summarizer()
    toolbox = Toolbox(TOOLS)
    limits = ContextWindow(max_tokens=WINDOW, summary_llm=summarizer, images_kept=2, max_tool_calls_per_turn=6)
    config = ModelConfig("claude-scripted-1", binds_thinking=binds)
    window = ContextWindowManager(config, Letters(), context_window=limits, tools=TOOLS)
    session = Session()
    session.add_message("system", "You read books.")
    session.add_message("user", "Never call me by my first name.", "rule", pinned=True)
    user_texts: list[str] = []
    gave_up = 0
    with Provider(trouble, binds_thinking=binds) as provider:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
        async with anthropic.AsyncAnthropic(api_key="key", base_url=provider.url, max_retries=2, http_client=http) as client:
            model = AnthropicModel(client, "claude-scripted-1", max_tokens=1_000)
            for turn in range(turns):
                provider.plan = _steps(random, turn)
                user_texts.append(f"Question {turn}? " + "well " * random.randrange(20))
                result, failures = await _run_to_end(session, user_texts[-1], model, toolbox, window)
                gave_up += failures
                assert result.stop == "end_turn"
                assert failures or result.calls + result.calls_refused == window.tool_calls(session).used
        answers = len(provider.answers)
        assert len(provider.requests) == answers + len(provider.injected)  # except those that the test itself refused
        assert provider.most <= WINDOW
        assert provider.most > WINDOW // 2  # the check is not empty
    _check_log(session, user_texts, answers, window)
    assert gave_up > 0  # some failures outlasted the client's retries
    assert {"busy", "overloaded", "too long"} == set(provider.injected)
    assert summarizer.asked <= 2 * turns


async def _run_to_end(
    session: Session, user_text: str, model: AnthropicModel, toolbox: Toolbox, window: ContextWindowManager
) -> tuple[Any, int]:
    """Run the turn to its end. Return its result and the number of times that the caller had to resume it."""
    user: str | None = user_text
    for failures in range(5):
        try:
            return await run_turn(session, user, model=model, tools=toolbox, manager=window), failures
        except ModelOverloadedError:  # a failure that outlasted the client's retries
            user = None
    raise AssertionError("a turn that never ends")


def _check_log(session: Session, user_texts: Sequence[str], answers: int, window: ContextWindowManager) -> None:
    """The log contains every message, each call is followed by its output, and dropped content can be recalled."""
    items = session.items
    users = [item.text for item in items if isinstance(item, Message) and item.role == "user"]
    assert users == ["Never call me by my first name.", *user_texts]
    assert sum(item.usage is not None for item in items) == answers
    calls = [item.call_id for item in items if isinstance(item, FunctionCall)]
    outputs = [item.call_id for item in items if isinstance(item, FunctionCallOutput)]
    assert calls == outputs
    assert any(isinstance(part, Image) for item in items if isinstance(item, FunctionCallOutput) for part in item.output)
    view = window.process_session(session)
    assert len(view.items) < len(items) // 2
    assert "rule" in [item.id for item in view.items]
    assert all(window.recall(view, item.id) is item for item in items)
    assert all(set(item.replaces) <= {logged.id for logged in items} for item in items if isinstance(item, Compaction))
