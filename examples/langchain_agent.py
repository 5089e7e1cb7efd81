"""LangChain: an agent with a tool and a memory, twelve turns in a window that holds three. No key, no network.

    python examples/langchain_agent.py

With a real model: `create_agent("anthropic:claude-opus-5", [read_log], middleware=[middleware])`. For LangGraph's `create_react_agent`:
`pre_model_hook=pre_model_hook(manager, tools=[read_log])`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context_window import ContextWindow, ContextWindowManager

try:
    from langchain.agents import create_agent
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langgraph.checkpoint.memory import InMemorySaver

    from context_window.integrations.langchain import ContextWindowMiddleware
except ModuleNotFoundError as error:
    raise SystemExit(f"{error}. This example needs what this installs: pip install '.[integrations]'") from None

shown: list[int] = []


class Scripted(BaseChatModel):
    """A model that reads the log of the day that it is asked for."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:  # noqa: ARG002 - as its base class has it
        """Itself: it knows its tool."""
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **more: Any) -> ChatResult:  # noqa: ARG002
        shown.append(len(messages))
        answer = AIMessage("Most failed at 03:00.")
        if not isinstance(messages[-1], ToolMessage):
            answer = AIMessage("", tool_calls=[{"name": "read_log", "args": {"day": len(shown)}, "id": f"call_{len(shown)}"}])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def read_log(day: int) -> str:
    """The server's log of a day."""
    return "\n".join(f"day {day}, {hour:02}:00: {hour * 7 % 11} requests failed" for hour in range(24))


def main() -> None:
    """Runs the agent, and prints what was sent and what is kept."""
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=2_000), on_event=print)
    middleware = ContextWindowMiddleware(manager)
    tools = [read_log, middleware.recall]
    agent: Any = create_agent(Scripted(), tools, system_prompt="You read logs.", middleware=[middleware], checkpointer=InMemorySaver())
    state: dict[str, Any] = {}
    for day in range(1, 13):
        asked = HumanMessage(f"When did most requests fail on day {day}?")
        state = agent.invoke({"messages": [asked]}, {"configurable": {"thread_id": "logs"}})
    print(f"{len(state['messages'])} messages in the state, {shown[-1]} in the last request")
    print(manager.format_token_usage())


if __name__ == "__main__":
    main()
