"""Of every log, valid messages for Anthropic; of every longer log, messages that extend the shorter one's."""

from hypothesis import event, given

from session import AgentConfigUpdate, AgentHandoff, FunctionCall, Message, Session
from session.items import Item
from session.providers.additions import PREAMBLE
from session.providers.anthropic import to_anthropic
from session.units import KIND_ORPHAN, Grouping, grouping
from tests.support.any_logs import answers, logs, marked, outputs_due


def is_blank(item: Item) -> bool:
    """Whether it is a user message without anything to say."""
    return isinstance(item, Message) and item.role == "user" and not any(map(says_something, item.content))


def says_something(part: object) -> bool:
    text = getattr(part, "text", None)  # images have none, nor have documents that are no plain text
    return text is None or bool(text.strip())


def is_system(item: Item) -> bool:
    return isinstance(item, Message) and item.role in ("system", "developer")


@given(logs())
def test_every_call_has_the_result_that_is_its_own(session: Session) -> None:
    """The pairing on the wire is that of `session.units`, and of a plain search; calls without an output are interrupted."""
    session = marked(session)
    paired, expected = answers(session), outputs_due(session)
    blocks = [block for message in to_anthropic(session).messages for block in message["content"]]
    assert [block["content"][0]["text"] for block in blocks if block["type"] == "tool_result"] == expected
    assert len({block["id"] for block in blocks if block["type"] == "tool_use"}) == len(expected)

    groups = Grouping()
    for index, item in enumerate(session.items):
        groups.feed(item, item.id in session.response_breaks)
        if index in paired.values():
            assert paired[groups.last_answered] == index
    assert sum(groups.answered) == len(paired)


@given(logs())
def test_the_preamble_is_there_exactly_when_planners_reserve_it(session: Session) -> None:
    """`PREAMBLE` stands at the head when the first item that becomes a message is no user message."""
    content = [item for item in session.items if not isinstance(item, AgentConfigUpdate) and not is_system(item)]
    groups = grouping(session)
    content = [item for item in content if groups.kind[session.position(item.id) or 0] != KIND_ORPHAN and not is_blank(item)]
    due = bool(content) and not (isinstance(content[0], AgentHandoff) or (isinstance(content[0], Message) and content[0].role == "user"))
    messages = to_anthropic(session).messages
    event(f"preamble: {due}")
    assert (bool(messages) and messages[0]["content"][0].get("text") == PREAMBLE) == due


@given(logs())
def test_everything_said_is_sent_in_order(session: Session) -> None:
    """Every text of a user or an assistant is on the wire, in the order of the log, but for blank ones; and nothing else is but
    what converters add."""
    session = marked(session)
    blocks = [block for message in to_anthropic(session).messages for block in message["content"]]
    content = [block["text"] for block in blocks if block["type"] == "text" and block["text"].startswith("text ")]
    assert content == [item.text for item in session.items if isinstance(item, Message) and item.role in ("user", "assistant")]
    assert sum(block["type"] == "tool_use" for block in blocks) == sum(isinstance(item, FunctionCall) for item in session.items)
