"""`LiteLLMHook`: the gateway's decision as a hook of LiteLLM's proxy, for those who run that already.

Needs the package `litellm`. The proxy finds the hook by a name in its configuration, `litellm_settings: callbacks: MODULE.NAME`.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from ..settings.context_window import ContextWindow
from ..threads import in_thread
from . import anthropic_messages, openai_chat, openai_responses
from .windows import IDLE_SECONDS, UNFIT, Windows
from .wire_format import Json, RequestConversation, WireFormat

__all__ = ["LiteLLMHook"]

_LOGGER = logging.getLogger(__name__)

_CHAT = openai_chat.ChatWire(), openai_chat.PATH
_RESPONSES = openai_responses.ResponsesWire(), openai_responses.ResponsesWire.path
_ANTHROPIC = anthropic_messages.AnthropicWire(), anthropic_messages.PATHS[0]
_WIRES: dict[str, tuple[WireFormat, str]] = {
    "completion": _CHAT,
    "acompletion": _CHAT,
    "responses": _RESPONSES,
    "aresponses": _RESPONSES,
    "anthropic_messages": _ANTHROPIC,
    "aanthropic_messages": _ANTHROPIC,
}
"""The wire format of each kind of call that has a conversation, and an address of that format."""


class LiteLLMHook(CustomLogger):  # type: ignore[misc,unused-ignore]
    """Fits the messages of every request before LiteLLM sends it. All other fields stay as they are.

    A view is a function of the request, so any number of the proxy's workers may each have a hook. A request that cannot be fitted goes
    out unchanged, with a warning in the log that names the kind of error.
    """

    def __init__(self, window: ContextWindow, idle_seconds: float = IDLE_SECONDS) -> None:
        """
        Args:
            window: The limits and the policy of every conversation. Set `max_tokens` if the proxy gives models names of its own. Without a
                strategy, conversations are trimmed with `Extract()`.
            idle_seconds: Seconds without a request after which a conversation is forgotten, at the next request of
                any conversation. A request that comes later is read as a whole, and gets the same view.
        """
        super().__init__()
        self._windows = Windows(window)
        self._idle_seconds = idle_seconds
        self._next_sweep = monotonic() + idle_seconds

    async def async_pre_call_hook(
        self,
        user_api_key_dict: Any,  # noqa: ARG002 - the names are LiteLLM's
        cache: Any,  # noqa: ARG002
        data: dict[str, Any],
        call_type: str,
    ) -> dict[str, Any]:
        """Return the request with the messages of its view.

        Args:
            user_api_key_dict: The caller's key, which is not looked at.
            cache: The proxy's cache, which is not used.
            data: The request.
            call_type: The kind of call, such as `acompletion`.
        """
        wire, path = _WIRES.get(call_type, (None, ""))
        conversation = wire.conversation(path, data) if wire is not None else None
        if wire is None or conversation is None:
            return data
        try:
            messages = await in_thread(lambda: self._fit(wire, conversation))
        except UNFIT as error:
            _LOGGER.warning("a conversation could not be fitted and is sent unchanged: %s", type(error).__name__)
            return data
        return data if messages is None else wire.with_messages(data, messages)

    def _fit(self, wire: WireFormat, conversation: RequestConversation) -> list[Json] | None:
        """Return the messages of the view, or None if they are the conversation's own, and forget conversations that are idle."""
        messages = self._windows.fit(wire, conversation)
        now = monotonic()
        if now >= self._next_sweep:
            self._next_sweep = now + self._idle_seconds / 10
            self._windows.forget_idle(self._idle_seconds)
        return messages
