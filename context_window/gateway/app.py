"""`gateway_app`: the gateway as an ASGI application."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

import httpx
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..decision.plan import smallest_budget
from ..errors import ContextOverflowError
from ..integrations.past_refusals import RefusalMemory
from ..model_errors import ModelError, PromptTooLongError
from ..recall import recall_tool
from ..requests.client_errors import answered_error
from ..settings.context_window import ContextWindow
from ..threads import in_thread
from .body_json import request_object
from .cost_limit import LONGEST_MODEL, CostLimit
from .decoding import unpacked
from .fitted_body import ManagedRequest, can_recall, fitted_body
from .foreign import foreign_problem
from .history import History
from .ledger import GatewayLedger
from .outgoing import head_problem, name_and_path, outgoing_request, without_header
from .plan_notes import PlanNotes
from .recalling import RecallingAnswer, Recalls
from .recording import Recorder, add_sent, is_recorded, recorded_response
from .relay import OpenAnswer, RelayedAnswer, answer_to, unless_left
from .secret_warnings import SecretWarnings
from .upstreams import Upstream, upstreams
from .watch import begin_watch, watched
from .windows import IDLE_SECONDS, UNFIT, Windows
from .wire_format import Json

T = TypeVar("T")
LARGEST_BODY = 64 * 1024 * 1024
"""Default of the most bytes that a request may have: twice what Anthropic accepts."""
BODY_SECONDS = 60
"""Seconds after which a request is given up of which nothing more comes."""
LARGE_BODY = 256 * 1024
"""Bytes from which on a body is read in a thread."""
KEEP_SECONDS = 60
"""Seconds between two times that the limits of plans are written."""
SLOWEST = 1_000
"""Bytes a second that a request needs to go on for longer than that."""
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names under which this machine reaches itself."""
REFUSALS = (400, 413)
"""Statuses of an answer that can say what is wrong with a request."""
LARGEST_STATUS = 599
"""HTTP has no higher one."""
CLIENT_LEFT = 499
"""Status of the answer to a client that has left. Only a recording shows it."""
TOO_SMALL = (
    "a conversation goes out as it is: {error} The user's words are never shortened. The smallest sensible budget for it is {smallest:,} "
    "tokens (--max-tokens)."
)
PACKED = (
    "the gateway is told to check requests, and cannot unpack this one: it reads gzip, deflate and zstd, undamaged and once, up to "
    "{most:,} bytes. Let the client send it uncompressed"
)
ENCODING = "content-encoding"
_LOGGER = logging.getLogger(__name__)
UNKNOWN_ADDRESS = "addresses here begin with the provider's name: {names}. Set the client's base URL to http://HOST:PORT/NAME"


def gateway_app(
    window: ContextWindow,
    *,
    urls: Mapping[str, str] | None = None,
    ledger: GatewayLedger | None = None,
    hosts: Collection[str] = LOCAL_NAMES,
    largest_body: int = LARGEST_BODY,
    strict: bool = False,
    recall: bool = False,
    recorder: Recorder | None = None,
    page: bool = True,
    refusals: RefusalMemory | None = None,
    idle_seconds: float = IDLE_SECONDS,
    max_cost: Decimal | None = None,
    spent_today: Decimal | None = None,
    warn_secrets: bool = False,
    keeps_limits: bool = False,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Starlette:
    """Return the gateway as an application for an ASGI server.

    Args:
        window: The limits and the policy of every conversation. Without a strategy, they are trimmed with `Extract()`.
        urls: Other addresses of the upstreams than the providers' own, by name.
        ledger: Where requests are counted.
        hosts: Names by which clients may reach the gateway. Others are refused, so that no browser page can get here by a name of its own.
        largest_body: Most bytes that a request may have.
        strict: True to refuse a request that cannot be fitted. False to send it unchanged.
        recall: True to give the model a tool that returns what was taken out. The gateway answers its calls, and clients do not see them.
        recorder: Where requests of conversations and their answers are recorded. Without one, nothing of them is written to disk.
        page: True to show a page with figures of the conversations at `/`. They are kept in memory, without any content.
        refusals: Refused prompts that this worker shares with others, so that all of them make the same views.
        idle_seconds: Seconds without a request after which a conversation is forgotten. Its next request is read as a
            whole again; its view is the same.
        max_cost: US dollars after which requests are refused, and with them what cannot be counted. Those under way are finished. None
            for any cost.
        spent_today: What today's requests had cost before this gateway started, if the limit is of a day; None if it is of the gateway.
        warn_secrets: True to log a warning before a request is sent that holds a key or a password, with its place.
        keeps_limits: True to write the limits of plans that answers state into the user's folder, at most once a minute and at the end.
        transport: How upstreams are reached; by default over the network.

    Raises:
        ArgumentError: An upstream is unknown, or its address is none.
    """
    by_name = upstreams(urls or {})
    ledger = ledger or GatewayLedger()
    ledger.secrets = SecretWarnings() if warn_secrets else None
    windows = Windows(window, refusals, are_frozen=True)
    gateway = _Gateway(windows, by_name, ledger, frozenset(hosts), largest_body, recorder, strict=strict, recall=recall)
    gateway.max_cost = None if max_cost is None else CostLimit(max_cost, spent_today)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        async with httpx.AsyncClient(transport=transport, limits=limits, trust_env=transport is None) as client:
            gateway.client = client
            tasks = [asyncio.create_task(_forget_idle(gateway, idle_seconds))]
            if keeps_limits:
                tasks.append(asyncio.create_task(_keep_limits(ledger.plans)))
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                if keeps_limits:
                    await in_thread(ledger.plans.keep)

    page_routes = [Route("/", gateway.page), Route("/live", gateway.page), Route("/status", gateway.status)] if page else []
    routes = [*page_routes, Route("/metrics", gateway.metrics), Route("/{path:path}", gateway.handle, methods=METHODS)]

    def unknown(request: Request, error: Exception) -> Response:  # noqa: ARG001 - of an address that does not begin with a slash
        return _refused(None, 404, UNKNOWN_ADDRESS.format(names=", ".join(by_name)))

    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: unknown})
    app.router.redirect_slashes = False  # an address is answered, never changed
    return app


class Refitted(NamedTuple):
    """Another body for a request that was refused.

    Attributes:
        body: The body.
        on_success: Called if it is not refused.
    """

    body: bytes
    on_success: Callable[[], None] | None = None


async def _forget_idle(gateway: _Gateway, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds / 10)
        await in_thread(partial(gateway.forget_idle, seconds))


async def _keep_limits(plans: PlanNotes) -> None:
    while True:
        await asyncio.sleep(KEEP_SECONDS)
        await in_thread(plans.keep)


class _Gateway:
    """Handles requests."""

    client: httpx.AsyncClient
    max_cost: CostLimit | None = None

    def __init__(
        self,
        windows: Windows,
        by_name: Mapping[str, Upstream],
        ledger: GatewayLedger,
        hosts: frozenset[str],
        largest_body: int,
        recorder: Recorder | None,
        *,
        strict: bool,
        recall: bool,
    ) -> None:
        self._windows = windows
        self._upstreams = by_name
        self.history, self._ledger = History(ledger.savings, ledger.secrets, ledger.plans), ledger
        self._hosts = hosts
        self._largest_body = largest_body
        self._strict = strict
        self._recall = recall
        self._recorder = recorder

    def forget_idle(self, seconds: float) -> None:
        """Forget conversations that had no request for this number of seconds."""
        if self._windows.forget_idle(seconds):
            gc.collect()  # conversations are cycles, and an idle process would not look for them

    async def metrics(self, request: Request) -> Response:
        """Answer with the ledger, for Prometheus."""
        from .metrics import CONTENT_TYPE, metrics_text

        if (problem := foreign_problem(request, self._hosts)) is not None:
            return _refused(None, 403, problem)
        return Response(metrics_text(self._ledger), media_type=CONTENT_TYPE)

    async def page(self, request: Request) -> Response:
        """Answer with the page, or with the part of it that has changed."""
        from .page_answers import page_answer

        if (problem := foreign_problem(request, self._hosts, is_page=True)) is not None:
            return _refused(None, 403, problem)
        return await in_thread(partial(page_answer, self.history, request.scope["path"], request.query_params))

    async def status(self, request: Request) -> Response:
        """Answer with the figures that a status line shows."""
        if (problem := foreign_problem(request, self._hosts)) is not None:
            return _refused(None, 403, problem)
        return JSONResponse(self.history.status())

    async def handle(self, request: Request) -> Response:
        """Answer a request."""
        name, raw_path = name_and_path(request)
        upstream = self._upstreams.get(name)
        if (problem := foreign_problem(request, self._hosts)) is not None:
            return _refused(upstream, 403, problem)
        if upstream is None:
            return _refused(None, 404, UNKNOWN_ADDRESS.format(names=", ".join(self._upstreams)))
        if (problem := head_problem(request, raw_path)) is not None:
            return _refused(upstream, 400, problem)
        try:
            body = await self._body(request)
        except ClientDisconnect:
            return Response()
        except TimeoutError:
            return _refused(upstream, 408, f"nothing more of the request came for {BODY_SECONDS} seconds, or next to nothing")
        if body is None:
            return _refused(upstream, 413, f"the request has more than {self._largest_body:,} bytes, which is the gateway's limit")
        if request.method == "POST" and (encoding := ", ".join(request.headers.getlist(ENCODING))):
            plain = await in_thread(partial(unpacked, body, encoding, self._largest_body))
            if plain is not None:
                body, request = plain, without_header(request, ENCODING)
            elif self._strict or self._ledger.secrets is not None or self.max_cost is not None:
                return _refused(upstream, 415, PACKED.format(most=self._largest_body))
        is_read = request.method == "POST" and ENCODING not in request.headers
        fields = None
        try:
            fields = await _worked(body, partial(request_object, body)) if is_read else None
        except UNFIT as error:
            if (refusal := self._unmanaged(upstream, error)) is not None:
                return refusal
        if self.max_cost is not None:
            charge = self.max_cost.charge(upstream.url, unquote(raw_path), fields, body)
            if isinstance(charge, str):
                return _refused(upstream, 402, charge)
            if charge is not None:
                request.state.charge = charge
        return recorded_response(request, await self._answer(request, upstream, raw_path, body, fields))

    async def _body(self, request: Request) -> bytes | None:
        """Return the request's body; None if it is too large.

        Raises:
            TimeoutError: Nothing more of it comes, or so slowly that it would stay.
        """
        chunks: list[bytes] = []
        length = 0
        stream, now = aiter(request.stream()), asyncio.get_running_loop().time
        begun = now()
        while True:
            async with asyncio.timeout_at(BODY_SECONDS + min(now(), begun + length / SLOWEST)):
                chunk = await anext(stream, None)
            if chunk is None:
                return b"".join(chunks)
            length += len(chunk)
            if length > self._largest_body:
                return None
            chunks.append(chunk)

    async def _answer(self, request: Request, upstream: Upstream, raw_path: str, body: bytes, fields: Json | None) -> Response:
        send = partial(self._send, request, upstream, raw_path)
        try:
            if self._ledger.secrets is not None and (fields is not None or body.lstrip()[:1] == b"{"):
                # An upstream may read what is no JSON here, such as NaN.
                searched = {"body": body.decode("utf-8", "replace")} if fields is None else fields
                await in_thread(partial(self._ledger.secrets.look, searched))
            path = unquote(raw_path)
            managed = None if fields is None else await _worked(body, partial(self._managed, request, upstream, path, body, fields))
        except UNFIT as error:
            return self._unmanaged(upstream, error) or await send(body)
        if managed is None:
            return await send(body)
        if self._recorder is not None:
            self._recorder.begin(request, body)
        watch = begin_watch(request, self.history, managed.conversation.model)
        fit = partial(fitted_body, self._windows, managed, watch=watch)
        try:
            content = await self._timed(fit)
        except UNFIT as error:
            return self._unmanaged(upstream, error) or await send(body)
        self._ledger.add(len(body), len(content), shortened=content is not body)
        has_tool = managed.conversation.recall_tool is not None and content is not body
        recalls = Recalls(self._windows, managed.wire, managed.conversation, self._ledger) if has_tool else None

        def refit(sent: bytes, refusal: ModelError) -> Refitted | None:
            mended = self._ledger.repairs.mended(managed, sent, refusal)
            if mended is None:
                return Refitted(fit(refusal)) if isinstance(refusal, PromptTooLongError) else None
            return Refitted(fitted_body(self._windows, mended[0], watch=watch), mended[1])

        return await send(content, refit, recalls)

    def _managed(self, request: Request, upstream: Upstream, path: str, body: bytes, fields: Json) -> ManagedRequest | None:
        """Return the request if it carries a conversation, mended of what is broken at a glance; else None."""
        for wire in upstream.wires:
            if (conversation := wire.conversation(path, fields)) is not None and len(conversation.model) <= LONGEST_MODEL:
                if self._recall and can_recall(request, path, wire, fields):
                    conversation = replace(conversation, recall_tool=recall_tool(wire.joined_answer.provider).definition)
                return self._ledger.repairs.applied(ManagedRequest(wire, conversation, fields, body))
        return None

    def _unmanaged(self, upstream: Upstream, error: Exception) -> Response | None:
        """Count a request that could not be fitted. Returns a strict gateway's refusal; None if the client's own body is sent."""
        if isinstance(error, ContextOverflowError):
            self._ledger.savings.smallest = smallest = smallest_budget(error.needed)
            if self._ledger.is_first(error):
                _LOGGER.warning("%s", TOO_SMALL.format(error=error, smallest=smallest))
        self._ledger.add_unmanaged(error)
        return _refused(upstream, 400, f"the gateway cannot fit the conversation: {error}") if self._strict else None

    async def _timed(self, fit: Callable[[], bytes]) -> bytes:
        begun = time.perf_counter()
        try:
            return await in_thread(fit)
        finally:
            self._ledger.decision_seconds += time.perf_counter() - begun

    async def _send(
        self,
        request: Request,
        upstream: Upstream,
        path: str,
        content: bytes,
        refit: Callable[[bytes, ModelError], Refitted | None] | None = None,
        recalls: Recalls | None = None,
        on_success: Callable[[], None] | None = None,
    ) -> Response:
        """Send a request upstream and return the answer.

        Args:
            request: The client's request.
            upstream: Where to send it.
            path: Its path there, as the client wrote it.
            content: Its body.
            refit: Makes another body after the upstream has refused this one, if that helps. It is sent once.
            recalls: Answers the calls of the recall tool, if the body has it.
            on_success: Called if the request is not refused.
        """
        is_read = recalls is not None or is_recorded(request) or hasattr(request.state, "charge")
        outgoing = partial(outgoing_request, request, upstream.url, path, is_read=is_read)
        add_sent(request, content)
        answer: OpenAnswer | None = None
        try:
            answer = await answer_to(self.client, outgoing(content=content), request)
            if answer.status in REFUSALS and refit is not None:
                refusal = answered_error(answer.status, await unless_left(request, answer.error_body))
                refitted = await _refitted(partial(refit, content, refusal))
                if refitted is not None:
                    await answer.close()
                    return await self._send(request, upstream, path, refitted.body, None, recalls, refitted.on_success)
        except httpx.InvalidURL as error:
            return _refused(upstream, 400, f"the gateway cannot use the address: {error}")
        except httpx.TransportError as error:
            self._ledger.answers[upstream.name, 502] += 1
            return _refused(upstream, 502, f"the gateway cannot reach {upstream.name}: {type(error).__name__}")
        except ClientDisconnect:
            if answer is not None:
                await answer.close()
            if hasattr(request.state, "charge"):
                request.state.charge.note({}, 0, 0)  # the provider may bill what it has read
            return Response(status_code=CLIENT_LEFT)
        self._ledger.answers[upstream.name, answer.status] += 1
        self.history.note_plan(answer.headers)
        if answer.status > LARGEST_STATUS:
            await answer.close()
            return _refused(upstream, 502, f"{upstream.name} answered with status {answer.status}, which is none of HTTP")
        if on_success is not None and answer.status == HTTPStatus.OK:
            on_success()
        answer = watched(request, answer)
        if recalls is None or answer.status != HTTPStatus.OK or answer.is_encoded:
            return RelayedAnswer(answer)

        async def ask(body: bytes) -> OpenAnswer:
            add_sent(request, body)
            return watched(request, OpenAnswer(await self.client.send(outgoing(content=body), stream=True)))

        return RecallingAnswer(answer, content, recalls, ask=ask, failure=partial(upstream.wires[0].error, 502))


async def _worked(body: bytes, work: Callable[[], T]) -> T:
    """Do work that takes time with the size of a body: in a thread for a large one."""
    return await in_thread(work) if len(body) > LARGE_BODY else work()


async def _refitted(refit: Callable[[], Refitted | None]) -> Refitted | None:
    """Return another body; None if there is none, so that the client gets the upstream's own answer."""
    try:
        return await in_thread(refit)
    except UNFIT:
        return None


def _refused(upstream: Upstream | None, status: int, message: str) -> Response:
    """Return an error of the gateway's own, in the form of the client's API."""
    return JSONResponse({"error": {"message": message}} if upstream is None else upstream.wires[0].error(status, message), status)
