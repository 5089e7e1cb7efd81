"""Google's Gemini through its client `google-genai`: views become requests, streamed chunks become answers.

`requests/provider_request.py` builds the requests, `session.providers` reads the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from session.session import Session

from ..errors import ClientError
from ..model_errors import ModelError
from ..requests.part_refusals import unexplained_refusal
from ..requests.provider_request import GOOGLE, check_fields, google_request
from ..validation import check_amount
from .client_stream import streamed_answer
from .model import END_TURN, MAX_TOKENS, REFUSAL, Answer, OnText, check_model_name

REFUSED = (
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "JAILBREAK",
    "MODEL_ARMOR",
)
"""Finish reasons of candidates and block reasons of prompts that mean: the model declined (ai.google.dev/api/generate-content)."""
STOPS = {"STOP": END_TURN, "MAX_TOKENS": MAX_TOKENS, **dict.fromkeys(REFUSED, REFUSAL)}


class GoogleModel:
    """A `Model` that asks Gemini.

        model = GoogleModel(genai.Client(), "gemini-3-pro")
        result = await run_turn(session, "What is in main.py?", model=model, tools=[read_file], manager=manager)

    All answers are streamed. Thought signatures are kept and sent back. The client does the retries (`HttpOptions.retry_options`); errors
    that remain are raised as `ModelError`.

    Attributes:
        model: Name of the model.
        max_tokens: Tokens that an answer may have, thoughts included; None for the provider's limit.
    """

    def __init__(self, client: Any, model: str, *, max_tokens: int | None = None, **config_fields: Any) -> None:
        """
        Args:
            client: A `genai.Client`, which is used in a thread, or its `aio`, which is used in the event loop. With the former, a cancelled
                turn ends at once, but the thread ends only at the next piece of the answer, and the program waits for it when it exits.
            model: Name of the model.
            max_tokens: Tokens that an answer may have; None for the provider's limit.
            config_fields: Fields of every request's `GenerateContentConfig`, such as `temperature=0.2`.

        Raises:
            ArgumentError: An argument is invalid.
        """
        send = getattr(getattr(client, "models", None), "generate_content_stream", None)
        if not callable(send) or isinstance(client, type):
            raise ClientError("client", type(client), "pass a genai.Client() or its `aio`")
        check_model_name(model)
        check_fields(GOOGLE, config_fields, "leave it out; the loop sets this field")
        self.model = model
        self.max_tokens = None if max_tokens is None else check_amount("max_tokens", max_tokens, least=1)
        self._client = client  # the client closes its connections when it is garbage-collected
        self._send = send
        self._config_fields = config_fields

    def request(self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool) -> dict[str, Any]:
        """Return the arguments of `client.models.generate_content_stream`.

        Args:
            view: The view to send.
            tools: Definitions in Anthropic's form. Gemini's own tools, such as `{"google_search": {}}`, are sent unchanged.
            allow_tools: False if the model may not call tools now.
        """
        return google_request(view, self.model, tools, self.max_tokens, allow_tools=allow_tools, config=self._config_fields)

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """Ask Gemini and return its answer. Raises what `Model.answer` names."""
        import asyncio

        # In a thread: converting a long view with images takes a while, and the event loop has other work.
        request = await asyncio.to_thread(self.request, view, tools, allow_tools=allow_tools)
        try:
            return await streamed_answer(self._send, request, text_of=_chunk_text, final=list[Any], stops=STOPS, on_text=on_text)
        except ModelError as error:
            refusal = unexplained_refusal(error, view)
            if refusal is None:
                raise
            raise refusal from error


def _chunk_text(chunk: Any) -> str:
    """Return the text of a chunk, without thoughts."""
    content = chunk.candidates[0].content if chunk.candidates else None
    parts = (content.parts if content is not None else None) or ()
    return "".join(part.text for part in parts if part.text and not part.thought)
