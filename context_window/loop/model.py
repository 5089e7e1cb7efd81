"""The model as the loop sees it, for any provider: the `Model` protocol and its `Answer`. Claude's implementation is in `anthropic.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, get_args, runtime_checkable

from session.errors import short
from session.items import FunctionCall, Item, Message
from session.parts import Text
from session.providers.anthropic.blocks import CARRIED
from session.providers.google.write import CARRIED as GOOGLE_PARTS
from session.session import Session
from session.usage import Usage

from ..errors import ModelArgumentError

OnText: TypeAlias = Callable[[str], None]
"""Receives each piece of the answer's text as it arrives, in the thread of the event loop."""

TOOL_USE = "tool_use"
"""The model wants tool calls run."""
END_TURN = "end_turn"
"""The model finished its answer."""
STOP_SEQUENCE = "stop_sequence"
"""The answer reached a stop sequence of the request."""
MAX_TOKENS = "max_tokens"
"""The answer is cut off: it reached the request's `max_tokens`."""
CONTEXT_EXCEEDED = "model_context_window_exceeded"
"""The answer is cut off: prompt and answer together fill the context window."""
REFUSAL = "refusal"
"""The model declined to answer, or to continue."""
PAUSE_TURN = "pause_turn"
"""A server-side tool takes long. The model continues if it is sent its answer so far."""

COMPACTED = "compaction"
"""The provider compacted the conversation and paused. The model continues if it is sent the compaction."""
PAUSES = frozenset({PAUSE_TURN, COMPACTED})

CUT_OFF = frozenset({MAX_TOKENS, CONTEXT_EXCEEDED, REFUSAL})
"""Stop reasons of an incomplete answer: the arguments of its calls may be cut off."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer to one request.

    Attributes:
        items: Reasoning, messages and calls, in order.
        stop: Stop reason: one of the constants above, or the provider's own.
        usage: Reported usage; None if the provider reported none.
        model: The model that answered, by the provider's name for it; None if unknown.
    """

    items: tuple[Item, ...]
    stop: str
    usage: Usage | None = None
    model: str | None = None

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """The tool calls of the answer."""
        return tuple(item for item in self.items if isinstance(item, FunctionCall))

    @property
    def text(self) -> str:
        """The text of the answer's messages, joined; calls and results of server-side tools are left out."""
        return "".join(_message_text(item) for item in self.items if isinstance(item, Message))


def check_model_name(model: object) -> None:
    """Check the name of the model that a `Model` asks. Raises ModelArgumentError if it is not a text, or blank."""
    if not isinstance(model, str) or not model.strip():
        raise ModelArgumentError("model", model, "pass the name of a model")


def check_answer(value: object, model: object) -> Answer:
    """Return the value that the model's `answer` returned if it is one that a log can take.

    Raises ModelArgumentError if it is not an `Answer`, or one of its fields has the wrong type.
    """
    if not isinstance(value, Answer):
        problem = f"returned {short(value)}"
    elif not isinstance(value.items, tuple | list) or not all(isinstance(item, get_args(Item)) for item in value.items):
        problem = "returned an Answer whose items are not session items"
    elif not isinstance(value.stop, str):
        problem = f"returned an Answer with stop={short(value.stop)}"
    elif not (value.usage is None or isinstance(value.usage, Usage)):
        problem = f"returned an Answer with usage={short(value.usage)}"
    elif not (value.model is None or isinstance(value.model, str)):
        problem = f"returned an Answer with model={short(value.model)}"
    else:
        return value
    raise ModelArgumentError(
        "model", type(model), f"its answer() {problem}; make it `async def` and return Answer(items, stop, usage, model)"
    )


def _message_text(message: Message) -> str:
    blocks = message.extra.get(
        CARRIED, message.extra.get(GOOGLE_PARTS)
    )  # provider blocks that a session has no item for; the message shows them as JSON
    if not isinstance(blocks, list):
        return "\n".join(part.text for part in message.content if isinstance(part, Text) and part.text)  # Gemini signs empty texts
    return "".join(block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str))


@runtime_checkable
class CompactingModel(Protocol):
    """A `Model` whose provider can compact conversations."""

    def compacting(self, tokens: int) -> Model | None:
        """Return the model with requests that have the provider compact a prompt above so many tokens; None if it cannot."""


class Model(Protocol):
    """A model that the loop can ask: any object with this method."""

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """Ask the model and return its answer.

        Args:
            view: The view to send, made by a manager. Do not change it.
            tools: Tool definitions, each with `name`, `description` and `input_schema`.
            allow_tools: False if the model may not call tools now. Send the definitions all the same: the history contains calls of
                these tools, and the beginning of the prompt should stay as it was.
            on_text: Receives the answer's text piece by piece.

        Raises:
            PromptTooLongError: The prompt exceeds the provider's context window.
            PartRefusedError: The provider cannot read an image or a document. `run_turn` retries with a note in its place.
            ModelError: The request failed for another reason.
        """
