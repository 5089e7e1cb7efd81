"""One turn with a model, printed as it happens: the text as it streams in, each tool call and output. `run_turn` runs the turn."""

from __future__ import annotations

from session.items import FunctionCall, FunctionCallOutput, Item, Message

from ..loop import run_turn
from ..loop.model import CONTEXT_EXCEEDED, MAX_TOKENS, PAUSE_TURN, REFUSAL
from ..loop.turn import UserInput
from ..model_errors import ModelError
from .chat import Chat
from .model_access import DeferredModel, ModelAccess
from .render import dim, error_text, item_block
from .terminal import Output
from .wrap import Wrapper

STOP_MESSAGES = {
    MAX_TOKENS: "the answer was cut off: it reached the length limit; send “go on” for the rest",
    CONTEXT_EXCEEDED: "the answer was cut off: prompt and answer fill the model's context window; /compact makes room",
    REFUSAL: "the model declined to continue",
    PAUSE_TURN: "the model paused; send “go on”",
}
"""Messages for the stop reasons that a user should know about."""


class TurnPrinter:
    """Prints the texts and items of a turn in the order in which they arrive."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._wrapper: Wrapper | None = None

    def print_text(self, piece: str) -> None:
        """Print a piece of the answer."""
        width, glyphs = self._output.layout()
        if self._wrapper is None:
            self._wrapper = Wrapper(width, glyphs)
            piece = piece.lstrip("\n")
        self._wrapper.resize(width)
        self._output.write(self._wrapper.feed(piece))

    def print_item(self, item: Item) -> None:
        """Print an item that was added to the log. A message that was printed piece by piece is not repeated."""
        was_streamed = self._wrapper is not None
        self.end_text()
        is_answer_text = isinstance(item, Message) and item.role == "assistant"
        if isinstance(item, FunctionCall | FunctionCallOutput) or (is_answer_text and not was_streamed):
            block = item_block(item)
            if block is not None:
                self._output.show(block)

    def end_text(self) -> None:
        """Finish the text that is being printed: it is complete, or the rest will not come."""
        if self._wrapper is not None:
            self._output.write(f"{self._wrapper.end()}\n")
            self._wrapper = None


async def take_turn(chat: Chat, user_input: UserInput, access: ModelAccess, output: Output) -> None:
    """Run a turn to its end and print it, with the usage after it. Model errors are printed too. The log keeps everything so far.

    Args:
        chat: The conversation.
        user_input: The user's message; None to call the model again with the current log.
        access: Access to the model.
        output: Prints the turn.
    """
    printer = TurnPrinter(output)

    def on_item(item: Item) -> None:
        printer.print_item(item)
        if isinstance(item, Message) and item.role == "user":
            chat.attached_images = []  # only now are they in the log
        chat.save_during_turn()  # after a crash, finished tool calls need not run again

    try:
        result = await run_turn(
            chat.session,
            user_input,
            model=DeferredModel(access),
            tools=access.tools,
            manager=chat.manager,
            on_text=printer.print_text,
            on_item=on_item,
        )
        printer.end_text()
        if result.stop in STOP_MESSAGES:
            output.show(dim(STOP_MESSAGES[result.stop]))
    except ModelError as error:
        printer.end_text()
        output.show(error_text(f"{error} Nothing is lost: /retry asks again."))
    finally:
        printer.end_text()
        chat.save()
    output.show(chat.usage_line())
