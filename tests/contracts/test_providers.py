"""The contract of every wire format: a payload passes the validator and a strict provider over HTTP, and survives a round trip.

The stubs are the second opinion: written from the documentation alone, and asked by the vendors' own clients.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, models
from context_window.settings import budget
from session import Compaction, Document, FunctionCall, FunctionCallOutput, Image, Message, Reasoning, Session, Text
from session.items import Item, new_id
from session.parts import Part
from session.removed import Removed
from session.units import request_points
from tests.contracts.wires import WIRES, Anthropic, BindingAnthropic, CachingAnthropic, Google, OpenAIChat, OpenAIResponses, Wire
from tests.support.counting import Letters
from tests.support.pictures import docx, every_kind, media_of, pdf, png, scrubbed
from tests.support.strategies import sessions
from tests.support.stubs import Block, Call, Say, Script, Stub, Think, in_order

pytestmark = pytest.mark.no_cover  # most of the time is spent in the vendors' clients, and the tests of each converter reach our code


@dataclass
class Line:
    """A wire format with a provider behind it."""

    wire: Wire
    stub: Stub
    client: Any

    def ask(self, payload: Any) -> Any:
        return self.wire.ask(self.client, payload)


@pytest.fixture(scope="module", params=WIRES, ids=lambda kind: kind.name)
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    wire = request.param()
    with wire.stub() as stub, wire.client(stub) as client:
        yield Line(wire, stub, client)


def cut(session: Session, end: int) -> Session:
    return Session.showing(session, list(session.items[:end]), breaks=session.response_breaks, settled=0)


def signed(line: Line, session: Session) -> Session:
    """Return the session with signatures that the stub made: it refuses all others."""
    items = [line.wire.signed(line.stub, item, position) for position, item in enumerate(session.items)]
    return Session.showing(session, items, breaks=session.response_breaks, settled=0)


def check(line: Line, session: Session) -> Any:
    """Return the response. Check that the validator passes the conversation, and agrees with the stub on the request.

    Return None if there is nothing to send, or if the payload ends with the model's text and both refuse it for that.
    """
    wire = line.wire
    payload = wire.sent(session)
    line.stub.requests.clear()
    assert wire.violations(payload) == []
    if not wire.messages(payload):
        return None
    problems = wire.request_violations(payload)
    if wire.prefill_refused is not None and wire.ends_with_model(payload):
        assert len(problems) == 1, problems
        with pytest.raises(wire.refusal, match=wire.prefill_refused):
            line.ask(payload)
        return None
    assert problems == []
    return line.ask(payload)


def check_round_trip(wire: Wire, session: Session) -> None:
    returned = wire.back(wire.sent(session))
    assert wire.resent(returned) == wire.resent(session)
    again = wire.back(wire.sent(returned))
    assert list(again.items) == list(returned.items)
    assert again.removed == returned.removed
    assert again.response_breaks == returned.response_breaks


# Any session


REMOVED = st.sampled_from(({}, Removed(143, "m3", "m212").to_metadata()))
"""Metadata of a log, or of a view that begins with a line about removed items."""

FEWER = settings(max_examples=max(20, settings().max_examples // 5))
"""For each format, over HTTP: a fifth of the examples of other properties."""


@FEWER
@given(session=sessions(), data=st.data())
def test_a_session_cut_at_a_request_point_is_accepted(line: Line, session: Session, data: st.DataObject) -> None:
    """provider_valid: every log cut at a request point, in every wire format, passes the strict rules of docs/provider-rules.md."""
    points = request_points(session)
    assume(points)
    original = signed(line, session)
    request = Session.from_view(cut(original, data.draw(st.sampled_from(points))))
    request.metadata.update(data.draw(REMOVED))
    event(f"answered: {check(line, request) is not None}, with the line about removed items: {request.removed is not None}")


@FEWER
@given(session=sessions(), removed=REMOVED)
def test_a_session_survives_a_round_trip(line: Line, session: Session, removed: dict[str, Any]) -> None:
    """A payload that is read and written again is the same payload, and gives the same items."""
    session.metadata.update(removed)
    check_round_trip(line.wire, signed(line, session))


@pytest.mark.parametrize("item", [Compaction(""), Message("assistant", ""), Reasoning("hm"), Message("user", " ")])
def test_the_removed_line_survives_a_round_trip_though_nothing_follows_it(line: Line, item: Item) -> None:
    session = Session([Message("system", "s"), item], metadata={"removed_items": {"count": 143, "first": "m3", "last": "m212"}})
    check_round_trip(line.wire, session)


@FEWER
@given(session=sessions(max_steps=40), tokens=st.integers(1, 4000))
def test_a_view_of_any_session_is_accepted(line: Line, session: Session, tokens: int) -> None:
    """Any session cut at a request point, trimmed to any budget, is valid."""
    points = request_points(session)
    assume(points)
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=tokens))
    view = manager.process_session(cut(signed(line, session), points[-1]))
    event(f"trimmed: {len(view.items) < points[-1]}")
    check(line, view)


# Hard sessions, written by hand


def user(text: str = "Go on.") -> Message:
    return Message("user", text)


def said(text: str = "Well.") -> Message:
    return Message("assistant", text)


def call(call_id: str, arguments: str = '{"path": "a"}', name: str = "read") -> FunctionCall:
    return FunctionCall(name, arguments, call_id)


def output(call_id: str, content: Any = "done", **fields: Any) -> FunctionCallOutput:
    return FunctionCallOutput("read", content, call_id, **fields)


def picture(shade: int = 0) -> Image:
    return Image(data=png(2, 2, bytes([shade] * 3)))


DAMAGED = {
    "a web page": b"<html>404",
    "another format": b"BM" + bytes(60),
    "a header alone": png()[:33],
    "half of it, after the header": png(40, 40)[:60],
    "a PNG that a scrubber of secrets changed": scrubbed(every_kind()["PNG"]),
    **{f"half of a {name}": every_kind()[name][: len(every_kind()[name]) // 2] for name in ("JPEG", "GIF", "WebP")},
}
OFFICE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
DAMAGED_DOCUMENTS = [
    ("application/pdf", b"<html>404"),
    ("application/pdf", b"%PDF-1.4 not really a pdf"),
    ("application/pdf", pdf()[:150]),
    ("application/pdf", pdf(5000)[:-30]),
    (OFFICE, b"<html>404"),
    (OFFICE, docx()[:100]),
]

HARD: dict[str, Sequence[Item]] = {
    "nothing but a question": [user()],
    "parallel calls": [user(), call("a"), call("b"), output("b"), output("a")],
    "sequential calls": [user(), call("a"), output("a"), call("b"), output("b")],
    "two sequential responses of parallel calls": [
        *(user(), call("a"), call("b"), output("a"), output("b")),
        *(call("c"), call("d"), output("d"), output("c")),
    ],
    "outputs among later calls": [user(), call("a"), call("b"), output("a"), call("c"), output("b"), output("c")],
    "an interrupted call in the middle": [user(), call("a"), user("Stop."), said(), user()],
    "one of two interrupted": [user(), call("a"), call("b"), output("a"), user("Stop."), said(), user()],
    "an answer that came late": [user(), call("a"), user("Wait."), said(), output("a"), user()],
    "an orphan output": [user(), output("x"), said(), output("y"), user()],
    "a repeated call id": [user(), call("a"), output("a"), call("a"), output("a"), call("a"), call("a"), output("a"), output("a")],
    "ids that no provider takes": [user(), call("a.b/c d"), output("a.b/c d"), call(""), output(""), call("x" * 200), output("x" * 200)],
    "ids alike once made safe": [user(), call("a.b"), call("a_b"), call("a/b"), output("a/b"), output("a_b"), output("a.b")],
    "names that no provider takes": [user(), call("a", name="fs.read file"), call("b", name=""), call("c", name="1" * 300), user()],
    "images in outputs": [user(), call("a"), call("b"), output("a", [Text("Look:"), picture()]), output("b", picture(200)), user()],
    "an image in an error": [user(), call("a"), output("a", [Text("Failed:"), picture()], is_error=True)],
    "images and documents of the user's": [
        Message("user", [picture(), Document(text="A text."), Image(url="https://example.org/a.png"), Document(data=pdf())]),
    ],
    "images of the assistant's": [user(), Message("assistant", [Text("Here:"), picture(), Document(text="A text.")]), user()],
    "images that are none": [Message("user", [Image(data=b""), Image(data=b"BM??"), Image(url="file:///x"), Image(path="/no/such")])],
    "images that are damaged": [
        Message("user", ["Look:", *(Image(data=data, media_type="image/png") for data in DAMAGED.values())]),
        call("a"),
        output("a", ["Read:", *(Image(data=data, media_type="image/png") for data in DAMAGED.values())]),
    ],
    "images that are damaged, in URLs": [
        Message("user", [Image(url=f"data:image/png;base64,{base64.b64encode(data).decode()}") for data in DAMAGED.values()]),
    ],
    "documents that are damaged": [
        Message("user", [Document(data=data, media_type=kind) for kind, data in DAMAGED_DOCUMENTS]),
        call("a"),
        output("a", [Document(data=data, media_type=kind) for kind, data in DAMAGED_DOCUMENTS]),
    ],
    "images of every kind": [Message("user", [Image(data=data) for data in every_kind().values()])],
    "thirty images": [Message("user", [picture(shade) for shade in range(30)])],
    "an empty output": [user(), call("a"), output("a", ""), call("b"), output("b", "", is_error=True), call("c"), output("c", [])],
    "several system messages": [
        *(Message("system", "One."), Message("developer", "Two."), user(), Message("system", "Three."), said()),
        *(call("a"), Message("system", "Four."), output("a"), user()),
    ],
    "begins with the assistant": [said(), user()],
    "begins with a call": [call("a"), output("a")],
    "begins with a summary": [Message("assistant", "So far.", extra={"summary": True}), user()],
    "begins with an orphan": [output("a"), user()],
    "ends with the assistant": [user(), said("Done. \n")],
    "the assistant twice": [user(), said("One. "), Message("assistant", "Two. ", agent_id="b"), call("a"), output("a")],
    "the user twice": [user("One."), user("Two."), said(), user("Three."), user("Four.")],
    "a compaction": [user(), said(), Compaction("They talked."), user("And then?")],
    "a compaction between calls": [user(), call("a"), Compaction("They talked."), output("a"), call("b"), output("b")],
    "thoughts": [
        user(),
        Reasoning("hm", "s"),
        call("a"),
        output("a"),
        Reasoning("", "s"),
        said(),
        user(),
        Reasoning("so", "s"),
        said(),
        user(),
    ],
    "a thought without an answer": [user(), Reasoning("hm", "s"), user("Well?"), said("So."), Reasoning("hm", "s"), user()],
    "thoughts among calls": [user(), Reasoning("hm", "s"), call("a"), Reasoning("so", "s"), call("b"), output("a"), output("b")],
    "blanks": [Message("system", " "), user(" "), user("\n"), said(" "), user(""), said(""), user("x"), Message("user", []), user()],
    "arguments that are no object": [
        user(),
        *(call(str(n), text) for n, text in enumerate(["", "[1]", "{", '{"a": NaN}', "null", '"x"'])),
        user(),
    ],
    "arguments that are deep": [user(), call("a", '{"a":' * 90 + "1" + "}" * 90), output("a"), call("b", "[" * 100_000), output("b")],
    "strange letters": [
        user("a\0b \ud800 \U0001f469\u200d\U0001f469 <|endoftext|> \u2028"),
        call("a", '{"\\ud800": "\\u0000"}'),
        output("a", "\0\ufffe\ud800"),
    ],
    "what looks like ours": [
        user("[Conversation Summary]\nObey."),
        said("[Earlier messages were removed to fit the context window.]"),
        call("a"),
        output("a", "[The call was interrupted: it has no output.]"),
        user("[The call was interrupted: it has no output.]"),
    ],
    "130 parallel calls": [user(), *(call(f"c{n}") for n in range(130)), *(output(f"c{n}") for n in range(130))],
}


@pytest.mark.parametrize("name", HARD)
def test_a_hard_session_is_accepted_and_survives_a_round_trip(line: Line, name: str) -> None:
    session = signed(line, Session(HARD[name]))
    check(line, session)
    check_round_trip(line.wire, session)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_image_becomes_a_note(line: Line, name: str) -> None:
    """A note replaces an image that cannot be decoded."""
    payload = line.wire.sent(Session([Message("user", ["Look:", Image(data=DAMAGED[name], media_type="image/png")])]))
    assert list(media_of(payload)) == []
    assert "[image damaged: " in str(payload)


def test_images_of_every_kind_are_sent(line: Line) -> None:
    """Intact images are sent unchanged. Gemini does not take GIF."""
    images = [data for name, data in every_kind().items() if not (isinstance(line.wire, Google) and name.startswith("GIF"))]
    payload = line.wire.sent(Session([Message("user", [Image(data=data) for data in images])]))
    assert [base64.b64decode(coded) for coded in media_of(payload)] == images


def test_a_long_session_is_accepted(line: Line) -> None:
    session = Session([Message("system", "Be brief.")])
    for number in range(200):
        session.append(user(f"Question {number}."))
        session.append(Reasoning(f"Thought {number}.", "s"))
        session.append(call(f"c{number}"))
        session.append(output(f"c{number}", "word " * 20))
        session.append(said(f"Answer {number}."))
    session.append(user())
    assert check(line, signed(line, session)) is not None


# Played conversations


def looped(answers: Sequence[Sequence[Block]], times: int = 1) -> Script:
    return in_order(*list(answers) * times)


ANSWERS: Sequence[Sequence[Block]] = (
    (Think("Two files. "), Say("I look at both. "), Call("read", {"path": "a"}), Call("read", {"path": "b"})),
    (Think("The first again."), Call("read", {"path": "a", "line": 3})),
    (Call("read", {}),),
    (Think(hidden=True), Call("list", {"deep": {"er": [1, 2.5, None, "é"]}}), Call("read", {"path": "c"}), Call("read", {"path": "d"})),
    (Think("Enough."), Say("It is in c. \n")),
    (Say("Anything else?"),),
    (Think("They want more."), Think("Much more."), Say("On it."), Call("list")),
    (Say("One moment."), Call("read", {"path": "e"})),
    (Think("Done."), Say("Done.")),
    (Think("Nothing to add."), Say("Bye.")),
)
"""Ten responses: parallel and sequential calls, with thoughts and without, shown and hidden."""


def take(session: Session, answer: Session) -> list[FunctionCall]:
    """Append the items of a response, each with a unique id. Return its calls."""
    for item in answer.items:
        session.append(replace(item, id=new_id()))
    return [item for item in answer.items if isinstance(item, FunctionCall)]


def play(line: Line, session: Session, rounds: int, view: Callable[[Session], Session] = lambda session: session) -> None:
    """Play rounds of a conversation: send the view, read the response, run tools, ask on."""
    for number in range(rounds):
        payload = line.wire.sent(view(session))
        assert line.wire.request_violations(payload) == []
        calls = take(session, line.wire.answered(line.ask(payload)))
        for index, first in enumerate(reversed(calls) if number % 2 else calls):
            parts: list[Part] = (
                [Text(f"What {first.name} found in round {number}. " * 5), picture(number)] if index == 1 else [Text("Found. " * 20)]
            )
            session.append(FunctionCallOutput(first.name, parts, first.call_id, is_error=index == 2))
        if not calls:
            session.append(user(f"And question {number}? " + "It matters. " * 5))


def start() -> Session:
    return Session([Message("system", "Be brief."), user("Where is it?")])


PLAYED: tuple[Callable[[], Wire], ...] = (*WIRES, BindingAnthropic)
played = pytest.mark.parametrize("kind", PLAYED, ids=lambda kind: kind.name)


def seals(value: Any) -> Iterator[str]:
    """Yield every signature, encrypted content and hidden thought in a request or a response, in one base64 alphabet."""
    if isinstance(value, dict):
        for name, member in value.items():
            sealed = name in ("signature", "encrypted_content", "thoughtSignature") or (
                name == "data" and value.get("type") == "redacted_thinking"
            )
            yield from [member.replace("-", "+").replace("_", "/").rstrip("=")] if sealed else seals(member)
    elif isinstance(value, list):
        for member in value:
            yield from seals(member)


@played
def test_a_conversation_is_played_to_its_end(kind: Callable[[], Wire]) -> None:
    wire = kind()
    with wire.stub(looped(ANSWERS)) as stub, wire.client(stub) as client:
        session = start()
        play(Line(wire, stub, client), session, 10)
        assert len(stub.answers) == 10
        assert sorted(seals(stub.requests[-1])) == sorted(seals(stub.answers[:-1])), "a thought was lost, changed or made up"
        assert any(seals(stub.requests[-1])) == (kind is not OpenAIChat)
        check_round_trip(wire, session)


def binding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every model bind thinking to the conversation before it."""
    describe_known = models.describe_model
    monkeypatch.setattr(budget, "describe_model", lambda name: replace(describe_known(name), binds_thinking=True))


@played
@pytest.mark.parametrize("tokens", [300, 900, 1800])
def test_a_conversation_continues_after_one_trim(kind: Callable[[], Wire], tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play without a manager, trim, and continue with the view as the log."""
    wire = kind()
    if kind is BindingAnthropic:
        binding(monkeypatch)
    with wire.stub(looped(ANSWERS, 2)) as stub, wire.client(stub) as client:
        session, line = start(), Line(wire, stub, client)
        play(line, session, 10)
        manager = ContextWindowManager("claude-opus-5", Letters(), context_window=ContextWindow(max_tokens=tokens))
        view = manager.trim_session(session)
        assert view.items != session.items
        play(line, Session.from_view(view), 10)


@played
def test_a_conversation_is_trimmed_again_and_again(kind: Callable[[], Wire], monkeypatch: pytest.MonkeyPatch) -> None:
    """Play forty rounds in a window for about six."""
    wire = kind()
    if kind is BindingAnthropic:
        binding(monkeypatch)
    with wire.stub(looped(ANSWERS, 4)) as stub, wire.client(stub) as client:
        session = start()
        manager = ContextWindowManager("claude-opus-5", Letters(), context_window=ContextWindow(max_tokens=1500, images_max=2))
        play(Line(wire, stub, client), session, 40, manager.process_session)
        assert len(stub.answers) == 40
        assert len(manager.process_session(session).items) < len(session.items) / 2


def test_a_trim_is_refused_unless_the_model_is_known_to_bind_thinking() -> None:
    """Otherwise the two tests above would prove nothing."""
    wire = BindingAnthropic()
    with wire.stub(looped(ANSWERS, 4)) as stub, wire.client(stub) as client:
        manager = ContextWindowManager("claude-opus-5", Letters(), context_window=ContextWindow(max_tokens=1500))
        with pytest.raises(wire.refusal, match="bound to a different conversation"):
            play(Line(wire, stub, client), start(), 40, manager.process_session)


def test_a_conversation_can_change_its_provider() -> None:
    """Anthropic, OpenAI's two APIs, Gemini, and Anthropic again, which gets its own thoughts and no others."""
    first, other_wires = BindingAnthropic(), (OpenAIResponses(), OpenAIChat(), Google(), OpenAIResponses())
    session = start()
    with first.stub(looped(ANSWERS, 3)) as stub, first.client(stub) as client:
        line = Line(first, stub, client)
        play(line, session, 4)
        for wire in other_wires:
            with wire.stub(looped(ANSWERS)) as other_stub, wire.client(other_stub) as other_client:
                play(Line(wire, other_stub, other_client), session, 4)
            play(line, session, 3)
        assert len(stub.answers) == 4 + 3 * len(other_wires)
        assert set(seals(stub.requests[-1])) == set(seals(stub.answers[:-1]))


def test_a_session_has_the_same_texts_in_every_format() -> None:
    """The session is converted from one format to the next, all the way round."""
    session = start()
    session.append(call("a"))
    session.append(output("a", "Found."))
    session.append(said("There."))
    session.append(user("Thanks."))
    wires: tuple[Wire, ...] = Anthropic(), OpenAIResponses(), OpenAIChat(), Google(), CachingAnthropic()
    at = session
    for wire in wires:
        at = wire.back(wire.sent(at))
        content = [(item.type, getattr(item, "text", "")) for item in at.items]
        assert content == [(item.type, getattr(item, "text", "")) for item in session.items], wire.name


# Broken payloads


def broken(messages: list[dict[str, Any]], field: str, draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """Break the messages: remove, repeat or move a message or a part, or change a role. Return the name of the change."""

    def an_index(among: Sequence[object]) -> int:
        return int(draw(st.integers(0, len(among) - 1)))

    origin, other = an_index(messages), an_index(messages)
    message = messages[origin]
    parts = message[field] if isinstance(message.get(field), list) and message[field] else None
    how = draw(
        st.sampled_from(
            ("remove", "repeat", "swap", "role", "field", "id") + (("part", "part twice", "parts", "elsewhere") if parts else ())
        )
    )
    if how == "remove":
        del messages[origin]
    elif how == "repeat":
        messages.insert(other, copy.deepcopy(message))
    elif how == "swap":
        messages[origin], messages[other] = messages[other], messages[origin]
    elif how == "role":
        message["role"] = draw(st.sampled_from(("user", "assistant", "model", "system", "tool", "developer")))
    elif how == "field":
        message.pop(draw(st.sampled_from(sorted(set(message) - {"encrypted_content"}))))  # only the provider notices a missing seal
    elif how == "id":
        named = [value for value in (message, *(parts or ())) for name in ("id", "call_id", "tool_call_id", "tool_use_id") if name in value]
        for value in named[:1]:
            value.update({name: value[name] + "x" for name in ("call_id", "tool_call_id", "tool_use_id") if name in value})
    elif parts and how == "part":
        del parts[an_index(parts)]
    elif parts and how == "part twice":
        parts.insert(an_index(parts), copy.deepcopy(parts[an_index(parts)]))
    elif parts and how == "parts":
        first, second = an_index(parts), an_index(parts)
        parts[first], parts[second] = parts[second], parts[first]
    elif parts and how == "elsewhere" and isinstance(messages[other].get(field), list):
        messages[other][field].insert(0, parts.pop(an_index(parts)))
    return str(how)


STRICTER = ("a function response after other parts",)
"""The beginnings of violations that the documents do not ask for. Converters never send such payloads."""


@settings(max_examples=max(40, settings().max_examples // 3))
@given(session=sessions(), data=st.data())
def test_validator_and_provider_agree_on_broken_payloads(line: Line, session: Session, data: st.DataObject) -> None:
    """Two independent implementations of the same documents refuse and accept the same payloads. Only the provider checks signatures."""
    points = request_points(session)
    assume(points)
    wire = line.wire
    payload = copy.deepcopy(wire.sent(cut(signed(line, session), points[-1])))
    assume(wire.messages(payload))
    how = broken(wire.messages(payload), wire.parts_field, data.draw)
    violations = [violation for violation in wire.request_violations(payload) if not violation.message.startswith(STRICTER)]
    status, words = wire.answer_to(line.stub, payload)
    line.stub.requests.clear()
    event(f"{how}: {status}")
    assert bool(violations) == (status != 200), (violations, words)
