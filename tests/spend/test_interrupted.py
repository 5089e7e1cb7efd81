"""`spend` that is interrupted or killed leaves no traceback and no process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.spend.logs import answer
from tests.support.shared import ROOT

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs signals, groups of processes, and /proc to see them")
SIZE = 60_000_000
"""Bytes of logs, so that several processes read them for a second or two."""
AS_IN_A_TERMINAL = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.executable, sys.argv[1:])"
"""A shell's background jobs are born deaf to Ctrl-C, and so are their children."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of logs."""
    folder = tmp_path_factory.mktemp("logs")
    lines = "".join(json.dumps(answer(f"request{number}", 1) | {"toolUseResult": "x" * 1_000}) + "\n" for number in range(1_500))
    for number in range(SIZE // len(lines) + 1):
        (folder / f"{number}.jsonl").write_text(lines.replace('"request', f'"r{number}-'), encoding="utf-8")
    return folder


@contextmanager
def spending(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `spend` in a group of processes of its own, as a terminal does."""
    line = [sys.executable, "-c", AS_IN_A_TERMINAL, sys.executable, "-m", "context_window", "spend", "--no-cache", str(folder)]
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        for left in group(process.pid):
            os.kill(left, signal.SIGKILL)
        process.communicate()


def group(leader: int) -> list[int]:
    """Return the processes of a group that are not dead."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, process_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(process_group) == leader and state != "Z":
            found.append(int(folder.name))
    return found


def until(condition: object, seconds: float = 20) -> bool:
    """True once the condition holds; False if it does not in this time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("delay", [0.0, 0.15, 0.4, 0.7])
def test_ctrl_c_is_one_line_and_130(folder: Path, delay: float) -> None:
    """Ctrl-C goes to the workers too, whatever they are doing: nothing of them is printed, and nobody waits for them."""
    with spending(folder) as process:
        assert until(lambda: b"context_window" in Path(f"/proc/{process.pid}/cmdline").read_bytes() or process.poll() is not None)
        assert until(lambda: len(group(process.pid)) > 1 or process.poll() is not None)  # the workers, or the helper that starts with them
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err.strip()) == (130, b"", b"") or process.returncode == 0
        assert until(lambda: not group(process.pid))


def test_workers_end_with_their_parent(folder: Path) -> None:
    """A `spend` that is killed leaves no worker running."""
    with spending(folder) as process:
        if len(os.sched_getaffinity(0)) > 1:
            assert until(lambda: len(group(process.pid)) > 2 or process.poll() is not None)
            assert process.poll() is None
        time.sleep(0.6)
        process.kill()
        process.wait()
        assert until(lambda: not group(process.pid)), "a worker is left"
