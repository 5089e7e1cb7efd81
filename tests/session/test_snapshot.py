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


@given(snapshots())
def test_a_snapshot_equals_the_tuple_of_its_elements(pair: tuple[Snapshot[int], tuple[int, ...]]) -> None:
    snapshot, expected = pair
    assert isinstance(snapshot, Sequence)
    assert len(snapshot) == len(expected)
    assert bool(snapshot) == bool(expected)
    assert tuple(snapshot) == expected
    assert tuple(reversed(snapshot)) == expected[::-1]
    assert [value in snapshot for value in range(5)] == [value in expected for value in range(5)]
    assert [snapshot.count(value) for value in range(5)] == [expected.count(value) for value in range(5)]
    assert repr(snapshot) == repr(list(expected))


@given(snapshots(), PLACES)
def test_indexing_matches_a_tuple(pair: tuple[Snapshot[int], tuple[int, ...]], place: int) -> None:
    snapshot, expected = pair
    if -len(expected) <= place < len(expected):
        assert snapshot[place] == expected[place]
    else:
        with pytest.raises(IndexError):
            snapshot[place]


@given(snapshots(), ENDS, ENDS, ENDS.filter(lambda step: step != 0))
def test_slicing_matches_a_tuple(
    pair: tuple[Snapshot[int], tuple[int, ...]], start: int | None, stop: int | None, step: int | None
) -> None:
    snapshot, expected = pair
    assert snapshot[start:stop:step] == expected[start:stop:step]
    assert isinstance(snapshot[start:stop:step], tuple)


@given(snapshots(), st.integers(0, 4), PLACES, PLACES)
def test_searching_matches_a_tuple(pair: tuple[Snapshot[int], tuple[int, ...]], value: int, start: int, stop: int) -> None:
    snapshot, expected = pair
    assert _index(snapshot, value, start, stop) == _index(expected, value, start, stop)


def _index(sequence: Sequence[int], *bounds: int) -> int | None:
    try:
        return sequence.index(*bounds)
    except ValueError:
        return None


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


def test_a_snapshot_of_characters_does_not_equal_a_str() -> None:
    assert Snapshot(["a", "b"], 2) != "ab"


def test_a_snapshot_has_no_hash() -> None:
    with pytest.raises(TypeError):
        hash(Snapshot([1], 1))


def test_a_snapshot_is_immutable() -> None:
    snapshot = Snapshot([1], 1)
    with pytest.raises(TypeError):
        snapshot[0] = 2  # type: ignore[index]
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
