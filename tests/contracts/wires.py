"""Each wire format from end to end: its converters, its validator, its stub, and the vendor's own client between them."""

from __future__ import annotations

import abc
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from session import FunctionCall, Reasoning, Session
from session.items import Item
from session.providers import Violation
from session.providers.anthropic import AnthropicMessages, from_anthropic, to_anthropic, validate_anthropic
from session.providers.google import GoogleContents, from_google, to_google, validate_google
from session.providers.openai_chat import from_openai_chat, to_openai_chat, validate_openai_chat
from session.providers.openai_responses import from_openai_responses, to_openai_responses, validate_openai_responses
from tests.support.lazy import LazyModule
from tests.support.stubs import AnthropicStub, GeminiStub, OpenAIChatStub, OpenAIResponsesStub, Script, Stub
from tests.support.stubs.clients import anthropic_client, google_client, openai_client

if TYPE_CHECKING:
    import anthropic
    import openai
    from google.genai import errors as google_errors
else:
    anthropic = LazyModule("anthropic")
    openai = LazyModule("openai")
    google_errors = LazyModule("google.genai.errors")

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "authorization": "Bearer k", "x-goog-api-key": "k"}


class Wire(abc.ABC):
    """One wire format.

    Attributes:
        name: Which.
        path: Where requests go.
        prefill_refused: The error for a request that ends with the model's text; None if it is accepted.
        parts_field: The field of a message that holds its parts.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    prefill_refused: ClassVar[str | None] = None
    parts_field: ClassVar[str] = "content"

    @property
    @abc.abstractmethod
    def refusal(self) -> type[Exception]:
        """The error that the client raises for a refused request."""

    @abc.abstractmethod
    def stub(self, script: Script | None = None) -> Stub:
        """A strict provider."""

    @abc.abstractmethod
    def client(self, stub: Stub) -> AbstractContextManager[Any]:
        """The vendor's client, which talks to the stub."""

    @abc.abstractmethod
    def sent(self, session: Session) -> Any:
        """Write a session as a payload."""

    @abc.abstractmethod
    def back(self, payload: Any) -> Session:
        """Read a payload as a session."""

    @abc.abstractmethod
    def violations(self, payload: Any) -> list[Violation]:
        """Validate a conversation."""

    def request_violations(self, payload: Any) -> list[Violation]:
        """Validate a request with this conversation."""
        return self.violations(self.request(payload))

    @abc.abstractmethod
    def ask(self, client: Any, payload: Any) -> Any:
        """Return the model's response as a piece of the next payload."""

    @abc.abstractmethod
    def answered(self, answer: Any) -> Session:
        """Return a response as a session."""

    @abc.abstractmethod
    def request(self, payload: Any) -> dict[str, Any]:
        """Return a whole request with this conversation, as JSON."""

    def answer_to(self, stub: Stub, payload: Any) -> tuple[int, str]:
        """Return the stub's status and text, without using a client."""
        status, body = stub.respond(self.path, HEADERS, json.dumps(self.request(payload)).encode())
        return status, json.dumps(body)

    def messages(self, payload: Any) -> list[dict[str, Any]]:
        """Return the messages, contents or items of a payload."""
        listed: list[dict[str, Any]] = payload
        return listed

    def resent(self, session: Session) -> Any:
        """Write a session for the comparison after a round trip."""
        return self.sent(session)

    def ends_with_model(self, payload: Any) -> bool:
        """True if the payload ends with the model's text. A provider's own compaction is not: the model goes on from it."""
        last = self.messages(payload)[-1]
        content = last.get("content")
        is_compaction = isinstance(content, list) and bool(content) and content[-1].get("type") == "compaction"
        return last.get("role") in ("assistant", "model") and not is_compaction

    def signed(self, stub: Stub, item: Item, position: int) -> Item:
        """Return the item as if the stub had made it: the stub refuses other signatures."""
        return item


class Anthropic(Wire):
    """Messages."""

    name = "anthropic"
    path = "/v1/messages"
    prefill_refused = "does not support assistant message prefill"
    extra_fields: ClassVar[dict[str, Any]] = {}

    @property
    def refusal(self) -> type[Exception]:
        return anthropic.BadRequestError

    def stub(self, script: Script | None = None) -> Stub:
        return AnthropicStub(script)

    def client(self, stub: Stub) -> AbstractContextManager[Any]:
        return anthropic_client(stub)

    def sent(self, session: Session) -> AnthropicMessages:
        return to_anthropic(session)

    def back(self, payload: AnthropicMessages) -> Session:
        return from_anthropic(*payload)

    def violations(self, payload: AnthropicMessages) -> list[Violation]:
        return validate_anthropic(payload)

    def ask(self, client: anthropic.Anthropic, payload: AnthropicMessages) -> Any:
        answer = client.messages.create(**self.request(payload))
        return {"role": "assistant", "content": answer.to_dict()["content"]}

    def answered(self, answer: Any) -> Session:
        return from_anthropic([answer])

    def messages(self, payload: AnthropicMessages) -> list[dict[str, Any]]:
        return payload.messages

    def signed(self, stub: Stub, item: Item, position: int) -> Item:
        assert isinstance(stub, AnthropicStub)
        if not isinstance(item, Reasoning):
            return item
        return replace(item, signature=stub.sign(item.text)) if item.text else replace(item, signature=None, data=stub.redact(position))

    def request(self, payload: AnthropicMessages) -> dict[str, Any]:
        system = {"system": payload.system}
        return {"model": "claude-opus-5", "max_tokens": 4096, "messages": payload.messages, **system, **self.extra_fields}


class CachingAnthropic(Anthropic):
    """Messages with cache marks, to a model that always thinks."""

    name = "anthropic, cached"
    extra_fields: ClassVar[dict[str, Any]] = {"thinking": {"type": "adaptive"}}

    def sent(self, session: Session) -> AnthropicMessages:
        return to_anthropic(session, caching=True)

    def resent(self, session: Session) -> AnthropicMessages:
        return to_anthropic(session)  # a payload does not show where earlier requests ended, so marks may be in other places


class BindingAnthropic(CachingAnthropic):
    """The same, to a model that checks the conversation before each thought. Only for conversations with its own responses."""

    name = "anthropic, bound"

    def stub(self, script: Script | None = None) -> Stub:
        return AnthropicStub(script, binds_thinking=True)


class OpenAIChat(Wire):
    """Chat Completions."""

    name = "openai chat"
    path = "/v1/chat/completions"

    @property
    def refusal(self) -> type[Exception]:
        return openai.BadRequestError

    def stub(self, script: Script | None = None) -> Stub:
        return OpenAIChatStub(script)

    def client(self, stub: Stub) -> AbstractContextManager[Any]:
        return openai_client(stub)

    def sent(self, session: Session) -> Any:
        return to_openai_chat(session, reasoning_model=True)

    def back(self, payload: Any) -> Session:
        return from_openai_chat(payload)

    def violations(self, payload: Any) -> list[Violation]:
        return validate_openai_chat(payload)

    def request(self, payload: Any) -> dict[str, Any]:
        return {"model": "o3", "messages": payload}

    def ask(self, client: openai.OpenAI, payload: Any) -> Any:
        answer = client.chat.completions.create(**self.request(payload))
        return answer.choices[0].message.to_dict()

    def answered(self, answer: Any) -> Session:
        return from_openai_chat([answer])


class OpenAIResponses(Wire):
    """Responses."""

    name = "openai responses"
    path = "/v1/responses"

    @property
    def refusal(self) -> type[Exception]:
        return openai.BadRequestError

    def stub(self, script: Script | None = None) -> Stub:
        return OpenAIResponsesStub(script)

    def client(self, stub: Stub) -> AbstractContextManager[Any]:
        return openai_client(stub)

    def sent(self, session: Session) -> Any:
        return to_openai_responses(session)

    def back(self, payload: Any) -> Session:
        return from_openai_responses(payload)

    def violations(self, payload: Any) -> list[Violation]:
        return validate_openai_responses(payload)

    def request(self, payload: Any) -> dict[str, Any]:
        return {"model": "gpt-5", "input": payload, "store": False}

    def ask(self, client: openai.OpenAI, payload: Any) -> Any:
        return [item.to_dict() for item in client.responses.create(**self.request(payload)).output]

    def answered(self, answer: Any) -> Session:
        return from_openai_responses(answer)

    def signed(self, stub: Stub, item: Item, position: int) -> Item:
        assert isinstance(stub, OpenAIResponsesStub)
        if not isinstance(item, Reasoning) or position % 3 == 0:  # a third belongs to another provider
            return item
        id = f"rs_{position}"
        data = stub.encrypt(id, [item.text] if item.text else [])
        return replace(item, signature=None, data=data, extra={"provider": "openai", "openai_id": id})


class Google(Wire):
    """generateContent of Gemini 3."""

    name = "google"
    path = "/v1beta/models/gemini-3-pro:generateContent"
    parts_field = "parts"
    prefill_refused = "ends with a user role or a function response"

    @property
    def refusal(self) -> type[Exception]:
        return google_errors.ClientError

    def stub(self, script: Script | None = None) -> Stub:
        return GeminiStub(script)

    def client(self, stub: Stub) -> AbstractContextManager[Any]:
        return google_client(stub)

    def sent(self, session: Session) -> GoogleContents:
        return to_google(session)

    def back(self, payload: GoogleContents) -> Session:
        return from_google(*payload)

    def violations(self, payload: GoogleContents) -> list[Violation]:
        return validate_google(payload)

    def request(self, payload: GoogleContents) -> dict[str, Any]:
        system = {} if payload.system is None else {"system_instruction": payload.system}
        return {"contents": payload.contents, **system}

    def request_violations(self, payload: GoogleContents) -> list[Violation]:
        return validate_google({"model": "gemini-3-pro", **self.request(payload)})

    def ask(self, client: Any, payload: GoogleContents) -> Any:
        config = None if payload.system is None else {"system_instruction": payload.system}
        return client.models.generate_content(model="gemini-3-pro", contents=payload.contents, config=config).candidates[0].content

    def answered(self, answer: Any) -> Session:
        return from_google([answer])

    def messages(self, payload: GoogleContents) -> list[dict[str, Any]]:
        return payload.contents

    def signed(self, stub: Stub, item: Item, position: int) -> Item:
        assert isinstance(stub, GeminiStub)
        if isinstance(item, FunctionCall) and position % 3 and item.arguments in ("", "{}"):
            signature = stub.sign({"functionCall": {"name": item.name}})
            return replace(item, metadata={"thought_signature": signature})
        return item


WIRES: tuple[Callable[[], Wire], ...] = (Anthropic, CachingAnthropic, OpenAIChat, OpenAIResponses, Google)

__all__ = ["WIRES", "Anthropic", "BindingAnthropic", "CachingAnthropic", "Google", "OpenAIChat", "OpenAIResponses", "Wire"]
