"""Pydantic AI: an agent with a tool, twelve runs on one history, in a context window for three. No key, no network.

    python examples/pydantic_ai_agent.py

With a real model: `Agent("anthropic:claude-opus-5", capabilities=[capability])`.
"""

from __future__ import annotations

import asyncio

from context_window import ContextWindowManager

try:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from context_window.integrations.pydantic_ai import ContextWindowCapability
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}. This example needs what this installs: pip install '.[integrations]'") from None

request_lengths: list[int] = []


def scripted_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model that calls `read_log` for every question, then answers."""
    assert {tool.name for tool in info.function_tools} == {"read_log", "recall"}
    request_lengths.append(len(messages))
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse([TextPart("Most failed at 03:00.")])
    return ModelResponse([ToolCallPart("read_log", {"day": len(request_lengths)})])


def read_log(day: int) -> str:
    """The server's log of a day."""
    return "\n".join(f"day {day}, {hour:02}:00: {hour * 7 % 11} requests failed" for hour in range(24))


async def main() -> None:
    """Run the agent. Print how much it keeps and how much it sent."""
    manager = ContextWindowManager(max_tokens=2_000, on_event=print)
    capability = ContextWindowCapability(manager)
    tools = [read_log, capability.recall]
    agent = Agent(FunctionModel(scripted_model), instructions="You read logs.", tools=tools, capabilities=[capability])
    history: list[ModelMessage] = []
    for day in range(1, 13):
        result = await agent.run(f"When did most requests fail on day {day}?", message_history=history)
        history = result.all_messages()
    print(f"{len(history)} messages in the history, {request_lengths[-1]} in the last request")
    print(manager.format_token_usage())


if __name__ == "__main__":
    asyncio.run(main())
