"""`ReadOnlySession`: a live view of a session that refuses every change."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NoReturn, cast

from .errors import ReadOnlyError
from .items import Item
from .session import Session

_SLOT = "_source"


def _shown(slot: str) -> Any:
    """Return a property that reads a slot of the source."""
    return property(attrgetter(f"{_SLOT}.{slot}"))


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

    _is_view: bool = _shown("_is_view")
    _items: list[Item] = _shown("_items")
    _length: int = _shown("_length")
    _breaks: frozenset[str] = _shown("_breaks")
    _ends: frozenset[str] = _shown("_ends")
    _settled: int = _shown("_settled")
    _settled_tokens: int | None = _shown("_settled_tokens")
    _origin: Session | None = _shown("_origin")

    @property
    def _positions(self) -> dict[str, int]:  # type: ignore[override]
        return self._source._position_map()

    def read_only(self) -> ReadOnlySession:
        """Return this view itself."""
        return self

    # Inside

    def _check_editable(self, operation: str) -> NoReturn:
        raise ReadOnlyError(operation, is_view=self._source.is_view)


def source_of(session: Session) -> Session:
    """Return the session that a read-only one shows; any other session is returned unchanged."""
    return getattr(session, _SLOT) if isinstance(session, ReadOnlySession) else session
