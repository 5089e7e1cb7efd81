"""Of every log, valid messages for Anthropic; of every longer log, messages that extend the shorter one's."""

import json
from collections.abc import Callable
from typing import Any, cast

from hypothesis import event, given
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
    Text,
)
from session.items import Item
from session.providers import validate_anthropic
from session.providers.additions import INTERRUPTED, PREAMBLE
from session.providers.anthropic import to_anthropic
from session.units import KIND_ORPHAN, Grouping, grouping, request_points

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
OTHERS = one_of(AgentHandoff, st.just("x")) | one_of(AgentConfigUpdate, st.just("Be x.")) | one_of(Compaction, TEXTS)
ITEMS = st.one_of(MESSAGES, MESSAGES, THOUGHTS, CALLS, CALLS, OUTPUTS, OUTPUTS, SUMMARIES, OTHERS)


@st.composite
def logs(draw: st.DrawFn) -> Session:
    """A log of any items in any order: as good as no sense in it, but for calls that are often answered."""
    least = draw(st.sampled_from([0, 0, 5, 15, 25]))  # left to itself, Hypothesis makes short ones
    items = draw(st.lists(ITEMS, min_size=least, max_size=30))
    # What views know and logs do not: answers that stand apart although nothing stands between them.
    breaks = draw(st.sets(st.sampled_from([item.id for item in items]), max_size=3)) if items else set()
    session = Session(items)
    session.restore_seams(frozenset(breaks), 0)
    return session


def cut(session: Session, end: int) -> Session:
    return Session.showing(session, list(session.items[:end]), breaks=session.response_breaks, settled=0)


def is_blank(item: Item) -> bool:
    """Whether it is a user message without anything to say."""
    return isinstance(item, Message) and item.role == "user" and not any(map(says_something, item.content))


def says_something(part: object) -> bool:
    return not isinstance(part, Text) or bool(part.text.strip())


def is_system(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer")


def answers(session: Session) -> dict[int, int]:
    """By position of a call, that of its output: the last unanswered call before it with its id, looked for from the end."""
    found: dict[int, int] = {}
    for place, item in enumerate(session.items):
        if isinstance(item, FunctionCallOutput):
            for before in range(place - 1, -1, -1):
                call = session.items[before]
                if isinstance(call, FunctionCall) and call.call_id == item.call_id and before not in found:
                    found[before] = place
                    break
    return found


@given(logs())
def test_anthropic_valid(session: Session) -> None:
    """Every log cut at a request point, and the whole of it, passes the rules of VALIDITY.md; the log is not touched."""
    before = json.dumps(session.to_dict())
    for end in {*request_points(session), len(session.items)}:
        for caching in (False, True):
            sent = to_anthropic(cut(session, end), caching=caching)
            assert validate_anthropic(sent) == []
            json.dumps(sent, allow_nan=False).encode()
    assert json.dumps(session.to_dict()) == before


@given(logs())
def test_every_call_has_the_result_that_is_its_own(session: Session) -> None:
    """The pairing on the wire is that of `session.units`, and of a plain search; what has no output is interrupted."""
    items = [
        FunctionCallOutput(item.name, f"output {place}", item.call_id, id=item.id) if isinstance(item, FunctionCallOutput) else item
        for place, item in enumerate(session.items)
    ]
    session = Session.showing(session, items, breaks=session.response_breaks, settled=0)
    paired = answers(session)
    expected = [
        f"output {paired[place]}" if place in paired else INTERRUPTED for place, item in enumerate(items) if isinstance(item, FunctionCall)
    ]
    blocks = [block for message in to_anthropic(session).messages for block in message["content"]]
    assert [block["content"][0]["text"] for block in blocks if block["type"] == "tool_result"] == expected
    assert len({block["id"] for block in blocks if block["type"] == "tool_use"}) == len(expected)

    groups = Grouping()
    for place, item in enumerate(items):
        groups.feed(item, item.id in session.response_breaks)
        if place in paired.values():
            assert paired[groups.last_answered] == place
    assert sum(groups.answered) == len(paired)


@given(logs())
def test_the_preamble_is_there_exactly_when_planners_reserve_it(session: Session) -> None:
    """`PREAMBLE` stands at the head when the first item that becomes a message is no user message."""
    said = [item for item in session.items if not isinstance(item, AgentHandoff | AgentConfigUpdate) and not is_system(item)]
    groups = grouping(session)
    said = [item for item in said if groups.kind[session.position(item.id) or 0] != KIND_ORPHAN and not is_blank(item)]
    due = bool(said) and not (isinstance(said[0], Message) and said[0].role == "user")
    messages = to_anthropic(session).messages
    event(f"preamble: {due}")
    assert (bool(messages) and messages[0]["content"][0].get("text") == PREAMBLE) == due


@given(logs())
def test_a_longer_log_extends_the_messages_of_a_shorter_one(session: Session) -> None:
    """Between edits each request's messages extend the previous one's. A late answer is an edit."""
    items = cast(list[Item], list(session.items))
    session = Session.showing(session, items, breaks=session.response_breaks, settled=0)
    points = request_points(session)
    late = [call for call, place in answers(session).items() if any(call < point < place for point in points if point < len(items))]
    event(f"late answers: {bool(late)}")
    previous: list[Any] = []
    for end in points:
        sent = [(message["role"], block) for message in to_anthropic(cut(session, end)).messages for block in message["content"]]
        if not late:
            assert sent[: len(previous)] == previous
        previous = sent


@given(logs())
def test_everything_said_is_sent_in_order(session: Session) -> None:
    """Every text of a user or an assistant is on the wire, in the order of the log, but for blank ones; and nothing else is but
    what converters add."""
    marked = [
        Message(item.role, f"text {place}", id=item.id, agent_id=item.agent_id, extra=item.extra, category=item.category)
        if isinstance(item, Message)
        else item
        for place, item in enumerate(session.items)
    ]
    session = Session.showing(session, marked, breaks=session.response_breaks, settled=0)
    blocks = [block for message in to_anthropic(session).messages for block in message["content"]]
    said = [block["text"] for block in blocks if block["type"] == "text" and block["text"].startswith("text ")]
    assert said == [item.text for item in marked if isinstance(item, Message) and item.role in ("user", "assistant")]
    assert sum(block["type"] == "tool_use" for block in blocks) == sum(isinstance(item, FunctionCall) for item in marked)
