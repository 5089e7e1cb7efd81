"""A process of `worker.py` in an environment. A fresh one has seen no text before."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

from .worker import LATE

WORKER = Path(__file__).with_name("worker.py")
PROJECT = WORKER.parent.parent.parent


class Process:
    """A running worker. Its home is a temporary folder, since some libraries write there.

    Args:
        python: The interpreter.
    """

    def __init__(self, python: str) -> None:
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        environment = os.environ | {"HOME": self._home.name, "PYTHONPATH": str(PROJECT)}
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            cwd=self._home.name,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._home.cleanup()

    def ask(self, task: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a task, or None if the process has taken its limit of processor time.

        Raises:
            RuntimeError: The process ended by itself.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        if line := self._process.stdout.readline():
            return dict(json.loads(line))
        if self._process.wait() == LATE:
            return None
        raise RuntimeError(f"the worker of {task.get('peer')} has ended; is the environment that of benchmarks/peers/env.sh?")
