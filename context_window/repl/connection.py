"""The model of a chat: which provider serves it, and which key it takes from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from session.extras import package_line
from session.printable import printable
from session.redaction import redacted, short

from ..hosts import is_loopback
from ..loop import AnthropicModel, GoogleModel, Model, OpenAIModel
from ..models import describe_model, similar_names
from .chat import ChatError


class Server(NamedTuple):
    """Where a chat sends its requests.

    Attributes:
        provider: The provider whose API it has; None for the one that the model's name tells.
        base_url: Its address; None for the provider's own.
        is_keyless: True if the chat began without a key. One that is set later is meant for another server.
    """

    provider: str | None = None
    base_url: str | None = None
    is_keyless: bool = False

    def fixed(self, model: str, *, is_kept: bool = False) -> Server:
        """Return the server with its API, if it has an address: its key is not meant for another one, whichever model comes next.

        Args:
            model: The model's name.
            is_kept: True to take the address that the client takes from the environment, where a later chat may lack it.
        """
        if not (self.base_url or is_kept):
            return self
        name = provider_of(model, self)
        address = self.base_url or os.environ.get(PROVIDERS[name].address)
        return Server(name, address, self.is_keyless or not PROVIDERS[name].has_key) if address else self

    def said(self, model: str) -> str:
        """Return where requests go and with which key, to be read before anything is sent; an empty text for the provider itself."""
        provider, address, is_keyless = self.fixed(model, is_kept=True)
        if not address:
            return ""
        keys = (name for name in PROVIDERS[provider or "openai"].keys if os.environ.get(name))
        key = "no key" if is_keyless else f"the key in {next(keys, 'no variable')}"
        is_open = address.startswith("http://") and not is_loopback(urlsplit(address).hostname or "")
        return f" at {redacted(address)} ({key}{', unencrypted' * is_open})"


class Provider(NamedTuple):
    """A provider's API: the package of its client, the environment variables of its key and address, the model if the user names none."""

    package: str
    keys: tuple[str, ...]
    address: str
    model: str = ""

    @property
    def has_key(self) -> bool:
        """True if the environment has a key for it."""
        return any(os.environ.get(name) for name in self.keys)


PROVIDERS = {
    "anthropic": Provider("anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "ANTHROPIC_BASE_URL", "claude-sonnet-5-5"),
    "openai-responses": Provider("openai", ("OPENAI_API_KEY",), "OPENAI_BASE_URL", "gpt-5.2"),
    "google": Provider("google-genai", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GOOGLE_GEMINI_BASE_URL", "gemini-3-pro-preview"),
    "openai": Provider("openai", ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
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
    kept = kept if isinstance(kept, Mapping) else {}
    old = Server(kept.get("provider"), kept.get("base_url"), kept.get("is_keyless") is True)
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


def connect(model: str, server: Server, stack: AsyncExitStack, tell: Callable[[str], object] = str) -> Model:
    """Return a model. Its connections are closed with the stack.

    Args:
        model: The model's name.
        server: Where it is.
        stack: Closes its connections.
        tell: Called with what the provider's client does after a refused attempt, until it gives up.

    Raises:
        ChatError: Nobody is known to serve it, there is no key, or its provider's client is missing or cannot be made.
    """
    name, base_url = provider_of(model, server), server.base_url
    if base_url and not base_url.startswith(("http://", "https://")):
        raise ChatError(f"--base-url {short(base_url)} is no address of a server: begin it with http:// or https://")
    package, keys, *_ = PROVIDERS[name]
    options: dict[str, Any] = {"base_url": base_url} if base_url else {}
    if not PROVIDERS[name].has_key and not base_url:
        raise ChatError(f"{keys[0]} is not set: export your key, or choose a model of another provider")
    if server.is_keyless:  # a server of one's own may want no key, but the clients do
        options["api_key"] = "none"
    try:
        return _model(name, model, options, stack, tell)
    except ModuleNotFoundError as error:
        raise ChatError(f"{printable(model)} needs another package: {package_line(package)}") from error
    except Exception as error:  # the client checks the addresses and proxies in the environment
        reason = redacted(printable(str(error)))
        raise ChatError(f"the client of {name} cannot be made: {reason}; check the address and the proxy settings") from error


def _model(provider_name: str, model: str, options: dict[str, Any], stack: AsyncExitStack, tell: Callable[[str], object]) -> Model:
    async def asked(request: Any) -> None:
        if (count := request.headers.get("x-stainless-retry-count", "0")) != "0":
            tell(f"asking again ({count})")

    async def answered(response: Any) -> None:
        if response.is_error:
            tell(f"HTTP {response.status_code} {response.reason_phrase}".rstrip())

    hooks: Any = {"request": [asked], "response": [answered]}
    if provider_name == "anthropic":
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        claude = AsyncAnthropic(http_client=DefaultAsyncHttpxClient(event_hooks=hooks), **options)
        if "api_key" in options:
            claude.auth_token = None  # older clients take it from the environment all the same
        stack.push_async_callback(claude.close)
        return AnthropicModel(claude, model)
    if provider_name == "google":
        from google import genai

        gemini = genai.Client(http_options={"base_url": options.pop("base_url", None)}, **options).aio
        stack.push_async_callback(gemini.aclose)
        return GoogleModel(gemini, model)
    from openai import AsyncOpenAI
    from openai import DefaultAsyncHttpxClient as OpenAIHttpxClient

    gpt = AsyncOpenAI(http_client=OpenAIHttpxClient(event_hooks=hooks), **options)
    stack.push_async_callback(gpt.close)
    return OpenAIModel(gpt, model, api="chat" if provider_name == "openai" else "responses")
