"""A response's tool calls, run together: each has an answer in the end, whatever its tool does. No model is asked here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import isasyncgen, isawaitable, iscoroutinefunction, isgenerator
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
    return [output_of(call, _outcome(call, task)) for call, task in zip(calls, tasks, strict=True)], cancelled


def _outcome(call: FunctionCall, task: Any) -> Recalled:
    if task.cancelled() or not task.done():
        return failed(STOPPED)
    error = task.exception()  # a KeyboardInterrupt: it stops the event loop, and what the other calls did is recorded all the same
    result: Recalled = task.result() if error is None else _failure(call, error)
    return result


def _failure(call: FunctionCall, error: BaseException) -> Recalled:
    return failed(f"{call.name} failed: {raised(error)}")


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
    except (KeyboardInterrupt, GeneratorExit):  # not the tool's: the program is to stop
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises is an answer to its call
        return _failure(call, error)
    if isinstance(value, Recalled):
        return value
    return await asyncio.to_thread(answered, value)


async def _run(run: Callable[[], Any]) -> Any:
    """What the tool returns; of a generator, all that it yields."""
    import asyncio

    inner: Any = run
    while isinstance(inner, partial):
        inner = inner.func
    if iscoroutinefunction(inner) or (callable(inner) and iscoroutinefunction(type(inner).__call__)):
        value = await run()
    else:
        value, error = await asyncio.to_thread(_attempted, run)
        if error is not None:
            raise error
        if isawaitable(value):  # a plain function that makes a coroutine, as decorators do
            value = await value
    return [one async for one in value] if isasyncgen(value) else value


def _attempted(run: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What the function returns, or what it raises: some exceptions, such as StopIteration, a future cannot carry."""
    try:
        value = run()
        return list(value) if isgenerator(value) and not isawaitable(value) else value, None
    except (StopIteration, GeneratorExit) as error:
        return None, RuntimeError(raised(error))
    except BaseException as error:  # noqa: BLE001 - raised again in the task that waits for it
        return None, error
