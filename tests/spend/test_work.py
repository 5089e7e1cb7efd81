"""How much work reading takes, in lines parsed and files opened. `python -m benchmarks.spend` measures the time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.models.prices import price_list_of
from context_window.spend import SpendCache, cache_file, cost_of, find_logs, read_ledger
from session.errors import TranscriptError
from session.transcripts import reported_requests, source
from session.transcripts.reported_requests import Request, read_requests
from tests.spend.logs import answer, write
from tests.support.shared import TRANSCRIPTS, needs_transcripts


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that are parsed."""
    lines: list[str] = []
    real = source.parse

    def parse(text: str) -> tuple[tuple[object, ...], str | None]:
        lines.append(text)
        return real(text)

    monkeypatch.setattr(source, "parse", parse)
    return lines


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are opened."""
    paths: list[Path] = []
    real = source.open_file

    def open_file(path: Path, **options: Any) -> Any:
        paths.append(path)
        return real(path, **options)

    monkeypatch.setattr(source, "open_file", open_file)
    return paths


def output(text: str) -> dict[str, Any]:
    return {"type": "user", "sessionId": "s", "message": {"role": "user", "content": text}}


def test_only_lines_with_usage_are_parsed(tmp_path: Path, parsed: list[str]) -> None:
    """Parsing is most of the work, and most of a log are outputs of tools."""
    outputs = [output(text) for text in ("plain", 'a "usage" in a text', '{"usage": 1}') * 50]
    log = write(tmp_path / "a.jsonl", output("first"), *outputs, answer("m1", 2), *outputs, answer("m1", 9), "{]")
    assert [request.output_tokens for request in read_requests(log).requests] == [9]
    assert len(parsed) == 2 + 2 + 1  # the first two show the format, two have usage, and one is damaged


@pytest.mark.parametrize("logs", [10, 40])
def test_each_log_is_opened_once_and_in_the_second_run_none(tmp_path: Path, opened: list[Path], logs: int) -> None:
    paths = [write(tmp_path / f"{index:03}.jsonl", output("x"), answer(f"m{index}", 1)) for index in range(logs)]
    for _ in range(2):
        with SpendCache(cache_file()) as cache:
            assert len(read_ledger(paths, cache=cache).requests) == logs
    assert opened == paths


@needs_transcripts
@pytest.mark.parametrize("tool", ["claude_code", "codex", "copilot_cli", "gemini_chat", "pi"])
def test_lines_that_are_not_parsed_have_no_usage(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte strings; each line that a reader needs has at least one of them."""
    logs = find_logs([str(TRANSCRIPTS / tool)])
    assert logs

    def outcome(log: Path) -> object:
        try:
            return read_requests(log)
        except TranscriptError as error:  # it has answers without usage
            return str(error)

    quick = [outcome(log) for log in logs]
    monkeypatch.setattr(reported_requests, "MARKS", {})
    assert [outcome(log) for log in logs] == quick


@given(st.sampled_from(["gemini-2.5-pro", "claude-sonnet-4-5", "claude-opus-4-6", "gpt-5.5"]), st.integers(0, 10**6), st.integers(0, 9))
def test_a_price_is_that_of_the_price_list(model: str, prompt: int, output_tokens: int) -> None:
    """They are the same up to the next of `_starts`."""
    from datetime import UTC, datetime

    noon = datetime(2026, 3, 25, 12, tzinfo=UTC)
    prices = price_list_of(model, noon.date())
    request = Request("", noon.timestamp(), "t", model, "", "", input_tokens=prompt, output_tokens=output_tokens)

    def rate(price: Any) -> Any:
        above = [tier.price for tier in sorted(getattr(price, "tiers", ()), key=lambda tier: tier.start) if prompt > tier.start]
        return above[-1] if above else getattr(price, "base", price)

    assert cost_of(request) == (prompt * rate(prices.input_mtok) + output_tokens * rate(prices.output_mtok)) / 1_000_000
    assert cost_of(replace(request, model="nobody-knows-1")) is None
