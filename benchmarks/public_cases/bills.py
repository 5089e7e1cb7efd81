"""Cases about tokens and money: logs as the reports describe them, and what `spend` reads in them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from context_window import ContextWindowManager
from context_window.cli import run
from context_window.models.names import claude_version
from context_window.spend import read_ledger, spend_by
from context_window.spend.money import BEDROCK_REGION, REGIONAL, REGIONAL_FROM, cost_of
from context_window.timeline import MarkerKind, log_reports
from session.transcripts import read_account
from session.transcripts.reported_requests import Request
from tests.support.claude_lines import Log, text
from tests.support.opencode_storage import with_ids, write_database, write_folder, write_modern
from tests.support.tool_logs import copilot, opencode, opencode_said

from .case import Case

Json = dict[str, Any]
SHORT = (",", ":")
"""How tools write JSON: some programs pass over lines with spaces."""
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
CLAUDE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def written(path: Path, *records: object) -> Path:
    """Write records a line each; a text is a line as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(f"{value if isinstance(value, str) else json.dumps(value, separators=SHORT)}\n" for value in records), encoding="utf-8"
    )
    return path


def counted(*paths: Path) -> tuple[int, ...]:
    """Return what `spend` counts: requests, and tokens of input, written to the cache, read from it, and output."""
    requests = read_ledger(paths).requests
    written_ = sum(r.cache_write + r.cache_write_1h for r in requests)
    return (
        len(requests),
        sum(r.input_tokens for r in requests),
        written_,
        sum(r.cache_read for r in requests),
        sum(r.output_tokens for r in requests),
    )


# Claude Code


def usage(fresh: int, write: int, read: int, output: int, **more: Any) -> Json:
    return dict(zip(CLAUDE, (fresh, write, read, output), strict=True)) | more


def answer(message: str, tokens: Json, *, model: str = "claude-opus-4-6", **changes: Any) -> Json:
    """A line of Claude Code. A field that is None is left out."""
    line = {
        "type": "assistant",
        "timestamp": "2026-11-20T12:00:00Z",
        "sessionId": "s1",
        "cwd": "/home/me/shop",
        "requestId": f"req_{message}",
        "message": {"id": message, "role": "assistant", "model": model, "content": [], "usage": tokens},
    } | changes
    return {name: value for name, value in line.items() if value is not None}


def claude(files: dict[str, list[Json]], folder: Path) -> tuple[int, ...]:
    return counted(*(written(folder / name, *lines) for name, lines in files.items()))


def price_of(tokens: Json, model: str, folder: Path) -> float:
    """Return what `spend` says that an answer of Claude Code cost, in US dollars."""
    requests = read_ledger([written(folder / "a.jsonl", answer("m", tokens, model=model))]).requests
    return float(spend_by("model", requests)[0].cost) if len(requests) == 1 else float(sum(row.cost for row in spend_by("model", requests)))


def input_price(model: str, _: Path) -> float:
    """Return the price of a million tokens of input."""
    cost = cost_of(Request("", NOON, "", model, "", "", input_tokens=1_000))
    return float("nan") if cost is None else float(cost * 1_000)


# Codex

TOTALS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")


def stamp(second: int) -> str:
    return datetime.fromtimestamp(NOON + second, UTC).isoformat()


class Codex:
    """A log of Codex that grows. A fork repeats its parent's records with times of its own."""

    def __init__(self, name: str, parent: Codex | None = None, *, second: int = 0, model: str = "gpt-5", **meta: Any) -> None:
        self.name, self.total = name, [0] * 5 if parent is None else list(parent.total)
        own = {"type": "session_meta", "payload": {"id": name, "cwd": "/x", "originator": "codex_cli_rs"} | meta}
        past = [{"type": "turn_context", "payload": {"model": model}}] if parent is None else [record for _, record in parent.records]
        self.records: list[tuple[int, Json]] = [(second, own), *((second, record) for record in past)]

    def asks(self, second: int, fresh: int, output: int, **more: int) -> Codex:
        """Add a request. `more` are further counts, such as `cached_input_tokens`."""
        last = dict.fromkeys(TOTALS, 0) | {"input_tokens": fresh, "output_tokens": output, "total_tokens": fresh + output} | more
        self.total = [before + last[name] for before, name in zip(self.total, TOTALS, strict=True)]
        totals = dict(zip(TOTALS, self.total, strict=True)) | {name: more[name] for name in more if name not in TOTALS}
        info = {"total_token_usage": totals, "last_token_usage": last}
        self.records.append((second, {"type": "event_msg", "payload": {"type": "token_count", "info": info}}))
        return self

    def write(self, folder: Path) -> Path:
        return written(folder / f"{self.name}.jsonl", *({"timestamp": stamp(second)} | record for second, record in self.records))


def codex(make: Callable[[], Iterable[Codex]], folder: Path) -> tuple[int, int, int]:
    """Return requests, prompt tokens and output tokens."""
    requests, fresh, write, read, output = counted(*(log.write(folder) for log in make()))
    return requests, fresh + write + read, output


def spawned(parent: str) -> Json:
    return {"source": {"subagent": {"thread_spawn": {"parent_thread_id": parent}}}}


def three_forks() -> Iterable[Codex]:
    """A fork of a fork: each repeats all before it, and makes one request."""
    first = Codex("a").asks(1, 100, 10).asks(2, 200, 20)
    second = Codex("b", first, second=10, forked_from_id="a").asks(11, 400, 40)
    third = Codex("c", second, second=20, forked_from_id="b").asks(21, 500, 50)
    return first, second, third


def one_fork() -> Iterable[Codex]:
    first = Codex("a").asks(1, 100, 10).asks(2, 200, 20)
    return first, Codex("b", first, second=10, forked_from_id="a").asks(11, 400, 40)


def an_empty_fork() -> Iterable[Codex]:
    first = Codex("a").asks(1, 100, 10).asks(2, 200, 20)
    return first, Codex("b", first, second=10, forked_from_id="a")


def sub_agents() -> Iterable[Codex]:
    """Three sub-agents repeat the parent's two requests without saying that they are forks, and make one request each."""
    parent = Codex("p").asks(1, 100, 10).asks(2, 200, 20)
    children = [Codex(f"c{n}", parent, second=10 + n, **spawned("p")).asks(20 + n, 50 + n, 5) for n in range(3)]
    return parent, *children


def equal_forks() -> Iterable[Codex]:
    """Two forks whose next requests have the same figures."""
    first = Codex("a").asks(1, 100, 10).asks(2, 200, 20)
    return first, *(Codex(name, first, second=10, forked_from_id="a").asks(11 + n, 50, 5) for n, name in enumerate("bc"))


def equal_sessions() -> Iterable[Codex]:
    """Two sessions that are no forks, with the same figures."""
    return Codex("a").asks(1, 100, 10), Codex("b", second=5).asks(6, 100, 10)


def totals_begin_anew() -> Iterable[Codex]:
    log = Codex("a").asks(1, 100, 10).asks(2, 50, 5)
    log.total = [0] * 5
    yield log.asks(3, 60, 6)


def reasoning(folder: Path) -> tuple[int, int, float]:
    """Return output, all tokens and the price of an answer that is mostly reasoning."""
    path = Codex("a").asks(1, 1_000, 500, reasoning_output_tokens=400).write(folder)
    (row,) = spend_by("tool", read_ledger([path]).requests)
    return row.output_tokens, row.total, float(row.cost)


def cache_writes(folder: Path) -> tuple[int, ...]:
    """Return written, read, input and output tokens."""
    more = {"cached_input_tokens": 875_306, "cache_write_input_tokens": 57_610}
    path = Codex("a", model="gpt-5.6-sol").asks(1, 935_040, 11_150, **more).write(folder)
    _, fresh, write, read, output = counted(path)
    return write, read, fresh, output


def writes_cost(model: str, _: Path) -> float:
    """Return what a token written to the cache costs, as a multiple of a fresh one."""
    fresh, write = (cost_of(Request("", NOON, "", model, "", "", **{name: 100_000})) for name in ("input_tokens", "cache_write"))
    return float(write / fresh) if fresh and write is not None else float("nan")


# opencode, Copilot, and others


def modern_opencode(folder: Path) -> tuple[int, ...]:
    """Sums on the session alone: requests, input, read, output."""
    sums = {"tokens_input": 1_000, "tokens_cache_read": 3_000, "tokens_output": 250, "cost": 0.01}
    info = opencode(id="ses_1", time={"created": NOON * 1_000}, model={"id": "gpt-5"}, sums=sums)["info"]
    requests, fresh, _, read, output = counted(write_database(folder / "opencode.db", {"info": info, "messages": []}))
    return requests, fresh, read, output


def stale_opencode(folder: Path) -> bool:
    """True if the session of 2.x beside stale tables of 1.x is counted, or a fault says that it is not."""
    path = write_database(folder / "opencode.db")
    tokens = {"input": 5, "output": 7, "reasoning": 0, "cache": {"read": 2, "write": 1}}
    said = {
        "time": {"created": NOON * 1_000, "completed": NOON * 1_000 + 1},
        "agent": "build",
        "model": {"id": "gpt-5"},
        "tokens": tokens,
        "content": [],
    }
    write_modern(path, {"id": "ses_2", "directory": "/p", "version": "2.0", "time": {"created": NOON * 1_000}}, [("assistant", said)])
    ledger = read_ledger([path])
    return len(ledger.requests) == 1 or bool(ledger.faults)


def opencode_twice(folder: Path) -> tuple[int, int, float]:
    """Files of 1.1 beside the database that they were moved to: requests, output, US dollars."""
    tokens = {"input": 10, "output": 5, "reasoning": 0, "cache": {"read": 100, "write": 0}}
    said = [opencode_said("assistant", f"m{n}", minute=n, modelID="gpt-5", tokens=tokens, cost=0.25) for n in range(3)]
    document = with_ids(opencode(*said, time={"created": 1}))
    requests = read_ledger([write_folder(folder, document), write_database(folder / "opencode.db", document)]).requests
    return len(requests), sum(r.output_tokens for r in requests), float(sum(cost_of(r) or 0 for r in requests))


def copilot_log(folder: Path) -> tuple[int, ...]:
    usage_ = {"inputTokens": 11_125, "outputTokens": 429, "cacheReadTokens": 7_441, "cacheWriteTokens": 0, "reasoningTokens": 0}
    metrics = {"gpt-5": {"requests": {"count": 1, "cost": 0}, "usage": usage_}}
    start = copilot("session.start", "a", sessionId="s")
    return counted(written(folder / "events.jsonl", start, copilot("session.shutdown", "b", modelMetrics=metrics)))


EVENING = datetime(2026, 1, 25, 6, tzinfo=UTC)
"""A time that is still the day before in California."""


def days(_: Path) -> dict[str, str]:
    """Return the day of a request in three zones."""
    request = Request("", EVENING.timestamp(), "t", "gpt-5", "", "", output_tokens=1)
    zones = ("America/Los_Angeles", "UTC", "Asia/Shanghai")
    return {name: spend_by("day", [request], zone=ZoneInfo(name))[0].name for name in zones}


def named_zone(folder: Path) -> str:
    """Return the day that the command shows in a zone that is named."""
    path = written(folder / "a.jsonl", answer("m", usage(1, 1, 1, 1), timestamp=EVENING.isoformat()))
    return str(printed("spend", str(path), "--by", "day", "--timezone", "America/Los_Angeles")["rows"][0]["name"])


def printed(*arguments: str) -> Any:
    """Return what a command prints as JSON."""
    with redirect_stdout(io.StringIO()) as out:
        run([*arguments, "--no-cache", "--json"])
    return json.loads(out.getvalue())


def frozen(session: str, minutes: Iterable[int], written_: int) -> Log:
    """Return a log of answers that read a small start from the cache, always the same, and write the rest anew."""
    log = Log(session)
    log.user("Look.")
    for number, minute in enumerate(minutes):
        tokens = usage(10, written_, 9_000, 50)
        log.answer(f"{session}{number}", text("Done."), usage=tokens, model="claude-opus-4-5", minute=minute)
    return log


def break_report(minutes: Iterable[int], written_: int, folder: Path) -> tuple[int, int, str]:
    """Return breaks of the cache, the tokens they lost, and their price."""
    path = frozen("s", minutes, written_).write(folder)
    account = read_account(path)
    timeline = ContextWindowManager().timeline(account.sessions[0], log_reports(path, account))
    found = [marker for point in timeline.points for marker in point.markers if marker.kind is MarkerKind.CACHE_BREAK]
    return len(found), sum(marker.tokens for marker in found), f"{sum(marker.cost or 0 for marker in found):.2f}"


def breaks_in_spend(folder: Path) -> bool:
    """True if `spend --by cause` says what breaks of the cache have cost over all sessions."""
    for name in "ab":
        frozen(name, (0, 1), 50_000).write(folder, f"{name}.jsonl")
    rows = printed("spend", str(folder), "--by", "cause")["rows"]
    return any("cache lost" in row["name"] and row["requests"] == 2 for row in rows)


def limits_of_codex(folder: Path) -> tuple[float, ...]:
    """Return the used parts of the plan that `spend` reads in a log of Codex."""
    log = Codex("a").asks(1, 100, 10)
    windows = {"primary": (86.0, 300), "secondary": (42.0, 10_080)}
    limits = {name: {"used_percent": used, "window_minutes": minutes, "resets_at": NOON + 900} for name, (used, minutes) in windows.items()}
    log.records[-1][1]["payload"]["rate_limits"] = limits | {"plan_type": "pro"}
    return tuple(period.percent for plan in read_ledger([log.write(folder)]).limits for period in plan.periods)


ADVISED = usage(
    2,
    7_853,
    226_584,
    491,
    iterations=[
        usage(1, 7_000, 109_000, 45, type="message"),
        usage(159_419, 0, 0, 7_805, type="advisor_message", model="claude-opus-4-8"),
        usage(1, 853, 117_584, 446, type="message"),
    ],
)
CASES: dict[str, Case] = {
    "B001": Case(
        partial(claude, {"a.jsonl": [answer("m", usage(10, 100, 1_000, n)) for n in (1, 8, 50)]}),
        (1, 10, 100, 1000, 50),
    ),
    "B002": Case(partial(claude, {"a.jsonl": [answer("m", usage(10, 0, 0, n)) for n in (77, 3)]}), (1, 10, 0, 0, 77)),
    "B004": Case(
        partial(
            claude,
            {"a.jsonl": [answer(f"m{n}", usage(10, 100, 1_000, out), requestId=None) for n in range(3) for out in (1, 50)]},
        ),
        (3, 30, 300, 3000, 150),
    ),
    "B005": Case(partial(claude, {"a.jsonl": [answer("m", ADVISED, model="claude-sonnet-4-6")]}), (2, 159421, 7853, 226584, 8296)),
    "B008": Case(partial(price_of, usage(150_000, 0, 0, 0, speed="fast"), "claude-opus-4-6"), 4.5),
    "B009": Case(partial(price_of, usage(1_000, 0, 0, 100, server_tool_use={"web_search_requests": 100}), "claude-sonnet-4-5"), 1.0045),
    "B011": Case(partial(price_of, usage(100_000, 0, 0, 0, service_tier="batch"), "claude-opus-4-6"), 0.25),
    "B012": Case(
        partial(
            claude,
            {
                "s1.jsonl": [answer(f"m{n}", usage(10, 100, 1_000, 50)) for n in range(3)],
                "s2.jsonl": [answer(f"m{n}", usage(10, 100, 1_000, 50), sessionId="s2") for n in range(6)],
            },
        ),
        (6, 60, 600, 6000, 300),
    ),
    "B020": Case(cache_writes, (57610, 875306, 2124, 11150)),
    "B021": Case(partial(codex, one_fork), (3, 700, 70)),
    "B022": Case(partial(codex, three_forks), (4, 1200, 120)),
    "B024": Case(partial(codex, an_empty_fork), (2, 300, 30)),
    "B025": Case(partial(codex, sub_agents), (5, 453, 45)),
    "B027": Case(partial(codex, equal_forks), (4, 400, 40)),
    "B027-": Case(partial(codex, equal_sessions), (2, 200, 20)),
    "B029": Case(reasoning, (500, 1500, 0.00625)),
    "B030": Case(partial(codex, totals_begin_anew), (3, 210, 21)),
    "B031": Case(partial(writes_cost, "gpt-5.6-sol"), 1.25),
    "B032": Case(modern_opencode, (1, 1000, 3000, 250)),
    "B034": Case(stale_opencode, True),
    "B035": Case(opencode_twice, (3, 15, 0.75)),
    "B037": Case(copilot_log, (1, 3684, 0, 7441, 429)),
    "B120": Case(partial(break_report, range(0, 42, 2), 660_000), (20, 13_200_000, "75.90")),
    "B122": Case(partial(break_report, (0, 1), 85_900), (1, 85_900, "0.49")),
    "B123": Case(breaks_in_spend, True),
    "B171": Case(limits_of_codex, (86.0, 42.0)),
    "B038": Case(days, {"America/Los_Angeles": "2026-01-24", "UTC": "2026-01-25", "Asia/Shanghai": "2026-01-25"}),
    "B039": Case(named_zone, "2026-01-24"),
}
NAME = re.compile(r"(\S+): \$([\d.]+)/M$")
"""How a list of cases states the price of a name, in US dollars for a million tokens of input."""


def priced(expected: str) -> Case | None:
    """Return the case of a model's name and its price; None if the text states none."""
    stated = NAME.match(expected)
    if stated is None:
        return None
    name, price = stated[1], Decimal(stated[2])
    regional = BEDROCK_REGION.search(name) is not None and claude_version(name) >= REGIONAL_FROM
    note = f"${price}/M, and a tenth more, since inference is kept in a region" if regional else ""
    return Case(partial(input_price, name), float(price * (REGIONAL if regional else 1)), note)
