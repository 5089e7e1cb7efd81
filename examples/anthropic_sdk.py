"""Anthropic's SDK: twelve turns with a tool, in a context window for three, and an API that refuses one prompt as too long.

python examples/anthropic_sdk.py            # a scripted API; no key, no network
python examples/anthropic_sdk.py --live     # Claude answers; needs ANTHROPIC_API_KEY
"""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from typing import Any

import anthropic

from context_window import ContextWindowManager, FunctionCall, Message, Session
from context_window.integrations.anthropic import create

MODEL = "claude-opus-5"


def read_log(day: int) -> str:
    """The server's log of a day."""
    return "\n".join(f"day {day}, {hour:02}:00: {hour * 7 % 11} requests failed" for hour in range(24))


class ScriptedClient:
    """A client without a network. It calls the tool for every question, and refuses its ninth request as too long."""

    def __init__(self) -> None:
        self.requests = 0
        self.messages = SimpleNamespace(create=self.create)

    def create(self, **request: Any) -> anthropic.types.Message:
        """Return an answer, or raise the API's documented error."""
        self.requests += 1
        if self.requests == 9:
            raise prompt_too_long("prompt is too long: 1500 tokens > 1300 maximum")
        last = request["messages"][-1]["content"][-1]
        if last["type"] == "tool_result":
            content: dict[str, Any] = {"type": "text", "text": "Most failed at 03:00."}
        else:
            day = int(last["text"].split()[-1].rstrip("?"))
            content = {"type": "tool_use", "id": f"toolu_{self.requests}", "name": "read_log", "input": {"day": day}}
        usage = {"input_tokens": 0, "output_tokens": 0}
        stop = "tool_use" if content["type"] == "tool_use" else "end_turn"
        message = {"id": "msg", "type": "message", "role": "assistant", "model": request["model"], "content": [content], "usage": usage}
        return anthropic.types.Message.model_validate({**message, "stop_reason": stop, "stop_sequence": None})


def prompt_too_long(message: str) -> anthropic.APIError:
    """Return the error that the SDK raises for status 400."""
    import httpx2

    response = httpx2.Response(400, request=httpx2.Request("POST", "http://localhost"))
    return anthropic.BadRequestError(message, response=response, body={"error": {"type": "invalid_request_error", "message": message}})


def turn(manager: ContextWindowManager, client: Any, session: Session, question: str) -> str:
    """Ask a question and return the answer. Everything said on the way is appended to the session."""
    session.add_message("user", question)
    while True:
        answer = create(manager, client, session, model=MODEL, max_tokens=2_000, tools=[read_log])
        items = session.add_response(answer, extra=manager.answer_notes(session))
        calls = [item for item in items if isinstance(item, FunctionCall)]
        if not calls:
            return "".join(item.text for item in items if isinstance(item, Message))
        session.add_tool_results({call.call_id: read_log(**json.loads(call.arguments)) for call in calls})


def main(arguments: list[str]) -> None:
    """Run the turns and print the token usage."""
    live = "--live" in arguments
    if live and not os.environ.get("ANTHROPIC_API_KEY"):
        sys.exit("--live asks Claude: export ANTHROPIC_API_KEY first")
    client: Any = anthropic.Anthropic() if live else ScriptedClient()
    manager = ContextWindowManager(MODEL, max_tokens=2_000, on_event=print)
    session = Session()
    session.add_message("system", "You read server logs. Answer in one sentence.")
    for day in range(1, 3 if live else 13):
        print(f"day {day}: {turn(manager, client, session, f'When did most requests fail on day {day}?')}")
    print(f"{len(session.items)} items in the log, {len(manager.process_session(session).items)} of them in the view")
    print(manager.format_token_usage())


if __name__ == "__main__":
    main(sys.argv[1:])
