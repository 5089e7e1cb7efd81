"""`Snapshot`: an immutable sequence over the beginning of a list that only grows. No copy is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

T = TypeVar("T", covariant=True)


class Snapshot(Sequence[T], Generic[T]):
    """The first `length` elements of a list. It is made in O(1) and never changes.

    This works because the owner of the list only appends to it, and makes a new list for every other edit.
    """

    __slots__ = ("_elements", "_length")

    def __init__(self, elements: list[T], length: int) -> None:
        self._elements = elements
        self._length = length

    if not TYPE_CHECKING:  # type checkers know that it has no such methods

        def __getattr__(self, name: str) -> object:
            hint = (
                ""
                if name.startswith("_") or not hasattr(list, name)
                else ": change items through the session, such as session.append(item)"
            )
            raise AttributeError(f"these items have no {name}{hint}", name=name, obj=self)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[T, ...]: ...
    def __getitem__(self, position: int | slice) -> T | tuple[T, ...]:
        if isinstance(position, slice):
            start, stop, step = position.indices(self._length)
            if step == 1:
                return tuple(self._elements[start:stop])
            return tuple(self._elements[index] for index in range(start, stop, step))
        if not -self._length <= position < self._length:
            raise IndexError(f"item {position} of {self._length}")
        return self._elements[position if position >= 0 else position + self._length]

    def __iter__(self) -> Iterator[T]:
        return islice(self._elements, self._length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # equal to lists and tuples, so it cannot have a hash of its own

    def __repr__(self) -> str:
        return repr(self._elements[: self._length])

    def __reduce__(self) -> tuple[Callable[..., object], tuple[Any, ...]]:
        # The list can be longer than the snapshot: copies and pickles get only the elements that the snapshot shows.
        return type(self), (self._elements[: self._length], self._length)
