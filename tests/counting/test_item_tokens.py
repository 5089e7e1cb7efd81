"""What items cost: as they are, in the forms a trim gives them, and how often that is counted."""

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from threading import Barrier
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session, TiktokenCounter, TokenCounter
from context_window.counting import CallableCounter
from context_window.counting.item_tokens import COUNTERS_REMEMBERED, Measurer, sealed_tokens
from context_window.decision.edits import Edit
from context_window.decision.placeholders import image_placeholder
from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Document, Image, Part, Text
from session.providers.additions import INTERRUPTED, PREAMBLE
from tests.support.counting import Letters

COUNTERS: list[TokenCounter] = [Letters(), TiktokenCounter(), TiktokenCounter(ratio=Fraction("1.46"))]
counters = st.sampled_from(COUNTERS)

texts = st.one_of(st.text(max_size=30), st.integers(0, 900).map(lambda size: "some words\n" * (size // 11)), st.just("👩\u200d👧é" * 40))
images = st.builds(Image, url=st.just("u"), width=st.integers(1, 400), height=st.integers(1, 400))
documents = st.one_of(st.builds(Document, text=texts), st.builds(Document, url=st.just("u")))
parts = st.lists(st.one_of(texts.map(Text), images, documents), max_size=5).map(tuple)
outputs = st.builds(FunctionCallOutput, st.sampled_from(("Read", "a_long_tool_name")), parts, st.just("c"), id=st.just("i7"))
messages = st.builds(Message, st.just("user"), parts, id=st.just("i8"))


@pytest.mark.parametrize(
    ("item", "tokens"),
    [
        (Message("user", "hello"), 4 + 5),
        (Message("system", ["ab", Text("c")]), 4 + 3),
        (Message("user", []), 4),
        (Message("user", [Image(url="u", width=70, height=1), "x", Document(url="u"), Document(text="four")]), 4 + 70 + 1 + 10 + 4),
        (FunctionCall("Read", '{"path": 1}', "call"), 4 + 5 + 4 + 11),
        (FunctionCallOutput("Read", "text", "call"), 4 + 5 + 4 + 4),
        (FunctionCallOutput("Read", [Image(url="u", width=70, height=1)], "call"), 4 + 5 + 4 + 70),
        (Reasoning("thought", signature="s" * 320), 4 + 7),
        (Reasoning("", signature="s" * 320), 4 + 60),
        (Reasoning("", data="d" * 32), 4 + 6),
        (Reasoning("ab", signature="s" * 320, data="d" * 32), 4 + 2 + 6),
        (Reasoning(), 4),
        (Compaction("summary"), 4 + len("[Conversation Summary]\nsummary\n[End of Summary]")),
        (Message("user", PREAMBLE), 4 + len(PREAMBLE) + 1),  # converters send it with a space, to tell it from their own
        (FunctionCallOutput("Read", INTERRUPTED, "call", is_error=True), 4 + 5 + 4 + len(INTERRUPTED) + 1),
        (AgentHandoff("b", reason="why"), 4 + len("[Handoff to b: why]")),
        (AgentConfigUpdate("be brief", ["Read"]), 4 + 8),
        (AgentConfigUpdate(" ", ["Read"]), 0),
        (AgentConfigUpdate(None, ["Read"]), 0),
    ],
)
def test_each_kind_of_item(item: Item, tokens: int) -> None:
    assert Measurer(Letters()).measure(item).tokens == tokens


def test_a_sealed_payload_is_counted_by_its_length() -> None:
    """Three bytes in four characters, four bytes a token."""
    assert (sealed_tokens(""), sealed_tokens("x" * 16), sealed_tokens("x" * 1600)) == (0, 3, 300)


@pytest.mark.parametrize(("length", "reported"), [(1228, 45), (1356, 63), (1508, 98), (2104, 196)])
def test_openais_sealed_reasoning_costs_what_was_reported_when_it_was_written(length: int, reported: int) -> None:
    assert sealed_tokens("gAAAA" + "x" * (length - 5)) == pytest.approx(reported, abs=8)
    assert sealed_tokens("gAAAA") == 0


# Shorter forms: the announced cost is the cost of the item in that form


def recount(counter: TokenCounter, item: Item) -> int:
    return Measurer(counter).measure(copy.copy(item)).tokens


@given(counter=counters, item=outputs)
def test_cleared(counter: TokenCounter, item: FunctionCallOutput) -> None:
    tokens = Measurer(counter).cleared_tokens(item)
    view = Edit(0, is_cleared=True).of(item)
    assert tokens == recount(counter, view)
    assert Measurer(counter).cleared_tokens(view) == tokens  # cleared is as small as it gets


@given(counter=counters, item=outputs, limit=st.integers(-5, 900))
def test_shortened(counter: TokenCounter, item: FunctionCallOutput, limit: int) -> None:
    cut = Measurer(counter).truncated(item, limit)
    if item.text:
        assert cut.tokens == recount(counter, Edit(0, cut=cut).of(item))
        least = Measurer(counter).truncated(item, -(10**9))
        assert cut.tokens <= limit or cut == least
        assert (least.head, least.tail) == (0, 0)
    else:
        assert cut.tokens == recount(counter, item)


@given(counter=counters, item=st.one_of(outputs, messages), data=st.data())
def test_replaced_images(counter: TokenCounter, item: Item, data: st.DataObject) -> None:
    tokens, saved, _ = Measurer(counter).measure(item)
    replaced = data.draw(st.lists(st.sampled_from(saved), unique=True)) if saved else []
    view = Edit(0, images=tuple(sorted(index for index, _ in replaced))).of(item)
    assert recount(counter, view) == tokens - sum(saving for _, saving in replaced)


@given(counter=counters, item=outputs, data=st.data(), limit=st.integers(0, 900))
def test_shortened_and_images_replaced(counter: TokenCounter, item: FunctionCallOutput, data: st.DataObject, limit: int) -> None:
    measurer = Measurer(counter)
    saved = measurer.measure(item).images
    replaced = data.draw(st.lists(st.sampled_from(saved), unique=True)) if saved else []
    cut = measurer.truncated(item, limit)
    if item.text:
        indices = tuple(sorted(index for index, _ in replaced))
        view = Edit(0, images=indices, cut=cut).of(item)
        # An image's placeholder is a text part like the others' once it stands there; it is put in after the cut.
        assert recount(counter, view) == cut.tokens - sum(saving for _, saving in replaced)


@given(counter=counters, item=st.one_of(outputs, messages))
def test_images_are_told_one_by_one(counter: TokenCounter, item: Item) -> None:
    content = item.content if isinstance(item, Message) else item.output if isinstance(item, FunctionCallOutput) else ()
    pictures = [(index, part) for index, part in enumerate(content) if isinstance(part, Image)]
    measurer = Measurer(counter)
    assert measurer.image_tokens(item) == [counter.count_part(part) for _, part in pictures]
    assert list(measurer.measure(item).images) == [
        (index, counter.count_part(part) - counter.count_text(image_placeholder(item, index, part))) for index, part in pictures
    ]


# How often


class Tally:
    """Records the texts that it counts."""

    name = "tally"

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()
        self.images: Counter[Image] = Counter()

    def count_text(self, text: str) -> int:
        self.texts[text] += 1
        return len(text)

    def count_part(self, part: Part) -> int:
        if isinstance(part, Image):
            self.images[part] += 1
            return 10
        return self.count_text(part.text or "")


def talk(turns: int) -> Session:
    """Return a session in which all texts differ, so that a text that is counted twice shows."""
    session = Session()
    for turn in range(turns):
        session.add_message("user", f"question {turn}")
        session.add_message("user", [Image(url=f"{turn}", width=9, height=9)])
        session.add_function_call(f"tool {turn}", f'{{"n": {turn}}}', f"c{turn}")
        session.add_function_output(f"tool {turn}", f"output {turn} " * 30, f"c{turn}")
        session.add_message("assistant", f"answer {turn}")
    return session


def assert_counted_once(tally: Tally, session: Session) -> None:
    for item in session.items:
        if isinstance(item, Message):
            assert tally.texts[item.text] == bool(item.text)
        elif isinstance(item, FunctionCall):
            assert tally.texts[item.arguments] == 1
            assert tally.texts[item.name] == 2  # the call's, and the output's
        elif isinstance(item, FunctionCallOutput):
            assert tally.texts[item.text] == 1
    assert set(tally.images.values()) <= {1}


def test_each_item_is_counted_once_whatever_is_called_how_often() -> None:
    tally = Tally()
    manager = ContextWindowManager(token_counter=tally, context_window=ContextWindow(max_tokens=3000, images_max=1))
    session = talk(20)
    for _ in range(3):
        view = manager.process_session(session)
        assert view.items != session.items
        for log in (session, view):
            manager.analyze_session(log)
            manager.format_token_usage(log)
            manager.usage(log).to_dict()
        manager.plan_session(session)
        manager.plan_session(session, one_shot=True)
        manager.trim_session(session)
        manager.get_token_usage(session)
        session.add_message("user", f"another {len(session.items)}")
    manager.process_session(session)
    assert_counted_once(tally, session)


def test_managers_with_equal_counters_share_the_counts() -> None:
    tally = Tally()
    session = talk(5)
    for _ in range(3):
        ContextWindowManager(token_counter=tally).process_session(session)
        ContextWindowManager(token_counter=tally).process_session(Session(session.items))
    assert_counted_once(tally, session)


def test_a_cut_is_searched_for_once_and_never_counts_the_whole_again() -> None:
    tally = Tally()
    item = FunctionCallOutput("tool", "many words " * 500, "c")
    first = Measurer(tally).truncated(item, 800)
    texts_counted = tally.texts.total()
    assert Measurer(tally).truncated(item, 800) == first
    assert tally.texts.total() == texts_counted
    assert tally.texts[item.text] == 1
    assert Measurer(tally).truncated(item, 700) != first


def test_threads_that_come_together_count_once() -> None:
    together = Barrier(8, timeout=30)

    class Slow(Tally):
        def count_text(self, text: str) -> int:
            sleep(0.001)
            return super().count_text(text)

    tally, other = Slow(), Slow()
    session = talk(5)

    def measure(n: int) -> None:
        together.wait()
        for item in session.items:
            Measurer((tally, other)[n % 2]).measure(item)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(measure, range(8)))
    for counter in (tally, other):
        assert_counted_once(counter, session)


def test_an_item_remembers_the_latest_counters_and_no_more() -> None:
    item = Message("user", "hello")
    tallies = [Tally() for _ in range(COUNTERS_REMEMBERED + 3)]
    for tally in tallies:
        Measurer(tally).measure(item)
    for tally in tallies[-COUNTERS_REMEMBERED:]:
        Measurer(tally).measure(item)
        assert tally.texts["hello"] == 1
    Measurer(tallies[0]).measure(item)
    assert tallies[0].texts["hello"] == 2


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda item: pickle.loads(pickle.dumps(item))], ids=["copy", "deep", "pickle"])
def test_copies_are_measured_like_the_first(again: Callable[[Item], Item]) -> None:
    for item in talk(1).items:
        measurer = Measurer(CallableCounter(len))
        before = measurer.measure(item)
        received = again(item)
        assert received == item
        assert measurer.measure(received) == before
        assert measurer.image_tokens(received) == measurer.image_tokens(item)


def test_what_is_remembered_is_no_part_of_an_items_value() -> None:
    item, twin = (Message("user", "hello", id="i", created_at=1.0) for _ in range(2))
    text = repr(item)
    Measurer(Letters()).measure(item)
    assert (item, hash(item), repr(item)) == (twin, hash(twin), text)
    assert b"Letters" not in pickle.dumps(item)


def test_a_counter_that_fails_leaves_nothing_behind() -> None:
    answers = iter([5, -1, 5, 5])
    measurer = Measurer(CallableCounter(lambda text: next(answers)))
    item = Message("user", ["a", "b"])
    with pytest.raises(Exception, match="returned -1"):
        measurer.measure(item)
    assert measurer.measure(item).tokens == 4 + 10
