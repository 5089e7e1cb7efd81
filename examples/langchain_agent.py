"""LangChain: an agent with a tool and a memory, twelve turns in a context window for three. No key, no network.

    python examples/langchain_agent.py

With a real model: `create_agent("anthropic:claude-opus-5", [read_log], middleware=[middleware])`. For LangGraph's `create_react_agent`:
`pre_model_hook=pre_model_hook(manager, tools=[read_log])`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context_window import ContextWindowManager

try:
    from langchain.agents import create_agent
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.checkpoint.memory import InMemorySaver

    from context_window.integrations.langchain import ContextWindowMiddleware
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}. This example needs what this installs: pip install '.[integrations]'") from None

request_lengths: list[int] = []


class ScriptedModel(BaseChatModel):
    """A model that calls `read_log` for every question, then answers."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:  # noqa: ARG002 - the base class's parameters
        """Return the model itself: it calls only `read_log`."""
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:  # noqa: ARG002
        request_lengths.append(len(messages))
        answer = AIMessage("Most failed at 03:00.")
        if not isinstance(messages[-1], ToolMessage):
            number = len(request_lengths)
            answer = AIMessage("", tool_calls=[{"name": "read_log", "args": {"day": number}, "id": f"call_{number}"}])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def read_log(day: int) -> str:
    """The server's log of a day."""
    return "\n".join(f"day {day}, {hour:02}:00: {hour * 7 % 11} requests failed" for hour in range(24))


def main() -> None:
    """Run the agent. Print how much it keeps and how much it sent."""
    manager = ContextWindowManager(max_tokens=2_000, on_event=print)
    middleware = ContextWindowMiddleware(manager)
    tools = [read_log, middleware.recall]
    agent: Any = create_agent(ScriptedModel(), tools, system_prompt="You read logs.", middleware=[middleware], checkpointer=InMemorySaver())
    state: dict[str, Any] = {}
    for day in range(1, 13):
        question = HumanMessage(f"When did most requests fail on day {day}?")
        state = agent.invoke({"messages": [question]}, {"configurable": {"thread_id": "logs"}})
    print(f"{len(state['messages'])} messages in the state, {request_lengths[-1]} in the last request")
    print(manager.format_token_usage())


if __name__ == "__main__":
    main()
