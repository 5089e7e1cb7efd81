"""The benchmark of the gateway at small sizes: its counts and ratios, and that it notices broken ones. No times."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="the benchmarks are not part of the installed package"),
    pytest.mark.no_cover,
]


def part(name: str) -> Any:
    return import_module(f"benchmarks.gateway.{name}")


@pytest.mark.parametrize("only", [pytest.param("latency", marks=pytest.mark.long), pytest.param("crowd", marks=pytest.mark.long), "cost"])
def test_no_promise_is_broken(only: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A conversation that fits goes out byte for byte, nothing fails, and no request writes more to the cache but for a trim."""
    assert part("__main__").main(["--quick", "--only", only]) == 0, capsys.readouterr().out
