"""Stand-ins for numpy's integers and arrays, which the project does not depend on."""

from __future__ import annotations


class Whole:
    """No `int`, but usable as one."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Array:
    """Has `__index__`, and refuses it."""

    def __index__(self) -> int:
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
