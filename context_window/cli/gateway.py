"""`context-window gateway`: a server between an assistant and its provider that keeps the conversation within a window."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from session.extras import install_line

from ..hosts import is_loopback
from ..printable import printable
from .days import today_in
from .options import TokenBudget, WholeNumber, named_strategy, strategy_option
from .output import BAD_INPUT, BadInputError, complain, say_note

if TYPE_CHECKING:
    from ..gateway.recording import Recorder
    from ..gateway.shared_refusals import SharedRefusals

PORT = 8383


EPILOG = """\b
Examples:
  context-window gateway -- claude
  context-window gateway --max-tokens 120000 --record seen -- claude
  context-window gateway --max-cost 5 -- codex
  context-window gateway --upstream openai=http://localhost:11434
"""


@click.command(epilog=EPILOG)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
@click.option(
    "--max-tokens",
    type=TokenBudget(min=1),
    metavar="N|auto",
    default="auto",
    help="Token budget of a request. Default: auto, the window that costs least by the model's prices.",
)
@strategy_option("extract")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option("--port", type=WholeNumber(0, 65_535), metavar="N", help=f"Default: {PORT}; any free one with COMMAND.")
@click.option(
    "--upstream", "upstreams", multiple=True, metavar="NAME=URL", help="Another address of a provider: openai=http://localhost:11434."
)
@click.option(
    "--token", "token_file", metavar="FILE", help="Who may use it: one token a line; each has its own conversations. Made if it is missing."
)
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Another name under which clients reach the gateway.")
@click.option("--strict", is_flag=True, help="Refuse a conversation that cannot be fitted, instead of sending it unchanged.")
@click.option("--record", "folder", metavar="FOLDER", help="Write each request, what went to the provider, and the answer into FOLDER.")
@click.option(
    "--store", "address", metavar="PATH|URL", help="Share what refused prompts taught with other gateways: a file, or postgresql://…."
)
@click.option("--warn-secrets", is_flag=True, help="Say before it is sent that a request holds a key or a password, and where.")
@click.option("--recall", is_flag=True, help="Give the model a tool that returns what was taken out; the client does not see its calls.")
@click.option("--images", type=WholeNumber(0), metavar="N", help="Most images of a request; older ones become placeholders. Default: any.")
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="DOLLARS",
    help="Refuse requests once this much is spent, and those whose cost is unknown (no list price, batches).",
)
@click.option(
    "--per",
    type=click.Choice(("session", "day")),
    default="session",
    help="What --max-cost limits: this gateway, or today, counting what all tools spent before it started.",
)
@click.option("--no-page", is_flag=True, help="No page with figures at / on the gateway's address.")
def gateway(
    command: tuple[str, ...],
    max_tokens: int | Literal["auto"],
    strategy: str,
    host: str,
    port: int | None,
    token_file: str | None,
    upstreams: tuple[str, ...],
    names: tuple[str, ...],
    *,
    folder: str | None,
    address: str | None,
    strict: bool,
    warn_secrets: bool,
    recall: bool,
    images: int | None,
    max_cost: float | None,
    per: str,
    no_page: bool,
) -> int:
    """Keep any assistant's requests within a window.

    The command runs a server between the assistant and its provider. Requests go to the provider as the assistant made them, but for older
    messages that the window has no room for. Keys and contents pass through: nothing is logged, and nothing of
    them is stored without --record.

    With COMMAND, the gateway starts the client with its address in the environment, and ends with it. Without, set the client's base URL
    to http://127.0.0.1:8383/anthropic, /openai/v1 or /google there.
    """
    try:
        from ..gateway.app import LOCAL_NAMES, gateway_app
        from ..gateway.callers import digest_of, gated_app
        from ..gateway.ledger import GatewayLedger
        from ..gateway.serve import address_of, bound_socket, run_client, serve, serving
        from ..gateway.shared_refusals import RefusalsOfKind
    except ModuleNotFoundError as error:
        raise BadInputError(f"the gateway needs more packages: {install_line('gateway')}") from error
    from ..settings.context_window import ContextWindow

    if token_file is None and not is_loopback(host):
        raise BadInputError(f"others can reach a gateway at {printable(host)}: pass --token FILE, which says who may use it")
    tokens = [] if token_file is None else _tokens(token_file)
    recorder, refusals = _recorder(folder), _refusals(address)
    kept = 1 if images is None else (images + 1) // 2  # so that not every new image breaks the cache
    window = ContextWindow(max_tokens=max_tokens, images_max=images, images_kept=kept, strategy=named_strategy(strategy))
    app_of = partial(
        gateway_app,
        window,
        urls=_urls(upstreams),
        hosts={*LOCAL_NAMES, host, *names},
        strict=strict,
        warn_secrets=warn_secrets,
        recall=recall,
        recorder=recorder,
        page=not no_page,
        keeps_limits=not tokens,  # with tokens, they are of other people's plans
        max_cost=None if max_cost is None else Decimal(str(max_cost)),
        spent_today=_spent_today() if max_cost is not None and per == "day" else None,
    )
    ledgers = {token: GatewayLedger() for token in tokens or [""]}
    stores = {token: None if refusals is None else RefusalsOfKind(refusals, digest_of(token)) for token in tokens}
    apps = {token: app_of(ledger=ledgers[token], refusals=stores[token]) for token in tokens}
    app = gated_app(apps) if tokens else app_of(ledger=ledgers[""], refusals=refusals)
    try:
        listener = bound_socket(host, port if port is not None else 0 if command else PORT)
    except OSError as error:
        raise BadInputError(f"cannot listen at {host}: {error.strerror}") from error
    with listener, _warnings_shown(at_end=bool(command)):
        if command:
            with serving(app, listener):
                try:
                    code = run_client(command, "/".join([address_of(listener), *tokens[:1]]))
                except OSError as error:
                    complain(f"cannot run {command[0]}: {error.strerror}")
                    code = BAD_INPUT
        else:
            begin = "/TOKEN" if tokens else ""
            page = "" if no_page else f"; {address_of(listener)}{begin}/ shows what it does"
            paths = f"{begin}/anthropic, {begin}/openai/v1 and {begin}/google"
            say_note(f"gateway at {address_of(listener)}, under {paths}{page}; Ctrl-C ends it")
            serve(app, listener)
            code = 0
    for number, ledger in enumerate(ledgers.values(), 1):
        say_note((f"token {number}: " if len(ledgers) > 1 else "") + ledger.line())
    if refusals is not None:
        refusals.close()
    if recorder is not None:
        recorder.close()
        say_note(recorder.line())
    sys.stderr.flush()
    return code


class _Warnings(logging.Handler):
    """Collects the gateway's warnings, each once."""

    def __init__(self, *, at_end: bool) -> None:
        """
        Args:
            at_end: True if they are shown later. False to show each at once.
        """
        super().__init__(logging.WARNING)
        self.messages: dict[str, None] = {}
        self._at_end = at_end

    def emit(self, record: logging.LogRecord) -> None:
        """Take a warning."""
        message = record.getMessage()
        if message not in self.messages:
            self.messages[message] = None
            if not self._at_end:
                complain(message)


@contextmanager
def _warnings_shown(*, at_end: bool) -> Iterator[None]:
    """Show the gateway's warnings: at the end if an assistant has the terminal until then."""
    handler, logger = _Warnings(at_end=at_end), logging.getLogger("context_window.gateway")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        for message in handler.messages if at_end else ():
            complain(message)


def _spent_today() -> Decimal:
    """Return what the requests of today have cost, by the logs of all tools, in US dollars."""
    from ..spend import choose
    from ..spend.tables import sum_of
    from .spend_reading import read_logs

    try:
        requests = read_logs(()).requests
    except BadInputError:  # there are no logs
        return Decimal(0)
    return sum_of("today", choose(requests, since=today_in(None))).cost


def _recorder(folder: str | None) -> Recorder | None:
    from ..gateway.recording import Recorder

    try:
        return None if folder is None else Recorder(folder)
    except OSError as error:
        raise BadInputError(f"cannot record into {printable(folder or '')}: {error.strerror or error}") from error


def _refusals(address: str | None) -> SharedRefusals | None:
    from ..gateway.refusal_store import check_address
    from ..gateway.shared_refusals import SharedRefusals

    if address is None:
        return None
    try:
        check_address(address)
    except ModuleNotFoundError as error:
        raise BadInputError(f"a store on a server needs more packages: {install_line('postgres')}") from error
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # it repeats one message again and again
    return SharedRefusals(address)


def _tokens(file: str) -> list[str]:
    from ..errors import ArgumentError
    from ..gateway.callers import tokens_in

    try:
        return tokens_in(file)
    except OSError as error:
        raise BadInputError(f"cannot use the tokens in {printable(file)}: {error.strerror or error}") from error
    except ArgumentError as error:
        raise BadInputError(f"the tokens in {printable(file)} cannot be used: {error}") from error


def _urls(upstreams: tuple[str, ...]) -> dict[str, str]:
    urls: dict[str, str] = {}
    for upstream in upstreams:
        name, equals, url = upstream.partition("=")
        if not equals:
            raise BadInputError("--upstream needs a name and an address: openai=http://localhost:11434")
        urls[name] = url
    return urls
