"""The command that compares our limits of models with litellm's table, on a table of our own."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.shared import ROOT

BENCHMARKS = ROOT / "benchmarks"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not part of the installed package")


@pytest.fixture(autouse=True)
def _beside_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def entry(**fields: Any) -> dict[str, Any]:
    """Return an entry of the table, with the limits of Claude Sonnet 4.5."""
    return {"litellm_provider": "anthropic", "mode": "chat", "max_input_tokens": 200_000, "max_output_tokens": 64_000} | fields


def test_limits_that_differ_are_listed_and_those_without_a_reason_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = {
        "claude-sonnet-4-5": entry(),
        "claude-haiku-4-5": entry(max_output_tokens=1_000),
        "gpt-5.4": entry(litellm_provider="openai", max_input_tokens=1_050_000, max_output_tokens=128_000),
        "bedrock/claude-sonnet-4-5": entry(litellm_provider="bedrock", max_input_tokens=1),
        "sample_spec": {"mode": "one of chat, embedding"},
    }
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    assert import_module("model_limits").main([str(path)]) == 1
    first, haiku, gpt = capsys.readouterr().out.splitlines()
    assert first == "3 models compared, 2 limits differ"
    assert haiku.split() == ["claude-haiku-4-5", "output", "64,000", "1,000"]
    assert gpt.split()[:4] == ["gpt-5.4", "input", "922,000", "1,050,000"]
    del table["claude-haiku-4-5"]
    path.write_text(json.dumps(table), encoding="utf-8")
    assert import_module("model_limits").main([str(path)]) == 0
