"""`ReadOnlySession`: a session seen by somebody who must not change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from .errors import ReadOnlyError
from .items import Item
from .session import Session

_SLOT = "_source"


def _refused(name: str) -> Any:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise ReadOnlyError(name)

    refuse.__name__ = name
    refuse.__doc__ = "Refused: raises ReadOnlyError."
    return refuse


class ReadOnlySession(Session):
    """A live view of a session: it sees all that happens there, and every edit of it raises `ReadOnlyError`.

        seen = session.read_only()
        manager.process_session(seen)

    It is a `Session` to whatever reads one: managers, converters, queries, `to_dict`. Copies and forks of it are sessions that may
    be changed. `metadata` cannot be assigned to; values nested in it are the session's own.
    """

    __slots__ = (_SLOT,)

    _source: Session

    def __init__(self, source: Session) -> None:
        """
        Args:
            source: The session to see.
        """
        object.__setattr__(self, _SLOT, source)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise ReadOnlyError("__setattr__")

    def __delattr__(self, name: str) -> NoReturn:
        raise ReadOnlyError("__delattr__")

    def __repr__(self) -> str:
        return f"<read-only {super().__repr__()[1:]}"

    def __reduce__(self) -> tuple[Callable[..., ReadOnlySession], tuple[Session]]:
        # A copy sees the same session; a deep copy or a pickle sees a copy of its own.
        return ReadOnlySession, (self._source,)

    # What `Record` keeps in slots is the source's, always as it is now.

    @property
    def id(self) -> str:  # type: ignore[override]
        """The session's own id."""
        return self._source.id

    @property
    def metadata(self) -> Mapping[str, Any]:  # type: ignore[override]
        """The session's metadata."""
        return MappingProxyType(self._source.metadata)

    @property
    def _items(self) -> list[Item]:  # type: ignore[override]
        return self._source._items

    @property
    def _length(self) -> int:  # type: ignore[override]
        return self._source._length

    @property
    def _places(self) -> dict[str, int]:  # type: ignore[override]
        return self._source._place_map()

    @property
    def _breaks(self) -> frozenset[str]:  # type: ignore[override]
        return self._source._breaks

    @property
    def _settled(self) -> int:  # type: ignore[override]
        return self._source._settled

    @property
    def _settled_tokens(self) -> int | None:  # type: ignore[override]
        return self._source._settled_tokens

    @property
    def _origin(self) -> Session | None:  # type: ignore[override]
        return self._source._origin

    def read_only(self) -> ReadOnlySession:
        """This view itself."""
        return self

    append = _refused("append")
    add_message = _refused("add_message")
    add_context = _refused("add_context")
    add_function_call = _refused("add_function_call")
    add_function_output = _refused("add_function_output")
    add_handoff = _refused("add_handoff")
    add_config_update = _refused("add_config_update")
    pin = _refused("pin")
    unpin = _refused("unpin")
    insert = _refused("insert")
    insert_many = _refused("insert_many")
    truncate = _refused("truncate")
    summarize = _refused("summarize")
    cleanup = _refused("cleanup")
    merge = _refused("merge")
    merge_result = _refused("merge_result")
    merge_with_summary = _refused("merge_with_summary")
    restore_seams = _refused("restore_seams")


def source_of(session: Session) -> Session:
    """The session itself: what a read-only one shows."""
    return getattr(session, _SLOT) if isinstance(session, ReadOnlySession) else session
