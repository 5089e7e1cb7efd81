"""Twenty turns through LiteLLM with our hook, as its proxy makes them. Run by `test_gateway_litellm.py` with the Python that has LiteLLM.

Prints a JSON line for each request: its messages before the hook and after it.
"""

import asyncio
import gc
import json
import sys
from typing import Any

import litellm
from litellm.caching.caching import DualCache
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.utils import ProxyLogging

from context_window import ContextWindow
from context_window.gateway.litellm_hook import LiteLLMHook
from session import Session

TURNS = 20
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}


async def main(address: str, budget: int) -> None:
    litellm.callbacks = [LiteLLMHook(ContextWindow(max_tokens=budget))]
    proxy = ProxyLogging(user_api_key_cache=DualCache())
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You read files."}, {"role": "user", "content": "Read all files."}]
    for turn in range(TURNS):
        data = {"model": "openai/gpt-4o", "messages": list(messages), "tools": [TOOL], "user": "me"}
        sent = await proxy.pre_call_hook(user_api_key_dict=UserAPIKeyAuth(), data=data, call_type="acompletion")
        other = {name: value for name, value in sent.items() if name in ("model", "tools", "user")}
        sys.stdout.write(json.dumps([messages, sent["messages"], other]) + "\n")
        answer = await litellm.acompletion(**sent, api_base=f"{address}/v1", api_key="k", num_retries=0)
        message = answer.choices[0].message
        messages.append({"role": "assistant", "content": message.content, "tool_calls": [call.model_dump() for call in message.tool_calls]})
        text = "".join(f"{turn}.{line} the content of the file\n" for line in range(60))
        messages += [{"role": "tool", "tool_call_id": call.id, "content": text} for call in message.tool_calls]
    embedding = {"model": "openai/text-embedding-3-small", "input": ["x"]}
    assert await proxy.pre_call_hook(user_api_key_dict=UserAPIKeyAuth(), data=embedding, call_type="aembedding") is embedding
    assert await remembered_sessions(idle_seconds=300.0) > 0
    assert await remembered_sessions(idle_seconds=0.0) == 0


async def remembered_sessions(idle_seconds: float) -> int:
    """Return how many sessions a hook still has after a request of one conversation and then one of another."""
    hook = LiteLLMHook(ContextWindow(max_tokens=4_000), idle_seconds=idle_seconds)
    before = _sessions()
    for text in ("Hello.", "Good evening."):
        data = {"model": "openai/gpt-4o", "messages": [{"role": "user", "content": text}]}
        await hook.async_pre_call_hook(UserAPIKeyAuth(), DualCache(), data, "acompletion")
    return _sessions() - before


def _sessions() -> int:
    gc.collect()
    return sum(isinstance(each, Session) for each in gc.get_objects())


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
