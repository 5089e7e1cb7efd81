"""A read-only session: it sees what its source is at any time, and refuses every edit."""

import copy
import inspect
import json
import pickle
from typing import Any

import pytest
from hypothesis import given

from context_window import ContextWindow, ContextWindowManager
from session import DuplicateItemError, Message, ReadOnlyError, ReadOnlySession, Session
from session.units import request_points, units
from tests.support.strategies import sessions

EDITS: dict[str, tuple[Any, ...]] = {
    "append": (Message("user", "x"),),
    "add_message": ("user", "x"),
    "add_context": ("x",),
    "add_function_call": ("f", "{}"),
    "add_function_output": ("f", "", "c"),
    "add_handoff": ("b",),
    "add_config_update": (),
    "pin": ("a",),
    "unpin": ("a",),
    "insert": (Message("user", "x"),),
    "insert_many": ([],),
    "truncate": (),
    "summarize": (None,),
    "cleanup": (),
    "merge": (Session(),),
    "merge_result": (Session(),),
    "merge_with_summary": (Session(),),
    "restore_seams": (frozenset(), 0),
}

QUERIES = {
    "active_config_at",
    "copy",
    "empty",
    "estimated_tokens",
    "fork",
    "fork_brief",
    "fork_filtered",
    "get_by_id",
    "id",
    "items",
    "lineage",
    "messages",
    "metadata",
    "origin",
    "position",
    "read_only",
    "response_breaks",
    "settled",
    "settled_tokens",
    "showing",
    "turn_count",
}


def source() -> Session:
    return Session([Message("user", "a", id="a"), Message("assistant", "b", id="b")], id="s", metadata={"k": 1})


@pytest.mark.parametrize("name", EDITS)
def test_every_edit_is_refused_and_changes_nothing(name: str) -> None:
    session = source()
    before = session.to_dict()
    with pytest.raises(ReadOnlyError, match=rf"^{name}\(\) would change a read-only session") as caught:
        getattr(session.read_only(), name)(*EDITS[name])
    assert caught.value.operation == name
    assert session.to_dict() == before


def test_every_method_is_known_to_be_an_edit_or_a_query() -> None:
    public = {name for name in dir(Session) if not name.startswith("_")}
    conversions = {name for name in public if name.startswith(("to_", "from_"))}
    assert public - conversions == QUERIES | set(EDITS)
    assert {name for name in EDITS if getattr(ReadOnlySession, name) is getattr(Session, name)} == set()


def test_its_attributes_cannot_be_set_either() -> None:
    seen = source().read_only()
    for name in ("id", "metadata", "items", "_items", "_source", "new"):
        with pytest.raises(ReadOnlyError):
            setattr(seen, name, None)
        with pytest.raises(ReadOnlyError):
            delattr(seen, name)
    metadata: Any = seen.metadata
    with pytest.raises(TypeError):
        metadata["k"] = 2
    assert seen.metadata == {"k": 1}


def test_it_sees_the_session_grow_and_change() -> None:
    session = source()
    seen = session.read_only()
    assert isinstance(seen, Session)
    assert seen.read_only() is seen
    assert repr(seen) == "<read-only Session s: 2 items>"
    lineage, before = seen.lineage, seen.items
    session.add_message("user", "more", "c")
    assert seen.items == session.items
    assert seen.lineage is lineage is session.lineage
    assert len(before) == 2
    assert (seen.position("c"), seen.turn_count()) == (2, 2)
    session.pin("a")
    assert seen.get_by_id("a") is session.items[0]
    assert seen.lineage is not lineage
    session.metadata = {"new": 1}
    assert seen.metadata == {"new": 1}
    session.cleanup()
    assert len(seen.items) == 0


def test_copies_and_forks_of_it_can_be_changed() -> None:
    seen = source().read_only()
    for made in (seen.copy(), seen.fork(), seen.fork_filtered(), seen.fork_brief("x")):
        assert type(made) is Session
        made.add_message("user", "x")
    with pytest.raises(DuplicateItemError):
        seen.fork().add_message("user", "x", "a")
    assert seen.fork().metadata == {"k": 1, "forked_from": "s"}
    assert len(seen.items) == 2
    assert type(ReadOnlySession.empty()) is Session
    assert type(ReadOnlySession.from_dict(seen.to_dict())) is Session


def test_a_copy_of_it_is_read_only_too() -> None:
    session = source()
    seen = session.read_only()
    near, far, pickled = copy.copy(seen), copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))
    session.add_message("user", "more")
    assert [len(one.items) for one in (near, far, pickled)] == [3, 2, 2]
    for one in (near, far, pickled):
        assert type(one) is ReadOnlySession
        with pytest.raises(ReadOnlyError):
            one.pin("a")


@given(sessions(max_steps=6))
def test_it_equals_its_source_at_every_growth(log: Session) -> None:
    """Queries, converters and managers read it as they read the session."""
    session = Session(id=log.id)
    session.restore_seams(log.response_breaks, 0)
    seen = session.read_only()
    window = ContextWindow(max_tokens=200)
    of_seen, of_session = ContextWindowManager(context_window=window), ContextWindowManager(context_window=window)
    queries = [
        name for name in ("messages", "turn_count", "estimated_tokens", "active_config_at") if inspect.isfunction(getattr(Session, name))
    ]
    assert len(queries) == 4
    for item in log.items:
        session.append(item)
        assert seen.items == session.items
        assert [getattr(seen, name)() for name in queries] == [getattr(session, name)() for name in queries]
        assert (units(seen), request_points(seen)) == (units(session), request_points(session))
        view, expected = of_seen.process_session(seen), of_session.process_session(session)
        assert (view is seen) == (expected is session)
        assert view.items == expected.items
        assert of_seen.get_token_usage(seen) == of_session.get_token_usage(session)
    assert seen.to_dict() | {"breaks": None} == session.to_dict() | {"breaks": None}
    assert json.dumps(seen.to_anthropic_messages()) == json.dumps(session.to_anthropic_messages())
