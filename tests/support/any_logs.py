"""Logs of any items in any order, and the plain truth about them: which output answers which call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from session import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    Document,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Message,
    MessageCategory,
    Reasoning,
    Session,
)
from session.items import Item
from session.providers.additions import INTERRUPTED

TEXTS = st.sampled_from(["", " ", "\n\t", "hi", "hi \n", " hi", "§ \u2003", "[Conversation Summary] x"])
CALL_IDS = st.sampled_from(["a", "a", "b", "a_2", "c.d", "c_d", ""])
PARTS = st.one_of(
    TEXTS,
    st.builds(
        Image,
        st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"?", b""]),
        media_type=st.sampled_from([None, "image/png", "image/bmp"]),
        width=st.just(2),
    ),
    st.sampled_from(
        [Image(url="https://example.org/a"), Image(file_id="f"), Image(path="/no/such/file"), Document(text=" "), Document(text="d")]
    ),
)
CONTENTS = st.lists(PARTS, max_size=3)
MORE: dict[str, Any] = {
    "agent_id": st.sampled_from([None, None, None, "x"]),
}
ANY_CATEGORY = st.sampled_from([None] * 12 + list(MessageCategory))


def one_of(kind: Callable[..., Item], *arguments: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]) -> st.SearchStrategy[Item]:
    def built(values: tuple[Any, ...], more: dict[str, Any], category: MessageCategory | None) -> Item:
        return kind(*values, **more, **({} if category is None else {"category": category}))

    return st.builds(built, st.tuples(*arguments), st.fixed_dictionaries({**MORE, **named}), ANY_CATEGORY)


MESSAGES = one_of(Message, st.sampled_from(["user", "user", "assistant", "assistant", "system", "developer"]), CONTENTS)
SUMMARIES = one_of(Message, st.just("assistant"), TEXTS, extra=st.just({"summary": True}))
THOUGHTS = one_of(Reasoning, st.sampled_from(["", "hm "]), st.sampled_from([None, "", "s", "s"]), st.sampled_from([None, None, None, "x"]))
CALLS = one_of(FunctionCall, st.sampled_from(["run", "", "fs.read"]), st.sampled_from(["", "{}", '{"a": 1}', "[", '{"a": NaN}']), CALL_IDS)
OUTPUTS = one_of(FunctionCallOutput, st.just("run"), CONTENTS, CALL_IDS, is_error=st.booleans())
OTHERS = (
    one_of(AgentHandoff, st.just("x"))
    | one_of(AgentConfigUpdate, st.sampled_from(["Be x.", "Be x.", " ", None]))
    | one_of(Compaction, TEXTS)
)
ITEMS = st.one_of(MESSAGES, MESSAGES, THOUGHTS, CALLS, CALLS, OUTPUTS, OUTPUTS, SUMMARIES, OTHERS)


@st.composite
def logs(draw: st.DrawFn) -> Session:
    """A log of any items in any order. It makes no sense, but many of its calls are answered."""
    least = draw(st.sampled_from([0, 0, 5, 15, 25]))  # left to itself, Hypothesis makes short ones
    items = draw(st.lists(ITEMS, min_size=least, max_size=30))
    # What views know and logs do not: answers that stand apart although nothing stands between them.
    breaks = draw(st.sets(st.sampled_from([item.id for item in items]), max_size=3)) if items else set()
    session = Session(items)
    session.restore_seams(frozenset(breaks), 0)
    return session


def is_new_prompt(item: Item) -> bool:
    """True if the item is a config update with instructions."""
    return isinstance(item, AgentConfigUpdate) and item.instructions is not None


def cut(session: Session, end: int) -> Session:
    return Session.showing(session, list(session.items[:end]), breaks=session.response_breaks, settled=0)


def answers(session: Session) -> dict[int, int]:
    """By position of a call, that of its output: the last unanswered call before it with its id, looked for from the end."""
    result: dict[int, int] = {}
    for position, item in enumerate(session.items):
        if isinstance(item, FunctionCallOutput):
            for before in range(position - 1, -1, -1):
                call = session.items[before]
                if isinstance(call, FunctionCall) and call.call_id == item.call_id and before not in result:
                    result[before] = position
                    break
    return result


def marked(session: Session) -> Session:
    """Return a view of the session in which every message and every output says its own position."""
    items = [
        FunctionCallOutput(item.name, f"output {position}", item.call_id, id=item.id)
        if isinstance(item, FunctionCallOutput)
        else Message(item.role, f"text {position}", id=item.id, agent_id=item.agent_id, extra=item.extra, category=item.category)
        if isinstance(item, Message)
        else item
        for position, item in enumerate(session.items)
    ]
    return Session.showing(session, items, breaks=session.response_breaks, settled=0)


def outputs_due(session: Session) -> list[str]:
    """Return what each call of such a view has as its output on the wire."""
    paired = answers(session)
    calls = [position for position, item in enumerate(session.items) if isinstance(item, FunctionCall)]
    return [f"output {paired[position]}" if position in paired else INTERRUPTED for position in calls]
