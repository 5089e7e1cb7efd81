"""The estimate of four characters per token, figure by figure."""

import pytest

from session.estimate import estimate_item, estimate_part, estimate_text
from session.items import AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Document, Image, Part, Text
from session.session import Session

PICTURE = Image(url="u", width=4_000, height=4_000)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("abc", 0), ("abcd", 1), ("abcdefg", 1), ("日本語だ", 1), ("x" * 1_000_001, 250_000)]
)
def test_a_text_costs_a_token_per_four_characters(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (Text("x" * 40), 10),
        (PICTURE, 300),
        (Image(file_id="f"), 300),
        (Document(text="x" * 40), 10),
        (Document(data=b"x" * 49_999), 2_000),
        (Document(data=b"x" * 50_000), 4_000),
        (Document(url="u"), 2_000),
    ],
)
def test_each_kind_of_part_has_its_estimate(part: Part, tokens: int) -> None:
    assert estimate_part(part) == tokens


@pytest.mark.parametrize(
    ("item", "tokens"),
    [
        (Message("user", ""), 4),
        (Message("user", "x" * 40), 4 + 10),
        (Message("user", ["abc", "abc", PICTURE]), 4 + 300),
        (FunctionCall("x" * 8, "x" * 20, "c" * 100), 4 + 2 + 5 + 5),
        (FunctionCallOutput("x" * 8, "x" * 20, "c" * 100), 4 + 2 + 5 + 5),
        (FunctionCallOutput("x" * 8, [PICTURE, "x" * 20], "c"), 4 + 2 + 300 + 5 + 5),
        (Reasoning("x" * 40, signature="x" * 400), 4 + 10),
        (Reasoning(data="x" * 40), 4 + 10),
        (Compaction("x" * 40, ["a"]), 4 + 10),
        (AgentHandoff("x" * 40, reason="x" * 40), 24),
        (AgentConfigUpdate("x" * 40, ["x" * 40]), 4 + 10),
        (AgentConfigUpdate(None, ["x" * 40]), 0),
    ],
)
def test_each_kind_of_item_has_its_estimate(item: Item, tokens: int) -> None:
    assert estimate_item(item) == tokens


def test_a_sessions_estimate_is_the_sum_of_its_items() -> None:
    session = Session([Message("user", "x" * 40), AgentHandoff("b"), FunctionCall("bash", "{}", "c")])
    assert session.estimated_tokens() == 14 + 4 + 10
    assert Session().estimated_tokens() == 0
