"""Sums of the first numbers of a list that changes: a Fenwick tree. Every operation takes the logarithm of the list's length."""

from __future__ import annotations

from typing import Generic, TypeVar

Number = TypeVar("Number", int, float)


class PrefixSums(Generic[Number]):
    """A list of numbers, all zero at first.

    sums = PrefixSums(3, 0)
    sums.add(1, 5)
    sums.first(2)  # 5: the sum of the first two
    sums.find(4)  # 1: the place in which the fifth unit lies
    """

    def __init__(self, size: int, zero: Number) -> None:
        """
        Args:
            size: Length of the list.
            zero: The zero of its type.
        """
        self._zero: Number = zero
        self._tree: list[Number] = [zero] * (size + 1)

    def add(self, place: int, amount: Number) -> None:
        """Add an amount to the number at a place. A place beyond the end is ignored."""
        node = place + 1
        while node < len(self._tree):
            self._tree[node] += amount
            node += node & -node

    def first(self, count: int) -> Number:
        """Return the sum of the first numbers."""
        total: Number = self._zero
        while count:
            total += self._tree[count]
            count -= count & -count
        return total

    def find(self, amount: float) -> int:
        """Return the greatest count whose first numbers sum to no more than the amount. No number may be negative."""
        place, step = 0, 1 << (len(self._tree) - 1).bit_length()
        while step:
            if place + step < len(self._tree) and self._tree[place + step] <= amount:
                place += step
                amount -= self._tree[place]
            step >>= 1
        return place
