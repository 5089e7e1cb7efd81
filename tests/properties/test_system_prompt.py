"""Guarantee: system prompt. Config updates reach the model in every format."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session import AgentConfigUpdate, AgentHandoff, FunctionCall, Message, MessageCategory, Session
from session.items import Item
from session.providers.anthropic import to_anthropic
from session.providers.google import to_google
from tests.support.any_logs import logs
from tests.support.counting import Letters
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost, gives_instructions, is_replaced

FORMATS = ("anthropic", "google", "openai", "openai-responses")


def system_texts(session: Session, provider: str) -> list[str]:
    """The texts of the system prompt on the wire, in order."""
    if provider == "anthropic":
        system = to_anthropic(session).system
        return [system] if isinstance(system, str) else [block["text"] for block in system or []]
    if provider == "google":
        return [part["text"] for part in (to_google(session).system or {"parts": []})["parts"]]
    messages = session.to_openai_messages() if provider == "openai" else session.to_openai_responses()
    contents = [message["content"] for message in messages if message.get("role") in ("system", "developer")]
    return [part if isinstance(part, str) else part["text"] for content in contents for part in parts(content)]


def parts(content: Any) -> list[Any]:
    return [content] if isinstance(content, str) else content


def texts_in_force(items: list[Item]) -> list[str]:
    """The texts of the instructions that no update replaced, by the slow twin's rule."""
    texts = []
    for position, item in enumerate(items):
        if gives_instructions(item) and not is_replaced(items, position):
            texts += [item.instructions or ""] if isinstance(item, AgentConfigUpdate) else [item.text] if isinstance(item, Message) else []
    return [text for text in texts if text.strip()]


def with_texts(session: Session) -> Session:
    """The same log, each system message with one text of its own."""
    items: list[Item] = [
        Message(item.role, f"text {position}", id=item.id, agent_id=item.agent_id, category=item.category, pinned=item.pinned)
        if isinstance(item, Message) and item.role in ("system", "developer")
        else item
        for position, item in enumerate(session.items)
    ]
    return Session.showing(session, items, breaks=session.response_breaks, settled=0)


@given(st.one_of(logs(), sessions()))
def test_the_system_prompt_of_a_request_is_the_config_in_force(session: Session) -> None:
    """For each format, the system prompt in the request is the one that `active_config_at` returns"""
    session = with_texts(session)
    expected = texts_in_force(list(session.items))
    event(f"replaced: {any(is_replaced(list(session.items), position) for position in range(len(session.items)))}")
    instructions = session.active_config_at()[0]
    assert (instructions or "") == "\n\n".join(expected)
    assert (instructions is None) == (not any(map(gives_instructions, session.items)))
    for provider in FORMATS[:2]:
        assert system_texts(session, provider) == expected
    for provider in FORMATS[2:]:  # messages keep their places, and an update comes after those at the beginning
        assert sorted(system_texts(session, provider)) == sorted(expected)


@given(st.data())
def test_a_view_shows_exactly_the_instructions_in_force(data: st.DataObject) -> None:
    """The same of every view: replaced instructions are not in it, and its tokens are those of the request"""
    log = with_texts(data.draw(sessions()))
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds), trim(log, bounds)):
        view = list(outcome.view.items)
        assert not any(is_replaced(view, position) for position in range(len(view)))
        visible = [position for position, item in enumerate(log.items) if gives_instructions(item) and item in view]
        assert not any(is_replaced(list(log.items), position) for position in visible)
        given_up = [position for position, item in enumerate(log.items) if gives_instructions(item) and item not in view]
        for position in given_up:
            is_protected = log.items[position].category is MessageCategory.SYSTEM or log.items[position].pinned
            assert is_replaced(list(log.items), position) or not is_protected
        if all(is_replaced(list(log.items), position) for position in given_up):
            assert outcome.view.active_config_at()[0] == log.active_config_at()[0]
            assert system_texts(outcome.view, "anthropic") == system_texts(log, "anthropic")


@pytest.mark.parametrize("provider", FORMATS)
def test_a_config_update_replaces_the_system_prompt_in_requests(provider: Any) -> None:
    session = Session([Message("system", "Be kind."), Message("user", "Hi."), Message("assistant", "Hello.")])
    session.add_config_update("Be brief.")
    session.add_message("user", "Go on.")
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=5_000), token_counter=Letters())
    assert system_texts(session, provider) == ["Be brief."]
    request = str(manager.request(session, provider, model="gpt-5" if "openai" in provider else "m"))
    assert "Be brief." in request
    assert "Be kind." not in request
    session.add_config_update(tools=["read"])
    assert system_texts(session, provider) == ["Be brief."]
    assert session.active_config_at() == ("Be brief.", ("read",))


def test_only_the_prompt_in_force_is_counted() -> None:
    session = Session([Message("system", "old " * 500), Message("user", "Hi.")])
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=5_000), token_counter=Letters())
    before = manager.plan_session(session).after
    update = session.add_config_update("Be brief.")
    after = manager.plan_session(session).after
    assert before - after == cost(session.items[0]) - cost(update)
    assert [item.id for item in manager.process_session(session).items] == [item.id for item in session.items[1:]]
    assert manager.recall(manager.process_session(session), session.items[0].id) is session.items[0]


def test_a_request_for_anthropic_has_the_new_prompt() -> None:
    session = Session([Message("system", "Be kind."), Message("user", "Hi.")])
    session.add_config_update("Be brief.")
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=5_000), token_counter=Letters())
    request = manager.anthropic_request(session, model="claude-sonnet-4-5", max_tokens=100)
    assert [block["text"] for block in request["system"]] == ["Be brief."]


AGENTS: dict[str, tuple[list[Item], list[str]]] = {
    "of no agent: all": ([Message("system", "a", agent_id="a"), Message("system", "s"), AgentConfigUpdate("new")], ["new"]),
    "of an agent: its own and those of no agent": (
        [
            Message("system", "a", agent_id="a"),
            Message("system", "b", agent_id="b"),
            Message("system", "s"),
            AgentConfigUpdate("new", agent_id="b"),
        ],
        ["a", "new"],
    ),
    "after a handoff to its agent: all": (
        [Message("system", "a", agent_id="a"), AgentHandoff("b", "a"), AgentConfigUpdate("new", agent_id="b")],
        ["new"],
    ),
    "after a handoff to another agent: its own": (
        [Message("system", "a", agent_id="a"), AgentHandoff("a", "b"), AgentConfigUpdate("new", agent_id="b")],
        ["a", "new"],
    ),
    "pinned ones stay": ([Message("system", "p", pinned=True), Message("system", "s"), AgentConfigUpdate("new")], ["p", "new"]),
    "later messages add to it": ([Message("system", "s"), AgentConfigUpdate("new"), Message("developer", "more")], ["new", "more"]),
    "nothing is left by a blank one": ([Message("system", "s"), AgentConfigUpdate("")], []),
    "an update without instructions leaves all": ([Message("system", "s"), AgentConfigUpdate(None, ["t"])], ["s"]),
}


@pytest.mark.parametrize("case", AGENTS)
def test_which_instructions_an_update_replaces(case: str) -> None:
    items, expected = AGENTS[case]
    session = Session([*items, Message("user", "Hi.")])
    for provider in FORMATS:
        assert system_texts(session, provider) == expected
    assert session.active_config_at()[0] == "\n\n".join(expected)
    assert session.fork_filtered().active_config_at() == session.active_config_at()


@pytest.mark.parametrize("provider", FORMATS)
def test_a_fork_sends_the_prompt_in_force(provider: str) -> None:
    session = Session([Message("system", "old"), Message("user", "1"), AgentConfigUpdate("new", ["t"]), Message("user", "2")])
    for fork in (session.fork(), session.copy(), session.fork_filtered(1)):
        assert system_texts(fork, provider) == ["new"]
        assert fork.active_config_at() == ("new", ("t",))
    assert system_texts(session.fork_brief("own", "task", "b"), provider) == ["own"]


def test_a_merge_applies_updates_in_the_merged_order() -> None:
    session = Session([Message("system", "old", created_at=1.0), Message("user", "1", created_at=2.0)])
    branch = session.fork()
    branch.append(AgentConfigUpdate("of the branch", created_at=3.0))
    session.append(AgentConfigUpdate("of the trunk", created_at=4.0))
    merged = asyncio.run(session.merge(branch))
    assert merged.active_config_at()[0] == "of the trunk"
    assert system_texts(merged, "anthropic") == ["of the trunk"]


def test_an_agents_copy_leaves_out_the_updates_of_others() -> None:
    session = Session(
        [
            Message("system", "s"),
            AgentConfigUpdate("for a", agent_id="a"),
            AgentConfigUpdate("for b", agent_id="b"),
            FunctionCall("f", "{}", "1", agent_id="a"),
        ]
    )
    assert system_texts(session.copy(filter_agent_id="a"), "anthropic") == ["for a"]
    assert system_texts(session.copy(filter_agent_id="nobody"), "anthropic") == ["s"]
