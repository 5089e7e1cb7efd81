"""Random logs that reach the hard corners, and limits that make them matter."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st

from context_window.trimming.limits import Limits
from session.items import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    MessageCategory,
    Reasoning,
)
from session.parts import Image, Part, Text
from session.session import Session

SIZES = st.sampled_from((0, 1, 3, 10, 40, 120, 300, 900))
TEXTS = st.sampled_from(("x", "ab cd\n", "é", "e\u0301", "👩‍👩‍👧 ", "line of words\n", "\r\n", "日本"))
CATEGORIES = st.sampled_from((None,) * 12 + tuple(MessageCategory))

STEPS = st.sampled_from(
    ("respond",) * 8 + ("answer",) * 8 + ("user",) * 4 + ("context",) * 2 + ("system", "handoff", "config", "summary", "compaction")
)
DEFAULT_SHARES = tuple(map(Fraction, ("0.1", "0.35", "0.5", "0.05")))


@dataclass
class Draft:
    """A log under construction."""

    items: list[Item]
    open_calls: list[FunctionCall]
    calls: list[FunctionCall]

    def id(self) -> str:
        return f"i{len(self.items)}"


def _text(draw: st.DrawFn) -> str:
    size, piece = draw(SIZES), draw(TEXTS)
    return (piece * (size // len(piece) + 1))[:size].removesuffix("\ud83d")


def _parts(draw: st.DrawFn) -> tuple[Part, ...]:
    kind = draw(st.integers(0, 9))
    if kind < 7:
        return (Text(_text(draw)),)
    images = [Image(url=f"u{n}", width=draw(st.sampled_from((1, 30, 200))), height=10) for n in range(draw(st.integers(1, 3)))]
    if kind == 7:
        return tuple(images)
    return (Text(_text(draw)), *images, Text(_text(draw)))


def _common(draw: st.DrawFn, draft: Draft) -> dict[str, object]:
    given: dict[str, object] = {"id": draft.id(), "created_at": float(len(draft.items)), "pinned": draw(st.integers(0, 14)) == 0}
    category = draw(CATEGORIES)
    if category is not None:
        given["category"] = category
    return given


def _respond(draw: st.DrawFn, draft: Draft) -> None:
    agent = draw(st.sampled_from((None, None, None, None, "b")))
    for block in draw(st.lists(st.sampled_from("rttcccR"), min_size=1, max_size=5)):
        common = {**_common(draw, draft), "agent_id": agent}
        if block in "rR":
            text = _text(draw) if block == "r" else ""
            draft.items.append(Reasoning(text, signature="s" * 40, **common))  # type: ignore[arg-type]
        elif block == "t":
            draft.items.append(Message("assistant", _parts(draw), **common))  # type: ignore[arg-type]
        else:
            known = [call.call_id for call in draft.calls]
            repeat = bool(known) and draw(st.integers(0, 11)) == 0
            call_id = draw(st.sampled_from(known)) if repeat else f"c{len(draft.items)}"
            call = FunctionCall("tool", _text(draw)[:40], call_id, **common)  # type: ignore[arg-type]
            draft.items.append(call)
            draft.calls.append(call)
            draft.open_calls.append(call)


def _answer(draw: st.DrawFn, draft: Draft) -> None:
    """Answers all waiting calls, or some of them, in any order; or one that nobody made."""
    if draw(st.integers(0, 11)) == 0 or not draft.open_calls:
        call_id = draw(st.sampled_from([call.call_id for call in draft.calls] + ["nobody"]))
        draft.items.append(FunctionCallOutput("tool", _parts(draw), call_id, **_common(draw, draft)))  # type: ignore[arg-type]
        return
    count = len(draft.open_calls) if draw(st.integers(0, 3)) else draw(st.integers(1, len(draft.open_calls)))
    for _ in range(count):
        at = draw(st.integers(0, len(draft.open_calls) - 1)) if draw(st.booleans()) else 0
        call = draft.open_calls.pop(at)
        failed = draw(st.integers(0, 5)) == 0
        draft.items.append(FunctionCallOutput("tool", _parts(draw), call.call_id, is_error=failed, **_common(draw, draft)))  # type: ignore[arg-type]


def _step(draw: st.DrawFn, draft: Draft) -> None:
    kind = draw(STEPS)
    if kind == "respond":
        _respond(draw, draft)
        return
    if kind == "answer":
        _answer(draw, draft)
        return
    common = _common(draw, draft)
    item: Item
    if kind == "user":
        item = Message("user", _parts(draw), **common)  # type: ignore[arg-type]
    elif kind == "context":
        item = Message("user", _parts(draw), **{**common, "category": MessageCategory.CONTEXT})  # type: ignore[arg-type]
    elif kind == "system":
        item = Message("system", _text(draw), **common)  # type: ignore[arg-type]
    elif kind == "handoff":
        item = AgentHandoff("b", **common)  # type: ignore[arg-type]
    elif kind == "config":
        item = AgentConfigUpdate("be brief", **common)  # type: ignore[arg-type]
    elif kind == "summary":
        item = Message("assistant", _text(draw), extra={"summary": True}, **common)  # type: ignore[arg-type]
    else:
        ids = [one.id for one in draft.items]
        first = draw(st.integers(0, len(ids)))
        replaced = [one for one in ids[:first] if draw(st.integers(0, 9))]
        item = Compaction(_text(draw), replaced, **common)  # type: ignore[arg-type]
    draft.items.append(item)


@st.composite
def sessions(draw: st.DrawFn, *, max_steps: int = 24) -> Session:
    """Logs of up to about 60 items, ill-formed ones among them."""
    draft = Draft([], [], [])
    if draw(st.integers(0, 3)):
        draft.items.append(Message("system", _text(draw), id="i0", created_at=0.0))
        draft.items.append(Message("user", _parts(draw), id="i1", created_at=1.0))
    for _ in range(draw(st.integers(0, max_steps))):
        _step(draw, draft)
    session = Session(draft.items, id="s")
    breaks = [item.id for item in draft.items if draw(st.integers(0, 29)) == 0]
    session.restore_seams(frozenset(breaks), 0)
    return session


@st.composite
def limits(draw: st.DrawFn, total: int) -> Limits:
    """Limits for a log of so many tokens: most of them bite.

    Args:
        draw: Hypothesis's.
        total: Tokens of the log.
    """
    budget = max(1, draw(st.one_of(st.integers(1, 60), st.integers(0, 130).map(lambda percent: total * percent // 100))))
    percents = draw(st.sampled_from((100, 100, 100, 80, 50))), draw(st.sampled_from((65, 65, 100, 90, 30, 1)))
    trigger, target = max(percents), min(percents)
    weights = [draw(st.integers(0, 10)) for _ in range(4)]
    whole = sum(weights) + draw(st.integers(0, 5)) or 1
    shares = tuple(Fraction(weight, whole) for weight in weights) if draw(st.booleans()) else DEFAULT_SHARES
    kept = draw(st.sampled_from((1, 1, 0, 2, 5)))
    items = draw(st.sampled_from((None, None, None, 1, 5, 12, 30)))
    assert len(shares) == 4
    return Limits(
        budget=budget,
        trigger=budget * trigger // 100,
        target=budget * target // 100,
        shares=(shares[0], shares[1], shares[2], shares[3]),
        images_kept=kept,
        images_max=kept + draw(st.sampled_from((0, 0, 1, 3))),
        items_max=items,
        items_target=0 if items is None else max(1, items * target // 100),
        overhead=draw(st.sampled_from((0, 0, 7))),
        preamble=draw(st.sampled_from((0, 20))),
        synthetic=draw(st.sampled_from((0, 15))),
        binds_thinking=draw(st.integers(0, 3)) == 0,
        newest_first=False,
    )
