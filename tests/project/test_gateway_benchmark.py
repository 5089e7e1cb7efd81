"""The benchmark of the gateway at small sizes: its counts and ratios, and that it notices broken ones. No times."""

from __future__ import annotations

from dataclasses import replace
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


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"refused": 2}, "chat, untrimmed: 2 requests were refused"),
        ({"changed": 1}, "chat, untrimmed: 1 requests that fit were changed"),
        ({"trimmed": True}, "chat, trimmed: nothing was taken out of 1,000 bytes"),
    ],
)
def test_a_broken_promise_about_requests_has_a_sentence(fault: dict[str, Any], sentence: str) -> None:
    latency = part("latency").Latency("chat", False, 1_000, 1_000, 0.1, 0.1, 1.0, 0, 0, 10)
    broken_promises = part("check").broken_promises
    assert broken_promises([latency], [], []) == []
    assert broken_promises([replace(latency, **fault)], [], []) == [sentence]


def test_a_broken_promise_about_many_conversations_has_a_sentence() -> None:
    crowd = part("crowd").Crowd(50, 100, 0, 1.0, 1_000, 2_900, 2_900)
    broken_promises = part("check").broken_promises
    assert broken_promises([], [crowd], []) == []
    assert broken_promises([], [replace(crowd, memory=None)], []) == []
    assert broken_promises([], [replace(crowd, failed=3, idle_memory=3_100)], []) == [
        "50 conversations at once: 3 of 100 requests failed",
        "50 idle conversations: 3.1 times their JSON in memory, more than 3.0",
    ]


def test_a_request_that_writes_more_without_a_trim_is_found() -> None:
    """No request costs more cache writes than the unmanaged client's plus one per trim."""
    bill, cost = part("billing").Bill, part("cost").Cost
    plain = [bill(0, 1_000, 0), bill(1_000, 500, 0), bill(1_500, 500, 0), bill(2_000, 500, 0)]
    managed = [bill(0, 1_000, 0), bill(1_000, 500, 0), bill(0, 900, 0), bill(900, 500, 0)]
    trimmed = cost("a session", 1_000, managed, plain, [2])
    assert part("check").broken_promises([], [], [trimmed]) == []
    assert trimmed.costs[0] < trimmed.costs[1] * 1.3
    assert part("check").broken_promises([], [], [replace(trimmed, breaks=[])]) == [
        "a session: 1 requests wrote more to the cache than without the gateway, and were no trims"
    ]
    assert part("check").broken_promises([], [], [replace(trimmed, breaks=[2, 3])]) == [
        "a session: 2 of 4 requests broke the cached prefix"
    ]


def blocks(*texts: str, marks: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    return [{"text": text, **({"cache_control": {}} if place in marks else {})} for place, text in enumerate(texts)]


def test_a_marked_prefix_is_written_once_and_read_after() -> None:
    long = "a" * 8_000
    cache = part("billing").Cache()
    first = {"max_tokens": 1, "messages": [{"role": "user", "content": blocks(long, "b", marks=(0,))}]}
    second = {"max_tokens": 1, "messages": [{"role": "user", "content": blocks(long, "b", "c" * 400, marks=(2,))}]}
    written = cache.bill(first).written
    assert 2_000 <= written <= 2_020
    assert cache.bill(second)[:1] == (written,)
    assert 100 <= cache.bill({**second, "messages": [{"role": "user", "content": blocks(long, "b", "d" * 400, marks=(2,))}]}).written <= 150
    other = {"max_tokens": 1, "messages": [{"role": "user", "content": blocks("x" + long, "b", marks=(1,))}]}
    assert cache.bill(other).read == 0


def test_a_mark_reaches_back_no_further_than_the_provider_looks() -> None:
    cache = part("billing").Cache()
    texts = ["a" * 8_000, *map(str, range(30))]
    cache.bill({"max_tokens": 1, "messages": [{"role": "user", "content": blocks(*texts[:1], marks=(0,))}]})
    near = {"max_tokens": 1, "messages": [{"role": "user", "content": blocks(*texts[:20], marks=(19,))}]}
    far = {"max_tokens": 1, "messages": [{"role": "user", "content": blocks(*texts[:31], marks=(30,))}]}
    assert cache.bill(near).read > 0
    fresh = part("billing").Cache()
    fresh.bill({"max_tokens": 1, "messages": [{"role": "user", "content": blocks(*texts[:1], marks=(0,))}]})
    assert fresh.bill(far).read == 0


def test_openai_s_cache_reads_whatever_was_sent_before() -> None:
    cache = part("billing").Cache()
    body = {"input": [{"role": "user", "content": "a" * 8_000}], "instructions": "b"}
    assert cache.bill(body).read == 0
    assert cache.bill({**body, "input": [*body["input"], {"type": "function_call", "name": "c"}]}).read >= 2_000
