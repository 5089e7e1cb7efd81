"""Each request counts once, however many logs repeat it: random histories of forks, resumes, spawns and copies, against a plain count."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend import read_ledger
from context_window.spend.cache import SpendCache
from tests.spend.logs import answer, write

NAMES = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")


@dataclass
class Log:
    """A log of Codex: its records with their times, and its totals so far. Its requests are larger by `extra`."""

    id: str
    records: list[tuple[float, dict[str, Any]]]
    totals: list[int] = field(default_factory=lambda: [0] * 5)
    extra: int = 0

    def write(self, folder: Path, name: str) -> Path:
        stamps = (datetime.fromtimestamp(time, UTC).isoformat() for time, _ in self.records)
        return write(
            folder / f"{name}.jsonl", *({"timestamp": stamp} | record for stamp, (_, record) in zip(stamps, self.records, strict=True))
        )


def meta(id_: str, **more: Any) -> dict[str, Any]:
    return {"type": "session_meta", "payload": {"id": id_, "cwd": "/x"} | more}


@dataclass
class History:
    """What happened, and a plain count of it.

    Attributes:
        logs: The logs as the tool writes them.
        copies: Copies of logs from earlier times.
        requests: Tokens of each request that was made.
    """

    logs: list[Log] = field(default_factory=list)
    copies: list[Log] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    time: float = 1_780_000_000.0

    def do(self, action: str, which: int, size: int) -> None:
        """Let something happen to one of the logs."""
        self.time += 10
        number = len(self.logs)
        if action == "new" or not self.logs:
            self.logs.append(Log(f"t{number}", [(self.time, meta(f"t{number}"))]))
            return
        log = self.logs[which % number]
        if action == "request":
            self.request(log, size)
        elif action == "copy":
            self.copies.append(Log(log.id, list(log.records)))
        else:
            source = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": log.id}}}} if action.startswith("spawn") else {}
            forked = {} if action in ("spawn", "spawn fresh") else {"forked_from_id": log.id}
            past = [] if action == "spawn fresh" else [(self.time, record) for _, record in log.records]
            totals = [0] * 5 if action == "spawn fresh" else list(log.totals)
            self.logs.append(
                Log(
                    f"t{number}",
                    [(self.time, meta(f"t{number}", **source, **forked)), *past],
                    totals,
                    extra=2 * number * (action == "spawn fresh"),
                )
            )

    def request(self, log: Log, size: int) -> None:
        size += log.extra
        last = [100 * size, 0, size, 0, 101 * size]
        log.totals = [total + own for total, own in zip(log.totals, last, strict=True)]
        both = {"total_token_usage": dict(zip(NAMES, log.totals, strict=True)), "last_token_usage": dict(zip(NAMES, last, strict=True))}
        log.records.append((self.time, {"type": "event_msg", "payload": {"type": "token_count", "info": both}}))
        self.requests.append(101 * size)


ACTIONS = ("new", "request", "request", "request", "fork", "fork", "spawn", "spawn forked", "spawn fresh", "copy")
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 20), st.integers(1, 2)), max_size=25)


@given(STEPS, st.randoms(use_true_random=False))
def test_each_request_of_a_history_counts_once(steps: list[tuple[str, int, int]], random: Any) -> None:
    """Requests have one of two sizes, so that figures are often equal by chance. Sub-agents without a past have sizes of their own."""
    history = History()
    for action, which, size in [("new", 0, 1), *steps]:
        history.do(action, which, size)
    with TemporaryDirectory() as folder:
        logs = [*history.logs, *history.copies]
        names = random.sample(range(len(logs)), len(logs))
        paths = [log.write(Path(folder), f"{name:03}") for name, log in zip(names, logs, strict=True)]
        with SpendCache(Path(folder) / "spend.sqlite3") as cache:
            for _ in range(2):  # the second time from the cache
                ledger = read_ledger(paths, cache=cache)
                assert (len(ledger.requests), sum(r.total for r in ledger.requests)) == (len(history.requests), sum(history.requests))


@given(STEPS, st.sets(st.integers(0, 9)))
def test_requests_of_deleted_logs_count_once_if_forks_repeat_them(steps: list[tuple[str, int, int]], deleted: set[int]) -> None:
    """All sizes differ here. A request counts if a log that is left has it."""
    history = History()
    for number, (action, which, _) in enumerate([("new", 0, 1), *steps]):
        history.do(action, which, 2**number)
    logs = [log for number, log in enumerate(history.logs) if number not in deleted]
    left = {json.dumps(record) for log in logs for _, record in log.records if record["type"] == "event_msg"}
    with TemporaryDirectory() as folder:
        ledger = read_ledger([log.write(Path(folder), log.id) for log in logs])
        assert len(ledger.requests) == len(left)


def history_of(*steps: tuple[str, int, int]) -> History:
    history = History()
    for step in steps:
        history.do(*step)
    return history


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [("new", 0, 0), ("request", 0, 1), ("fork", 0, 0), ("request", 1, 1), ("fork", 1, 0), ("request", 2, 1)], id="fork of a fork"
        ),
        pytest.param(
            [("new", 0, 0), ("request", 0, 1), ("spawn", 0, 0), ("request", 1, 1), ("spawn", 0, 0), ("request", 2, 1)], id="spawns"
        ),
        pytest.param([("new", 0, 0), ("request", 0, 1), ("fork", 0, 0), ("request", 1, 1), ("request", 0, 1)], id="equal next requests"),
        pytest.param(
            [("new", 0, 0), ("fork", 0, 0), ("request", 0, 1), ("fork", 1, 0), ("request", 2, 1)], id="equal requests beside an older fork"
        ),
    ],
)
def test_named_histories(steps: list[tuple[str, int, int]], tmp_path: Path) -> None:
    history = history_of(*steps)
    ledger = read_ledger([log.write(tmp_path, log.id) for log in history.logs])
    assert len(ledger.requests) == len(history.requests)
    assert ledger.requests[0].session == "t0"


def test_a_log_that_is_its_own_ancestor_is_read(tmp_path: Path) -> None:
    history = history_of(("new", 0, 0), ("request", 0, 1))
    (log,) = history.logs
    first = Log("a", [(1.0, meta("a", forked_from_id="b")), *log.records[1:]])
    second = Log("b", [(1.0, meta("b", forked_from_id="a")), *log.records[1:]])
    assert len(read_ledger([first.write(tmp_path, "a"), second.write(tmp_path, "b")]).requests) == 1


def test_a_side_question_repeats_answers_under_other_request_ids(tmp_path: Path) -> None:
    main = write(tmp_path / "s1.jsonl", answer("m1", 5), answer("m2", 6))
    repeated = [answer("m1", 5, isSidechain=True, requestId="other"), answer("m2", 6, isSidechain=True, requestId=None)]
    side = write(tmp_path / "s1" / "subagents" / "agent-1.jsonl", *repeated, answer("m3", 7, isSidechain=True))
    ledger = read_ledger([main, side])
    assert [(r.output_tokens, r.agent) for r in ledger.requests] == [(5, ""), (6, ""), (7, "sidechain")]
