"""The accuracy benchmark: its split, its figures, and the reach itself, so that no change makes counts worse unnoticed."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.support.shared import ROOT, TRANSCRIPTS, needs_transcripts

BENCHMARKS = ROOT / "benchmarks"
TRUTH = TRANSCRIPTS / "provider_truth"

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not part of the installed package")

REACH: dict[tuple[str, bool], float] = {
    # provider, below 1,000 tokens: the median error on the held-out third, tokens below and percent above, with a small margin.
    ("OpenAI", True): 2,
    ("Claude", True): 8,
    ("Gemini", True): 14,
    ("OpenAI", False): 2,
    ("Claude", False): 3,
    ("Gemini", False): 5,
}


@pytest.fixture(autouse=True)
def _beside_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def benchmark() -> Any:
    return import_module("token_accuracy")


@cache
def truth() -> tuple[Any, ...]:
    records, _ = benchmark().measure(benchmark().files_of([TRUTH]))
    return tuple(records)


def request(**given: Any) -> dict[str, Any]:
    """A recorded request of the least kind."""
    record = {
        "repo": "someone/something",
        "path": "tests/one.yaml",
        "kind": "openai_chat",
        "host": "api.openai.com",
        "model": "gpt-4o",
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
        "server_tools": [],
        "server_state": [],
        "request": {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello there"}]},
    }
    return record | given


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Path]:
    def write(*requests: dict[str, Any]) -> Path:
        path = tmp_path / "requests.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in requests), encoding="utf-8")
        return path

    return write


def test_the_split_is_by_hash_and_stays() -> None:
    held = "".join(letter for letter in ascii_lowercase if benchmark().is_held_out(letter))
    assert held == "ghlot"  # were it another, constants would have been fitted on what is held out


def test_any_id_has_its_side() -> None:
    assert {benchmark().is_held_out(one) for one in ("", "\ud800", "\0", "a" * 100_000)} <= {True, False}


def test_about_a_third_is_held_out() -> None:
    held = sum(benchmark().is_held_out(f"record {number}") for number in range(3_000))
    assert 900 <= held <= 1_100


def test_one_small_request_goes_through_whole(recorded: Any) -> None:
    records, left_out = benchmark().measure([recorded(request())])
    (record,) = records
    assert not left_out
    assert (record.provider, record.family, record.content) == ("OpenAI", "to gpt-4.1", "text")
    assert (record.reported, record.estimated, record.error) == (9, 2 + 4 + 3, 0.0)
    assert record.id == "someone/something/tests/one.yaml"


def test_what_cannot_be_compared_is_left_out_and_told(recorded: Any) -> None:
    elsewhere = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}]
    path = recorded(
        request(server_tools=["web_search"]),
        request(server_state=["previous_response_id"]),
        request(host="openrouter.ai"),
        request(host="api.openai.com.example.org"),
        request(model="llama-3", request={"model": "llama-3", "messages": [{"role": "user", "content": "hello"}]}),
        request(usage={}),
        request(request={"model": "gpt-4o", "messages": elsewhere}),
    )
    records, left_out = benchmark().measure([path])
    assert not records
    assert left_out == {
        "the provider's own tools, or state that it keeps": 2,
        "not served by the maker of the model": 2,
        "not a model of Anthropic, OpenAI or Google in its own format": 1,
        "nothing was reported": 1,
        "media elsewhere": 1,
    }


@pytest.mark.parametrize(
    ("settings", "content"),
    [
        ({}, "text"),
        ({"tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}]}, "tools"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}}, "schema"),
        ({"response_format": {"type": "text"}}, "text"),
    ],
)
def test_the_content_is_what_is_hardest_to_count(recorded: Any, settings: dict[str, Any], content: str) -> None:
    (record,), _ = benchmark().measure([recorded(request(request=request()["request"] | settings))])
    assert record.content == content


def test_errors_are_tokens_of_small_requests_and_percent_of_others() -> None:
    def record(reported: int, estimated: int) -> Any:
        return benchmark().Record("id", "OpenAI", "family", "text", "counter", reported, estimated)

    assert [record(999, 989).error, record(1_000, 990).error, record(2_000, 2_100).error] == [-10, -1, 5]
    found = benchmark().errors_of([record(100, 100 + off) for off in (-1, -3, 2, 0, 30)])
    assert (found.records, found.median, found.p95, found.bias, found.under) == (5, 2, 30, 0, 0.4)
    assert benchmark().errors_of([]) is None


def test_the_command_prints_tables_and_json_and_draws(recorded: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, drawing = recorded(request(), request(path="tests/two.yaml")), tmp_path / "errors.svg"
    assert benchmark().main([str(path), "--svg", str(drawing)]) == 0
    printed = capsys.readouterr().out
    assert "Held out" in printed
    assert "cannot be known from a transcript" in printed
    assert max(map(len, printed.splitlines())) <= 140
    root = ET.fromstring(drawing.read_text(encoding="utf-8"))
    assert sum(one.get("r") == "3" for one in root.iter("{http://www.w3.org/2000/svg}circle")) == 2
    assert benchmark().main([str(path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert [one["estimated"] for one in values["records"]] == [9, 9]
    assert sum(row["records"] for rows in values["tables"].values() for row in rows if row["grouping"] == "all") == 2


def test_a_folder_without_requests_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark().main([str(tmp_path)]) == 2
    assert "no recorded requests" in capsys.readouterr().err


@needs_transcripts
def test_the_recorded_requests_are_all_there() -> None:
    held = sum(record.held_out for record in truth())
    assert len(truth()) > 600
    assert 0.28 < held / len(truth()) < 0.4


@needs_transcripts
@pytest.mark.parametrize(("provider", "small"), REACH, ids=str)
def test_the_median_error_on_the_held_out_third_stays_in_reach(provider: str, small: bool) -> None:
    errors = [abs(one.error) for one in truth() if one.held_out and one.provider == provider and one.is_small is small]
    assert errors
    assert statistics.median(errors) <= REACH[provider, small]


@needs_transcripts
def test_what_claude_is_told_of_the_answers_schema_is_counted() -> None:
    errors = [abs(one.error) for one in truth() if one.provider == "Claude" and one.content == "schema" and one.is_small]
    assert len(errors) > 10
    assert max(errors) <= 10  # some 200 where it is not


@needs_transcripts
def test_plain_texts_are_counted_exactly_for_openai() -> None:
    errors = sorted(abs(one.error) for one in truth() if one.provider == "OpenAI" and one.content == "text" and one.is_small)
    assert statistics.median(errors) == 0
    assert sum(error == 0 for error in errors) > 0.7 * len(errors)
