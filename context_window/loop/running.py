"""A response's tool calls, run together: each has an answer in the end, whatever its tool does. No model is asked here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from session.items import FunctionCall, FunctionCallOutput
from session.session import Session

from ..recall import Recalled
from .toolbox import Toolbox, answered, failed, raised

STOPPED = "The call was stopped before it ended. What it had begun may have been done."
"""The answer to a call that was running when the turn was cancelled."""


async def run_calls(calls: Sequence[FunctionCall], toolbox: Toolbox, log: Session) -> tuple[list[FunctionCallOutput], bool]:
    """The answers to the calls, in their order, and whether the turn was cancelled meanwhile.

    Plain functions run in threads, async ones in tasks, all at once. Where the turn is cancelled, those that have not ended are
    answered with `STOPPED`; the thread of a plain function cannot be stopped, and its result is lost.

    Args:
        calls: What the model wants to have run.
        toolbox: The tools.
        log: The session that recall looks into.
    """
    import asyncio

    tasks = [asyncio.create_task(_answer(toolbox, call, log)) for call in calls]
    cancelled = False
    if tasks:
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            cancelled = True
            for task in tasks:
                task.cancel()
            await _let_go(tasks)
    outputs = [
        output_of(call, failed(STOPPED) if task.cancelled() or not task.done() else task.result())
        for call, task in zip(calls, tasks, strict=True)
    ]
    return outputs, cancelled


async def _let_go(tasks: Sequence[Any]) -> None:
    """Waits a moment for cancelled tasks: those that heed it are done at once, those that do not must not hold the turn up."""
    import asyncio

    try:
        await asyncio.wait(tasks, timeout=1.0)
    except asyncio.CancelledError:  # cancelled again: in a hurry
        return


def output_of(call: FunctionCall, answer: Recalled) -> FunctionCallOutput:
    """The answer to a call, as an item of the log."""
    return FunctionCallOutput(call.name, answer.output, call.call_id, is_error=answer.is_error, agent_id=call.agent_id)


async def _answer(toolbox: Toolbox, call: FunctionCall, log: Session) -> Recalled:
    """The call's answer: what its tool returned, or what went wrong."""
    import asyncio

    try:
        run = toolbox.prepared(call, log)
        value = run if isinstance(run, Recalled) else await _run(run)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return failed(f"{call.name} failed: CancelledError")  # something that the tool itself waited for was cancelled
    except (Exception, SystemExit, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever a tool raises is an answer to its call
        return failed(f"{call.name} failed: {raised(error)}")
    if isinstance(value, Recalled):
        return value
    return await asyncio.to_thread(answered, value)


async def _run(run: Callable[[], Any]) -> Any:
    import asyncio

    inner: Any = getattr(run, "func", run)
    if iscoroutinefunction(inner) or (callable(inner) and iscoroutinefunction(type(inner).__call__)):
        return await run()
    value, error = await asyncio.to_thread(_attempted, run)
    if error is not None:
        raise error
    return await value if isawaitable(value) else value  # a plain function that makes a coroutine, as decorators do


def _attempted(run: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What the function returns, or what it raises: some exceptions, such as StopIteration, a future cannot carry."""
    try:
        return run(), None
    except BaseException as error:  # noqa: BLE001 - raised again in the task that waits for it
        return None, error if not isinstance(error, StopIteration) else RuntimeError(f"StopIteration: {error}")
