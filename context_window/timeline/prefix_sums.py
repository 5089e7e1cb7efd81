"""Sums of the first numbers of a list that changes: a Fenwick tree. Every operation takes the logarithm of the list's length."""

from __future__ import annotations

from typing import Generic, TypeVar

Number = TypeVar("Number", int, float)


class PrefixSums(Generic[Number]):
    """A list of numbers, all zero at first.

    sums = PrefixSums(3, 0)
    sums.add(1, 5)
    sums.first(2)  # 5: the sum of the first two
    sums.find(4)  # 1: the index of the number in which the fifth unit lies
    """

    def __init__(self, size: int, zero: Number) -> None:
        """
        Args:
            size: Length of the list.
            zero: The zero of its type.
        """
        self._zero: Number = zero
        self._tree: list[Number] = [zero] * (size + 1)

    def add(self, index: int, amount: Number) -> None:
        """Add an amount to the number at an index. An index beyond the end is ignored."""
        node = index + 1
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
        index, step = 0, 1 << (len(self._tree) - 1).bit_length()
        while step:
            if index + step < len(self._tree) and self._tree[index + step] <= amount:
                index += step
                amount -= self._tree[index]
            step >>= 1
        return index
