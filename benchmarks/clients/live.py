"""What a real model does next with the view and without it, on requests that `context-window gateway --record FOLDER` has recorded.

    ANTHROPIC_API_KEY=… python -m benchmarks.clients --live FOLDER --dollars 2

Of requests that were shortened, some are sent to the provider three times: whole, whole once more, and as the view. How often the first
two agree says how often two answers of this model agree at all; the view should agree as often. It stops before it has spent the dollars.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from context_window.gateway.history import reported_request
from context_window.gateway.upstreams import upstreams
from context_window.gateway.wire_format import WireFormat
from context_window.spend.money import cost_of

Json = dict[str, Any]
KEYS = {"anthropic": ("ANTHROPIC_API_KEY", "x-api-key", "{}"), "openai": ("OPENAI_API_KEY", "authorization", "Bearer {}")}
"""By provider: the variable with its key, and the header that has it."""
TARGETS = ("file_path", "path", "absolute_path", "command", "cmd", "pattern", "query")
"""Arguments that say what a call is about."""
DEAREST = 1.5
"""A request may cost so many times the dearest one before it."""


class Action(NamedTuple):
    """What a model does next: its first call; both empty if it only speaks."""

    tool: str = ""
    target: str = ""


class Recorded(NamedTuple):
    """A request that was shortened.

    Attributes:
        path: Its address at the gateway.
        headers: Those that were recorded.
        whole: Its body.
        view: The body that was sent.
    """

    path: str
    headers: dict[str, str]
    whole: Json
    view: Json


@dataclass(slots=True)
class Agreement:
    """How often two answers do the same.

    Attributes:
        compared: Requests of which all answers came.
        again: Those in which the whole request got the same call twice, with the same target.
        again_tool: Those in which it called the same tool twice.
        view: Those in which the view got the same call as the whole request.
        view_tool: Those in which it called the same tool.
        dollars: What the answers have cost.
        problems: Why requests were left out.
    """

    compared: int = 0
    again: int = 0
    again_tool: int = 0
    view: int = 0
    view_tool: int = 0
    dollars: Decimal = Decimal(0)
    problems: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the table."""
        rows = [("whole, once more", self.again_tool, self.again), ("view", self.view_tool, self.view)]
        head = f"| {self.compared} requests, ${self.dollars:.2f} | same tool | same tool and target | 95 % interval |\n|---|--:|--:|--:|"
        lines = [f"| {name} | {tool} | {same} | {_interval(same, self.compared)} |" for name, tool, same in rows]
        return "\n".join([head, *lines, *(f"left out: {problem}" for problem in dict.fromkeys(self.problems))])


def compare(folder: Path, dollars: Decimal, urls: dict[str, str], most: int = 50) -> Agreement:
    """Ask a provider, and return how often its answers agree.

    Args:
        folder: The folder of the recordings.
        dollars: What may be spent.
        urls: Other addresses of the providers, by name.
        most: Most requests to compare, from all parts of the recording.
    """
    found = list(recorded(folder))
    chosen = found[:: max(1, math.ceil(len(found) / most))]
    result, dearest = Agreement(), Decimal(0)
    with httpx.Client(timeout=600) as client:
        for request in chosen:
            if result.dollars + 3 * Decimal(str(DEAREST)) * dearest > dollars:
                result.problems.append(f"the rest, for ${dollars:.2f} may be spent")
                break
            actions: list[Action] = []
            for body in (request.whole, request.whole, request.view):
                try:
                    action, cost = ask(client, request, body, urls)
                except (httpx.HTTPError, ValueError) as error:
                    result.problems.append(str(error)[:200])
                    break
                result.dollars, dearest = result.dollars + cost, max(dearest, cost)
                actions.append(action)
            if len(actions) == 3:
                first, second, view = actions
                result.compared += 1
                result.again += first == second
                result.again_tool += first.tool == second.tool
                result.view += first == view
                result.view_tool += first.tool == view.tool
    return result


def recorded(folder: Path) -> Iterator[Recorded]:
    """Yield the shortened requests of a folder, in their order."""
    for about in sorted(folder.glob("*.about.json")):
        facts = json.loads(about.read_bytes())
        views = [name for name in facts["sent"] if name.endswith(".sent-1.json")]
        if views and "count_tokens" not in facts["address"]:
            whole, view = (json.loads((folder / name).read_bytes()) for name in (facts["request"]["file"], views[0]))
            yield Recorded(facts["address"], facts["request"]["headers"], whole, view)


def ask(client: httpx.Client, request: Recorded, body: Json, urls: dict[str, str]) -> tuple[Action, Decimal]:
    """Send a body, and return what the model does next and what that has cost.

    Raises:
        httpx.HTTPError: The provider cannot be reached, or refuses.
        ValueError: There is no key, the address is of another provider, or the price is unknown, so that the limit could not hold.
    """
    name, _, path = request.path.lstrip("/").partition("/")
    upstream = upstreams(urls).get(name)
    if name not in KEYS or upstream is None:
        raise ValueError(f"requests to {name} cannot be compared")
    variable, header, form = KEYS[name]
    if not (key := os.environ.get(variable)):
        raise ValueError(f"{variable} is not set")
    content = {name: value for name, value in body.items() if name != "stream_options"} | {"stream": False}
    answer = client.post(f"{upstream.url}/{path}", json=content, headers={**request.headers, header: form.format(key)})
    if answer.is_error:
        raise ValueError(f"the provider refused a request (HTTP {answer.status_code})")
    said = answer.json()
    reported = reported_request(said.get("usage") or {}, str(body.get("model")), time.time())
    cost = None if reported is None else cost_of(reported)
    if cost is None:
        raise ValueError(f"the price of {body.get('model')} is unknown")
    wire = next(wire for wire in upstream.wires if wire.conversation(f"/{path.partition('?')[0]}", content) is not None)
    return action_of(wire, said), cost


def action_of(wire: WireFormat, answer: Json) -> Action:
    """Return what the model does next."""
    call = next(iter(wire.joined_answer().calls(answer)), None)
    if call is None:
        return Action()
    arguments = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
    target = next((arguments[name] for name in TARGETS if name in arguments), "")
    return Action(call.name, " ".join(str(target).split()))


def _interval(part: int, whole: int) -> str:
    """Return Wilson's interval of a proportion, in percent (Wilson, 1927)."""
    if not whole:
        return "–"
    z = 1.96
    centre, spread = (part + z * z / 2) / (whole + z * z), z * math.sqrt(part * (whole - part) / whole + z * z / 4) / (whole + z * z)
    return f"{100 * (centre - spread):.0f} to {100 * (centre + spread):.0f} %"
