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
from typing import Any, NamedTuple

from session.opening import open_regular
from session.plan_limits import limits_of
from session.printable import short_name

from .user_folder import LIMITS_FILE, user_folder

TAIL_BYTES, LONGEST_TAIL = 512 * 1024, 8 * 1024 * 1024
"""Bytes read from the end of a transcript: they hold the last dozens of requests. Four times as many if they hold none, up to a limit."""
TOOL = "claude_code"
STEPS_FOR_FORECAST = 4
"""Steps from one request to the next that must be known before anything is forecast."""
REQUESTS_LOOKED_AT = 20
"""Newest requests whose growth counts."""
NAME_MAX = 40
"""Characters of a model's name that are shown."""
WARNED_FROM, ALARMED_FROM = 0.7, 0.9
"""Parts of the window from which its figures are yellow, and red."""
GATEWAY_SECONDS = 0.2
"""Patience with a gateway on this machine: with each of its steps; with all of them, twice as much."""
YELLOW, RED, PLAIN = "\033[33m", "\033[31m", "\033[0m"


class StatusRequest(NamedTuple):
    """The tokens of one request and its answer, as the provider reported them."""

    fresh: int
    """Input tokens that the cache had no part in."""
    written: int
    """Input tokens written to the cache."""
    read: int
    """Input tokens read from the cache."""
    output: int

    @property
    def input(self) -> int:
        """Tokens of the whole prompt."""
        return self.fresh + self.written + self.read

    @property
    def filled(self) -> int:
        """Tokens of the window that are filled after the answer."""
        return self.input + self.output


def status_line(status: object, *, colours: bool = False) -> str:
    """Return the line for what Claude Code passed, without a line break. Fields that are absent or unusable are left out.

    The forecast is the room that is left, divided by the mean growth of the last requests in the transcript. After a compaction, only the
    requests since then count.

    Args:
        status: The JSON value from standard input.
        colours: True to colour a window that is nearly full, with terminal sequences.
    """
    fields = _object(status)
    window = _object(fields.get("context_window"))
    lines = _last_lines(fields.get("transcript_path"))
    requests = list(_last_requests(lines))
    last = _request(window.get("current_usage")) or (requests[-1] if requests else None)
    model = _object(fields.get("model"))
    size = 1_000_000 if "[1m]" in str(model.get("id")).lower() else _count(window.get("context_window_size"))
    parts = [_name(model)]
    if last is not None:
        parts.append(_fill(last.filled, size, colours=colours))
        parts.append(f"cache {100 * last.read // last.input}%" if last.input else "")
        parts.append(_forecast(requests, size - last.filled) if size >= last.filled else "")
    parts.append(_money(_object(fields.get("cost")).get("total_cost_usd")))
    parts += _limits(fields.get("rate_limits"))
    parts.append(_gateway(os.environ.get("ANTHROPIC_BASE_URL", "")))
    if last is not None:
        parts.append(_resume(fields, last, lines))
    return " · ".join(part for part in parts if part) or "no request yet"


def main() -> int:
    """Print the status line for the JSON on standard input. Return the exit code: 0, or 2 for anything but a JSON object."""
    try:
        status = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError):
        status = None
    if not isinstance(status, dict):
        sys.stderr.write("context-window: statusline expects the JSON object that Claude Code passes to its status line command\n")
        return 2
    note_limits(status.get("rate_limits"))
    line = status_line(status, colours=not os.environ.get("NO_COLOR"))
    sys.stdout.buffer.write(line.encode() + b"\n")
    sys.stdout.buffer.flush()
    return 0


def note_limits(stated: object) -> None:
    """Keep the plan's limits for `context-window` to show: only the status line is told of them. A fault costs only that."""
    now = datetime.now(UTC).timestamp()
    limits = limits_of(TOOL, stated, now)
    if limits is None:
        return
    try:
        folder = user_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, new = folder / LIMITS_FILE, folder / f"{LIMITS_FILE}.{os.getpid()}"
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600), "w") as out:
            json.dump({TOOL: {"time": now, "rate_limits": stated}}, out)
        new.replace(file)
    except (OSError, RuntimeError, ValueError, RecursionError):
        return


def _limits(stated: object) -> Iterator[str]:
    """Yield how much of each period of the plan is used: `5h 24%`, and when it is full at this pace, if it is before it begins anew."""
    now = datetime.now(UTC).timestamp()
    limits = limits_of(TOOL, stated, now)
    for period in () if limits is None else limits.periods:
        name = f"{period.minutes // 1_440}d" if period.minutes >= 1_440 else f"{period.minutes / 60:g}h"
        full = period.full_at(now)
        yield f"{name} {period.percent:.0f}%" + ("" if full is None else f", full {_clock(full, now)}")


def _clock(time: float, now: float) -> str:
    """Return a time in the machine's zone: `16:40`, on another day `Sat 16:40`."""
    then = datetime.fromtimestamp(time)  # noqa: DTZ006 - for the eyes of this machine's user
    return f"{then:%H:%M}" if time - now < 43_200 else f"{then:%a %H:%M}"


def _gateway(base_url: str) -> str:
    """Return what a gateway of ours on this machine does: its view and limit, its trims, what it has saved."""
    if not base_url.startswith(("http://127.0.0.1:", "http://localhost:", "http://[::1]:")):
        return ""
    from threading import Thread  # after the check: most users have no gateway

    answers: list[dict[str, Any]] = []
    asking = Thread(target=_ask, args=(base_url, answers), daemon=True)
    asking.start()
    asking.join(2 * GATEWAY_SECONDS)  # whoever answers there, byte by byte
    answer = answers[0] if answers else {}
    view, limit, trims, cost, without = (_number(answer.get(name)) for name in ("view", "limit", "trims", "cost", "without"))
    if view is None or limit is None or trims is None or cost is None or without is None:
        return ""
    saved = without - cost
    money = f"saved ${saved:,.2f}" if saved >= 0 else f"${-saved:,.2f} dearer"
    text = f"gateway {_thousands(int(view))} of {_thousands(int(limit))}, {int(trims)} trim{'' if trims == 1 else 's'}, {money}"
    if smallest := _count(answer.get("smallest")):
        text += f", too small: --max-tokens {smallest}"
    if keys := _count(answer.get("keys")):
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
        answers.append(_object(json.loads(connection.getresponse().read(TAIL_BYTES))))
        connection.close()
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return


def _resume(fields: dict[str, Any], last: StatusRequest, lines: list[bytes]) -> str:
    """Return what the next prompt costs because the provider's cache has forgotten it; empty while it has not."""
    time, is_for_hour = _last_time(lines)
    age = 0.0 if time is None else datetime.now(UTC).timestamp() - time
    if age <= (3_600 if is_for_hour else 300):
        return ""
    from .models.prices import look_up  # slow, and only for a cache that is cold

    model = _object(fields.get("model")).get("id")
    prices = look_up(model).prices if isinstance(model, str) else None
    money = "" if prices is None else f", ${last.filled * (prices.cache_write or prices.input) / 1_000_000:,.2f}"
    old = f"{age / 60:.0f} minutes" if age < 7_200 else f"{age / 3_600:.0f} hours"
    return f"the cache is {old} old: the next prompt writes {_thousands(last.filled)} tokens{money}"


def _last_time(lines: list[bytes]) -> tuple[float | None, bool]:
    """Return when the last answer in these lines of a transcript came, in Unix seconds, and True if its cache is kept for an hour."""
    for line in reversed(lines):
        try:
            record = _object(json.loads(line))
            if record.get("type") == "assistant":
                usage = _object(_object(record.get("message")).get("usage"))
                is_for_hour = bool(_count(_object(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")))
                return datetime.fromisoformat(str(record.get("timestamp"))).timestamp(), is_for_hour
        except (ValueError, RecursionError, OverflowError, OSError):
            continue
    return None, False


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
    amount = _number(dollars)
    return "" if amount is None else f"${amount:,.2f}"


def _thousands(tokens: int) -> str:
    if tokens < 1_000:
        return str(tokens)
    return f"{tokens / 1_000:.0f}k" if tokens < 999_500 else f"{tokens / 1_000_000:.2g}M"


def _last_requests(lines: list[bytes]) -> Iterator[StatusRequest]:
    """Yield the requests of the main conversation in these lines of a transcript, oldest first."""
    last_id = None
    last = None
    for line in lines:
        try:
            record = _object(json.loads(line))
        except (ValueError, RecursionError):  # the first line may be cut off, the last may be half written
            continue
        if record.get("subtype") == "compact_boundary" and not record.get("isSidechain"):
            if after := _count(_object(record.get("compactMetadata")).get("postTokens")):
                last_id, last = None, StatusRequest(0, 0, after, 0)  # the next prompt, before it is sent
            continue
        message = _object(record.get("message"))
        request = _request(message.get("usage"))
        if record.get("type") != "assistant" or record.get("isSidechain") or request is None or not request.input:
            continue
        if last is not None and message.get("id") != last_id:  # Claude Code writes a line for each block of an answer
            yield last
        last_id, last = message.get("id"), request
    if last is not None:
        yield last


def _last_lines(path: object) -> list[bytes]:
    """Return the last lines of a transcript; none if there is no such file or it cannot be read."""
    if not isinstance(path, str) or "\0" in path:
        return []
    try:
        with open_regular(path) as file:
            end, size = file.seek(0, os.SEEK_END), TAIL_BYTES
            while True:
                file.seek(max(0, end - size))
                lines = file.read(size).split(b"\n")
                if size >= min(end, LONGEST_TAIL) or any(_request_line(line) for line in lines[1:]):
                    return lines
                size *= 4
    except (OSError, ValueError):
        return []


def _request_line(line: bytes) -> bool:
    return b'"usage"' in line and line.startswith(b"{") and line.endswith(b"}")


def _request(usage: object) -> StatusRequest | None:
    if not isinstance(usage, dict):
        return None
    names = "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"
    return StatusRequest(*(_count(usage.get(name)) for name in names))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    number = _number(value)
    return 0 if number is None else int(number)


def _number(value: object) -> float | None:
    """Return a number from 0 to a billion, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:  # nor NaN
        return None
    return value
