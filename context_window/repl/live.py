"""One turn with a model, told while it happens: its text as it comes, its calls as they are made. The loop itself is `run_turn`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from session.items import FunctionCall, FunctionCallOutput, Item, Message
from session.printable import printable
from session.redaction import is_name, redacted, short
from session.session import Session
from session.summarizers import AnthropicSummarizer

from ..display.glyphs import Glyphs
from ..display.rendering import Draw
from ..loop import AnthropicModel, Model, Toolbox, run_turn
from ..loop.model import CONTEXT_EXCEEDED, MAX_TOKENS, PAUSE_TURN, REFUSAL, Answer, OnText
from ..loop.turn import UserInput
from ..model_errors import ModelError
from ..models import describe_model
from .chat import Chat, ChatError
from .drawing import fault, item_lines, quiet, usage_line
from .workspace import Workspace
from .wrapping import Wrapper

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

INSTRUCTIONS = """\
You are a coding assistant in a terminal. You see the user's working directory, {directory}, through tools that read it; you cannot \
change anything or run anything, so show changes as text. Look before you answer: read and search files rather than guess. Answer \
briefly, in plain text without tables. Older outputs may be replaced by placeholders that name a recall id; the recall tool gives \
the content back, if you need it again.\
"""
STOPS = {
    MAX_TOKENS: "the answer is cut off: it is as long as one may be; say “go on” for the rest",
    CONTEXT_EXCEEDED: "the answer is cut off: prompt and answer fill the model's window; /compact makes room",
    REFUSAL: "the model declined to go on",
    PAUSE_TURN: "the model paused; say “go on”",
}
"""Why an answer ended early, where a user should know."""


@dataclass(frozen=True, slots=True)
class Voice:
    """Where a turn is told.

    Attributes:
        show: Prints what is drawn.
        write: Prints a text as it is, at once.
        layout: The terminal's width now, and what it can show.
    """

    show: Callable[[Draw], None]
    write: Callable[[str], None]
    layout: Callable[[], tuple[int, Glyphs]]


class Telling:
    """Tells the texts and items of a turn in the order in which they come."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._wrapper: Wrapper | None = None

    def text(self, piece: str) -> None:
        """A piece of the answer."""
        width, glyphs = self._voice.layout()
        if self._wrapper is None:
            self._wrapper = Wrapper(width, glyphs)
            piece = piece.lstrip("\n")
        self._wrapper.resize(width)
        self._voice.write(self._wrapper.feed(piece))

    def item(self, item: Item) -> None:
        """Something that the log has gained. A message that was told piece by piece is not told again."""
        told = self._wrapper is not None
        self.end()
        if isinstance(item, FunctionCall | FunctionCallOutput) or (isinstance(item, Message) and item.role == "assistant" and not told):
            drawn = item_lines(item)
            if drawn is not None:
                self._voice.show(drawn)

    def end(self) -> None:
        """The text is complete, or will never be."""
        if self._wrapper is not None:
            self._voice.write(f"{self._wrapper.end()}\n")
            self._wrapper = None


class Access(Protocol):
    """The way to a model.

    Attributes:
        tools: What it may call.
    """

    tools: Toolbox

    def model(self) -> Model:
        """Who is asked next."""

    async def close(self) -> None:
        """Lets go of the connections."""


class _Asked:
    """A model that is not looked for before it is asked: by then what the user said is in the log, whatever is in the way."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """What the model says."""
        return await self._access.model().answer(view, tools, allow_tools=allow_tools, on_text=on_text)


async def take_turn(chat: Chat, said: UserInput, access: Access, voice: Voice) -> None:
    """Has a turn told to its end, and what the window holds then. What was in its way is told too; what was said is kept.

    Args:
        chat: The conversation.
        said: What the user says; None to ask again with what there is.
        access: The way to the model.
        voice: Where it is told.
    """
    telling = Telling(voice)

    def note(item: Item) -> None:
        telling.item(item)
        if isinstance(item, Message) and item.role == "user":
            chat.attached = []  # not before they are in the log
        chat.keep_meanwhile()  # at once: what a tool has answered need not be asked again after a crash

    try:
        result = await run_turn(
            chat.session,
            said,
            model=_Asked(access),
            tools=access.tools,
            manager=chat.manager,
            on_text=telling.text,
            on_item=note,
        )
        telling.end()
        if result.stop in STOPS:
            voice.show(quiet(STOPS[result.stop]))
    except ModelError as error:
        telling.end()
        voice.show(fault(f"{error} Nothing is lost: /retry asks again."))
    finally:
        telling.end()
        chat.keep()
    usage = chat.usage()
    voice.show(usage_line(usage, chat.news.latest()))


def begun(directory: str) -> Session:
    """A session in which nothing has been said but what the assistant is to do."""
    session = Session(metadata={"directory": directory})
    session.add_message("system", INSTRUCTIONS.format(directory=directory))
    return session


class AnthropicAccess:
    """The way to Anthropic's models; the conversation can have summaries written there too.

    The client is made when it is first needed, for it takes a second to load.
    """

    def __init__(self, chat: Chat, workspace: Workspace, **settings: Any) -> None:
        """
        Args:
            chat: The conversation, which says what the model is.
            workspace: What the model may look at.
            settings: What the client is made with; key and address come from the environment where not given.
        """
        self.tools = Toolbox([*workspace.tools, chat.manager.recall_tool("anthropic")])
        chat.manager.count_tools(self.tools.definitions)
        chat.summarizer, chat.check_model = self._summed_up, _check_model
        self._chat = chat
        self._settings = settings
        self._client: AsyncAnthropic | None = None

    def model(self) -> Model:
        """Who is asked next: `/model` may have changed that."""
        return AnthropicModel(self._connected(), self._chat.model or "")

    async def close(self) -> None:
        """Lets go of the connections."""
        if self._client is not None:
            await self._client.close()

    async def _summed_up(self, prompt: str) -> str:
        return await AnthropicSummarizer(self._connected(), self._chat.model or "")(prompt)

    def _connected(self) -> AsyncAnthropic:
        if self._client is None:
            import anthropic

            try:
                self._client = anthropic.AsyncAnthropic(**self._settings)
            except Exception as error:  # an address that is none, a proxy that is none: the client checks what the environment holds
                reason = redacted(printable(str(error)))
                raise ChatError(
                    f"Anthropic's client cannot be made: {reason}; look at ANTHROPIC_BASE_URL and the proxies that are set"
                ) from error
        return self._client


def _check_model(name: str) -> None:
    if describe_model(name).family != "claude":
        shown = name if is_name(name) else short(name)
        raise ChatError(f"{shown} is none of Anthropic's models, whose API this chat uses; `context-window models claude` lists them")
