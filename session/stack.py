"""Stack space for nested data: JSON encoders and decoders recurse, and the caller may have used most of the recursion limit."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def with_room(function: Callable[[], T]) -> T:
    """Call the function with at least half of the recursion limit free, and return its result.

    If the caller has used more than half, the function runs in a thread, whose stack is empty. So nested data is readable or not
    regardless of how deep the caller is.
    """
    if not _is_deeper_than(sys.getrecursionlimit() // 2):
        return function()
    results: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=copy_context().run, args=(call,))
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _is_deeper_than(calls: int) -> bool:
    try:
        sys._getframe(calls)  # noqa: SLF001 - the only cheap test
    except ValueError:
        return False
    return True
