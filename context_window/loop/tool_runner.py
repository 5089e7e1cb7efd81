"""Run the tool calls of one response concurrently. Every call gets an output, whatever its tool does. No model is asked here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from session.items import FunctionCall, FunctionCallOutput
from session.session import Session

from ..recall import Recalled
from .toolbox import Toolbox, describe_error, error_result, result_of

STOPPED = "The call was stopped before it ended. What it had begun may have been done."
"""Output of a call that was running when the turn was cancelled. The model reads it."""


async def run_calls(calls: Sequence[FunctionCall], toolbox: Toolbox, log: Session) -> tuple[list[FunctionCallOutput], bool]:
    """Run the calls concurrently. Return their outputs, in the calls' order, and True if the turn was cancelled meanwhile.

    Plain functions run in threads, async ones in tasks. If the turn is cancelled, calls that have not finished get `STOPPED` as output.
    The thread of a plain function cannot be stopped; its result is discarded.
    """
    import asyncio

    tasks = [asyncio.create_task(_run_call(toolbox, call, log)) for call in calls]
    is_cancelled = False
    if tasks:
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            is_cancelled = True
            for task in tasks:
                task.cancel()
            await _wait_briefly(tasks)
    return [output_for(call, _task_result(call, task)) for call, task in zip(calls, tasks, strict=True)], is_cancelled


def _task_result(call: FunctionCall, task: Any) -> Recalled:
    if task.cancelled() or not task.done():
        return error_result(STOPPED)
    error = task.exception()  # a KeyboardInterrupt: it stops the event loop, but the results of the other calls are still recorded
    result: Recalled = task.result() if error is None else _failed_call(call, error)
    return result


def _failed_call(call: FunctionCall, error: BaseException) -> Recalled:
    return error_result(f"{call.name} failed: {describe_error(error)}")


async def _wait_briefly(tasks: Sequence[Any]) -> None:
    """Wait up to one second for cancelled tasks. Most end at once; one that ignores the cancellation must not hold up the turn."""
    import asyncio

    try:
        await asyncio.wait(tasks, timeout=1.0)
    except asyncio.CancelledError:  # cancelled a second time: do not wait at all
        return


def output_for(call: FunctionCall, result: Recalled) -> FunctionCallOutput:
    """Return the call's result as an item of the log."""
    return result.item_for(call)


async def _run_call(toolbox: Toolbox, call: FunctionCall, log: Session) -> Recalled:
    """Run one call. Return the tool's result, or a description of the error."""
    import asyncio

    try:
        function = toolbox.prepared(call, log)
        value = function if isinstance(function, Recalled) else await _call_function(function)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return error_result(f"{call.name} failed: CancelledError")  # the tool itself awaited something that was cancelled
    except (KeyboardInterrupt, GeneratorExit):  # meant for the program, not for the tool
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises becomes the output of its call
        return _failed_call(call, error)
    if isinstance(value, Recalled):
        return value
    return await asyncio.to_thread(result_of, value)


async def _call_function(function: Callable[[], Any]) -> Any:
    """Call a tool's function and return its value."""
    import asyncio

    inner: Any = function
    while isinstance(inner, partial):
        inner = inner.func
    if iscoroutinefunction(inner) or (callable(inner) and iscoroutinefunction(type(inner).__call__)):
        value = await function()
    else:
        value, error = await asyncio.to_thread(_call_in_thread, function)
        if error is not None:
            raise error
        if isawaitable(value):  # a plain function that returns a coroutine, as decorators do
            value = await value
    return value


def _call_in_thread(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return the function's value, or the exception it raised: a future cannot carry some exceptions, such as StopIteration."""
    try:
        return function(), None
    except (StopIteration, GeneratorExit) as error:
        return None, RuntimeError(describe_error(error))
    except BaseException as error:  # noqa: BLE001 - raised again in the task that waits for it
        return None, error
