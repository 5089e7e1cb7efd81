"""A model reads all of a log: pages of long contents, and lines that a query finds."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Document, Extract, FunctionCall, FunctionCallOutput, Image, Message, Session
from context_window.recall import PAGE, Recalled, page_of, recall_tool
from context_window.recall_pages import LONGEST_LINE, Source, found, lines_of
from session.parts import Part, Text

CHARACTERS = 3_000


def log_with(text: str, *others: Message) -> Session:
    return Session([FunctionCall("bash", '{"command": "make"}', "c", id="call"), FunctionCallOutput("bash", text, "c", id="out"), *others])


def log_of_runs(outputs: Iterable[str]) -> Session:
    log = Session()
    log.add_message("user", "Find it.")
    for number, output in enumerate(outputs):
        call = log.add_function_call("bash", {"command": f"make {number}"})
        log.add_function_output("bash", output, call.call_id)
    return log


def ask(session: Session, **arguments: Any) -> Recalled:
    return recall_tool("anthropic", CHARACTERS).handle(session, json.dumps(arguments))


@given(st.integers(1, 20_000), st.integers(0, 40))
def test_any_line_of_a_long_output_is_reached_in_two_calls(number: int, width: int) -> None:
    """Of an output of 20,000 lines any line is reached in two calls, and no answer is longer than a page."""
    log = log_with("\n".join(f"{line}: {'x' * width}" for line in range(1, 20_001)))
    first = ask(log, id="out").text
    of = re.search(r"of ([\d,]+); pass from_line=\d+ to read on\]$", first)
    assert of is not None
    assert int(of[1].replace(",", "")) == 20_000
    second = ask(log, id="out", from_line=number).text
    assert second.split("\n")[0] == f"{number}: {'x' * width}"
    assert all(len(text) <= CHARACTERS + 80 for text in (first, second))


@given(st.lists(st.text(max_size=30), min_size=1, max_size=300), st.integers(0, 3), st.integers(0, 40))
def test_pages_are_the_whole_content(lines: list[str], longer: int, count: int) -> None:
    """pages one after the other have every character of the content, in its order"""
    text = "\n".join([*lines, "y" * longer * LONGEST_LINE])
    log, read, first = log_with(text), list[str](), 1
    while True:
        *page, last = ask(log, id="out", from_line=first, lines=count or None).text.split("\n")
        read += page
        more = re.search(r"pass from_line=(\d+) to read on\]$", last)
        if more is None:
            break
        assert int(more[1]) == len(read) + 1 > first
        first = int(more[1])
    assert read == lines_of([text], CHARACTERS)
    assert "".join(read) == text.replace("\n", "")


def test_a_short_content_is_returned_as_it_is_with_its_images() -> None:
    image = Image(url="https://example.org/a.png")
    log = Session([Message("user", [Text("See:"), image], id="m")])
    assert ask(log, id="m").output == (Text("See:"), image)
    assert ask(log, id="m", from_line=2).text == "[its last line is 1; pass a from_line of at most 1]"


def test_an_answer_as_text_has_plain_text_documents_and_names_the_rest() -> None:
    parts: list[Part] = [
        Text("See:"),
        Document(text="a plain text"),
        Document(url="https://example.org/a.pdf"),
        Image(url="https://example.org/a.png"),
    ]
    assert ask(Session([Message("user", parts, id="m")]), id="m").text == "See:\na plain text\n[document]\n[image]"


def test_a_page_is_a_tenth_of_the_window_at_most() -> None:
    assert (page_of(180_000), page_of(10_000), page_of(100)) == (PAGE, 4_000, 1_000)
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=10_000))
    assert manager.recall_tool("openai").characters == 4_000


# Queries


def test_a_query_finds_lines_with_those_around_them_in_the_order_of_the_log() -> None:
    log = log_with("one\ntwo\nthree\nfour needle\nfive\nsix\nseven\neight", Message("user", "Where is the Needle?", id="question"))
    assert ask(log, query="needle").text == (
        "## bash output out\n2: two\n3: three\n4: four needle\n5: five\n6: six\n## user message question\n1: Where is the Needle?"
    )


def test_lines_with_the_query_as_it_stands_come_first_then_those_with_all_words() -> None:
    lines = [*(f"quarter total {number}" for number in range(400)), "total(quarter)", "the total of the quarter", "total"]
    text = ask(log_with("\n".join(lines)), query="total(quarter)").text
    assert "401: total(quarter)" in text
    assert "lines that match; a longer query finds fewer]" in text
    assert len(text) <= CHARACTERS + 80


def test_a_query_does_not_find_what_was_recalled_before() -> None:
    log = log_with("needle")
    log.append(FunctionCall("recall", '{"query": "needle"}', "r", id="r"))
    log.append(FunctionCallOutput("recall", "needle", "r", id="ro"))
    assert ask(log, query="needle").text == "## bash output out\n1: needle"


def test_the_log_is_searched_and_not_the_view() -> None:
    log = log_of_runs("\n".join(f"{number} value_{line}" for line in range(90)) for number in range(30))
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=3_000))
    view = manager.process_session(log)
    assert "3 value_77" not in str(view.items)
    assert "3 value_77" in manager.recall_tool("anthropic").handle(view, {"query": "3 value_77"}).text


@given(st.text(max_size=20))
def test_no_query_is_a_syntax_error(query: str) -> None:
    answer = ask(log_with('a AND b* "c" ^d (e) NEAR'), query=query)
    assert answer.text
    assert isinstance(answer.is_error, bool)


@given(st.lists(st.lists(st.sampled_from(["alpha", "beta", "gamma", "x_1"]), max_size=4).map(" ".join), min_size=1, max_size=20))
def test_a_line_that_has_the_query_is_found(lines: list[str]) -> None:
    """if a line contains the query, the answer has such a line; if no line has any of its words, there is no answer"""
    text = found([Source("it", lines)], "alpha beta", CHARACTERS)
    if any("alpha beta" in line for line in lines):
        assert text is not None
        assert "alpha beta" in text
    elif not any("alpha" in line or "beta" in line for line in lines):
        assert text is None


def test_a_sqlite_without_fts5_finds_texts_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        def execute(self, *_: object) -> None:
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self) -> None:
            pass

    monkeypatch.setattr("sqlite3.connect", lambda _: Bare())
    assert ask(log_with("one\ntwo"), query="one").text == "## bash output out\n1: one\n2: two"
    assert ask(log_with("one\ntwo"), query="two one").is_error


@pytest.mark.parametrize(
    "arguments", [{"query": 7}, {"query": " "}, {"id": ""}, {"from_line": 3}, {"id": "out", "from_line": "x"}, {"id": "out", "lines": []}]
)
def test_wrong_arguments_are_explained(arguments: dict[str, Any]) -> None:
    answer = ask(log_with("one"), **arguments)
    assert answer.is_error
    assert "Pass" in answer.text


# What was recalled goes first


def with_a_recall() -> Session:
    """Outputs, and a recall of the first one's lines, which the model has read."""
    log = log_of_runs("\n".join(f"{letter}_value_{line}" for line in range(30)) for letter in "abcdefghijkl")
    call = log.add_function_call("recall", {"query": "a_value_7"}, "r")
    log.append(FunctionCallOutput("recall", "\n".join(f"a_value_{line}" for line in range(30)), call.call_id, id="recalled"))
    log.add_message("assistant", "There it is.")
    log.add_message("user", "And now? " + "Tell me all. " * 60)
    return log


def test_what_was_recalled_is_cleared_before_older_results() -> None:
    log = with_a_recall()
    window = ContextWindow(max_tokens=ContextWindowManager(max_tokens=10**6).get_token_usage(log)["total"] - 40, target_ratio=1.0)
    plan = ContextWindowManager(context_window=window).plan_session(log)
    assert [decision.item_id for decision in plan.trims] == ["recalled"]


def test_no_line_of_what_was_recalled_is_in_a_digest() -> None:
    log = with_a_recall()
    plan = ContextWindowManager(context_window=ContextWindow(max_tokens=1_800, strategy=Extract())).plan_session(log)
    assert any(decision.lines for decision in plan)
    assert all(decision.lines is None for decision in plan if decision.item_id == "recalled")


def test_a_query_of_many_words_takes_no_longer_than_one_of_a_few() -> None:
    """A model that asked with 50,000 words kept a thread of the gateway for minutes."""
    sources = [Source(f"item {number}", [f"line {number} {line} word" for line in range(50)]) for number in range(20)]
    begun = time.process_time()
    assert found(sources, "word " * 50_000, CHARACTERS) == found(sources, "word  word", CHARACTERS)
    assert found(sources, " ".join(f"w{number}" for number in range(50_000)), CHARACTERS) is None
    assert time.process_time() - begun < 10
