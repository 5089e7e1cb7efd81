"""How far requests go above their budget by the provider's count: recorded sessions, counted as their provider counted them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.replay.sessions import Recording
from context_window.gateway.serve import address_of, bound_socket, serving
from session import Session
from session.items import Item
from session.units import grouping

from .conversations import FORMATS, Format, bare, bodies, fixed_tokens
from .servers import in_thread

Json = dict[str, Any]
TOLERANCE = 1.05
"""Parts of its budget that a request may have."""


@dataclass(slots=True)
class Excess:
    """The requests of a session. Amounts are tokens by the provider's count.

    Attributes:
        name: The session.
        held_out: True if no constant may be fitted on it.
        budget: Tokens that a request may have.
        counts: The tokens of each request.
        managed: Numbers of the requests that were shortened.
    """

    name: str
    held_out: bool
    budget: int
    counts: list[int] = field(default_factory=list)
    managed: list[int] = field(default_factory=list)

    @property
    def above(self) -> list[float]:
        """The shortened requests beyond the tolerance, in parts of the budget."""
        return [parts for number in self.managed if (parts := self.counts[number] / self.budget) > TOLERANCE]

    @property
    def largest(self) -> float:
        """The largest shortened request, in parts of the budget."""
        return max((self.counts[number] / self.budget for number in self.managed), default=0.0)


class CountingUpstream:
    """A provider that reports the tokens of what it is sent: those that the recorded provider counted."""

    def __init__(self, wire: Format, tokens: dict[str, float], tokens_per_character: float) -> None:
        """
        Args:
            wire: The format of requests.
            tokens: The tokens of each message of the session, by its JSON.
            tokens_per_character: The average, for messages that the gateway has changed.
        """
        self._wire, self._tokens, self._average = wire, tokens, tokens_per_character
        self.counts: list[int] = []
        self.sent: list[int] = []
        self.app = Starlette(routes=[Route("/{path:path}", self._answer, methods=["POST"])])

    def count(self, body: Json) -> int:
        """Return the tokens of a request."""
        texts = list(map(text_of, body[self._wire.field]))
        return round(fixed_tokens(self._wire, body) + sum(self._tokens.get(text, self._average * len(text)) for text in texts))

    async def _answer(self, request: Request) -> Response:
        content = await request.body()
        count = self.count(json.loads(content))
        self.counts.append(count)
        self.sent.append(len(content))
        return JSONResponse({"usage": {"input_tokens": count, "output_tokens": 1}})


def excess(recording: Recording, part: float) -> Excess | None:
    """Replay a session; None if its log reports too little.

    Args:
        recording: The session.
        part: The budget of messages, in parts of the session.
    """
    wire = FORMATS["responses" if recording.tool == "codex" else "anthropic"]
    steps = list(_steps(wire, recording.session, recording.items))
    tokens, per_character = message_tokens(wire, steps)
    if len(steps) < 8 or not per_character:
        return None
    upstream = CountingUpstream(wire, tokens, per_character)
    largest = max(upstream.count(body) - fixed_tokens(wire, body) for body, _ in steps)
    budget = round(part * largest) + fixed_tokens(wire, steps[0][0])
    result = Excess(recording.name, recording.held_out, budget)
    with (
        bound_socket("127.0.0.1", 0) as listener,
        serving(upstream.app, listener),
        in_thread("gateway", address_of(listener), budget) as gateway,
        httpx.Client(trust_env=False) as client,
    ):
        for number, (body, _) in enumerate(steps):
            content = json.dumps(body).encode()
            answer = client.post(gateway.url + wire.prefix + wire.path, content=content, timeout=600)
            assert answer.status_code == httpx.codes.OK, answer.text
            if upstream.sent[-1] != len(content):
                result.managed.append(number)
    result.counts = upstream.counts
    return result


def message_tokens(wire: Format, steps: Sequence[tuple[Json, int]]) -> tuple[dict[str, float], float]:
    """Return the tokens of messages by their JSON, and those of a character: a step's tokens, shared out by the length of its messages.

    Args:
        wire: The format of requests.
        steps: Requests and the provider's counts of them; 0 where it reported none.
    """
    grown: list[tuple[list[str], int]] = []
    for (body, count), (later, later_count) in pairwise(steps):
        new = list(map(text_of, later[wire.field][len(body[wire.field]) :]))
        grown.append((new, later_count - count if count and later_count else 0))
    known = [(sum(map(len, texts)), tokens) for texts, tokens in grown if tokens > 0]
    characters, total = map(sum, zip(*known, strict=True)) if known else (0, 0)
    average = total / characters if characters else 0.0
    result: dict[str, float] = {}
    for texts, tokens in grown:
        share = tokens / max(1, sum(map(len, texts))) if tokens > 0 else average
        result |= {text: share * len(text) for text in texts}
    return result, average


def text_of(message: Json) -> str:
    """Return a message's JSON without cache marks."""
    return json.dumps(bare(message), sort_keys=True)


def _steps(wire: Format, session: Session, items: Sequence[Item]) -> Iterator[tuple[Json, int]]:
    """Yield the request of each response and the provider's count of it; 0 if it was not reported."""
    starts = [start for start in grouping(session).response_starts if 0 < start < len(items)]
    ends = [*starts[1:], len(items)]
    model = str(session.metadata.get("model", ""))
    for body, start, end in zip(bodies(wire, items, starts), starts, ends, strict=True):
        usage = next((item.usage for item in items[start:end] if item.usage is not None), None)
        yield {**body, **({"model": model} if model else {})}, usage.total_input if usage is not None else 0
