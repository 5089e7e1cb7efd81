"""OpenAI's Agents SDK: an agent with a tool, twelve runs on one history, in a window that holds three. No key, no network.

    python examples/openai_agents_run.py

With a real model: leave `model=` out, and pass `ContextWindowManager("gpt-5")` to the filter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from context_window import ContextWindow, ContextWindowManager

try:
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from context_window.integrations.openai_agents import ContextWindowFilter
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}. This example needs what this installs: pip install '.[integrations]'") from None

shown: list[int] = []


class Scripted(Model):
    """A model that reads the log of the day that it is asked for."""

    async def get_response(self, system_instructions: str | None, input: Any, *rest: Any, **more: Any) -> ModelResponse:  # noqa: A002, ARG002
        """A call of the tool, or the answer after it."""
        shown.append(len(input))
        serial = len(shown)
        if input[-1].get("type") == "function_call_output":
            text = ResponseOutputText(text="Most failed at 03:00.", type="output_text", annotations=[])
            answer: Any = ResponseOutputMessage(id=f"msg_{serial}", content=[text], role="assistant", status="completed", type="message")
        else:
            arguments = f'{{"day": {serial}}}'
            answer = ResponseFunctionToolCall(call_id=f"call_{serial}", name="read_log", arguments=arguments, type="function_call")
        return ModelResponse(output=[answer], usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        """Nothing: the example does not stream."""
        raise NotImplementedError


@function_tool
def read_log(day: int) -> str:
    """The server's log of a day."""
    return "\n".join(f"day {day}, {hour:02}:00: {hour * 7 % 11} requests failed" for hour in range(24))


async def main() -> None:
    """Runs the agent, and prints what was sent and what is kept."""
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=2_000), on_event=print)
    fitting = ContextWindowFilter(manager)
    agent = Agent(name="logs", instructions="You read logs.", tools=[read_log, function_tool(fitting.recall)], model=Scripted())
    config = RunConfig(call_model_input_filter=fitting, tracing_disabled=True)
    history: list[Any] = []
    for day in range(1, 13):
        asked = {"role": "user", "content": f"When did most requests fail on day {day}?"}
        history = (await Runner.run(agent, [*history, asked], run_config=config)).to_input_list()
    print(f"{len(history)} items in the history, {shown[-1]} in the last request")
    print(manager.format_token_usage())


if __name__ == "__main__":
    asyncio.run(main())
