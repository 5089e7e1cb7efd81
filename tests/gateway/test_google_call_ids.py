"""Call ids of Google's contents do not depend on what was seen before."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from context_window.gateway.google_call_ids import CALL_IDS, CallIds

Json = dict[str, Any]

names = st.sampled_from(["read", "write"])
parts = st.one_of(
    st.just({"text": "a"}),
    st.just(3),
    names.map(lambda name: {"functionCall": {"name": name}}),
    names.map(lambda name: {"functionCall": {"name": name, "id": "own"}}),
    names.map(lambda name: {"functionResponse": {"name": name}}),
    names.map(lambda name: {"function_response": {"name": name, "id": "own"}}),
)
conversations = st.lists(st.lists(parts, max_size=3).map(lambda each: {"role": "user", "parts": each}), max_size=6)


@given(st.lists(st.tuples(conversations, st.integers(0, 6)), max_size=5))
def test_a_worker_that_has_seen_the_conversation_finds_the_same_ids(steps: list[tuple[list[Json], int]]) -> None:
    """Contents that were passed before, as the same objects, are not looked at again."""
    known = CallIds()
    contents: list[Json] = []
    for new, kept in steps:
        contents = [*contents[:kept], *new]
        assert known.added_to(contents) == CallIds().added_to(contents)


def test_a_response_without_an_id_answers_the_first_call_of_its_name() -> None:
    call, response = {"functionCall": {"name": "read"}}, {"functionResponse": {"name": "read"}}
    contents: list[Json] = [{"parts": [call, call, {"text": "a"}]}, {"parts": [response]}, {"parts": [response, response]}]
    ids = [content[CALL_IDS] for content in CallIds().added_to(contents)]
    assert ids == [["call 1", "call 2", None], ["call 1"], ["call 2", "no call 2"]]
