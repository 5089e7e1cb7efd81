"""A snapshot behaves like the tuple of its elements while the list behind it grows."""

import copy
import pickle
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session.snapshot import Snapshot

ELEMENTS = st.lists(st.integers(0, 3), max_size=8)
PLACES = st.integers(-10, 10)
ENDS = st.none() | PLACES


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[Snapshot[int], tuple[int, ...]]:
    """Draw a snapshot of a list that has grown since, and the tuple it must equal."""
    visible, later = draw(ELEMENTS), draw(ELEMENTS)
    elements = list(visible)
    snapshot = Snapshot(elements, len(elements))
    elements.extend(later)
    return snapshot, tuple(visible)


@given(snapshots(), PLACES, ENDS, ENDS, ENDS.filter(lambda step: step != 0))
def test_a_snapshot_equals_the_tuple_of_its_elements(
    pair: tuple[Snapshot[int], tuple[int, ...]], index: int, start: int | None, stop: int | None, step: int | None
) -> None:
    snapshot, expected = pair
    assert isinstance(snapshot, Sequence)
    assert (len(snapshot), tuple(snapshot), repr(snapshot)) == (len(expected), expected, repr(list(expected)))
    assert snapshot[start:stop:step] == expected[start:stop:step]
    if -len(expected) <= index < len(expected):
        assert snapshot[index] == expected[index]
    else:
        with pytest.raises(IndexError):
            snapshot[index]


@given(snapshots(), ELEMENTS)
def test_a_snapshot_equals_only_sequences_of_the_same_elements(pair: tuple[Snapshot[int], tuple[int, ...]], other: list[int]) -> None:
    snapshot, expected = pair
    assert snapshot == expected
    assert expected == snapshot
    assert snapshot == list(expected)
    assert snapshot == Snapshot(list(expected), len(expected))
    assert (snapshot == other) == (list(expected) == other)
    assert (snapshot != other) == (list(expected) != other)
    assert snapshot != set(expected)


def test_a_snapshot_is_immutable_and_has_no_hash() -> None:
    snapshot = Snapshot(["a", "b"], 2)
    assert snapshot != "ab"
    with pytest.raises(TypeError):
        hash(snapshot)
    with pytest.raises(TypeError):
        snapshot[0] = "c"  # type: ignore[index]
    with pytest.raises(AttributeError):
        snapshot.extra = 2  # type: ignore[attr-defined]


def test_an_iterator_stops_at_the_end_of_the_snapshot() -> None:
    elements = [1, 2]
    iterator = iter(Snapshot(elements, 2))
    elements.append(3)
    assert list(iterator) == [1, 2]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda snapshot: pickle.loads(pickle.dumps(snapshot))])
def test_a_copy_holds_only_the_elements_of_the_snapshot(again: Callable[[Snapshot[str]], Snapshot[str]]) -> None:
    other = again(Snapshot(["seen", "later"], 1))
    assert other == ("seen",)
    assert b"later" not in pickle.dumps(other)
