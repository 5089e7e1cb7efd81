"""A gateway on the loopback, between a provider's real client and a strict stub of the provider."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from context_window import ContextWindow
from context_window.gateway.app import gateway_app
from context_window.gateway.ledger import GatewayLedger
from context_window.gateway.serve import address_of, bound_socket, serving


@contextmanager
def gateway(upstream: str, max_tokens: int | None, *, ledger: GatewayLedger | None = None, **options: Any) -> Iterator[str]:
    """Run a gateway for as long as the `with` lasts, and give its URL. All providers are at one address."""
    app = gateway_app(
        ContextWindow(max_tokens=max_tokens, keep_first_message=True),
        urls=dict.fromkeys(("anthropic", "openai", "google"), upstream),
        ledger=ledger,
        **options,
    )
    with bound_socket("127.0.0.1", 0) as listener, serving(app, listener):
        yield address_of(listener)


def recall_ids(request: object) -> list[str]:
    """Return the ids that placeholders and digests of a request name, in order."""
    text = json.dumps(request)
    named = re.findall(r"(?:recall ids? |## (?:(?!\\n).)* )([0-9a-f]{12})\b", text)
    return named or re.findall(r"the recall id ends each line(?:\\n(?:(?!\\n).)*)*? ([0-9a-f]{12})(?=\\n|\")", text)


def breaks(requests: list[list[Any]]) -> int:
    """Return how many requests do not begin with the messages of the one before."""
    return sum(later[: len(earlier)] != earlier for earlier, later in pairwise(requests))


def bare(message: Any) -> Any:
    """Return a message of Anthropic's API as blocks without cache marks."""
    blocks = [{"type": "text", "text": message["content"]}] if isinstance(message["content"], str) else message["content"]
    return {**message, "content": [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks]}


def run_client(command: Sequence[str | Path], home: Path, patience: float, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an assistant, or a gateway that starts one, in an empty home, which is also its folder.

    Args:
        command: The program and its arguments.
        home: The home.
        patience: Seconds that it may take.
        variables: Its environment, besides what it needs to find programs and packages.
    """
    return subprocess.run(
        [*map(str, command)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
