"""LangChain and LangGraph agents: reduce the messages of each model call to what fits. The agent's state keeps every message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool

from session.errors import SummaryError, short
from session.summarizers import Summarizer, SummaryText

from ..manager import ContextWindowManager
from .conversation_tracker import REMEMBERED, ConversationTracker
from .langchain_messages import LangChainAdapter, text_of, usage_of
from .recall_mixin import RecallMixin

__all__ = ["ContextWindowMiddleware", "pre_model_hook"]

INCOMPLETE_REASONS = ("max_tokens", "length", "MAX_TOKENS", "refusal", "content_filter", "SAFETY")
"""Stop reasons after which an answer is not a whole summary, as the providers' integrations report them."""


class ContextWindowMiddleware(RecallMixin, AgentMiddleware[Any, Any, Any]):
    """Shows the model what fits: middleware for `create_agent`.

        middleware = ContextWindowMiddleware(ContextWindowManager("claude-sonnet-5-5"))
        agent = create_agent(model, tools, middleware=[middleware])

    The agent's state keeps every message. The model is sent the state's own message objects, or a copy if a message is shown in part.
    When a trim would be due, the agent's own model first writes a summary of the older messages (`ContextWindow(compaction=False)` turns
    this off). If Anthropic says that the prompt is too long, a smaller request is sent, once. Put this middleware last, so that it sees
    the messages as the others leave them. Give `recall` to the agent as a tool.
    """

    def __init__(self, manager: ContextWindowManager, *, remembered: int = REMEMBERED) -> None:
        """
        Args:
            manager: The manager that makes the views. The system prompt and the tools of a request are counted automatically.
            remembered: Conversations to remember, the most recently used ones. Others are replayed from their beginning, with the same
                result.
        """
        super().__init__()
        self._conversations = ConversationTracker(manager, LangChainAdapter(), remembered=remembered)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]) -> ModelResponse[Any]:
        """Return the model's answer to the messages that fit.

        Args:
            request: The agent's request. It is not changed.
            handler: Calls the model.

        Raises:
            ContextOverflowError: The protected items alone exceed the budget, and the window is `strict`.
        """
        context = _system_and_tools(request)
        messages = self._conversations.fit(request.messages, **context, llm=_summariser(request.model))
        try:
            return handler(request.override(messages=messages))
        except Exception as error:  # noqa: BLE001 - raised again if it is not about the prompt's length
            messages = self._conversations.fit(request.messages, **context, refusal=error)
        return handler(request.override(messages=messages))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """`wrap_model_call` for async agents."""
        context = _system_and_tools(request)
        messages = await self._conversations.afit(request.messages, **context, llm=_summariser(request.model))
        try:
            return await handler(request.override(messages=messages))
        except Exception as error:  # noqa: BLE001 - raised again if it is not about the prompt's length
            messages = await self._conversations.afit(request.messages, **context, refusal=error)
        return await handler(request.override(messages=messages))


def pre_model_hook(
    manager: ContextWindowManager, *, system: str = "", tools: Sequence[Any] = (), model: Any = None, remembered: int = REMEMBERED
) -> RunnableLambda[Any, dict[str, list[AnyMessage]]]:
    """Return a hook for LangGraph's `create_react_agent(…, pre_model_hook=…)`: the model gets what fits, the state keeps every message.

        graph = create_react_agent(model, tools, pre_model_hook=pre_model_hook(manager, tools=tools, model=model))

    Args:
        manager: The manager that makes the views.
        system: The agent's prompt. LangGraph does not pass it to the hook, and its tokens must be counted.
        tools: The agent's tools, for the same reason.
        model: The agent's chat model, which then writes summaries. LangGraph does not pass it to the hook. None to summarise only with the
            window's `summary_llm`.
        remembered: Conversations to remember, the most recently used ones.
    """
    conversations: ConversationTracker[AnyMessage] = ConversationTracker(manager, LangChainAdapter(), remembered=remembered)
    definitions = [convert_to_openai_tool(tool) for tool in tools]

    llm = None if model is None else _summariser(model)

    def fit(state: Any) -> dict[str, list[AnyMessage]]:
        return {"llm_input_messages": conversations.fit(_messages(state), system=system, tools=definitions, llm=llm)}

    async def afit(state: Any) -> dict[str, list[AnyMessage]]:
        return {"llm_input_messages": await conversations.afit(_messages(state), system=system, tools=definitions, llm=llm)}

    return RunnableLambda(fit, afit, name="context_window")


def _summariser(model: Any) -> Summarizer:
    """Return a summariser that asks the request's model, without tools."""

    async def summarise(prompt: str) -> str:
        answer = await model.ainvoke([HumanMessage(prompt)])
        metadata = answer.response_metadata
        reason = metadata.get("stop_reason") or metadata.get("finish_reason")
        if reason in INCOMPLETE_REASONS:
            raise SummaryError(f"the model stopped with {short(reason)}", usage_of(answer))
        return SummaryText(text_of(answer), usage_of(answer))

    return summarise


def _messages(state: Any) -> list[AnyMessage]:
    return list(state["messages"] if isinstance(state, Mapping) else state.messages)


def _system_and_tools(request: ModelRequest[Any]) -> dict[str, Any]:
    system = request.system_message
    tools = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in request.tools]
    return {"system": "" if system is None else text_of(system), "tools": tools}
