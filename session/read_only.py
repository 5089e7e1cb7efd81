"""`ReadOnlySession`: a live view of a session that refuses every change."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NoReturn, cast

from .errors import ReadOnlyError
from .items import Item
from .session import Session

_SLOT = "_source"


class ReadOnlySession(Session):
    """A live view of a session. It shows every change made there, and raises `ReadOnlyError` for every change made here.

        view = session.read_only()
        manager.process_session(view)

    Everything that reads a `Session` accepts it: managers, converters, queries, `to_dict`. Copies and forks of it can be changed.
    `metadata` cannot be assigned to; values nested in it are the session's own.
    """

    __slots__ = (_SLOT,)

    _source: Session

    def __init__(self, source: Session) -> None:
        """
        Args:
            source: The session to show.
        """
        object.__setattr__(self, _SLOT, source)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        self._check_editable(name)

    def __delattr__(self, name: str) -> NoReturn:
        self._check_editable(name)

    def __repr__(self) -> str:
        return f"<read-only {super().__repr__()[1:]}"

    def __reduce__(self) -> tuple[Callable[..., ReadOnlySession], tuple[Session]]:
        # A copy shows the same session; a deep copy or a pickle shows a copy of it.
        return ReadOnlySession, (self._source,)

    # Attributes that `SessionLog` keeps in slots are read from the source each time.

    @property
    def id(self) -> str:  # type: ignore[override]
        """The session's own id."""
        return self._source.id

    @property  # type: ignore[misc]  # setting it is refused above
    def metadata(self) -> dict[str, Any]:
        """The session's metadata, read-only."""
        return cast("dict[str, Any]", MappingProxyType(self._source.metadata))

    @property
    def _is_view(self) -> bool:  # type: ignore[override]
        return self._source.is_view

    @property
    def _items(self) -> list[Item]:  # type: ignore[override]
        return self._source._items

    @property
    def _length(self) -> int:  # type: ignore[override]
        return self._source._length

    @property
    def _positions(self) -> dict[str, int]:  # type: ignore[override]
        return self._source._position_map()

    @property
    def _breaks(self) -> frozenset[str]:  # type: ignore[override]
        return self._source._breaks

    @property
    def _ends(self) -> frozenset[str]:  # type: ignore[override]
        return self._source._ends

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
        """Return this view itself."""
        return self

    # Inside

    def _check_editable(self, operation: str) -> NoReturn:
        raise ReadOnlyError(operation, is_view=self._source.is_view)


def source_of(session: Session) -> Session:
    """Return the session that a read-only one shows; any other session is returned unchanged."""
    return getattr(session, _SLOT) if isinstance(session, ReadOnlySession) else session
