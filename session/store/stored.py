"""`StoredSession`: a session whose every change is on the disk when it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from session.errors import StoreError
from session.items import Item, Message, MessageCategory, Role
from session.parts import Content
from session.record import AnyItem
from session.session import Session
from session.usage import Usage

if TYPE_CHECKING:
    from session.excerpts import Excerpt

    from .store import SessionStore


class StoredSession(Session):
    """A session that is written as it grows and changes: `SessionStore.create` and `open` give one.

    What raises a StoreError has happened in memory all the same, and is written with the next change, or by `save()`: no answer is
    lost because the disk was full. A change of `metadata` is written with the next one too.

    Copies, forks and views of it are sessions like any other, which nobody writes.
    """

    __slots__ = ("_held", "_store")

    _store: SessionStore | None

    def __init__(self, store: SessionStore, session: Session) -> None:
        """
        Args:
            store: Who writes it.
            session: What it begins as.
        """
        self._held = 1  # nothing is written before it is whole
        self._store = store
        super().__init__()
        self.__setstate__(session.__getstate__())
        self._held = 0

    def __reduce__(self) -> tuple[Callable[..., Session], tuple[dict[str, Any]]]:
        return _plain, (self.__getstate__(),)

    def save(self) -> int:
        """How many items were written. Only after an error, or a change of `metadata`, is there anything to write.

        Raises:
            StoreError: As `SessionStore.save`.
        """
        return self._writer().save(self)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Writes what is done inside at its end, all or nothing: for a response of several items, or for many items at once.

            with session.together():
                session.append(reasoning)
                session.append(call)

        Do not await inside: what others append meanwhile would wait too.

        Raises:
            StoreError: As `SessionStore.save`.
        """
        store = self._writer()
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if not self._held and self._store is not None:
                store.save(self)

    # What changes it. Everything else that does comes down to these.

    def append(self, item: AnyItem) -> AnyItem:
        """The item, now the last of the log, and on the disk.

        Raises:
            DuplicateItemError: Its id is taken.
            FormatError: It is no item.
            StoreError: It could not be written; it is in the log in memory.
        """
        with self.together():
            return super().append(item)

    def add_message(
        self,
        role: Role,
        content: Content,
        message_id: str | None = None,
        created_at: float | None = None,
        replace: bool = False,
        agent_id: str | None = None,
        *,
        category: MessageCategory | None = None,
        pinned: bool = False,
        usage: Usage | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Message:
        """The message, appended: as `Session.add_message`, and on the disk.

        Raises:
            DuplicateItemError: The id is taken.
            FormatError: A value has the wrong type; or `replace` with another role than system.
            StoreError: It could not be written; it is in the log in memory.
        """
        with self.together():
            return super().add_message(
                role,
                content,
                message_id,
                created_at,
                replace,
                agent_id,
                category=category,
                pinned=pinned,
                usage=usage,
                extra=extra,
            )

    def insert_many(self, items: Iterable[Item]) -> list[Item]:
        """The items, each now where `insert` would have put it: as `Session.insert_many`, and on the disk, all of them or none.

        Raises:
            DuplicateItemError: An id is taken, or given twice.
            FormatError: Something is no item.
            StoreError: They could not be written; all of them are in the log in memory.
        """
        with self.together():
            return super().insert_many(items)

    def restore_seams(self, breaks: frozenset[str], settled: int, settled_tokens: int | None = None) -> None:
        """Sets what these are called: for readers of saved views and transcripts."""
        with self.together():
            super().restore_seams(breaks, settled, settled_tokens)

    def cleanup(self) -> None:
        """Lets go of all items, indexes and metadata, and of the file, which keeps what it has.

        A change of this session is a StoreError from then on: `SessionStore.open` gives it again.
        """
        if self._store is not None:
            self._store.let_go(self)
            self._store = None
        super().cleanup()

    # Inside

    def _become(self, found: Excerpt) -> None:
        with self.together():
            super()._become(found)

    def _say(self, message: Message) -> None:
        with self.together():
            super()._say(message)

    def _set_pinned(self, id: str, pinned: bool) -> Item:
        with self.together():
            return super()._set_pinned(id, pinned)

    def _writer(self) -> SessionStore:
        if self._store is None:
            raise StoreError("", f"session {self.id} was let go of by cleanup(); open() it in its store again")
        return self._store


def _plain(state: dict[str, Any]) -> Session:
    """A copy: nobody writes it."""
    copied = Session()
    copied.__setstate__(state)
    return copied
