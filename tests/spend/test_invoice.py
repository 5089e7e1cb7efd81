"""The invoice: everything that a usage report states has its price, and what is uncertain is said."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.kept_prices import keeping
from context_window.models import describe_model
from context_window.models.prices import PRICED_ON, look_up, priced_model
from context_window.models.second_prices import second_list_date
from context_window.spend import money, read_ledger, spend_by
from context_window.spend.money import cost_of, invoice_of, rates_of
from context_window.spend.rows import LogRows, decode, encode
from context_window.spend.tables import price_notes
from session.transcripts.reported_requests import Request
from tests.spend.logs import answer, write
from tests.support.shell import Shell
from tests.support.tool_logs import copilot

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()


def request(model: str, **fields: Any) -> Request:
    return Request("", NOON, "t", model, "", "", **{"input_tokens": 100_000, "output_tokens": 10_000} | fields)


def usage(tokens: int, output: int, **more: Any) -> dict[str, Any]:
    return {"input_tokens": tokens, "output_tokens": output} | more


def requests_of(folder: Path, report: dict[str, Any], model: str = "claude-opus-5") -> list[Request]:
    message = {"id": "m", "role": "assistant", "model": model, "content": [], "usage": report}
    return list(read_ledger([write(folder / "a.jsonl", answer("m", 1) | {"message": message})]).requests)


@pytest.mark.parametrize(
    ("model", "terms", "multiple"),
    [
        ("claude-opus-4-6", {"speed": "fast"}, "6"),
        ("claude-opus-4-7", {"speed": "fast"}, "6"),
        ("claude-opus-4-8", {"speed": "fast"}, "2"),
        ("claude-opus-5", {"speed": "fast"}, "2"),
        ("claude-sonnet-4-6", {"tier": "batch"}, "0.5"),
        ("gpt-5.6-sol", {"tier": "batch"}, "0.5"),
        ("gpt-5.6-sol", {"tier": "priority"}, "2"),
        ("gpt-5.6-sol", {"tier": "flex"}, "0.5"),
        ("claude-opus-4-6", {"region": "us"}, "1.1"),
        ("claude-opus-4-6", {"region": "us", "speed": "fast"}, "6.6"),
    ],
)
def test_terms_multiply_the_price(model: str, terms: dict[str, str], multiple: str) -> None:
    usual = request(model, cache_read=5_000)
    invoice = invoice_of(replace(usual, **terms))  # type: ignore[arg-type]
    assert (invoice.cost, invoice.lacking) == (Decimal(multiple) * (cost_of(usual) or 0), "")


@pytest.mark.parametrize(
    ("name", "multiple"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "1.1"),
        ("bedrock/eu.anthropic.claude-haiku-4-5-20251001-v1:0", "1.1"),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "1"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "1"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "1"),
    ],
)
def test_regional_names_of_bedrock_cost_a_tenth_more(name: str, multiple: str) -> None:
    plain = request(name.partition("anthropic.")[2].partition("-v")[0])
    assert cost_of(request(name)) == Decimal(multiple) * (cost_of(plain) or 0)


def test_a_name_can_say_that_a_model_is_fast() -> None:
    assert cost_of(request("anthropic/claude-opus-4.8-fast")) == 2 * (cost_of(request("claude-opus-4-8")) or 0)


def test_terms_without_a_price_are_said() -> None:
    invoice = invoice_of(request("claude-opus-5", tier="priority"))
    assert (invoice.cost, invoice.lacking) == (cost_of(request("claude-opus-5")), "priority")
    assert price_notes([request("claude-opus-5", tier="priority"), request("claude-opus-5")]) == [
        "Sums marked + lack the price of 1 of 2 requests: claude-opus-5 (priority)."
    ]


def test_lists_that_differ_are_said_and_the_second_answers_where_the_first_knows_nothing() -> None:
    disputed = invoice_of(request("mistral-large-latest"))
    assert (disputed.cost, disputed.other) == (Decimal("0.26"), Decimal("0.065"))
    (row,) = spend_by("model", [request("mistral-large-latest"), request("mistral-large-latest", cost=Decimal(1))])
    assert (row.disputed, row.spread, row.cost) == (1, Decimal("0.195"), Decimal("1.26"))
    assert price_notes([request("mistral-large-latest")]) == [
        f"Two price lists ({PRICED_ON:%Y-%m-%d}, {second_list_date()}) differ on 1 of 1 requests, in sums marked ±: mistral-large-latest."
    ]
    assert cost_of(request("deepseek-v4-pro")) is not None


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-4-6", "claude-haiku-4-5", "gpt-5.6-sol", "gpt-5.5", "gemini-2.5-pro"])
@pytest.mark.parametrize("prompt", [50_000, 250_000, 300_000])
def test_the_lists_agree_on_current_models(model: str, prompt: int) -> None:
    invoice = invoice_of(request(model, input_tokens=prompt, cache_read=1_000, cache_write=500))
    assert (invoice.cost is not None, invoice.other, invoice.lacking) == (True, None, "")


def test_deepseek_costs_by_the_time_of_day() -> None:
    """https://api-docs.deepseek.com/quick_start/pricing: from 16:30 UTC on, a half or a quarter of the price, until September 2025."""
    at = [datetime(2025, 6, 2, 16, minute, tzinfo=UTC).timestamp() for minute in (29, 31)]
    day, night = (cost_of(replace(request("deepseek-chat"), time=time)) for time in at)
    assert day is not None
    assert night is not None
    assert night < day


def test_searches_cost_a_cent_each(tmp_path: Path) -> None:
    report = usage(0, 60, server_tool_use={"web_search_requests": 100})
    (searching,) = requests_of(tmp_path, report, "claude-opus-5")
    assert cost_of(searching) == 1 + 60 * Decimal(25) / 1_000_000


def test_an_advisor_and_a_compaction_are_charged_at_their_own_price(tmp_path: Path) -> None:
    """The totals sum the messages only."""
    passes = [
        usage(10, 5, type="message"),
        usage(180_000, 900, type="compaction"),
        usage(3_000, 800, type="advisor_message", model="claude-opus-4-8"),
        usage(20, 6, type="message", cache_read_input_tokens=7_000),
    ]
    report = usage(30, 11, cache_read_input_tokens=7_000, iterations=passes, speed="fast", inference_geo="us", service_tier="batch")
    found = requests_of(tmp_path, report)
    assert [(r.model, r.input_tokens, r.cache_read, r.output_tokens, r.largest_prompt) for r in found] == [
        ("claude-opus-5", 180_000, 0, 900, 0),
        ("claude-opus-4-8", 3_000, 0, 800, 0),
        ("claude-opus-5", 30, 7_000, 11, 7_020),
    ]
    assert {(r.speed, r.region, r.tier) for r in found} == {("fast", "us", "batch")}


def test_an_answer_that_another_model_ended_is_divided_between_both(tmp_path: Path) -> None:
    passes = [usage(100, 5, type="message"), usage(200, 9, type="fallback_message", model="claude-sonnet-5")]
    found = requests_of(tmp_path, usage(300, 14, iterations=passes))
    assert [(r.model, r.input_tokens, r.output_tokens) for r in found] == [("claude-sonnet-5", 200, 9), ("claude-opus-5", 100, 5)]


AMOUNTS = st.tuples(*[st.integers(0, 99_999)] * 4)
PASSES = st.lists(st.tuples(st.sampled_from(["message", "advisor_message", "compaction"]), AMOUNTS), max_size=6)
NAMES = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


@given(PASSES)
def test_all_passes_are_charged_once(passes: list[tuple[str, tuple[int, ...]]]) -> None:
    """Whatever the passes are, the invoice has the tokens of all of them."""
    from session.transcripts.request_readers import ClaudeCodeReader

    messages = [amounts for kind, amounts in [("message", (1, 1, 1, 1)), *passes] if kind == "message"]
    totals = [sum(column) for column in zip(*messages, strict=True)]
    rows = [{"type": kind} | dict(zip(NAMES, amounts, strict=True)) for kind, amounts in [("message", (1, 1, 1, 1)), *passes]]
    line = answer("m", 1)
    line["message"]["usage"] = dict(zip(NAMES, totals, strict=True)) | {"iterations": rows}
    found = list(ClaudeCodeReader().read(line))
    assert sum(r.total for r in found) == 4 + sum(sum(amounts) for _, amounts in passes)
    assert len({r.id for r in found}) == len(found)


def test_the_terms_survive_the_cache() -> None:
    special = request("m", speed="fast", tier="flex", region="us", searches=3, largest_prompt=9, cost=Decimal("0.1"))
    assert decode(encode(LogRows((special,)))).requests == (special,)


def test_codex_reports_writes_to_the_cache(tmp_path: Path) -> None:
    last = {"input_tokens": 1_000, "cached_input_tokens": 600, "cache_write_input_tokens": 300, "output_tokens": 50}
    meta = {"type": "session_meta", "timestamp": "2026-11-20T12:00:00Z", "payload": {"id": "c", "cwd": "/x"}}
    turn = {"type": "turn_context", "timestamp": "2026-11-20T12:00:00Z", "payload": {"model": "gpt-5.6-sol"}}
    info = {"type": "token_count", "info": {"total_token_usage": last, "last_token_usage": last}}
    (found,) = read_ledger(
        [write(tmp_path / "r.jsonl", meta, turn, {"timestamp": "2026-11-20T12:00:01Z", "type": "event_msg", "payload": info})]
    ).requests
    assert (found.input_tokens, found.cache_read, found.cache_write, found.output_tokens) == (100, 600, 300, 50)
    assert cost_of(found) == (100 * 4 + 600 * Decimal("0.4") + 300 * 5 + 50 * 20) / Decimal(1_000_000)


def codex_requests(folder: Path, *reports: tuple[list[int] | None, list[int] | None]) -> list[tuple[int, int]]:
    """Return input and output of the requests in a log of Codex, whose reports have a total and a last request, or one of them."""
    records: list[dict[str, Any]] = [{"type": "session_meta", "timestamp": "2026-11-20T12:00:00Z", "payload": {"id": "c", "cwd": "/x"}}]
    for number, report in enumerate(reports):
        names = ("total_token_usage", "last_token_usage")
        info = {name: {"input_tokens": pair[0], "output_tokens": pair[1]} for name, pair in zip(names, report, strict=True) if pair}
        stamp = f"2026-11-20T12:00:{number:02}Z"
        records.append({"timestamp": stamp, "type": "event_msg", "payload": {"type": "token_count", "info": info}})
    return [(r.input_tokens, r.output_tokens) for r in read_ledger([write(folder / "c.jsonl", *records)]).requests]


def test_totals_of_codex_that_begin_anew(tmp_path: Path) -> None:
    """after a compaction or in a fork: also if they are then larger than before, and without a report of each request"""
    assert codex_requests(tmp_path, ([300, 30], [300, 30]), ([400, 40], [400, 40])) == [(300, 30), (400, 40)]
    assert codex_requests(tmp_path, ([300, 30], None), ([500, 50], None), ([60, 6], None)) == [(300, 30), (200, 20), (60, 6)]
    assert codex_requests(tmp_path, ([9_000, 900], [300, 30]), ([9_500, 950], [200, 20])) == [(300, 30), (500, 50)]


@pytest.mark.parametrize("number", [12, "12", 12.0], ids=["whole", "text", "float"])
def test_numbers_may_be_written_otherwise(tmp_path: Path, number: object) -> None:
    report = {"input_tokens": number, "cache_read_input_tokens": None, "output_tokens": number, "cache_creation": None, "iterations": None}
    assert [(r.input_tokens, r.output_tokens) for r in requests_of(tmp_path, report)] == [(12, 12)]


def test_writes_to_the_cache_may_be_reported_by_lifetime_alone(tmp_path: Path) -> None:
    (found,) = requests_of(tmp_path, usage(1, 1, cache_creation={"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}))
    assert (found.cache_write, found.cache_write_1h) == (100, 200)


def test_an_answer_without_an_id_is_known_by_its_request(tmp_path: Path) -> None:
    lines = [answer("m", output) for output in (1, 50)]
    for line in lines:
        del line["message"]["id"]
    assert [r.output_tokens for r in read_ledger([write(tmp_path / "a.jsonl", *lines)]).requests] == [50]


def test_each_of_many_models_is_looked_up_once() -> None:
    """A log that names a thousand looked each up for each of its requests, again and again: a look takes milliseconds."""
    names = [f"made-up-{number}" for number in range(1_000)]
    for look in (priced_model, look_up, describe_model):
        look.cache_clear()
        for name in names * 2:
            look(name)
        assert look.cache_info().misses <= len(names)


@pytest.mark.parametrize(("model", "tier", "sign"), [("mistral-large-latest", "standard", "±"), ("claude-opus-5", "priority", "+")])
def test_whatever_shows_a_price_shows_what_is_uncertain_about_it(
    model: str, tier: str, sign: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request with a disputed price, or with one that lacks a part, among others: text, JSON, CSV and Parquet say so."""
    shell = Shell(capsys, monkeypatch)
    lines: list[dict[str, Any]] = []
    for number, name in enumerate((model, "claude-opus-5")):
        report = usage(100_000, 10_000, service_tier=tier if name == model and not number else "standard")
        content = [{"type": "text", "text": "Done."}]
        message = {"id": f"m{number}", "role": "assistant", "model": name, "content": content, "usage": report}
        lines += [{"type": "user", "uuid": f"u{number}", "sessionId": "s1", "message": {"role": "user", "content": "Go."}}]
        lines += [answer(f"m{number}", 1) | {"message": message, "uuid": f"a{number}", "parentUuid": f"u{number}"}]
    log, file = write(tmp_path / "a.jsonl", *lines), tmp_path / "a.parquet"
    for command in (["timeline", log], ["timeline", log, "--why"], ["spend", log], ["spend", log, "--by", "cause"]):
        text = shell(*command)[1]
        assert re.search(rf"\d{re.escape(sign)}", text), text
        assert f"sums marked {sign}" in " ".join(text.lower().split())
    values = json.loads(shell("timeline", log, "--json")[1])
    doubts = [(point["disputed_usd"] and Decimal(point["disputed_usd"]), point["lacking"]) for point in values["points"]]
    uncertain = (Decimal("0.195"), None) if sign == "±" else (None, "priority")
    assert doubts == [uncertain, (None, None), (None, None)]
    assert shell("spend", log, "--parquet", file)[0] == 0
    rows = pq.read_table(file).to_pylist()
    assert [(row["disputed_usd"], row["lacking"]) for row in rows] == [uncertain, (None, None)]
    counted = {"±": "disputed_requests", "+": "unpriced_requests"}[sign]
    for by in ("day", "cause"):
        table = list(csv.DictReader(io.StringIO(shell("spend", log, "--by", by, "--csv")[1])))
        assert "1" in {row[counted] for row in table}
        values = json.loads(shell("spend", log, "--by", by, "--json")[1])
        assert (values["total"][counted], values["price_lists"]) == (1, [f"{PRICED_ON:%Y-%m-%d}", second_list_date()])


def test_a_session_of_copilot_that_has_not_ended_has_its_answers_output(tmp_path: Path) -> None:
    """Its prompts are in no log, which is said: of them and of the price."""
    sums = {"gpt-5": {"usage": {"inputTokens": 1_000, "outputTokens": 10, "cacheReadTokens": 600}}}
    ended = copilot("session.shutdown", "b", modelMetrics=sums)
    running = copilot("assistant.message", "c", 5, content="so", model="gpt-5", outputTokens=9, toolRequests=[])
    log = [copilot("session.start", "a", sessionId="s"), running | {"id": "d"}, ended, running]
    ledger = read_ledger([write(tmp_path / "events.jsonl", *log)])
    assert [(r.input_tokens, r.cache_read, r.output_tokens) for r in ledger.requests] == [(400, 600, 10), (0, 0, 9)]
    assert "gpt-5 (prompt not reported)" in price_notes(ledger.requests)[0]
    assert "has not ended" in ledger.faults[0].problem
    assert not read_ledger([write(tmp_path / "ended.jsonl", *log[:-1])]).faults


@pytest.fixture
def lists_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """The models for which the price lists were asked, while answers are kept in an empty folder."""
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path))
    asked: list[str] = []

    def ask(model: str) -> object:
        asked.append(model)
        return priced_model(model)

    monkeypatch.setattr(money, "priced_model", ask)
    yield asked
    forget()


def forget() -> None:
    for function in (money._goes_by_the_hour, money._starts, money._quote):
        function.cache_clear()


MODELS = ("claude-opus-4-6", "claude-sonnet-4-5-20250929", "gpt-5.6-sol", "deepseek-chat", "gemini-2.5-pro", "no-such-model")
PRICED = [
    request(model, input_tokens=tokens, cache_read=7, cache_write_1h=9, speed=speed, region=region, searches=1)
    for model in MODELS
    for tokens in (1, 250_000)
    for speed, region in (("", ""), ("fast", ""), ("priority", "us"))
]


def test_prices_that_were_kept_are_those_of_the_lists(lists_asked: list[str], tmp_path: Path) -> None:
    """A second run asks no list, unless the file is damaged."""

    def run() -> list[object]:
        forget()
        lists_asked.clear()
        with keeping():
            return [(invoice_of(each), rates_of(each)) for each in PRICED]

    forget()
    fresh = [(invoice_of(each), rates_of(each)) for each in PRICED]
    assert (run(), bool(lists_asked)) == (fresh, True)
    assert (run(), lists_asked) == (fresh, [])
    (file,) = tmp_path.iterdir()
    for content in (b"", file.read_bytes()[:-9] + b'["1","1"]', b"\xff" * 99):
        file.write_bytes(content)
        assert (run(), bool(lists_asked)) == (fresh, True)
        assert (run(), lists_asked) == (fresh, [])
