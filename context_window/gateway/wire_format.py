"""`WireFormat`: all that the gateway must know about a provider's requests. `MessageFormat`: as much of it as `manage` needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from session.items import Role

from ..counting.overhead import COUNTED_OPTIONS
from ..integrations.message_adapter import MessageAdapter

if TYPE_CHECKING:
    from .joined_answer import JoinedAnswer

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RequestConversation:
    """The part of a request's body that decides its view.

    Attributes:
        model: The model's name.
        system: The system prompt, if it stands outside the messages.
        messages: The messages, as the client sent them.
        tools: The tool definitions.
        options: Other fields of the request that cost tokens.
        output_tokens: The largest number of tokens that the client lets the answer have; None if it does not say.
        recall_tool: The definition of the recall tool, if the request gets it as soon as something is taken out.
    """

    model: str
    system: str
    messages: list[Json]
    tools: list[Any]
    options: Json
    output_tokens: int | None
    recall_tool: Json | None = None


ROLES: Mapping[str, Role] = {"system": "system", "developer": "developer", "assistant": "assistant"}
"""By the name of a role in OpenAI's style: the role of its messages. Any other is the user's."""


class MessageFormat(ABC):
    """Reads and writes lists of messages in one format.

    Attributes:
        adapter: Reads and copies single messages.
        is_of_objects: True if the messages are objects of a framework, and no JSON.
    """

    adapter: ClassVar[MessageAdapter[Any]]
    is_of_objects: ClassVar[bool] = False

    def in_order(self, body: Json, messages: Sequence[Json]) -> list[Json]:  # noqa: ARG002 - the base case
        """Return the messages in a row that the provider accepts.

        Args:
            body: The body that they are sent in.
            messages: The messages of a view.
        """
        return list(messages)


class WireFormat(MessageFormat):
    """Reads and writes the requests of one provider's API.

    Attributes:
        name: The first part of its addresses here.
        upstream: The provider's address.
        variables: Variables of the environment by which its clients find an address, each with what follows the name.
        field: The field of a body that holds its messages.
        joined_answer: Hides recalls in answers from the client.
    """

    name: ClassVar[str]
    upstream: ClassVar[str]
    field: ClassVar[str]
    variables: ClassVar[Mapping[str, str]]
    adapter: ClassVar[MessageAdapter[Any]]
    joined_answer: ClassVar[type[JoinedAnswer]]

    @abstractmethod
    def conversation(self, path: str, body: Json) -> RequestConversation | None:
        """Return the conversation of a request, or None if it has none that the gateway manages.

        Args:
            path: The address without the format's name.
            body: The body of a POST.
        """

    def with_messages(self, body: Json, messages: Sequence[Json]) -> Json:
        """Return the body with other messages. All other fields are the same objects, in the same order."""
        return {**body, self.field: self.in_order(body, messages)}

    @abstractmethod
    def error(self, status: int, message: str) -> Json:
        """Return an error as the provider words its own, for a client that shows it."""


def objects(value: object) -> list[Json] | None:
    """Return a list of JSON objects; None for anything else."""
    return value if isinstance(value, list) and all(isinstance(member, dict) for member in value) else None


def tools_and_options(body: Json) -> tuple[list[Any], Json]:
    """Return a request's tool definitions, and its other fields that cost tokens."""
    tools = body.get("tools")
    return tools if isinstance(tools, list) else [], {name: value for name, value in body.items() if name in COUNTED_OPTIONS}


def text_of(content: object) -> str:
    """Return a system prompt's text: a text, or the texts of its blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return "\n".join(text for text in texts if isinstance(text, str))


def tokens_in(body: Json, *names: str) -> int | None:
    """Return the first of these fields that is a positive whole number."""
    values = (body.get(name) for name in names)
    return next((value for value in values if type(value) is int and value > 0), None)
