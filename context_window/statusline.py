"""Claude Code's status line: how full the window is, how long it will last, and how much of the last request came from the cache.

Claude Code runs a command after each of its messages, passes it JSON on standard input, and shows the first line that it prints. The
command must start fast, so this module imports only what a few lines of JSON need: no tokenizer, no session, no command line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from session.plan_limits import PlanLimits, clock, limits_of, short_length
from session.printable import short_name

from .kept_limits import keep_limits, kept_limits
from .pauses import ColdCache, cold_cache
from .transcript_tail import (
    TAIL_BYTES,
    StatusRequest,
    count_of,
    last_answer,
    last_lines,
    last_requests,
    number_of,
    object_of,
    request_of,
)

TOOL = "claude_code"
STEPS_FOR_FORECAST = 4
"""Steps from one request to the next that must be known before anything is forecast."""
REQUESTS_LOOKED_AT = 20
"""Newest requests whose growth counts."""
NAME_MAX = 40
"""Characters of a model's name that are shown."""
WARNED_FROM, ALARMED_FROM = 0.7, 0.9
"""Parts of the window from which its figures are yellow (an orange that light themes show, too), and red."""
GATEWAY_SECONDS = 0.2
"""Patience with a gateway on this machine: with each of its steps; with all of them, twice as much."""
LOOPBACK = ("http://127.0.0.1:", "http://localhost:", "http://[::1]:")
KEPT_SECONDS = 600
"""Seconds for which the limits count that a gateway was told of."""
YELLOW, RED, PLAIN = "\033[38;5;166m", "\033[38;5;197m", "\033[0m"


def status_line(status: object, limits: PlanLimits | None = None, *, colours: bool = False) -> str:
    """Return the line for what Claude Code passed, without a line break. Fields that are absent or unusable are left out.

    The forecast is the room that is left, divided by the mean growth of the last requests in the transcript. After a compaction, only the
    requests since then count.

    Args:
        status: The JSON value from standard input.
        limits: Those of the plan that it states.
        colours: True to colour a window that is nearly full, with terminal sequences.
    """
    fields = object_of(status)
    window = object_of(fields.get("context_window"))
    lines = last_lines(fields.get("transcript_path"))
    requests = last_requests(lines)
    passed, logged = request_of(window.get("current_usage")), requests[-1] if requests else None
    has_passes = passed is not None and logged is not None and logged.input < logged.all_input == passed.input
    last = logged if passed is None or has_passes else passed  # several passes for one answer are passed as their sum
    model = object_of(fields.get("model"))
    size = 1_000_000 if "[1m]" in str(model.get("id")).lower() else count_of(window.get("context_window_size"))
    parts = [_name(model)]
    if last is not None:
        parts.append(_fill(last.filled, size, colours=colours))
        parts.append(f"cache {100 * last.read // last.input}%" if last.input else "")
        parts.append(_forecast(requests, size - last.filled) if size >= last.filled else "")
    parts.append(_money(object_of(fields.get("cost")).get("total_cost_usd")))
    parts += () if limits is None else _limits(limits)
    parts.append(_gateway(os.environ.get("ANTHROPIC_BASE_URL", "")))
    if last is not None:
        name = model.get("id")
        cold = cold_cache(last_answer(lines), last.filled, name if isinstance(name, str) else "", datetime.now(UTC).timestamp())
        parts.append("" if cold is None else _resume(cold))
    return " · ".join(part for part in parts if part) or "no request yet"


def pause_line(event: object) -> str:
    """Return what the pause before a prompt has cost, as one line; empty if the provider's cache still has the session.

    The event is what Claude Code passes to a hook before it sends a prompt.
    """
    lines = last_lines(object_of(event).get("transcript_path"))
    requests, answer = last_requests(lines), last_answer(lines)
    if not requests or answer is None:
        return ""
    cold = cold_cache(answer, requests[-1].filled, answer.model, datetime.now(UTC).timestamp())
    if cold is None:
        return ""
    cost = "after this pause" if cold.more is None else f"this pause cost ${cold.more:,.2f}:"
    return f"{cost} {_thousands(cold.tokens)} tokens are written anew, since the cache has forgotten them after {cold.old}"


def _resume(cold: ColdCache) -> str:
    """Return what the next prompt costs because the provider's cache has forgotten the session."""
    money = "" if cold.cost is None else f", ${cold.cost:,.2f}"
    return f"the cache is {cold.old} old: the next prompt writes {_thousands(cold.tokens)} tokens{money}"


def main() -> int:
    """Print the status line for the JSON on standard input. Return the exit code: 0, or 2 for anything but a JSON object."""
    status = _object_on_input()
    if status is None:
        sys.stderr.write("context-window: statusline expects the JSON object that Claude Code passes to its status line command\n")
        return 2
    now = datetime.now(UTC).timestamp()
    limits = limits_of(TOOL, status.get("rate_limits"), now)
    if limits is not None:  # only the status line is told of them
        keep_limits(TOOL, status["rate_limits"], limits.time)
    line = status_line(status, limits or _kept_limits(now), colours=not os.environ.get("NO_COLOR"))
    sys.stdout.buffer.write(line.encode() + b"\n")
    sys.stdout.buffer.flush()
    return 0


def _kept_limits(now: float) -> PlanLimits | None:
    """Return the limits that a gateway was told of a short while ago, if Claude Code's requests pass one."""
    kept = kept_limits().get(TOOL) if os.environ.get("ANTHROPIC_BASE_URL", "").startswith(LOOPBACK) else None
    return limits_of(TOOL, kept.get("rate_limits"), kept["time"]) if kept and 0 <= now - kept["time"] < KEPT_SECONDS else None


def pause_main() -> int:
    """Print a hook's answer that tells the user what the pause has cost, or nothing. Return the exit code: 0, or 1 for anything but a
    JSON object; 2 would keep the prompt from being sent.
    """
    event = _object_on_input()
    if event is None:
        sys.stderr.write("context-window: statusline --pause expects the JSON object that Claude Code passes to a hook\n")
        return 1
    if line := pause_line(event):
        sys.stdout.buffer.write(json.dumps({"systemMessage": line}).encode() + b"\n")
        sys.stdout.buffer.flush()
    return 0


def _object_on_input() -> dict[str, Any] | None:
    try:
        value = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _limits(limits: PlanLimits) -> Iterator[str]:
    """Yield how much of each period of the plan is used: `5h 24%`, and when it is full at this pace, if it is before it begins anew."""
    for period in limits.periods:
        full = period.full_at(limits.time)
        yield f"{short_length(period.minutes)} {period.percent:.0f}%" + ("" if full is None else f", full {clock(full, limits.time)}")


def _gateway(base_url: str) -> str:
    """Return what a gateway of ours on this machine does: its view and limit, its trims, what it has saved."""
    if not base_url.startswith(LOOPBACK):
        return ""
    from threading import Thread  # after the check: most users have no gateway

    answers: list[dict[str, Any]] = []
    asking = Thread(target=_ask, args=(base_url, answers), daemon=True)
    asking.start()
    asking.join(2 * GATEWAY_SECONDS)  # whoever answers there, byte by byte
    answer = answers[0] if answers else {}
    view, limit, trims, cost, without = (number_of(answer.get(name)) for name in ("view", "limit", "trims", "cost", "without"))
    if view is None or limit is None or trims is None or cost is None or without is None:
        return ""
    saved = without - cost
    money = f"saved ${saved:,.2f}" if saved >= 0 else f"${-saved:,.2f} dearer"
    text = f"gateway {_thousands(int(view))} of {_thousands(int(limit))}, {int(trims)} trim{'' if trims == 1 else 's'}, {money}"
    if smallest := count_of(answer.get("smallest")):
        text += f", too small: --max-tokens {smallest}"
    if keys := count_of(answer.get("keys")):
        text += f", {keys} key{'' if keys == 1 else 's'} sent"
    return f"{text}, outgrown: /compact before you leave it" if answer.get("outgrown") is True else text


def _ask(base_url: str, answers: list[dict[str, Any]]) -> None:
    """Add the answer of a gateway at this address, if there is one."""
    import http.client

    try:
        host, _, path = base_url.removeprefix("http://").rstrip("/").partition("/")
        connection = http.client.HTTPConnection(host, timeout=GATEWAY_SECONDS)
        token = path.rpartition("/")[0]  # before the provider's name, if the gateway has tokens
        connection.request("GET", f"/{token}/status" if token else "/status")
        answers.append(object_of(json.loads(connection.getresponse().read(TAIL_BYTES))))
        connection.close()
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return


def _name(model: dict[str, Any]) -> str:
    names = (short_name(name, NAME_MAX).strip() for name in (model.get("display_name"), model.get("id")) if isinstance(name, str))
    return next(filter(None, names), "")


def _fill(filled: int, size: int, *, colours: bool) -> str:
    if not size or filled > size:  # none is stated, or it is not this session's
        return _thousands(filled)
    text = f"{_thousands(filled)} of {_thousands(size)} ({filled / size:.0%})"
    if not colours or filled < WARNED_FROM * size:
        return text
    return f"{RED if filled >= ALARMED_FROM * size else YELLOW}{text}{PLAIN}"


def _forecast(requests: list[StatusRequest], room: int) -> str:
    newest = requests[-REQUESTS_LOOKED_AT:]
    for index in range(len(newest) - 1, 0, -1):
        if newest[index].input < newest[index - 1].input:  # a compaction, or a step back
            newest = newest[index:]
            break
    steps = len(newest) - 1
    if steps < STEPS_FOR_FORECAST or newest[-1].input == newest[0].input:
        return ""
    count = max(0, room) * steps // (newest[-1].input - newest[0].input)
    return f"room for about {count} more request{'' if count == 1 else 's'}"


def _money(dollars: object) -> str:
    amount = number_of(dollars)
    return "" if amount is None else f"${amount:,.2f}"


def _thousands(tokens: int) -> str:
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:.0f}k" if tokens < 999_500 else f"{tokens / 1_000_000:.2g}M"
