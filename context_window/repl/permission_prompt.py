"""Asks the user, in the middle of a turn, whether a tool may show a file to the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager
from typing import Any

from ..errors import ContextWindowError
from ..printable import printable


class QuestionWithdrawnError(ContextWindowError):
    """The turn ended before the user answered. Nothing was decided: the same question may be asked again."""


class PermissionPrompt:
    """Passes questions from the threads of tools to the terminal, which belongs to the event loop's thread.

    Tools can ask while `during_turn` lasts. Questions that are open at its end are withdrawn, so no thread waits forever.
    """

    def __init__(self, confirm: Callable[[str], Awaitable[bool]]) -> None:
        """
        Args:
            confirm: Asks the user a yes-or-no question, in the event loop. Returns True for yes.
        """
        self._confirm = confirm
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open_questions: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def during_turn(self) -> AsyncIterator[None]:
        """Let tools ask until the block ends."""
        self._loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            self._loop = None
            await asyncio.sleep(0)  # questions on their way into the loop start now, and see that the turn is over
            withdrawn = list(self._open_questions)
            for task in withdrawn:
                task.cancel()
            await asyncio.gather(*withdrawn, return_exceptions=True)

    def may_read(self, description: str) -> bool:
        """Ask whether the model may read a file. Call this in a thread other than the event loop's, one call at a time.

        Args:
            description: The file, and the reason for asking unless its name shows it.

        Raises:
            QuestionWithdrawnError: The turn ended before the user answered.
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
        self._open_questions.add(task)
        try:
            return await self._confirm(question)
        finally:
            self._open_questions.discard(task)
