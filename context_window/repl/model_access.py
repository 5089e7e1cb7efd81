"""Access of the chat to a model: Anthropic's client, the tools, and the session that a new chat starts with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from session.printable import printable
from session.redaction import is_name, redacted, short
from session.session import Session
from session.summarizers import AnthropicSummarizer

from ..loop import AnthropicModel, Model, Toolbox
from ..loop.model import Answer, OnText
from ..models import describe_model
from .chat import Chat, ChatError
from .workspace import Workspace

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

INSTRUCTIONS = """\
You are a coding assistant in a terminal. You see the user's working directory, {directory}, through tools that read it; you cannot \
change anything or run anything, so show changes as text. Look before you answer: read and search files rather than guess. Answer \
briefly, in plain text without tables. Older outputs may be replaced by placeholders that name a recall id; the recall tool gives \
the content back, if you need it again.\
"""


def new_session(directory: str) -> Session:
    """Return a session that holds only the assistant's instructions."""
    session = Session(metadata={"directory": directory})
    session.add_message("system", INSTRUCTIONS.format(directory=directory))
    return session


class ModelAccess(Protocol):
    """Access to a model.

    Attributes:
        tools: The tools that the model may call.
    """

    tools: Toolbox

    def model(self) -> Model:
        """Return the model for the next request."""

    async def close(self) -> None:
        """Close the connections."""


class DeferredModel:
    """A model that is created at the first request. The user's message is in the log by then, so a failure does not lose it."""

    def __init__(self, access: ModelAccess) -> None:
        self._access = access

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """Return the model's answer."""
        return await self._access.model().answer(view, tools, allow_tools=allow_tools, on_text=on_text)


class AnthropicAccess:
    """Access to Anthropic's models, for answers and for summaries.

    The client is created when it is first needed, because loading it takes a second.
    """

    def __init__(self, chat: Chat, workspace: Workspace, **settings: Any) -> None:
        """
        Args:
            chat: The conversation. Its `model` is called; its `summarizer` and `check_model` are set.
            workspace: The directory that the model may read.
            settings: Arguments of Anthropic's client. By default it takes the key and the address from the environment.
        """
        self.tools = Toolbox([*workspace.tools, chat.manager.recall_tool("anthropic")])
        chat.manager.count_tools(self.tools.definitions)
        chat.summarizer, chat.check_model = self._summarize, _check_model
        self._chat = chat
        self._settings = settings
        self._client: AsyncAnthropic | None = None

    def model(self) -> Model:
        """Return the model for the next request; `/model` may have changed it."""
        return AnthropicModel(self._connected_client(), self._chat.model or "")

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    async def _summarize(self, prompt: str) -> str:
        return await AnthropicSummarizer(self._connected_client(), self._chat.model or "")(prompt)

    def _connected_client(self) -> AsyncAnthropic:
        if self._client is None:
            import anthropic

            try:
                self._client = anthropic.AsyncAnthropic(**self._settings)
            except Exception as error:  # the client checks the addresses and proxies in the environment
                reason = redacted(printable(str(error)))
                raise ChatError(
                    f"Anthropic's client cannot be created: {reason}; check ANTHROPIC_BASE_URL and the proxy settings"
                ) from error
        return self._client


def _check_model(name: str) -> None:
    if describe_model(name).family != "claude":
        safe_name = name if is_name(name) else short(name)
        raise ChatError(f"{safe_name} is not a model of Anthropic, whose API this chat uses; `context-window models claude` lists them")
