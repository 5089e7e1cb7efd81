"""Anthropic's cache marks are taken off before messages are compared, and put back on the same blocks."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from context_window.gateway.cache_marks import marked_again, without_marks

Json = dict[str, Any]


@st.composite
def conversations(draw: st.DrawFn) -> list[Json]:
    """Messages whose blocks all differ, with marks on any of them, also on several of one message."""
    messages: list[Json] = []
    for number in range(draw(st.integers(1, 5))):
        marks = draw(st.lists(st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}]), min_size=1, max_size=4))
        blocks = [{"type": "text", "text": f"{number} {index}", **mark} for index, mark in enumerate(marks)]
        messages.append({"role": "user" if number % 2 == 0 else "assistant", "content": blocks if draw(st.booleans()) else f"{number}"})
    return messages


def blocks_of(message: Json) -> list[Json]:
    """A message's blocks."""
    return [{"type": "text", "text": message["content"]}] if isinstance(message["content"], str) else message["content"]


@given(conversations(), st.sets(st.integers(0, 4)), st.sets(st.tuples(st.integers(0, 4), st.integers(0, 3))))
def test_every_mark_is_back_on_its_block(messages: list[Json], dropped: set[int], cut: set[tuple[int, int]]) -> None:
    """Two in one message, too. Blocks and messages that a view has dropped take their marks with them, and no other block gets one.

    But a mark at the conversation's end stays at the view's end.
    """
    bare = without_marks(messages)
    assert "cache_control" not in str(bare)
    assert all(message is other for message, other in zip(messages, bare, strict=True) if "cache_control" not in str(message))
    kept = [number for number in range(len(messages)) if number not in dropped]

    def shortened(message: Json, number: int) -> Json:
        if not isinstance(message["content"], str) and any(number == message_number for message_number, _ in cut):
            message = {**message, "content": [block for index, block in enumerate(message["content"]) if (number, index) not in cut]}
        return message

    view = [shortened(bare[number], number) for number in kept]
    expected = [shortened(messages[number], number) for number in kept]
    last = blocks_of(messages[-1])[-1]
    if "cache_control" in last and expected and (own := blocks_of(expected[-1])):
        expected[-1] = {**expected[-1], "content": [*own[:-1], {**own[-1], "cache_control": last["cache_control"]}]}
    assert marked_again(messages, bare, view) == expected


def test_of_equal_blocks_the_last_one_gets_the_mark() -> None:
    """Clients mark the end of a conversation."""
    marked = {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}
    plain = {"type": "text", "text": "Go on."}
    messages: list[Json] = [{"role": "user", "content": content} for content in ([plain], [plain, marked])]
    assert marked_again(messages, without_marks(messages), without_marks(messages)) == messages
