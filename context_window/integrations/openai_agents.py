"""OpenAI's Agents SDK: a filter that reduces the input of each model call to what fits. The run keeps every item."""

from __future__ import annotations

from typing import Any, cast

from agents import Agent, FunctionTool, Model, RunConfig, Runner, TResponseInputItem
from agents.run_config import CallModelData, ModelInputData

from session.summarizers import Summarizer, SummaryText

from ..manager import ContextWindowManager
from .conversation_tracker import REMEMBERED, ConversationTracker
from .message_adapter import usage_from_totals
from .recall_mixin import RecallMixin
from .responses_adapter import Json, ResponsesAdapter

__all__ = ["ContextWindowFilter"]


class ContextWindowFilter(RecallMixin):
    """Shows the model what fits: a filter for runs.

        config = RunConfig(call_model_input_filter=ContextWindowFilter(ContextWindowManager("gpt-5")))
        result = await Runner.run(agent, "…", run_config=config)

    The run keeps every item (`result.to_input_list()`). The model is sent the run's own items, or a copy if an item is shown in part.
    When a trim would be due, the agent's model first writes a summary of the older items, if the agent has a `Model` object. For a model's
    name only the run knows the provider: pass a `Model` object as `model` then, or name a summariser (`ContextWindow(summary_llm=…)`).
    Give `recall` to the agent as a tool with `function_tool(filter.recall)`.
    """

    def __init__(self, manager: ContextWindowManager, *, model: Model | None = None, remembered: int = REMEMBERED) -> None:
        """
        Args:
            manager: The manager that makes the views. The agent's instructions and function tools are counted automatically.
            model: Writes summaries for agents that have only a model's name.
            remembered: Conversations to remember, the most recently used ones. Others are replayed from their beginning.
        """
        self._conversations: ConversationTracker[Json] = ConversationTracker(manager, ResponsesAdapter(), remembered=remembered)
        self._named_summariser = _summariser(model)

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the input with the items that fit.

        Args:
            data: The run's input, and the agent.

        Raises:
            ContextOverflowError: The protected items alone exceed the budget, and the window is `strict`.
        """
        model_input = data.model_data
        tools = [_definition(tool) for tool in data.agent.tools if isinstance(tool, FunctionTool)]
        llm = _summariser(data.agent.model) or self._named_summariser
        messages = cast("list[Json]", model_input.input)  # the SDK's typed dictionaries
        items = await self._conversations.afit(messages, system=model_input.instructions or "", tools=tools, llm=llm)
        return ModelInputData(input=cast("list[TResponseInputItem]", items), instructions=model_input.instructions)


def _summariser(model: object) -> Summarizer | None:
    """Return a summariser that asks the agent's model. None for a model's name: only the run knows which provider it belongs to."""
    if not isinstance(model, Model):
        return None

    async def summarise(prompt: str) -> str:
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(Agent("summary", model=model), prompt, max_turns=1, run_config=config)
        usage = result.context_wrapper.usage
        cached = usage.input_tokens_details.cached_tokens
        return SummaryText(str(result.final_output), usage_from_totals(usage.input_tokens, cached, 0, usage.output_tokens))

    return summarise


def _definition(tool: FunctionTool) -> dict[str, Any]:
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}
