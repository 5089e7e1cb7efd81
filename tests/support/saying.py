"""Items in few words, for the tests of converters: speakers and texts, calls and their outputs."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from session.items import FunctionCall, FunctionCallOutput, Item, Message
from session.session import Session


def user(text: Any, **more: Any) -> Message:
    return Message("user", text, **more)


def assistant(text: Any, **more: Any) -> Message:
    return Message("assistant", text, **more)


def call(call_id: str, arguments: str = "{}", name: str = "run", **more: Any) -> FunctionCall:
    return FunctionCall(name, arguments, call_id, **more)


def output(call_id: str, text: Any = "done", **more: Any) -> FunctionCallOutput:
    return FunctionCallOutput("run", text, call_id, **more)


def data_url(data: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def comparable(session: Iterable[Item]) -> list[dict[str, Any]]:
    """Return the items without the fields that no payload holds: ids, times, and the provider's own."""
    return [
        {key: value for key, value in item.items() if key not in ("id", "created_at", "category")}
        for item in Session(session).to_dict()["items"]
    ]
