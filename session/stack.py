"""Room on the stack for what nests: JSON encoders and decoders recurse, and a caller may have used up most of the recursion limit."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def with_room(function: Callable[[], T]) -> T:
    """Return what the function returns, called with at least half of the recursion limit free.

    Where the caller has used more than half, the function runs in a thread, whose stack is empty. So what can be read does not
    depend on how deep the caller stands.
    """
    try:
        sys._getframe(sys.getrecursionlimit() // 2)  # noqa: SLF001 - the only cheap way to ask
    except ValueError:  # the stack is not that deep
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
