"""The model of a chat: which provider serves it, and which key it takes from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from session.extras import package_line
from session.printable import printable
from session.redaction import redacted, short

from ..loop import AnthropicModel, GoogleModel, Model, OpenAIModel
from ..models import describe_model, similar_names
from .chat import ChatError


class Server(NamedTuple):
    """Where a chat sends its requests. None for the provider that the model's name tells, and for that provider's own address."""

    provider: str | None = None
    base_url: str | None = None

    def fixed(self, model: str) -> Server:
        """Return the server with its API, if it has an address: its key is not meant for another one, whichever model comes next."""
        return Server(provider_of(model, self), self.base_url) if self.base_url else self


class Provider(NamedTuple):
    """A provider's API: the package of its client, the environment variables of its key, the model to use if the user names none."""

    package: str
    keys: tuple[str, ...]
    model: str = ""

    @property
    def has_key(self) -> bool:
        """True if the environment has a key for it."""
        return any(os.environ.get(name) for name in self.keys)


PROVIDERS = {
    "anthropic": Provider("anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "claude-sonnet-5-5"),
    "openai-responses": Provider("openai", ("OPENAI_API_KEY",), "gpt-5.2"),
    "google": Provider("google-genai", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini-3-pro-preview"),
    "openai": Provider("openai", ("OPENAI_API_KEY",)),
}
"""By name, as `--provider` and `ContextWindowManager.request` take it. `openai` is Chat Completions."""
MAKERS = {"claude": "anthropic", "openai": "openai-responses", "google": "google"}
"""By the family of a model's name: the provider that serves it unless the user names another one."""


def default_model(provider_name: str | None) -> str:
    """Return the model to use if the user names none: that of the provider, or of the first provider with a key."""
    for name, provider in PROVIDERS.items():
        if provider.model and (provider_name == name or (provider_name is None and provider.has_key)):
            return provider.model
    keys = ", ".join(provider.keys[0] for provider in PROVIDERS.values() if provider.model)
    raise ChatError(f"which model? Pass --model NAME, or export a key ({keys}); --replay LOG needs neither")


def continued(named: Server, kept: object, *, is_same_model: bool) -> Server:
    """Return the server for a session that goes on: the one that the user names, else the session's own.

    So neither the conversation nor a key goes to a server that the user has not named.

    Args:
        named: What the options name.
        kept: The server that the session has kept; anything else is ignored.
        is_same_model: True if the options name no other model.
    """
    old = Server(*(kept.get(field) for field in Server._fields)) if isinstance(kept, Mapping) else Server()
    if old.provider not in PROVIDERS or not isinstance(old.base_url, str | None) or named.provider not in (None, old.provider):
        return named
    if named.base_url is None and (old.base_url or is_same_model):
        return old
    return named._replace(provider=old.provider) if is_same_model else named


def provider_of(model: str, server: Server) -> str:
    """Return the name of the provider whose API is used.

    Raises:
        ChatError: Nobody is known to serve the model.
    """
    name = server.provider or MAKERS.get(describe_model(model).family) or ("openai" if server.base_url else None)
    if name is None:
        hint = "".join(f"Did you mean {name}? " for name in similar_names(model)[:1])
        raise ChatError(f"who serves {short(model)}? {hint}Name its API with --provider, or the address of its server with --base-url")
    return name


def connect(model: str, server: Server, stack: AsyncExitStack) -> Model:
    """Return a model. Its connections are closed with the stack.

    Raises:
        ChatError: Nobody is known to serve it, there is no key, or its provider's client is missing or cannot be made.
    """
    name, base_url = provider_of(model, server), server.base_url
    package, keys, _ = PROVIDERS[name]
    options: dict[str, Any] = {"base_url": base_url} if base_url else {}
    if not PROVIDERS[name].has_key:
        if not base_url:
            raise ChatError(f"{keys[0]} is not set: export your key, or choose a model of another provider")
        options["api_key"] = "none"  # a server of one's own may want no key, but the clients do
    try:
        return _model(name, model, options, stack)
    except ModuleNotFoundError as error:
        raise ChatError(f"{printable(model)} needs another package: {package_line(package)}") from error
    except Exception as error:  # the client checks the addresses and proxies in the environment
        reason = redacted(printable(str(error)))
        raise ChatError(f"the client of {name} cannot be made: {reason}; check the address and the proxy settings") from error


def _model(provider_name: str, model: str, options: dict[str, Any], stack: AsyncExitStack) -> Model:
    if provider_name == "anthropic":
        from anthropic import AsyncAnthropic

        claude = AsyncAnthropic(**options)
        stack.push_async_callback(claude.close)
        return AnthropicModel(claude, model)
    if provider_name == "google":
        from google import genai

        gemini = genai.Client(http_options={"base_url": options.pop("base_url", None)}, **options).aio
        stack.push_async_callback(gemini.aclose)
        return GoogleModel(gemini, model)
    from openai import AsyncOpenAI

    gpt = AsyncOpenAI(**options)
    stack.push_async_callback(gpt.close)
    return OpenAIModel(gpt, model, api="chat" if provider_name == "openai" else "responses")
