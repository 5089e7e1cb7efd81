"""`StoredSession`: a session that writes every change to its store before the call returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from session.errors import StoreError
from session.items import Item, Message
from session.session import Session
from session.session_log import AnyItem

if TYPE_CHECKING:
    from session.rewrite import Excerpt

    from .store import SessionStore


class StoredSession(Session):
    """A session that saves itself: `SessionStore.create` and `SessionStore.open` return one.

    If a change raises StoreError, it is in memory but not on disk. The next change, or `save()`, writes it: no response is lost
    because the disk was full. A change of `metadata` is written with the next change.

    Copies, forks and views of it are plain sessions that are not saved.
    """

    __slots__ = ("_pause_count", "_store")

    _store: SessionStore | None

    def __init__(self, store: SessionStore, session: Session) -> None:
        self._pause_count = 1  # save nothing while the copy is incomplete
        self._store = store
        super().__init__()
        self.__setstate__({**session.__getstate__(), "is_view": False})
        self._pause_count = 0

    def __reduce__(self) -> tuple[Callable[..., Session], tuple[dict[str, Any]]]:
        return _plain_session, (self.__getstate__(),)

    def save(self) -> int:
        """Write pending changes and return the number of items written. Only needed after an error or a change of `metadata`.

        Raises:
            StoreError: As `SessionStore.save`.
        """
        return self._writer().save(self)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all changes of the block at its end, all or nothing: for a response of several items, or for many items at once.

            with session.together():
                session.append(reasoning)
                session.append(call)

        Do not await inside: items that other tasks append meanwhile would be delayed too.

        Raises:
            StoreError: As `SessionStore.save`.
        """
        store = self._writer()
        self._pause_count += 1
        try:
            yield
        finally:
            self._pause_count -= 1
            if not self._pause_count and self._store is not None:
                store.save(self)

    # Every change goes through one of these.

    def append(self, item: AnyItem) -> AnyItem:
        """Append the item as `Session.append` does, and write it to disk. Raises StoreError if it is only in the log in memory."""
        with self.together():
            return super().append(item)

    def insert_many(self, items: Iterable[Item]) -> list[Item]:
        """Insert items as `Session.insert_many` does, and write all of them to disk or none.

        Raises StoreError if they could not be written; all of them are in the log in memory.
        """
        with self.together():
            return super().insert_many(items)

    def restore_seams(
        self, breaks: frozenset[str], settled: int, settled_tokens: int | None = None, ends: frozenset[str] | None = None
    ) -> None:
        """Set these attributes: for readers of saved views and transcripts. `request_ends` stays as it is if `ends` is None."""
        with self.together():
            super().restore_seams(breaks, settled, settled_tokens, ends)

    def cleanup(self) -> None:
        """Drop all items, indexes and metadata from memory, and detach from the store. The file keeps the session.

        Changing this session afterwards raises StoreError. `SessionStore.open` loads it again.
        """
        if self._store is not None:
            self._store.let_go(self)
            self._store = None
        super().cleanup()

    # Inside

    def _replace_instructions(self, message: Message) -> None:
        with self.together():
            super()._replace_instructions(message)

    def _set_items(self, excerpt: Excerpt) -> None:
        with self.together():
            super()._set_items(excerpt)

    def _add_foreign_message(self, message: Message) -> None:
        with self.together():
            super()._add_foreign_message(message)

    def _set_pinned(self, id: str, pinned: bool) -> Item:
        with self.together():
            return super()._set_pinned(id, pinned)

    def _writer(self) -> SessionStore:
        if self._store is None:
            raise StoreError("", f"session {self.id} was released by cleanup(); open() it in its store again")
        return self._store


def _plain_session(state: dict[str, Any]) -> Session:
    """Return a copy that is not saved."""
    copied = Session()
    copied.__setstate__(state)
    return copied
