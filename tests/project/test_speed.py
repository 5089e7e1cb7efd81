"""The sessions that the benchmarks of speed are run on."""

from __future__ import annotations

import pytest

from benchmarks.sessions import conversation
from session import Session


@pytest.mark.parametrize("count", [4, 5, 6, 7, 60])
def test_a_conversation_has_as_many_messages_as_asked_for_and_no_orphans(count: int) -> None:
    messages = conversation(count, seed=17)
    assert len(messages) == count
    assert Session.from_openai(messages).to_openai_messages() == messages
    assert [message["role"] for message in (messages[0], messages[-1])] == ["system", "user"]


def test_the_seed_chooses_the_conversation() -> None:
    assert conversation(60, seed=17) == conversation(60, seed=17) != conversation(60, seed=18)
