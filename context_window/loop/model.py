"""What the loop asks of a model, in no provider's words. A provider's own is beside this file (`anthropic.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, get_args

from session.errors import short
from session.items import FunctionCall, Item, Message
from session.providers.anthropic.blocks import CARRIED
from session.session import Session
from session.usage import Usage

from ..errors import BudgetError

OnText: TypeAlias = Callable[[str], None]
"""Is told each piece of the answer's text as it comes, in the thread of the event loop."""

TOOL_USE = "tool_use"
"""The model wants calls run."""
END_TURN = "end_turn"
"""It has said what it had to say."""
STOP_SEQUENCE = "stop_sequence"
"""It came to a text at which it was told to stop."""
MAX_TOKENS = "max_tokens"
"""The answer is cut off: it is as long as it may be."""
CONTEXT_EXCEEDED = "model_context_window_exceeded"
"""The answer is cut off: prompt and answer fill the model's window."""
REFUSAL = "refusal"
"""It declined to answer, or to go on."""
PAUSE_TURN = "pause_turn"
"""A tool of the provider's own takes long; asked again with what it said so far, it goes on."""

CUT_OFF = frozenset({MAX_TOKENS, CONTEXT_EXCEEDED, REFUSAL})
"""After these an answer is not whole, and calls in it are not to be trusted."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said to one request.

    Attributes:
        items: Reasoning, messages and calls, in the order it said them.
        stop: Why it stopped: one of the names above, or the provider's own word.
        usage: What the provider reported; None where it reported nothing.
        model: The model that answered, as the provider names it; None where not known.
    """

    items: tuple[Item, ...]
    stop: str
    usage: Usage | None = None
    model: str | None = None

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """The calls that it wants run."""
        return tuple(item for item in self.items if isinstance(item, FunctionCall))

    @property
    def text(self) -> str:
        """Its messages' texts, one after the other; not what tools of the provider's own were asked and answered."""
        return "".join(_said(item) for item in self.items if isinstance(item, Message))


def answer_of(said: object, model: object) -> Answer:
    """What a model's `answer` gave, if it is an answer that a log can take.

    Args:
        said: What it gave.
        model: Who gave it.

    Raises:
        BudgetError: It is none.
    """
    if not isinstance(said, Answer):
        wrong = f"gave {short(said)}"
    elif not isinstance(said.items, tuple | list) or not all(isinstance(item, get_args(Item)) for item in said.items):
        wrong = "gave an Answer whose items are not items of a session"
    elif not isinstance(said.stop, str):
        wrong = f"gave an Answer with stop={short(said.stop)}"
    elif not (said.usage is None or isinstance(said.usage, Usage)):
        wrong = f"gave an Answer with usage={short(said.usage)}"
    elif not (said.model is None or isinstance(said.model, str)):
        wrong = f"gave an Answer with model={short(said.model)}"
    else:
        return said
    raise BudgetError("model", type(model), f"its answer() {wrong}; it must be `async def` and give an Answer(items, stop, usage, model)")


def _said(message: Message) -> str:
    blocks = message.extra.get(CARRIED)  # what a session has no words for, and shows as JSON
    if not isinstance(blocks, list):
        return message.text
    return "".join(block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str))


class Model(Protocol):
    """A model that the loop can ask. Anything with this method is one."""

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """What the model says.

        Args:
            view: What it is shown, as a manager made it: to be read only.
            tools: Definitions of the tools, each with `name`, `description` and `input_schema`.
            allow_tools: Whether it may call them now. Where it may not they are named to the provider all the same: their calls
                are in the conversation, and the prompt's beginning stays as it was.
            on_text: Is told the answer's text piece by piece.

        Raises:
            PromptTooLongError: The provider counts more than its window holds.
            PartRefusedError: The provider cannot read an image or a document. `run_turn` asks again with a note in its place.
            ModelError: There is no answer for another reason.
        """
