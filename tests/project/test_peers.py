"""The comparison of `python -m benchmarks.peers`: its counts, and this library's rows at small sizes."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="the benchmarks are not part of the installed package")

program: Any = import_module("benchmarks.peers.__main__")


@pytest.mark.no_cover  # tracing would break the ratios
def test_no_ratio_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--quick"]) == 0, capsys.readouterr().out
