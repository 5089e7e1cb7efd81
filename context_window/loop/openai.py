"""OpenAI's models, and servers that are compatible with them, through OpenAI's client: Responses or Chat Completions.

`requests/provider_request.py` builds the requests, `session.providers` reads the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from session.session import Session

from ..errors import ArgumentError, ClientError
from ..model_errors import ModelNetworkError
from ..requests.client_errors import reported_error
from ..requests.provider_request import OPENAI, RESPONSES, check_fields, openai_chat_request, openai_responses_request
from ..validation import check_amount
from .client_stream import INCOMPLETE, streamed_answer
from .model import END_TURN, MAX_TOKENS, REFUSAL, TOOL_USE, Answer, OnText, check_model_name

Api: TypeAlias = Literal["responses", "chat"]

CHAT_STOPS = {"stop": END_TURN, "tool_calls": TOOL_USE, "function_call": TOOL_USE, "length": MAX_TOKENS, "content_filter": REFUSAL}
"""Stop reasons by `finish_reason` (platform.openai.com/docs/api-reference/chat/object)."""
RESPONSES_STOPS = {"completed": END_TURN, "max_output_tokens": MAX_TOKENS, "content_filter": REFUSAL}
"""Stop reasons by `incomplete_details.reason`, else `status` (platform.openai.com/docs/api-reference/responses/object)."""
_FINAL_EVENTS = ("response.completed", "response.incomplete")


class OpenAIModel:
    """A `Model` that asks one of OpenAI's models, or a server with the same API.

        model = OpenAIModel(openai.AsyncOpenAI(), "gpt-5.2")
        model = OpenAIModel(openai.AsyncOpenAI(base_url="http://localhost:8000/v1"), "qwen3", api="chat")
        result = await run_turn(session, "What is in main.py?", model=model, tools=[read_file], manager=manager)

    All answers are streamed. Nothing is stored at OpenAI: reasoning comes back encrypted and is sent with the next request. The client does
    the retries (`max_retries`); errors that remain are raised as `ModelError`.

    Attributes:
        model: Name of the model.
        api: `responses`, or `chat` for Chat Completions, which most compatible servers offer and which shows no reasoning.
        max_tokens: Tokens that an answer may have, reasoning included; None for the provider's limit.
    """

    def __init__(self, client: Any, model: str, *, api: Api = "responses", max_tokens: int | None = None, **request_fields: Any) -> None:
        """
        Args:
            client: An `openai.AsyncOpenAI`, or an `openai.OpenAI`, which is then used in a thread. A cancelled turn ends at once, but that
                thread ends only at the next piece of the answer, and the program waits for it when it exits.
            model: Name of the model.
            api: `responses` or `chat`.
            max_tokens: Tokens that an answer may have; None for the provider's limit.
            request_fields: Other fields of every request, such as `reasoning={"effort": "high"}`, in the client's form.

        Raises:
            ArgumentError: An argument is invalid.
        """
        if api not in ("responses", "chat"):
            raise ArgumentError("api", api, "pass responses or chat")
        endpoint: Any = getattr(client, "responses", None) if api == "responses" else _completions(client)
        if not callable(getattr(endpoint, "create", None)) or isinstance(client, type):
            raise ClientError("client", type(client), "pass an openai.AsyncOpenAI() or an openai.OpenAI()")
        check_model_name(model)
        for name in ("tools", "tool_choice", "stream"):
            if name in request_fields:
                raise ArgumentError(name, type(request_fields[name]), "leave it out; the loop sets this field")
        check_fields(RESPONSES if api == "responses" else OPENAI, request_fields, "leave it out; the loop sets this field")
        self.model = model
        self.api: Api = api
        self.max_tokens = None if max_tokens is None else check_amount("max_tokens", max_tokens, least=1)
        self._client = client
        self._send = endpoint.create
        self._request_fields = request_fields

    def compacting(self, tokens: int) -> OpenAIModel | None:
        """Return this model with requests that have OpenAI compact a prompt above so many tokens; None if it cannot.

        The Responses API does (https://developers.openai.com/api/docs/guides/compaction), Chat Completions does not.
        """
        if self.api != "responses" or "context_management" in self._request_fields:
            return None
        fields = {**self._request_fields, "context_management": [{"type": "compaction", "compact_threshold": tokens}]}
        return OpenAIModel(self._client, self.model, max_tokens=self.max_tokens, **fields)

    def request(self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool) -> dict[str, Any]:
        """Return the arguments of `client.responses.create` or `client.chat.completions.create`.

        Args:
            view: The view to send.
            tools: Definitions in Anthropic's form. Others are sent unchanged: OpenAI's own tools, such as `{"type": "web_search"}`.
            allow_tools: False if the model may not call tools now.
        """
        if self.api == "responses":
            request = openai_responses_request(view, self.model, tools, self.max_tokens, allow_tools=allow_tools)
            return {**request, "stream": True, **self._request_fields}
        request = openai_chat_request(view, self.model, tools, self.max_tokens, allow_tools=allow_tools)
        return {**request, "stream": True, "stream_options": {"include_usage": True}, **self._request_fields}

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """Ask the model and return its answer. Raises what `Model.answer` names."""
        import asyncio

        # In a thread: converting a long view with images takes a while, and the event loop has other work.
        request = await asyncio.to_thread(self.request, view, tools, allow_tools=allow_tools)
        if self.api == "chat":
            return await streamed_answer(self._send, request, text_of=_chunk_text, final=list[Any], stops=CHAT_STOPS, on_text=on_text)
        return await streamed_answer(
            self._send, request, text_of=_event_text, final=_final_response, stops=RESPONSES_STOPS, on_text=on_text
        )


def _completions(client: Any) -> Any:
    return getattr(getattr(client, "chat", None), "completions", None)


def _chunk_text(chunk: Any) -> str:
    """Return the text of a chunk of Chat Completions."""
    return (chunk.choices[0].delta.content or "") if chunk.choices and chunk.choices[0].delta is not None else ""


def _event_text(event: Any) -> str:
    """Return the text of an event of the Responses API."""
    return str(event.delta) if event.type == "response.output_text.delta" else ""


def _final_response(events: list[Any]) -> Any:
    """Return the response that a stream of the Responses API ends with. Raises ModelError if it reports an error, or ends early."""
    for event in events:
        failure = event if event.type == "error" else event.response.error if event.type == "response.failed" else None
        if event.type in ("error", "response.failed"):
            raise reported_error(*(getattr(failure, name, None) for name in ("code", "message", "param")))
    if events[-1].type not in _FINAL_EVENTS:
        raise ModelNetworkError(INCOMPLETE)
    return events[-1].response
