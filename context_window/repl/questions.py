"""Questions that the chat's tools put to the user in the middle of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from typing import Any

from ..errors import ContextWindowError
from ..printable import printable


class QuestionWithdrawnError(ContextWindowError):
    """The turn ended before the user answered. Nothing was decided: the same question may be put again."""


class Questions:
    """Puts questions from the threads of tools to the terminal, which the event loop's thread holds.

    Questions can be asked while `during_turn` lasts. Those that are open at its end are withdrawn, so no thread waits for ever.
    """

    def __init__(self, confirm: Callable[[str], Awaitable[bool]]) -> None:
        """
        Args:
            confirm: Asks the user a yes-or-no question, in the event loop; true for yes.
        """
        self._confirm = confirm
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def during_turn(self) -> AsyncIterator[None]:
        """Let tools ask until the block ends."""
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loop = None
            await asyncio.sleep(0)  # questions on their way into the loop see that they are late
            withdrawn = list(self._open)
            for task in withdrawn:
                task.cancel()
            await asyncio.gather(*withdrawn, return_exceptions=True)

    def may_read(self, description: str) -> bool:
        """Ask whether the model may read a file. To be called in a thread other than the event loop's, one call at a time.

        Args:
            description: The file, with the reason if its name does not tell it.

        Raises:
            QuestionWithdrawnError: The turn ended before there was an answer.
        """
        loop = self._loop
        question = f"The model asks to read {printable(description)}, which may hold secrets.\nShow it to the model? [y/N] "
        if loop is None:
            raise QuestionWithdrawnError("the turn is over, so the user was not asked")
        try:
            return asyncio.run_coroutine_threadsafe(self._answer(question), loop).result()
        except CancelledError:
            raise QuestionWithdrawnError("the turn ended before the user answered") from None

    async def _answer(self, question: str) -> bool:
        if self._loop is None:
            raise QuestionWithdrawnError("the turn is over, so the user was not asked")
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            return await self._confirm(question)
        finally:
            self._open.discard(task)
