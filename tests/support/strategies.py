"""Random logs that reach the hard corners, and limits that make them matter. How often they do: `tests/trimming/test_strategies.py`.

Rare cases are drawn as the highest value, since failing examples are shrunk towards the lowest: they come out plain.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass, replace
from fractions import Fraction

from hypothesis import strategies as st

from context_window import ToolRule
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
    Role,
)
from session.parts import Document, Image, Part, Text
from session.session import Session
from session.units import is_answer
from session.usage import Usage
from tests.support.engine import BOUNDLESS, HEAD, AutoWindow, Limits
from tests.support.pictures import png
from tests.support.twin import cost

SIZES = (1, 3, 10, 40) * 4 + (120, 300, 900, 0)
OUTPUT_SIZES = (1, 900, 900, 300) * 3 + (10, 0)
CALL_SIZES = (1, 3, 10, 40) * 2 + (900, 300, 900, 120)
"""Characters. Most outputs are larger than the placeholder that clears them, and a fourth of the values in calls."""
TEXTS = ("x", "ab cd\n", "é", "e\u0301", "👩‍👩‍👧 ", "line of words\n", "\r\n", "日本")
CATEGORIES = (None,) * 32 + tuple(reversed(MessageCategory))

STEPS = st.sampled_from(
    ("respond",) * 13 + ("answer",) * 13 + ("user",) * 6 + ("context",) * 3 + ("summary", "system", "handoff", "config", "compaction")
)
OPENINGS: tuple[tuple[Role, ...], ...] = (("system", "user"), ("system", "user"), ("system", "user"), ("user",), ("system",), ())
WIDTHS = (1, 30, 200)
"""Pixels: less than an image's placeholder costs, and more."""
PICTURE = png(1, 1)
DATA_URL = f"data:image/png;base64,{b64encode(PICTURE).decode()}"
BLOCKS = st.lists(st.sampled_from("cctctrR"), min_size=1, max_size=5)
"""What a response consists of: calls, texts, reasoning with a text, and sealed."""
TOOLS = ("tool", "read", "write")
TOOL_RULES = st.sampled_from(
    (
        *({},) * 5,
        {"read": ToolRule("first")},
        {"read": ToolRule("first", 1), "tool": ToolRule(keep_last=1)},
        {"write": ToolRule("never"), "read": ToolRule(keep_last=2)},
        {"rea?": ToolRule("first"), "[tw]*": ToolRule(keep_last=1), "*": ToolRule("never"), "write": ToolRule()},
    )
)
"""None most of the time."""
BREAKS = st.lists(st.integers(0, 59), max_size=4)
"""Where a response breaks off, though nothing stands between it and the next."""


def _shares(weights: tuple[int, int, int, int, int]) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Parts of what the weights add up to; the last is nobody's."""
    system, context, dialog, output, _ = (Fraction(weight, sum(weights)) for weight in weights)
    return system, context, dialog, output


WEIGHTS = st.integers(0, 10)
SHARES = st.one_of(
    st.just(_shares((10, 35, 50, 5, 0))),
    st.sampled_from(
        ((0, 0, 1, 4, 0), (0, 0, 0, 1, 0), (0, 0, 0, 1, 0), (0, 1, 1, 3, 0), (0, 0, 0, 1, 1), (0, 0, 0, 3, 1), (0, 0, 0, 0, 1))
    ).map(_shares),
    st.tuples(WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS, st.integers(1, 5)).map(_shares),
)
"""The default, some that leave outputs room, none at all, any."""


@dataclass
class Draft:
    """A log under construction."""

    items: list[Item]
    open_calls: list[FunctionCall]
    calls: list[FunctionCall]

    def id(self) -> str:
        return f"i{len(self.items)}"


_NUMBERS = {count: st.integers(0, count - 1) for count in (2, 3, 4, 6, 8, 10, 12, 16, 24, 40 * 36, 12 * 8, 14 * 8, 20 * 8)}
"""By count: a number below it."""


def _rarely(draw: st.DrawFn, one_in: int) -> bool:
    return draw(_NUMBERS[one_in]) == one_in - 1


# Drawing is most of what an example costs: what goes together is one number.


def _text(draw: st.DrawFn, sizes: tuple[int, ...] = SIZES) -> str:
    drawn = draw(_NUMBERS[len(sizes) * len(TEXTS)])
    size, piece = sizes[drawn // len(TEXTS)], TEXTS[drawn % len(TEXTS)]
    return (piece * (size // len(piece) + 1))[:size].removesuffix("\ud83d")


def _parts(draw: st.DrawFn, sizes: tuple[int, ...] = SIZES) -> tuple[Part, ...]:
    kind = draw(_NUMBERS[24])
    if kind < 19:
        return (Text(_text(draw, sizes)),)
    if kind == 23:
        return (Document(text=_text(draw, sizes)),) if draw(_NUMBERS[2]) else (Text(_text(draw)), Document(text=_text(draw, sizes)))
    images = [_image(draw, position) for position in range(draw(st.integers(1, 3)))]
    if kind < 21:
        return tuple(images)
    return (Text(_text(draw)), *images, Text(_text(draw)))


def _image(draw: st.DrawFn, position: int) -> Image:
    """An image that every converter sends as one: most by their addresses, a few by their bytes, or in their addresses."""
    drawn = draw(_NUMBERS[3 * 8])
    width, source = WIDTHS[drawn % 3], drawn // 3
    if source < 6:
        return Image(url=f"https://example.org/{position}.png", width=width, height=10)
    return Image(data=PICTURE, width=width, height=10) if source == 6 else Image(url=DATA_URL, width=width, height=10)


def _common(draw: st.DrawFn, draft: Draft) -> dict[str, object]:
    drawn = draw(_NUMBERS[40 * len(CATEGORIES)])
    given: dict[str, object] = {"id": draft.id(), "created_at": float(len(draft.items)), "pinned": drawn % 40 == 39}
    category = CATEGORIES[drawn // 40]
    if category is not None:
        given["category"] = category
    return given


def _respond(draw: st.DrawFn, draft: Draft) -> None:
    agent = draw(st.sampled_from((None, None, None, None, "b")))
    for block in draw(BLOCKS):
        common = {**_common(draw, draft), "agent_id": agent}
        if block in "rR":
            text = _text(draw) if block == "r" else ""
            draft.items.append(Reasoning(text, signature="s" * 40, **common))  # type: ignore[arg-type]
        elif block == "t":
            draft.items.append(Message("assistant", _parts(draw), **common))  # type: ignore[arg-type]
        else:
            candidates = [call.call_id for call in draft.calls]
            repeat = bool(candidates) and _rarely(draw, 16)
            call_id = draw(st.sampled_from(candidates)) if repeat else f"c{len(draft.items)}"
            text = _text(draw, CALL_SIZES)
            edits = "edits " * 12 if len(text) == 300 else "edits"  # a key longer than what stands for a value
            arguments = json.dumps({"path": "x", edits: [{"text": text}]}, ensure_ascii=False) if len(text) % 2 == 0 else text[:40]
            tool = TOOLS[len(draft.items) % len(TOOLS)]
            if tool == "read":
                part = {"offset": 1} if len(text) in (3, 40) else {}
                arguments = json.dumps({"path": "x" if len(text) > 3 else "y", **part})
            call = FunctionCall(tool, arguments, call_id, **common)  # type: ignore[arg-type]
            draft.items.append(call)
            draft.calls.append(call)
            draft.open_calls.append(call)


def _answer(draw: st.DrawFn, draft: Draft) -> None:
    """Answers all waiting calls, or some of them, in any order; now and then one that is answered already, or that nobody made."""
    if _rarely(draw, 12):
        call_id = "nobody" if _rarely(draw, 3) else draw(st.sampled_from([call.call_id for call in draft.calls]))
        draft.items.append(FunctionCallOutput("tool", _parts(draw, OUTPUT_SIZES), call_id, **_common(draw, draft)))  # type: ignore[arg-type]
        return
    count = draw(st.integers(1, len(draft.open_calls))) if _rarely(draw, 4) else len(draft.open_calls)
    for _ in range(count):
        at = draw(st.integers(0, len(draft.open_calls) - 1)) if draw(st.booleans()) else 0
        call = draft.open_calls.pop(at)
        failed = _rarely(draw, 6)
        draft.items.append(FunctionCallOutput(call.name, _parts(draw, OUTPUT_SIZES), call.call_id, is_error=failed, **_common(draw, draft)))  # type: ignore[arg-type]


def _step(draw: st.DrawFn, draft: Draft) -> None:
    kind = draw(STEPS)
    if kind == "respond" or (kind == "answer" and not draft.open_calls):
        _respond(draw, draft)
        return
    if kind == "answer" and draft.open_calls:
        _answer(draw, draft)
        return
    common = _common(draw, draft)
    item: Item
    if kind == "user":
        item = Message("user", _parts(draw), **common)  # type: ignore[arg-type]
    elif kind == "context":
        item = Message("user", _parts(draw), **{**common, "category": MessageCategory.CONTEXT, "pinned": _rarely(draw, 8)})  # type: ignore[arg-type]
    elif kind == "system":
        item = Message("system", _text(draw), agent_id=draw(st.sampled_from((None, None, "b"))), **common)  # type: ignore[arg-type]
    elif kind == "handoff":
        item = AgentHandoff("b", **common)  # type: ignore[arg-type]
    elif kind == "config":
        config = _text(draw) if draw(_NUMBERS[4]) else None
        item = AgentConfigUpdate(config, agent_id=draw(st.sampled_from((None, None, "b", "c"))), **common)  # type: ignore[arg-type]
    elif kind == "summary":
        item = Message("assistant", _text(draw), extra={"summary": True}, **common)  # type: ignore[arg-type]
    else:
        ids = [entry.id for entry in draft.items]
        first = draw(st.integers(0, len(ids)))
        replaced = [entry for entry in ids[:first] if draw(st.integers(0, 9))]
        text = _text(draw)
        is_native = text.strip() and _rarely(draw, 3)  # made by the provider
        extra = {"anthropic_blocks": [{"type": "compaction", "content": text}]} if is_native else {}
        item = Compaction(text, replaced, **{**common, "extra": extra})  # type: ignore[arg-type]
    draft.items.append(item)


def _attach(draw: st.DrawFn, draft: Draft) -> None:
    """What a user attaches to a question: files, then screenshots, and words."""
    for _ in range(draw(st.integers(0, 4))):
        pinned = _rarely(draw, 6)
        common = {**_common(draw, draft), "category": MessageCategory.CONTEXT, "pinned": pinned}
        draft.items.append(Message("user", _parts(draw, OUTPUT_SIZES), **common))  # type: ignore[arg-type]
    images = [_image(draw, position) for position in range(draw(st.integers(0, 5)))]
    draft.items.append(Message("user", (Text(_text(draw, OUTPUT_SIZES)), *images), **_common(draw, draft)))  # type: ignore[arg-type]


@st.composite
def sessions(draw: st.DrawFn, *, max_steps: int = 24, ends_in_attachments: bool = False) -> Session:
    """Logs of up to about 60 items, ill-formed ones among them.

    Args:
        draw: Hypothesis's.
        max_steps: Most of what follows the opening.
        ends_in_attachments: True if every log ends in files and a question with screenshots; a sixth does in any case.
    """
    draft = Draft([], [], [])
    for role in draw(st.sampled_from(OPENINGS)):
        content = _text(draw) if role == "system" else _parts(draw)
        draft.items.append(Message(role, content, id=draft.id(), created_at=float(len(draft.items))))
    for _ in range(draw(st.integers(0, max_steps))):
        _step(draw, draft)
    if draw(_NUMBERS[10]) > 3 and draft.open_calls:  # as most logs end when the model is called
        _answer(draw, draft)
    if ends_in_attachments or _rarely(draw, 6):
        _attach(draw, draft)
    session = Session(draft.items, id="s")
    breaks = [draft.items[position].id for position in draw(BREAKS) if position < len(draft.items)]
    session.restore_seams(frozenset(breaks), 0)
    return session


def without_compactions(log: Session) -> Session:
    """The log without what drops items by name, not by age."""
    kept = Session([item for item in log.items if not isinstance(item, Compaction)], id=log.id)
    kept.restore_seams(log.response_breaks, 0)
    return kept


@st.composite
def limits(draw: st.DrawFn, total: int) -> Limits:
    """Limits for a log with this number of tokens. Most of them are exceeded.

    Args:
        draw: Hypothesis's.
        total: Tokens of the log.
    """

    def percents(least: int, most: int) -> st.SearchStrategy[int]:
        return st.integers(least, most).map(lambda percent: total * percent // 100)

    budget = max(1, draw(st.one_of(percents(50, 100), percents(50, 100), percents(20, 130), st.integers(1, 60), percents(200, 100_000))))
    ratios = draw(st.sampled_from((100, 100, 100, 80, 50))), draw(st.sampled_from((65, 65, 100, 90, 100, 80, 65, 1)))
    trigger, target = max(ratios), min(ratios)
    shares = draw(SHARES)
    kept = draw(st.sampled_from((1, 1, 0, 2, 5)))
    items = draw(st.sampled_from((None, None, None, 1, 5, 12, 30)))
    return Limits(
        budget=budget,
        trigger=budget * trigger // 100,
        target=budget * target // 100,
        shares=shares,
        images_kept=kept,
        images_max=kept + draw(st.sampled_from((0, 0, 1, 3))),
        items_max=items,
        items_target=0 if items is None else max(1, items * target // 100),
        overhead=draw(st.sampled_from((0, 0, 7))),
        preamble=draw(st.sampled_from((0, 20))),
        synthetic=draw(st.sampled_from((0, 15))),
        closing=draw(st.sampled_from((0, 12))),
        note=draw(st.sampled_from((0, 30))),
        usage_note=draw(st.sampled_from((0, 0, 25))),
        digest=4 + len(HEAD),
        usage_noted_from=budget * percent // 100 if (percent := draw(st.sampled_from((0, 0, 50, 80, 80, 95)))) else BOUNDLESS,
        note_removed=draw(st.booleans()),
        binds_thinking=draw(st.integers(0, 3)) == 0,
        keep_first_message=draw(st.integers(0, 3)) == 3,
        clamp_messages=draw(st.integers(0, 3)) < 3,
        clear_call_inputs=draw(st.integers(0, 3)) < 3,
        tool_rules=draw(TOOL_RULES),
        clear_superseded=draw(st.integers(0, 3)) == 3,
        newest_first=False,
    )


@st.composite
def chosen_limits(draw: st.DrawFn, total: int) -> Limits:
    """The same, and in some of them the window is chosen by prices. A pause of the lifetime is a few items long, or is never reached."""
    kept, rewrite, lifetime = draw(st.integers(1, 40)), draw(st.sampled_from((0, 300, 1_150))), draw(st.sampled_from((2.0, 6.0, 1e9)))
    auto = AutoWindow(max(1, total * kept // 100), rewrite, lifetime)
    return replace(draw(limits(total)), auto=draw(st.sampled_from((None, auto, auto))))


@st.composite
def reported(draw: st.DrawFn, log: Session) -> Session:
    """The log with what a provider reported of its requests: more or less than the local count, or of something else altogether."""
    hidden, factor = draw(st.sampled_from((0, 0, 30, 500))), draw(st.sampled_from((100, 100, 80, 130, 300)))
    local, items = 0, []
    models = draw(st.sampled_from(((None,), (None,), ("a",), ("a", "a", "a", "b"))))
    for position, item in enumerate(log.items):
        starts = is_answer(item) and (position == 0 or not is_answer(log.items[position - 1]) or item.id in log.response_breaks)
        if starts and not _rarely(draw, 6):
            odd = draw(st.sampled_from((0, 0, 0, 0, 0, 0, -100, -60, 200))) if _rarely(draw, 4) else 0
            tokens = max(0, (hidden + local * factor // 100) * (100 + odd) // 100 + draw(st.integers(-3, 3)))
            model = draw(st.sampled_from(models))
            usage = Usage(tokens // 3, tokens - tokens // 3, 0, draw(st.sampled_from((0, 10, 60, 400))))
            extra = item.extra if model is None else {**item.extra, "model": model}
            if _rarely(draw, 4):  # the sent request was counted: as this view, or another one
                request = max(0, local * draw(st.sampled_from((100, 60))) // 100)
                extra = {**extra, "counted": {"tokens": request, "by": draw(st.sampled_from(("", "", "another")))}}
            item = replace(item, usage=usage, extra=extra)  # noqa: PLW2901 - the item that is appended
        local += cost(item)
        items.append(item)
    twin = Session(items, id=log.id)
    if items and _rarely(draw, 6):  # it begins with a saved view, which states its own cost
        settled = draw(st.integers(1, len(items)))
        said = hidden + sum(map(cost, items[:settled])) * factor // 100
        twin.restore_seams(log.response_breaks, settled, said)
    else:
        twin.restore_seams(log.response_breaks, log.settled)
    return twin
