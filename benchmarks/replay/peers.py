"""Policies of other packages, which run in an environment of their own: `benchmarks/peers/env.sh` makes it, `peer_worker.py` runs in it."""

from __future__ import annotations

import json
import subprocess
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from session import Session
from session.items import AgentConfigUpdate, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Text

from .policies import Named, Policy, View
from .sessions import tokens_of
from .terms import text_of

WORKER = Path(__file__).with_name("peer_worker.py")
LABELS = {
    "langchain": "langchain-core `trim_messages`",
    "summarization": "summarization-pydantic-ai",
    "harness": "pydantic-ai-harness, sliding window",
    "harness-tiers": "pydantic-ai-harness, clearing first",
}


def peer_policies(python: str) -> dict[str, Named]:
    """Return the policies of other packages by name.

    Args:
        python: The interpreter of an environment that has them.
    """
    return {name: Named(label, _policy(python, name)) for name, label in LABELS.items()}


def peer_versions(python: str) -> dict[str, str]:
    """Return the versions of the other packages.

    Args:
        python: The interpreter of an environment that has them.
    """
    return _worker(python).versions()


def _policy(python: str, name: str) -> Policy:
    def policy(window: int) -> View:
        return _PeerView(_worker(python), name, window)

    return policy


@cache
def _worker(python: str) -> _Worker:
    """Return the process that serves all views of this process: starting one takes seconds."""
    return _Worker(python)


class _Worker:
    """A running `peer_worker.py`."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen([python, "-W", "ignore", str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._keys = count()
        weakref.finalize(self, _stop, self._process)

    def open(self, peer: str, window: int) -> int:
        """Begin a session under a policy, and return its key."""
        key = next(self._keys)
        self._send({"open": key, "peer": peer, "window": window})
        return key

    def close(self, key: int) -> None:
        """Forget a session."""
        self._send({"close": key})

    def view(self, key: int, entries: Sequence[dict[str, Any]]) -> list[tuple[int | None, str | None]]:
        """Append items to a session, and return what a request shows.

        Raises:
            RuntimeError: The process has ended; its error is on standard error.
        """
        return [(place, text) for place, text in self._answer({"view": key, "items": entries})]

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages."""
        return dict(self._answer({"versions": True}))

    def _answer(self, request: dict[str, Any]) -> Any:
        self._send(request)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the peers' process has ended; is the environment that of benchmarks/peers/env.sh?")
        return json.loads(line)

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()


def _stop(process: subprocess.Popen[str]) -> None:
    """End the process: it stops at the end of its input."""
    process.communicate()


class _PeerView:
    """The views of one session under a policy of another package."""

    def __init__(self, worker: _Worker, peer: str, window: int) -> None:
        self._worker = worker
        self._key = worker.open(peer, window)
        self._length = 0
        self._open_calls: dict[str, str] = {}  # by call id: an id that no other call has
        self._changed: dict[tuple[int | None, str], Item] = {}
        weakref.finalize(self, worker.close, self._key).atexit = False

    def __call__(self, log: Session) -> Sequence[Item]:
        """Return the items to send of the log."""
        items = log.items
        entries = [entry for place in range(self._length, len(items)) for entry in self._entries(place, items[place])]
        self._length = len(items)
        return [self._item(items, place, text) for place, text in self._worker.view(self._key, entries)]

    def _entries(self, place: int, item: Item) -> Iterator[dict[str, Any]]:
        """Yield the item as the worker reads it; nothing for what is never sent."""
        entry = {"place": place, "text": text_of(item), "tokens": tokens_of(item)}
        if isinstance(item, Message):
            yield {**entry, "kind": "system" if item.role == "developer" else item.role}
        elif isinstance(item, Reasoning):
            yield {**entry, "kind": "reasoning"}
        elif isinstance(item, FunctionCall):
            self._open_calls[item.call_id] = f"call_{place}"
            yield {**entry, "kind": "call", "name": item.name, "call_id": f"call_{place}", "arguments": item.arguments}
        elif isinstance(item, FunctionCallOutput):
            if (call_id := self._open_calls.pop(item.call_id, None)) is not None:
                yield {**entry, "kind": "output", "name": item.name, "call_id": call_id}
        elif not isinstance(item, AgentConfigUpdate):
            yield {**entry, "kind": "user"}

    def _item(self, items: Sequence[Item], place: int | None, text: str | None) -> Item:
        if place is not None and text is None:
            return items[place]
        key = (place, text or "")
        if key not in self._changed:
            original = None if place is None else items[place]
            if isinstance(original, FunctionCallOutput):
                self._changed[key] = replace(original, output=(Text(key[1]),))
            else:
                self._changed[key] = Message("user", key[1])
        return self._changed[key]
