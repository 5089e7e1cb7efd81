"""`WireFormat`: all that the gateway must know about a provider's requests. Each format implements it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..counting.overhead import COUNTED_OPTIONS
from ..integrations.message_adapter import MessageAdapter

if TYPE_CHECKING:
    from .joined_answer import JoinedAnswer

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conversation:
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


class KnownOrder:
    """What was found when the messages of an earlier body were put in order. Of two bodies with the same messages, it is the same.

    Attributes:
        made: Messages that were merged from two, by the ids of the two. These are held with them, so that their ids stay theirs.
    """

    def __init__(self, earlier: KnownOrder | None = None) -> None:
        """
        Args:
            earlier: What is known of the earlier body. No message in it may have changed.
        """
        self._known: dict[tuple[int, int], tuple[Json, Json, Json]] = {} if earlier is None else earlier.made
        self.made: dict[tuple[int, int], tuple[Json, Json, Json]] = {}

    def merged(self, first: Json, second: Json, merge: Callable[[Json, Json], Json]) -> Json:
        """Return two messages as one: the same object as in the earlier body."""
        key = id(first), id(second)
        self.made[key] = self._known.get(key) or (first, second, merge(first, second))
        return self.made[key][2]


class WireFormat(ABC):
    """Reads and writes the requests of one provider's API.

    Attributes:
        name: The first part of its addresses here.
        upstream: The provider's address.
        variables: Variables of the environment by which its clients find an address, each with what follows the name.
        field: The field of a body that holds its messages.
        adapter: Reads and copies single messages.
    """

    name: ClassVar[str]
    upstream: ClassVar[str]
    field: ClassVar[str]
    variables: ClassVar[Mapping[str, str]]
    adapter: MessageAdapter[Json]

    @property
    @abstractmethod
    def joined_answer(self) -> type[JoinedAnswer]:
        """The class that hides recalls in its answers from the client."""

    @abstractmethod
    def conversation(self, path: str, body: Json) -> Conversation | None:
        """Return the conversation of a request, or None if it has none that the gateway manages.

        Args:
            path: The address without the format's name.
            body: The body of a POST.
        """

    def with_messages(self, body: Json, messages: Sequence[Json]) -> Json:
        """Return the body with other messages. All other fields are the same objects, in the same order."""
        return {**body, self.field: list(map(self.sent, self.in_order(body, messages, KnownOrder())))}

    def in_order(self, body: Json, messages: Sequence[Json], order: KnownOrder) -> list[Json]:  # noqa: ARG002 - the base case
        """Return the messages in a row that the provider accepts. Most of them are the same objects.

        Args:
            body: The body that they are sent in.
            messages: The messages of a view.
            order: What was found in the messages of an earlier body. It is brought up to date.
        """
        return list(messages)

    def sent(self, message: Json) -> Json:
        """Return a message as it is sent. The default is the message itself."""
        return message

    def forget_idle(self, seconds: float) -> None:  # noqa: B027 - the base case
        """Forget what is remembered of conversations that had no request for so many seconds. The default remembers nothing."""

    @abstractmethod
    def error(self, status: int, message: str) -> Json:
        """Return an error as the provider words its own, for a client that shows it."""


def object_of(content: bytes) -> Json | None:
    """Return the JSON object that a body holds; None if it holds none, so that the upstream can say so."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


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
