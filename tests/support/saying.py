"""Items in few words, for the tests of converters: speakers and texts, calls and their outputs."""

from __future__ import annotations

from typing import Any

from session.items import FunctionCall, FunctionCallOutput, Message


def user(text: Any, **more: Any) -> Message:
    return Message("user", text, **more)


def assistant(text: Any, **more: Any) -> Message:
    return Message("assistant", text, **more)


def call(call_id: str, arguments: str = "{}", name: str = "run", **more: Any) -> FunctionCall:
    return FunctionCall(name, arguments, call_id, **more)


def output(call_id: str, text: Any = "done", **more: Any) -> FunctionCallOutput:
    return FunctionCallOutput("run", text, call_id, **more)
