"""What requests would have cost within a window, by the sizes of their prompts."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend.money import cost_of, rates_of
from context_window.spend.what_if import what_if
from session.transcripts.reported_requests import Request
from tests.spend.logs import answer, write
from tests.support.shell import Shell

NOON = 1_774_440_000.0
MODEL = "claude-sonnet-4-6"


def request(prompt: int, read: int, seconds: float, output: int = 100, **changes: object) -> Request:
    fields = {"cache_read": read, "cache_write": prompt - read, "output_tokens": output, **changes}
    return Request("", NOON + seconds, "claude_code", MODEL, "/p", "s", **fields)  # type: ignore[arg-type]


def growing(count: int, head: int = 20_000, step: int = 3_000, pause: float = 30) -> list[Request]:
    """Return requests of a session that only grows, each within the cache's lifetime."""
    sizes = [head + step * number for number in range(count)]
    return [request(size, 0 if not number else size - step, number * pause) for number, size in enumerate(sizes)]


def cost(requests: list[Request]) -> Decimal:
    return sum((cost_of(each) or Decimal(0) for each in requests), Decimal(0))


def test_a_trim_is_billed_as_the_provider_would() -> None:
    """Worked by hand: ten requests of 3,000 more tokens each, within 40,000: the eighth is trimmed."""
    requests, rates = growing(10), rates_of(request(1, 0, 0))
    assert rates is not None
    estimate = what_if(requests, 40_000)
    assert estimate.trims == 1
    assert estimate.requests[:7] == requests[:7]
    view = 26_000  # .65 of the window, which is above the first prompt with what is new

    def price(read: int, written: int) -> Decimal:
        return read * rates.cache_read + written * rates.cache_write + 100 * rates.output

    assert cost_of(estimate.requests[7]) == price(20_000, view - 20_000)
    assert cost_of(estimate.requests[8]) == price(view, 3_000)
    assert cost_of(estimate.requests[9]) == price(view + 3_000, 3_000)


REQUESTS = st.lists(
    st.builds(
        lambda tool, session, model, seconds, read, write, plain, output, stated: Request(
            "",
            seconds,
            tool,
            model,
            "/p",
            session,
            input_tokens=plain,
            cache_read=read,
            cache_write=write,
            output_tokens=output,
            cost=stated,
        ),
        st.sampled_from(("claude_code", "codex")),
        st.sampled_from(("a", "b", "")),
        st.sampled_from((MODEL, "gpt-5", "no-such-model", "")),
        st.none() | st.floats(NOON, NOON + 9_000),
        st.sampled_from((0, 40_000, 90_000, 180_000)),
        st.sampled_from((0, 500, 30_000)),
        st.integers(0, 5_000),
        st.integers(0, 2_000),
        st.none() | st.just(Decimal("0.5")) | st.just(Decimal(0)),
    ),
    max_size=14,
)


@given(REQUESTS, st.sampled_from(("auto", 1, 30_000, 10**9)))
def test_only_prices_change_and_none_is_invented(requests: list[Request], window: object) -> None:
    """Tokens, order and unknown prices stay; no price is below that of the answer alone, where it is not stated."""
    estimate = what_if(requests, window)  # type: ignore[arg-type]
    assert [replace(each, cost=None) for each in estimate.requests] == [replace(each, cost=None) for each in requests]
    for was, now in zip(requests, estimate.requests, strict=True):
        assert (cost_of(was) is None) == (cost_of(now) is None)
        price, rates = cost_of(now), rates_of(was)
        if price is not None and rates is not None and was.cost is None:
            assert price >= was.output_tokens * rates.output
    assert 0 <= estimate.trims < max(1, len(requests))


@given(st.integers(2, 30), st.integers(1, 9_000))
def test_what_fits_costs_what_it_did(count: int, step: int) -> None:
    requests = growing(count, step=step)
    assert what_if(requests, 1_000_000).requests == requests


def test_a_long_session_is_cheaper() -> None:
    """200 requests up to 420,000 tokens. A window below the automatic one is trimmed more often, one above it costs more."""
    requests = growing(200, step=2_000)
    auto, tight, wide = what_if(requests, "auto"), what_if(requests, 24_000), what_if(requests, 300_000)
    assert cost(auto.requests) < cost(requests) / 2
    assert cost(auto.requests) < cost(wide.requests) < cost(requests)
    assert tight.trims > 5 * auto.trims > 5 * wide.trims > 0


def test_a_cold_cache_makes_a_trim_free() -> None:
    """After a pause everything is written anew anyway, so less is."""
    requests = growing(12)
    late = request(60_000, 0, 5_000)
    assert what_if([*requests, late], "auto").trims == 1
    assert what_if([*requests, request(60_000, 53_000, 360)], "auto").trims == 0


def test_a_prompt_that_shrinks_a_little_has_no_new_tokens() -> None:
    """Nothing is billed below zero."""
    requests = [*growing(8), request(40_000, 39_000, 250)]
    rates = rates_of(requests[0])
    assert rates is not None
    assert cost_of(what_if(requests, 40_000).requests[-1]) == 25_000 * rates.cache_read + 100 * rates.output


def test_a_request_that_sums_up_two_is_left_as_it_is() -> None:
    requests = growing(9)
    requests.insert(5, request(80_000, 79_000, 130))
    assert what_if(requests, 60_000).requests == requests


@pytest.mark.parametrize("window", ["auto", "30000"])
def test_the_command_adds_a_column(
    window: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell(capsys, monkeypatch)
    lines = []
    for number in range(60):
        usage = {"input_tokens": 3, "cache_read_input_tokens": 3_000 * number, "cache_creation_input_tokens": 3_000, "output_tokens": 9}
        message = {"id": f"m{number}", "role": "assistant", "model": MODEL, "content": [], "usage": usage}
        lines.append(answer(f"m{number}", 1) | {"message": message, "timestamp": f"2026-03-25T12:{number:02}:00Z"})
    log = write(tmp_path / "a.jsonl", *lines, answer("x", 1, sessionId="t"), answer("y", 1, sessionId="u"))
    values = json.loads(shell("spend", log, "--by", "session", "--top", "1", "--what-if", window, "--json")[1])
    costs = [Decimal(row["within_usd"]) for row in values["rows"]]
    assert sum(costs) == Decimal(values["total"]["within_usd"]) < Decimal(values["total"]["cost_usd"])
    assert Decimal(values["rows"][1]["within_usd"]) == Decimal(values["rows"][1]["cost_usd"])  # short sessions cost what they did
    out = shell("spend", log, "--what-if", window)[1]
    assert f"within {window}" in out
    assert "% less, with " in out.replace("\n", " ")
    assert shell("spend", log, "--what-if", window, "--csv")[1].splitlines()[0].endswith(",within_usd")
