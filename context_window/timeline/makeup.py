"""Works out what each request's prompt was made of, from a walk over its session."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from session.items import FunctionCall
from session.session import Session
from session.transcripts.makeup import Makeup, Part
from session.transcripts.reported_requests import Request

from ..decision.plan import ToolDefinition
from ..spend.reasons import UNUSED
from .build import RequestEvent
from .points import MarkerKind, Timeline
from .prefix_sums import PrefixSums
from .reasons import Reason, commits_of, reasons_of
from .walk import WindowState, WindowWalk


def made_up(
    session: Session, walk: WindowWalk, events: Sequence[RequestEvent], timeline: Timeline, definitions: Sequence[ToolDefinition]
) -> Iterator[tuple[Request, Request]]:
    """Yield each reported request of a session, and the same with its makeup.

    Args:
        session: The session.
        walk: The walk over it, at its end.
        events: Its requests, in order.
        timeline: Its timeline, with a point for each of them.
        definitions: Those of its tools that its log states.
    """
    assert walk.final is not None
    states = [*walk.states, walk.final]
    amounts, into = _Amounts(reasons_of(session.items)), [*commits_of(session.items, session.metadata.get("pull_requests")), ("", "")]
    used = {ToolDefinition(item.name, 0, 1).server for item in session.items if isinstance(item, FunctionCall)}
    last_state = -1
    for event, point in zip(events, timeline.points, strict=False):
        for index in range(last_state + 1, event.state + 1):
            amounts.enter(walk, states[index], states[index - 1].length if index else 0)
        last_state = max(last_state, event.state)
        if event.request is not None:
            breaks = [marker for marker in point.markers if marker.kind is MarkerKind.CACHE_BREAK]
            cause = "a pause" if breaks and breaks[0].cause.startswith("a pause") else breaks[0].cause if breaks else ""
            lost = min(breaks[0].tokens, event.request.prompt - event.request.cache_read) if breaks else 0
            state = states[event.state]
            commit, pull = into[min(state.length, len(into) - 1)]
            parts = *_never_called(definitions, used, state, event.request, lost), *amounts.parts(state, event.request, lost)
            makeup = Makeup(parts, lost, cause, commit, pull)
            yield event.request, replace(event.request, makeup=makeup)


def _scaled(state: WindowState, request: Request) -> tuple[float, float]:
    """Return the tokens of a prompt that a token of the local count stands for, and those of them before the items.

    A prompt that is smaller than the local count has smaller items.
    """
    factor = request.prompt / state.counted if request.prompt < state.counted else 1.0
    return factor, state.overhead * factor if request.prompt < state.counted else request.prompt - sum(state.tokens)


def _never_called(
    definitions: Sequence[ToolDefinition], used: Container[str | None], state: WindowState, request: Request, lost: int
) -> Iterator[Part]:
    """Yield the parts of a prompt that are definitions of tools which are never called, by MCP servers that are not among the used ones.

    All definitions are the start of the prompt, in an order that no log states: these have the same share of each region as all.
    """
    unused: Counter[str] = Counter()
    for tool in definitions:
        if not tool.calls:
            unused["" if tool.server in used else tool.server or ""] += tool.tokens
    total = sum(tool.tokens for tool in definitions)
    if size := min(total, _scaled(state, request)[1]):
        read, until_lost = (min(1.0, end / size) for end in (request.cache_read, request.cache_read + lost))
        for server, tokens in unused.items():
            amounts = [int(tokens * size / total * share) for share in (read, until_lost - read, 1 - until_lost)]
            if any(amounts):
                yield Part(UNUSED, "", server, *amounts)


class _Amounts:
    """The tokens of the items in the window, by reason and in the order of the prompt. A request costs the logarithm of its log's length
    for each reason.
    """

    def __init__(self, reasons: Sequence[Reason]) -> None:
        indices: dict[Reason, int] = {}
        self._leaf = [indices.setdefault(reason, len(indices)) for reason in reasons]
        self._reasons = list(indices)
        self._positions: list[list[int]] = [[] for _ in indices]
        self._place = []
        for position, leaf in enumerate(self._leaf):
            self._place.append(len(self._positions[leaf]))
            self._positions[leaf].append(position)
        self._of_leaf = [PrefixSums(len(positions), 0) for positions in self._positions]
        self._all = PrefixSums(len(reasons), 0)
        self._now = [0] * len(reasons)
        self._sums = [0.0] * len(indices)

    def enter(self, walk: WindowWalk, state: WindowState, start: int) -> None:
        """Take what changed in the window up to a state, whose log was `start` items long before."""
        for position, tokens in state.changes:
            self._put(position, max(0, tokens))
        for position in range(start, state.length):
            self._put(position, walk.tokens[position])

    def _put(self, position: int, tokens: int) -> None:
        leaf, added = self._leaf[position], tokens - self._now[position]
        self._all.add(position, added)
        self._of_leaf[leaf].add(self._place[position], added)
        self._sums[leaf] += added
        self._now[position] = tokens

    def parts(self, state: WindowState, request: Request, lost: int) -> Iterator[Part]:
        """Yield the parts of a request's prompt.

        Args:
            state: The window at that request.
            request: Its report.
            lost: Tokens that the cache had lost.
        """
        factor, overhead = _scaled(state, request)
        if not sum(state.tokens) or not factor:
            return
        read, until_lost = (self._before((end - overhead) / factor) for end in (request.cache_read, request.cache_read + lost))
        for leaf, reason in enumerate(self._reasons):
            tokens = read[leaf], until_lost[leaf] - read[leaf], self._sums[leaf] - until_lost[leaf]
            amounts = [int(factor * amount) for amount in tokens]
            if any(amounts):
                yield Part(*reason, *amounts)

    def _before(self, amount: float) -> list[float]:
        """Return the tokens of each reason among the first `amount` tokens of the items."""
        end = self._all.find(amount) if amount > 0 else 0
        if end >= len(self._now):
            return self._sums
        sums: list[float] = [
            sums.first(bisect_left(positions, end)) for sums, positions in zip(self._of_leaf, self._positions, strict=True)
        ]
        if amount > 0:
            sums[self._leaf[end]] += amount - self._all.first(end)
        return sums
