"""The contract of a store, on both databases. Those of a file alone: `test_store_file.py`."""

import asyncio
import copy
import json
import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session import DuplicateItemError, FormatError, FunctionCall, Message, Session, StoreConflictError, StoreError, UnknownSessionError
from session.store import SessionStore, StoredSession
from tests.session.test_read_only import EDITS as REFUSED_EDITS
from tests.session.test_serial import rich_sessions, same
from tests.support.postgres import PostgresServer
from tests.support.stores import hurried
from tests.support.strategies import sessions

NUMBERS = count()
ON_SERVER = settings(max_examples=10)
"""The values are the same as in a file, and only the way there is another one."""


@pytest.fixture(scope="module")
def shared() -> Iterator[SessionStore]:
    with tempfile.TemporaryDirectory() as folder, SessionStore(Path(folder) / "s.db") as store:
        yield hurried(store)


@pytest.fixture
def store(address: str) -> Iterator[SessionStore]:
    with SessionStore(address, clock=map(float, count(1)).__next__) as new_store:
        yield hurried(new_store)


def ids(session: Session) -> list[str]:
    return [item.id for item in session.items]


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages()]


# Round trips


def check_saved_equals_loaded(store: SessionStore, drawn: Session) -> None:
    drawn.id = f"{next(NUMBERS)} {drawn.id}"
    store.save(drawn)
    loaded = store.load(drawn.id)
    same(drawn, loaded)
    assert json.dumps(loaded.to_dict()) == json.dumps(drawn.to_dict())


@given(drawn=rich_sessions() | sessions(max_steps=6))
def test_a_loaded_session_equals_the_saved_one(shared: SessionStore, drawn: Session) -> None:
    check_saved_equals_loaded(shared, drawn)


@ON_SERVER
@given(drawn=rich_sessions() | sessions(max_steps=6))
def test_a_loaded_session_equals_the_one_saved_on_a_server(postgres: PostgresServer, drawn: Session) -> None:
    with SessionStore(postgres.url()) as store:
        check_saved_equals_loaded(store, drawn)


def test_a_session_is_readable_after_the_store_is_closed_and_reopened(new_address: str) -> None:
    with SessionStore(new_address) as store:
        session = store.create("s", metadata={"cwd": "/x"})
        session.add_message("user", "Hello")
        session.add_function_call("f", "{}", "c")
    with SessionStore(new_address) as store:
        same(store.load("s"), Session(session.items, id="s", metadata={"cwd": "/x"}))


def test_save_writes_new_items_and_returns_their_number(store: SessionStore) -> None:
    session = Session(id="s")
    session.add_message("user", "one")
    assert store.save(session) == 1
    assert store.save(session) == 0
    session.add_message("assistant", "two")
    session.add_message("user", "three")
    assert store.save(session) == 2
    same(store.load("s"), session)


def test_a_loaded_session_can_be_extended_and_saved(store: SessionStore) -> None:
    store.create("s").add_message("user", "one")
    loaded = store.load("s")
    assert not isinstance(loaded, StoredSession)
    loaded.add_message("assistant", "two")
    assert texts(store.load("s")) == ["one"]
    assert store.save(loaded) == 1
    assert texts(store.load("s")) == ["one", "two"]


def test_changed_metadata_is_written_with_the_next_save(store: SessionStore) -> None:
    session = store.create("s", metadata={"a": 1})
    session.metadata["a"] = 2
    assert session.save() == 0
    assert store.load("s").metadata == {"a": 2}
    session.metadata["a"] = {1, 2}
    with pytest.raises(FormatError, match="metadata"):
        session.add_message("user", "x")
    assert store.load("s").metadata == {"a": 2}
    session.metadata["a"] = 3
    assert session.save() == 1
    assert (store.load("s").metadata, texts(store.load("s"))) == ({"a": 3}, ["x"])


def test_an_error_names_the_place_of_a_value_that_cannot_be_saved(store: SessionStore) -> None:
    session = Session([Message("user", "x"), Message("user", "y", extra={"a": [1]})])
    session.items[1].extra["a"].append({1})
    with pytest.raises(FormatError, match=r"^items\[1\]\.extra\.a\[1\]: "):
        store.save(session)
    assert store.list() == ()


@pytest.mark.parametrize("wrong", [None, 5, [], {5: 6}, {"a": float("nan")}])
def test_metadata_that_could_not_be_read_back_is_not_saved(store: SessionStore, wrong: Any) -> None:
    session = Session([Message("user", "x")])
    session.metadata = wrong
    with pytest.raises(FormatError, match=r"^metadata"):
        store.save(session)
    assert store.list() == ()


def test_a_session_with_arbitrary_seams_can_be_loaded(store: SessionStore) -> None:
    session = store.create("s")
    session.add_message("user", "x", message_id="m")
    session.restore_seams(frozenset({"m", "nobody"}), 99)
    loaded = store.load("s")
    assert (loaded.response_breaks, loaded.settled) == (frozenset("m"), 1)


def test_a_read_only_view_can_be_saved(store: SessionStore) -> None:
    session = Session([Message("user", "x")], id="s")
    assert store.save(session.read_only()) == 1
    session.add_message("user", "y")
    assert store.save(session) == 1


@pytest.mark.parametrize("wrong", [None, "s", {}, object()])
def test_only_sessions_are_saved(store: SessionStore, wrong: Any) -> None:
    with pytest.raises(FormatError, match=r"^save\.session: "):
        store.save(wrong)


@pytest.mark.parametrize("wrong", ["", 5, None, "\ud800"])
def test_an_invalid_session_id_is_refused(store: SessionStore, wrong: Any) -> None:
    session = Session()
    session.id = wrong
    with pytest.raises(FormatError, match=r"^Session\.id: "):
        store.save(session)


# Contents


def test_list_is_ordered_by_last_save_regardless_of_the_clock(address: str) -> None:
    with SessionStore(address, clock=map(float, count(1_000, -1)).__next__) as store:
        first, second = store.create("one"), store.create("two")
        second.add_message("user", "  What is in\n\tmain.py? ")
        first.add_message("assistant", "Hm.")
        assert [(info.id, info.title, info.items, info.created, info.updated) for info in store.list()] == [
            ("one", "", 1, 1_000.0, 997.0),
            ("two", "What is in main.py?", 1, 999.0, 998.0),
        ]
        assert store.latest() == store.list()[0]


def test_an_empty_store_lists_no_sessions(store: SessionStore) -> None:
    assert store.list() == ()
    assert store.latest() is None


def test_a_title_is_one_line_of_eighty_characters_at_most(store: SessionStore) -> None:
    session = store.create()
    session.add_context("a file")
    session.add_message("user", " \n" * 1_000_000)
    session.add_message("user", "word " * 1_000_000)
    session.add_message("user", "later")
    (info,) = store.list()
    assert (len(info.title), info.title[:10], info.title[-2:]) == (80, "word word ", "d…")
    session.metadata["title"] = "Given"
    session.save()
    assert store.list()[0].title == "Given"


@pytest.mark.parametrize("ask", ["load", "open", "delete", "revisions"])
def test_an_unknown_id_raises_an_error_that_names_it(store: SessionStore, ask: str) -> None:
    with pytest.raises(UnknownSessionError, match="no session has the id 'nobody'") as caught:
        getattr(store, ask)("nobody")
    assert (caught.value.session_id, caught.value.path) == ("nobody", store.path)
    assert isinstance(caught.value, KeyError)
    with pytest.raises(FormatError, match="session_id"):
        getattr(store, ask)(5)


def test_a_deleted_session_is_gone_and_the_others_stay(store: SessionStore) -> None:
    other, deleted = store.create("kept"), store.create("gone")
    deleted.add_message("user", "the secret")
    other.add_message("user", "hello")
    store.delete("gone")
    assert [info.id for info in store.list()] == ["kept"]
    assert texts(store.load("kept")) == ["hello"]


def test_saving_a_session_that_was_deleted_meanwhile_is_a_conflict(store: SessionStore) -> None:
    session = store.create("s")
    store.delete("s")
    with pytest.raises(StoreConflictError, match="was deleted"):
        session.add_message("user", "x")
    store.save(session.fork())
    store.create("s").add_message("user", "of another one, under the old id")
    with pytest.raises(StoreConflictError, match="does not begin with"):
        session.save()


def test_create_refuses_an_id_in_use(store: SessionStore) -> None:
    store.create("s")
    with pytest.raises(StoreConflictError, match="already exists"):
        store.create("s")


# Conflicts


def test_the_second_of_two_writers_gets_a_conflict_and_can_merge_or_fork(store: SessionStore) -> None:
    first = store.create("s")
    first.add_message("user", "first", created_at=1)
    second = store.open("s")
    first.add_message("user", "of one", created_at=2)
    with pytest.raises(StoreConflictError, match="merge") as caught:
        second.add_message("user", "of two", created_at=3)
    assert caught.value.session_id == "s"
    assert texts(second) == ["first", "of two"]
    assert texts(store.load("s")) == ["first", "of one"]
    store.save(second.fork())
    fresh = store.open("s")
    asyncio.run(fresh.merge(second))
    assert texts(store.load("s")) == ["first", "of one", "of two"]


def test_an_unknown_session_is_saved_if_it_extends_the_stored_one(store: SessionStore, address: str) -> None:
    session = store.create("s")
    session.add_message("user", "one")
    other = Session.from_dict(session.to_dict())
    other.add_message("user", "two")
    with SessionStore(address) as elsewhere:
        assert elsewhere.save(other) == 1
    assert texts(store.load("s")) == ["one", "two"]
    other = Session.from_dict(session.to_dict())
    other.add_message("user", "three")
    with pytest.raises(StoreConflictError):
        store.save(other)


def test_repeating_a_save_whose_success_was_not_noticed_is_no_conflict(store: SessionStore) -> None:
    """Such a save ended with Ctrl-C between the commit and the return: the file has the session's items already."""
    session = store.create("s")
    saved = store._saved[session]
    session.add_message("user", "one")
    store._saved[session] = saved
    session.add_message("user", "two")
    assert texts(store.load("s")) == ["one", "two"]


def test_a_view_cannot_overwrite_its_log(store: SessionStore) -> None:
    session = store.create("s")
    for text in "abc":
        session.add_message("user", text)
    view = Session.showing(session, list(session.items)[1:], breaks=frozenset(), settled=2)
    with pytest.raises(StoreConflictError, match="this is a view of it"):
        store.save(view)
    assert texts(store.load("s")) == ["a", "b", "c"]


# Edits


def test_a_pin_begins_a_revision_and_the_previous_one_stays_readable(store: SessionStore) -> None:
    session = store.create("s")
    first = session.add_message("user", "one")
    session.add_message("user", "two")
    session.pin(first.id)
    session.add_message("user", "three")
    assert [item.pinned for item in store.load("s").items] == [True, False, False]
    assert [(revision.number, revision.items, revision.updated) for revision in store.revisions("s")] == [(0, 2, 3.0), (1, 3, 5.0)]
    assert [item.pinned for item in store.load("s", revision=0).items] == [False, False]
    same(store.load("s", revision=1), store.load("s"))


@pytest.mark.parametrize("wrong", [-1, 2, "0", True, 1.0])
def test_an_unknown_revision_is_refused(store: SessionStore, wrong: Any) -> None:
    session = store.create("s")
    session.pin(session.add_message("user", "one").id)
    with pytest.raises(FormatError, match=r"^revision: .* lists 0 to 1"):
        store.load("s", revision=wrong)


def test_an_old_revision_cannot_overwrite_the_current_one(store: SessionStore) -> None:
    session = store.create("s")
    session.pin(session.add_message("user", "one").id)
    old = store.load("s", revision=0)
    old.add_message("user", "two")
    with pytest.raises(StoreConflictError):
        store.save(old)
    store.save(old.fork())


async def _summary(prompt: str) -> str:
    return "They talked."


EDITS: dict[str, Any] = {
    "append": lambda session: session.append(Message("user", "new", id="new")),
    "add_message": lambda session: session.add_message("system", "new", replace=True),
    "add_context": lambda session: session.add_context("new"),
    "add_function_call": lambda session: session.add_function_call("f", "{}", "new"),
    "add_function_output": lambda session: session.add_function_output("f", "new", "c"),
    "add_response": lambda session: session.add_response({"role": "assistant", "content": [{"type": "text", "text": "new"}]}),
    "add_tool_results": lambda session: session.add_tool_results({"c": "new"}),
    "add_handoff": lambda session: session.add_handoff("new"),
    "add_config_update": lambda session: session.add_config_update("new"),
    "pin": lambda session: session.pin("m2"),
    "unpin": lambda session: session.unpin("m1"),
    "insert": lambda session: session.insert(Message("user", "new", created_at=1.5)),
    "insert_many": lambda session: session.insert_many([Message("user", "new", created_at=0.5), Message("user", "new", created_at=9)]),
    "truncate": lambda session: session.truncate(max_items=3),
    "summarize": lambda session: asyncio.run(session.summarize(_summary, keep_recent_turns=1)),
    "merge": lambda session: asyncio.run(session.merge(Session([Message("user", "new", created_at=1.5)]))),
    "merge_result": lambda session: asyncio.run(session.merge_result(Session([Message("assistant", "new")]))),
    "merge_with_summary": lambda session: asyncio.run(session.merge_with_summary(Session([Message("user", "x")]), llm=_summary)),
    "restore_seams": lambda session: session.restore_seams(frozenset({"m3"}), 2, 7),
}
"""By method, a call that changes the session made by `talk`."""


def talk(session: Session) -> None:
    session.append(Message("system", "Be brief.", id="m0", created_at=0))
    for number, role in enumerate(("user", "assistant", "assistant", "user", "assistant"), 1):
        session.append(Message(role, role, id=f"m{number}", created_at=number, pinned=number == 1))  # type: ignore[arg-type]
    session.append(FunctionCall("f", "{}", "c", id="m6", created_at=6))


def test_every_editing_method_is_tested_below() -> None:
    assert set(REFUSED_EDITS) - {"cleanup"} == set(EDITS)


@pytest.mark.parametrize("name", EDITS)
def test_every_edit_is_on_disk_when_it_returns(store: SessionStore, name: str) -> None:
    session = store.create("s")
    talk(session)
    before = session.to_dict()
    EDITS[name](session)
    assert session.to_dict() != before
    same(store.load("s"), session)
    assert store.save(session) == 0
    assert before["items"] == store.load("s", revision=0).to_dict()["items"][: len(before["items"])]


@pytest.mark.parametrize("name", EDITS)
def test_every_edit_of_a_plain_session_can_be_saved(store: SessionStore, name: str) -> None:
    session = Session(id="s")
    talk(session)
    store.save(session)
    EDITS[name](session)
    store.save(session)
    same(store.load("s"), session)


def rows_of(store: SessionStore, session: Session) -> list[tuple[Any, ...]]:
    """Return all journal rows of the session."""
    key = store._saved[session].key
    with store._database.read() as connection:
        return connection.execute("SELECT * FROM journal WHERE session = ? ORDER BY number", (key,)).fetchall()


@given(data=st.data())
def test_after_any_edits_the_file_has_the_session_and_all_its_revisions(shared: SessionStore, data: st.DataObject) -> None:
    check_edits(shared, data)


@ON_SERVER
@given(data=st.data())
def test_after_any_edits_the_server_has_the_session_and_all_its_revisions(postgres: PostgresServer, data: st.DataObject) -> None:
    with SessionStore(postgres.url()) as store:
        check_edits(store, data)


def check_edits(store: SessionStore, data: st.DataObject) -> None:
    session = store.create(f"any {next(NUMBERS)}")
    for item in data.draw(sessions(max_steps=6)).items:
        Session.append(session, item)
    session.save()
    logs = [list(session.items)]
    rows = rows_of(store, session)
    for step in range(data.draw(st.integers(1, 6))):
        length = len(session.items)
        act = data.draw(st.sampled_from(("append", "pin", "unpin", "insert", "truncate", "system", "breaks", "merge", "title")))
        item = Message("assistant", act, id=f"n{step}", created_at=data.draw(st.integers(0, 40)))
        if act in {"pin", "unpin"} and length:
            getattr(session, act)(data.draw(st.sampled_from(ids(session))))
        elif act == "truncate":
            session.truncate(max_items=data.draw(st.integers(0, length)))
        elif act == "system":
            session.add_message("system", "x", message_id=f"n{step}", replace=True)
        elif act == "breaks":
            session.restore_seams(frozenset(ids(session)[::2]), length)
        elif act == "merge":
            asyncio.run(session.merge(Session([item, replace(item, id=f"o{step}")])))
        elif act == "title":
            session.metadata["title"] = act
            session.save()
        else:
            getattr(session, "insert" if act == "insert" else "append")(item)
        if list(session.items)[: len(logs[-1])] != logs[-1]:  # otherwise the log only grew
            logs.append([])
        logs[-1] = list(session.items)
        before, rows = rows, rows_of(store, session)
        assert rows[: len(before)] == before
    same(store.load(session.id), session)
    stored = [list(store.load(session.id, revision=revision.number).items) for revision in store.revisions(session.id)]
    assert [revision.items for revision in store.revisions(session.id)] == list(map(len, stored))
    assert stored[-1] == logs[-1]
    assert all(log in stored for log in logs)


def test_changes_in_a_together_block_are_written_at_once(store: SessionStore) -> None:
    session = store.create("s")
    with session.together():
        session.add_message("user", "one")
        with session.together():
            session.add_message("user", "two")
        assert len(store.load("s").items) == 0
    assert len(store.load("s").items) == 2
    with pytest.raises(DuplicateItemError), session.together():
        session.append(session.add_message("user", "three"))
    assert texts(store.load("s")) == ["one", "two", "three"]


@pytest.mark.parametrize("time", [0.5, 9], ids=["between", "after"])
def test_insert_many_writes_all_items_or_none_and_keeps_them_in_memory(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch, time: float
) -> None:
    session = store.create("s")
    session.append(Message("user", "old", created_at=1))
    tries = []

    def full(_: Session) -> int:
        tries.append(len(session.items))
        raise StoreError("s.db", "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(store, "save", full)
        with pytest.raises(StoreError, match="the disk is full"):
            session.insert_many(Message("user", f"new{number}", created_at=time) for number in range(3))
    assert tries == [4]
    assert texts(store.load("s")) == ["old"]
    assert sorted(texts(session)) == ["new0", "new1", "new2", "old"]
    session.save()
    same(store.load("s"), session)


# Stored sessions and plain ones


def test_copies_and_forks_of_a_stored_session_are_plain_sessions(store: SessionStore) -> None:
    session = store.create("s")
    session.add_message("user", "one")
    for copied in (session.copy(), session.fork(), copy.copy(session), copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
        assert type(copied) is Session
        copied.add_message("user", "two")
    assert texts(store.load("s")) == ["one"]
    assert texts(session) == ["one"]


def test_cleanup_frees_the_memory_and_keeps_the_file(store: SessionStore) -> None:
    session = store.create("s")
    session.add_message("user", "one")
    session.cleanup()
    assert len(session.items) == 0
    with pytest.raises(StoreError, match="open"):
        session.add_message("user", "two")
    assert session not in store._saved
    assert texts(store.open("s")) == ["one"]


def test_using_a_closed_store_raises_store_error(address: str) -> None:
    store = SessionStore(address)
    session = store.create("s")
    store.close()
    store.close()
    for ask in (store.list, lambda: store.load("s"), lambda: session.add_message("user", "x")):
        with pytest.raises(StoreError, match="was closed"):
            ask()
    assert texts(session) == ["x"]


def test_a_stored_session_is_managed_like_any_other(store: SessionStore) -> None:
    session = store.create("s")
    for number in range(40):
        session.add_message(("user", "assistant")[number % 2], f"{number} " + "word " * 50)
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=1_000), token_counter=len)
    view = manager.process_session(session)
    assert 0 < len(view.items) < 40
    assert list(view.items) == list(manager.process_session(store.load("s")).items)
    session.add_message("user", "and on")
    assert manager.process_session(session).items[-1] is session.items[-1]
    assert store.save(session) == 0


def test_cleanup_in_a_together_block_discards_its_changes(store: SessionStore) -> None:
    session = store.create("s")
    session.add_message("user", "one")
    with session.together():
        session.cleanup()
    assert texts(store.load("s")) == ["one"]
