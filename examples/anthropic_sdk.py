"""Anthropic's SDK: twelve turns with a tool, in a window that holds three, and an API that once finds a prompt too long.

python examples/anthropic_sdk.py            # a scripted API; no key, no network
python examples/anthropic_sdk.py --live     # Claude answers; needs ANTHROPIC_API_KEY
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import anthropic
from anthropic.types import Message

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.integrations.anthropic import create

MODEL = "claude-opus-5"


def read_log(day: int) -> str:
    """The server's log of a day."""
    return "\n".join(f"day {day}, {hour:02}:00: {hour * 7 % 11} requests failed" for hour in range(24))


class Scripted:
    """An API in this process: it reads the log when it is asked for a day, and refuses its ninth request as too long."""

    def __init__(self) -> None:
        self.requests = 0
        self.messages = SimpleNamespace(create=self.create)

    def create(self, **request: Any) -> Message:
        """An answer, or the documented error."""
        self.requests += 1
        if self.requests == 9:
            raise refused("prompt is too long: 1500 tokens > 1300 maximum")
        last = request["messages"][-1]["content"][-1]
        if last["type"] == "tool_result":
            content: dict[str, Any] = {"type": "text", "text": "Most failed at 03:00."}
        else:
            day = int(last["text"].split()[-1].rstrip("?"))
            content = {"type": "tool_use", "id": f"toolu_{self.requests}", "name": "read_log", "input": {"day": day}}
        usage = {"input_tokens": 0, "output_tokens": 0}
        stop = "tool_use" if content["type"] == "tool_use" else "end_turn"
        told = {"id": "msg", "type": "message", "role": "assistant", "model": request["model"], "content": [content], "usage": usage}
        return Message.model_validate({**told, "stop_reason": stop, "stop_sequence": None})


def refused(message: str) -> anthropic.APIError:
    """The error that the SDK raises for a status of 400."""
    import httpx2

    response = httpx2.Response(400, request=httpx2.Request("POST", "http://localhost"))
    return anthropic.BadRequestError(message, response=response, body={"error": {"type": "invalid_request_error", "message": message}})


def turn(manager: ContextWindowManager, client: Any, session: Session, question: str) -> str:
    """The answer to a question; all that is said on the way is in the session."""
    session.add_message("user", question)
    while True:
        answer = create(manager, client, session, model=MODEL, max_tokens=2_000, tools=[read_log])
        calls = [block for block in answer.content if block.type == "tool_use"]
        text = "".join(block.text for block in answer.content if block.type == "text")
        if text:
            session.add_message("assistant", text)
        for call in calls:
            session.add_function_call(call.name, call.input, call.id)
        for call in calls:
            session.add_function_output(call.name, read_log(**call.input), call.id)
        if not calls:
            return text


def main(arguments: list[str]) -> None:
    """Runs the turns, and prints where the tokens are."""
    live = "--live" in arguments
    if live and not os.environ.get("ANTHROPIC_API_KEY"):
        sys.exit("--live asks Claude: export ANTHROPIC_API_KEY first")
    client: Any = anthropic.Anthropic() if live else Scripted()
    manager = ContextWindowManager(MODEL, context_window=ContextWindow(max_tokens=2_000), on_event=print)
    session = Session()
    session.add_message("system", "You read server logs. Answer in one sentence.")
    for day in range(1, 3 if live else 13):
        print(f"day {day}: {turn(manager, client, session, f'When did most requests fail on day {day}?')}")
    print(f"{len(session.items)} items in the log, {len(manager.process_session(session).items)} of them shown")
    print(manager.format_token_usage())


if __name__ == "__main__":
    main(sys.argv[1:])
