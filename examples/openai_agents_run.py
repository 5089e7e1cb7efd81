"""OpenAI's Agents SDK: an agent with a tool, twelve runs on one history, in a context window for three. No key, no network.

    python examples/openai_agents_run.py

With a real model: leave `model=` out, and pass `ContextWindowManager("gpt-5")` to the filter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from context_window import ContextWindowManager

try:
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from context_window.integrations.openai_agents import ContextWindowFilter
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}. This example needs what this installs: pip install '.[integrations]'") from None

request_lengths: list[int] = []


class ScriptedModel(Model):
    """A model that calls `read_log` for every question, then answers."""

    async def get_response(self, system_instructions: str | None, input: Any, *args: Any, **options: Any) -> ModelResponse:  # noqa: A002, ARG002
        """Return a tool call, or the answer after its result."""
        request_lengths.append(len(input))
        number = len(request_lengths)
        if input[-1].get("type") == "function_call_output":
            text = ResponseOutputText(text="Most failed at 03:00.", type="output_text", annotations=[])
            answer: Any = ResponseOutputMessage(id=f"msg_{number}", content=[text], role="assistant", status="completed", type="message")
        else:
            arguments = f'{{"day": {number}}}'
            answer = ResponseFunctionToolCall(call_id=f"call_{number}", name="read_log", arguments=arguments, type="function_call")
        return ModelResponse(output=[answer], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        """Not supported: the example does not stream."""
        raise NotImplementedError


@function_tool
def read_log(day: int) -> str:
    """The server's log of a day."""
    return "\n".join(f"day {day}, {hour:02}:00: {hour * 7 % 11} requests failed" for hour in range(24))


async def main() -> None:
    """Run the agent. Print how much it keeps and how much it sent."""
    manager = ContextWindowManager(max_tokens=2_000, on_event=print)
    context_filter = ContextWindowFilter(manager)
    agent = Agent(name="logs", instructions="You read logs.", tools=[read_log, function_tool(context_filter.recall)], model=ScriptedModel())
    config = RunConfig(call_model_input_filter=context_filter, tracing_disabled=True)
    history: list[Any] = []
    for day in range(1, 13):
        question = {"role": "user", "content": f"When did most requests fail on day {day}?"}
        history = (await Runner.run(agent, [*history, question], run_config=config)).to_input_list()
    print(f"{len(history)} items in the history, {request_lengths[-1]} in the last request")
    print(manager.format_token_usage())


if __name__ == "__main__":
    asyncio.run(main())
