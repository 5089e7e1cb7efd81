"""What `context-window spend` takes: time by the number of logs, and beside bare `json.loads`; memory; the second run. What `usage` takes.

    python -m benchmarks.spend            # 100, 1,000 and 10,000 small logs, one gigabyte, a log of 30 MB; a few minutes
    python -m benchmarks.spend --quick    # a tenth of that
    python -m benchmarks.spend --usage LOG

The logs are made up: of Claude Code, each answer on two lines with its usage, sizes of texts log-normal. Times are of the processor, the
best of two or three. Memory is the largest resident size of this process or of one of its workers.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.speed import texts_of
from context_window import ContextWindowManager
from context_window.counting.vocabulary import o200k
from context_window.spend import SpendCache, read_ledger, read_on_all_cores, spend_by
from session.transcripts import read_account

WORDS = [f"w{number}{'abcdefghij'[number % 10] * (number % 9)}" for number in range(3_000)]
MEGABYTE = 1_000_000


def lines(log: int, size: int) -> Iterator[str]:
    """Lines of a log of about this many bytes."""
    draw = random.Random(log)
    turn = written = 0
    while written < size:
        turn += 1
        name = f"{log}_{turn}"
        call, output = (" ".join(draw.choices(WORDS, k=int(draw.lognormvariate(mean, 1.1)))) for mean in (4.2, 6.2))
        usage = {
            "input_tokens": 5,
            "cache_creation_input_tokens": 900,
            "cache_read_input_tokens": 40_000 + turn,
            "cache_creation": {"ephemeral_5m_input_tokens": 900, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 300,
        }
        line = {
            "cwd": f"/home/me/p{log % 20}",
            "sessionId": f"s{log}",
            "isSidechain": False,
            "timestamp": f"2026-03-{1 + turn % 28:02}T12:00:00Z",
        }
        tool_call = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": call}}
        message = {"model": "claude-opus-4-6", "id": f"msg_{name}", "role": "assistant", "content": [tool_call], "usage": usage}
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": output}]}
        answer = json.dumps(line | {"type": "assistant", "requestId": f"req_{name}", "message": message})
        for text in (answer, answer, json.dumps(line | {"type": "user", "message": result, "toolUseResult": {"stdout": output}})):
            written += len(text) + 1
            yield text + "\n"


def write_logs(folder: Path, logs: int, size: int) -> list[Path]:
    """Write logs of about this many bytes each, and return their paths."""
    folder.mkdir()
    paths = [folder / f"{log:06}.jsonl" for log in range(logs)]
    for log, path in enumerate(paths):
        with path.open("w") as file:
            file.writelines(lines(log, size))
    return paths


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time, times: int = 3) -> float:
    """Seconds that the work takes, the best of some times."""
    best = float("inf")
    for _ in range(times):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def parse(paths: list[Path]) -> None:
    """What any reader has to do: each line through json.loads."""
    for path in paths:
        with path.open("rb") as file:
            for line in file:
                json.loads(line)


def memory() -> float:
    """Largest resident size of this process and of its workers, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * unit / MEGABYTE


def by_number(folder: Path, numbers: list[int]) -> None:
    """Print a row for each number of small logs."""
    print("| logs | MB | json.loads, s | reading, s | ratio | µs a log | second run, s |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for number in numbers:
        paths = write_logs(folder / f"{number}", number, 20_000)
        size = sum(path.stat().st_size for path in paths)
        bare = seconds(lambda paths=paths: parse(paths))
        ours = seconds(lambda paths=paths: read_ledger(paths))
        with SpendCache(folder / f"{number}.sqlite3") as cache:
            read_ledger(paths, cache=cache)
        with SpendCache(folder / f"{number}.sqlite3") as cache:
            again = seconds(lambda paths=paths, cache=cache: spend_by("day", read_ledger(paths, cache=cache).requests))
        print(
            f"| {number:,} | {size / MEGABYTE:,.0f} | {bare:.2f} | {ours:.2f} | {ours / bare:.2f} | "
            f"{ours / number * MEGABYTE:,.0f} | {again:.2f} |"
        )


def by_size(folder: Path, sizes: list[int]) -> None:
    """Print a row for each size of all logs together, in MB."""
    print("| MB | logs | requests | json.loads, s | reading, s | ratio | all cores, s of the clock | memory, MB | second run, s |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for size in sizes:
        paths = write_logs(folder / f"{size}MB", 40, size * MEGABYTE // 40)
        with SpendCache(folder / f"{size}MB.sqlite3") as cache:
            start = time.perf_counter()
            ledger = read_ledger(paths, scheduler=read_on_all_cores, cache=cache)
            first = time.perf_counter() - start
        with SpendCache(folder / f"{size}MB.sqlite3") as cache:
            again = seconds(lambda paths=paths, cache=cache: spend_by("day", read_ledger(paths, cache=cache).requests), times=1)
        bare, ours = seconds(lambda paths=paths: parse(paths), times=2), seconds(lambda paths=paths: read_ledger(paths), times=2)
        figures = f"{bare:.2f} | {ours:.2f} | {ours / bare:.2f} | {first:.1f} | {memory():,.0f} | {again:.2f}"
        print(f"| {size:,} | {len(paths)} | {len(ledger.requests):,} | {figures} |")
        for path in paths:
            path.unlink()


def usage(path: Path) -> None:
    """Print what reading a log and making its usage report takes, beside parsing its lines twice and encoding its texts once."""

    def report() -> None:
        session = read_account(path).sessions[0]
        ContextWindowManager(session.metadata.get("model") or "gpt-5").usage(session)

    texts = list(texts_of(read_account(path).sessions[0]))
    o200k().encode_ordinary("")  # loaded before the clock runs
    bare, ours = seconds(lambda: parse([path])), seconds(report)
    encoding = seconds(lambda: [o200k().encode_ordinary(text) for text in texts])
    print("| MB | json.loads, s | encoding, s | `usage`, s | in parts of 2 json.loads and encoding |")
    print("|--:|--:|--:|--:|--:|")
    print(f"| {path.stat().st_size / MEGABYTE:,.1f} | {bare:.2f} | {encoding:.2f} | {ours:.2f} | {ours / (2 * bare + encoding):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the logs")
    parser.add_argument("--usage", type=Path, metavar="LOG", help="only what `usage` of this log takes")
    options = parser.parse_args()
    if options.usage is not None:
        usage(options.usage)
        return
    part = 10 if options.quick else 1
    with tempfile.TemporaryDirectory() as folder:
        by_size(Path(folder), [size // part for size in (100, 300, 1_000)])
        print()
        by_number(Path(folder), [number // part for number in (100, 1_000, 10_000)])
        print()
        usage(write_logs(Path(folder) / "usage", 1, 30 * MEGABYTE // part)[0])


if __name__ == "__main__":
    main()
