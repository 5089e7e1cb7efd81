"""A view and a read-only session refuse every edit; a read-only session shows the current state of its source."""

import asyncio
import copy
import inspect
import json
import pickle
from collections.abc import Callable
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
    "add_response": ({"role": "assistant", "content": "x"},),
    "add_tool_results": ({},),
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
    "is_view",
    "items",
    "lineage",
    "messages",
    "metadata",
    "origin",
    "position",
    "positions",
    "read_only",
    "removed",
    "request_ends",
    "response_breaks",
    "settled",
    "showing",
    "turn_count",
    "usage_noted_after",
    "view_of",
}


def source() -> Session:
    return Session([Message("user", "a", id="a"), Message("assistant", "b", id="b")], id="s", metadata={"k": 1})


def try_edit(session: Session, name: str) -> None:
    options = {"llm": None} if name == "merge_with_summary" else {}
    edit = getattr(session, name)(*EDITS[name], **options)
    if inspect.iscoroutine(edit):
        asyncio.run(edit)


@pytest.mark.parametrize("show", [Session.read_only, Session.view_of, lambda session: Session.view_of(session).read_only()])
@pytest.mark.parametrize("name", EDITS)
def test_every_edit_is_refused_and_changes_nothing(name: str, show: Callable[[Session], Session]) -> None:
    session = source()
    before = session.to_dict()
    shown = show(session)
    advice = "; append to the session that it was made from; " + (r".*Session\.from_view\(view\)" if shown.is_view else "or change a copy")
    with pytest.raises(ReadOnlyError, match=rf"^\w+ would change a (view|read-only session){advice}") as caught:
        try_edit(shown, name)
    assert caught.value.operation in {name, "append", "add_message", "insert"}
    assert shown.to_dict() == session.to_dict() == before


def test_every_method_is_classified_as_edit_or_query() -> None:
    public = {name for name in dir(Session) if not name.startswith("_")}
    conversions = {name for name in public if name.startswith(("to_", "from_"))}
    assert public - conversions == QUERIES | set(EDITS)


def test_attributes_of_a_read_only_session_cannot_be_set() -> None:
    view = source().read_only()
    for name in ("id", "metadata", "items", "_items", "_source", "new"):
        with pytest.raises(ReadOnlyError):
            setattr(view, name, None)
        with pytest.raises(ReadOnlyError):
            delattr(view, name)
    metadata: Any = view.metadata
    with pytest.raises(TypeError):
        metadata["k"] = 2
    assert view.metadata == {"k": 1}


def test_metadata_of_a_view_cannot_be_changed() -> None:
    view = Session.view_of(source())
    with pytest.raises(TypeError):
        view.metadata["k"] = 2
    with pytest.raises(ReadOnlyError, match=r"^metadata would change a view"):
        view.metadata = {}
    assert view.metadata == {"k": 1}


def test_a_read_only_session_shows_later_changes() -> None:
    session = source()
    view = session.read_only()
    assert isinstance(view, Session)
    assert view.read_only() is view
    assert repr(view) == "<read-only Session s: 2 items>"
    lineage, before = view.lineage, view.items
    session.add_message("user", "more", "c")
    assert view.items == session.items
    assert view.lineage is lineage is session.lineage
    assert len(before) == 2
    assert (view.position("c"), view.turn_count()) == (2, 2)
    session.pin("a")
    assert view.get_by_id("a") is session.items[0]
    assert view.lineage is not lineage
    session.metadata = {"new": 1}
    assert view.metadata == {"new": 1}
    session.cleanup()
    assert len(view.items) == 0


def test_copies_and_forks_of_a_read_only_session_can_be_changed() -> None:
    view = source().read_only()
    for derived in (view.copy(), view.fork(), view.fork_filtered(), view.fork_brief("x")):
        assert type(derived) is Session
        derived.add_message("user", "x")
    with pytest.raises(DuplicateItemError):
        view.fork().add_message("user", "x", "a")
    assert view.fork().metadata == {"k": 1, "forked_from": "s"}
    assert len(view.items) == 2
    assert type(ReadOnlySession.empty()) is Session
    assert type(ReadOnlySession.from_dict(view.to_dict())) is Session


def test_a_python_copy_of_a_read_only_session_is_read_only() -> None:
    session = source()
    view = session.read_only()
    near, far, pickled = copy.copy(view), copy.deepcopy(view), pickle.loads(pickle.dumps(view))
    session.add_message("user", "more")
    assert [len(copied.items) for copied in (near, far, pickled)] == [3, 2, 2]
    for copied in (near, far, pickled):
        assert type(copied) is ReadOnlySession
        with pytest.raises(ReadOnlyError):
            copied.pin("a")


@given(sessions(max_steps=6))
def test_a_read_only_session_equals_its_source_after_every_step(log: Session) -> None:
    """Queries, converters and managers give the same results for both."""
    session = Session(id=log.id)
    session.restore_seams(log.response_breaks, 0)
    read_only = session.read_only()
    window = ContextWindow(max_tokens=200)
    for_read_only, for_session = ContextWindowManager(context_window=window), ContextWindowManager(context_window=window)
    queries = [
        name for name in ("messages", "turn_count", "estimated_tokens", "active_config_at") if inspect.isfunction(getattr(Session, name))
    ]
    assert len(queries) == 4
    for item in log.items:
        session.append(item)
        assert read_only.items == session.items
        assert [getattr(read_only, name)() for name in queries] == [getattr(session, name)() for name in queries]
        assert (units(read_only), request_points(read_only)) == (units(session), request_points(session))
        view, expected = for_read_only.process_session(read_only), for_session.process_session(session)
        assert view.items == expected.items
        assert for_read_only.get_token_usage(read_only) == for_session.get_token_usage(session)
    assert read_only.to_dict() | {"breaks": None} == session.to_dict() | {"breaks": None}
    assert json.dumps(read_only.to_anthropic_messages()) == json.dumps(session.to_anthropic_messages())
