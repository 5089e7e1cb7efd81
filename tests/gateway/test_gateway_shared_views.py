"""Gateways that share a store send one conversation's views as a single gateway would, after refusals too."""

from __future__ import annotations

import json
import tempfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window import ContextWindow
from context_window.gateway.shared_refusals import SharedRefusals
from context_window.gateway.windows import UNFIT, Windows
from context_window.model_errors import PromptTooLongError
from context_window.usage.view_figures import ViewFigures
from tests.gateway.test_gateway_http import post, says, upstream_that
from tests.gateway.test_gateway_properties import CASES, Step, WireCase, in_every_format, steps
from tests.support.gateways import breaks, gateway
from tests.support.postgres import PostgresServer

Json = dict[str, Any]
WORKERS = 3
ANTHROPIC = CASES["anthropic"]


class Provider:
    """Refuses prompts over a limit that the gateways do not know. What it accepts it counts, if it has a ratio, higher than they do."""

    def __init__(self, limit: int, *, says_figures: bool, ratio: int = 0) -> None:
        self.limit, self.says_figures, self.refused, self.ratio = limit, says_figures, 0, ratio

    def refusal(self, body: Json) -> PromptTooLongError | None:
        tokens = len(json.dumps(body)) // 3
        if tokens <= self.limit:
            return None
        self.refused += 1
        tokens_said, limit = (tokens, self.limit) if self.says_figures else (None, None)
        return PromptTooLongError("prompt is too long", tokens=tokens_said, limit=limit)


def accepted(windows: Windows, case: WireCase, body: Json, provider: Provider) -> Json:
    """Return the request that a gateway sends last: the second one, if the first is refused."""
    wire, conversation = case.wire, case.wire.conversation(case.path, body)
    assert conversation is not None
    views: list[ViewFigures] = []
    messages = windows.fit(wire, conversation, on_view=lambda _, figures: views.append(figures))
    sent = body if messages is None else wire.with_messages(body, messages)
    if (refusal := provider.refusal(sent)) is not None:
        try:
            messages = windows.fit(wire, conversation, refusal, on_view=lambda _, figures: views.append(figures))
        except UNFIT:
            return sent
        sent = body if messages is None else wire.with_messages(body, messages)
    if provider.ratio:
        windows.note_count(wire, conversation, views[-1], views[-1].tokens * provider.ratio // 10)
    return sent


@pytest.mark.no_cover
@in_every_format
@settings(max_examples=max(1, settings().max_examples // 8))  # each example makes two requests for every step
@given(
    conversation=steps,
    limit=st.integers(300, 2_500),
    says_figures=st.booleans(),
    ratio=st.sampled_from([0, 8, 12, 20]),
    order=st.lists(st.tuples(st.integers(0, WORKERS - 1), st.booleans()), min_size=14, max_size=14),
)
def test_workers_that_share_refusals_send_what_one_worker_would(
    case: WireCase, conversation: list[Step], limit: int, says_figures: bool, ratio: int, order: list[tuple[int, bool]]
) -> None:
    """Whichever worker gets a request, and whether it has just started: every request is the one that a single worker sends, which has
    seen all of them, the provider's refusals and its counts. No worker is refused for what another one was refused for."""
    window = ContextWindow(max_tokens=3_000, keep_first_message=True)
    alone, shared = (Provider(limit, says_figures=says_figures, ratio=ratio) for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        refusals = SharedRefusals(str(Path(folder, "r.db")), wait_seconds=60.0)
        single, workers = Windows(window), [Windows(window, refusals) for _ in range(WORKERS)]
        for length, (number, is_new) in zip(range(1, len(conversation) + 1), order, strict=False):
            if is_new:
                workers[number] = Windows(window, refusals)
            body = case.body_of(conversation[:length])
            sent = accepted(workers[number], case, body, shared)
            assert sent == accepted(single, case, body, alone)
            assert case.validate(sent) == []
        refusals.close()
    assert shared.refused == alone.refused


def growing(turns: int, prefix: str = "") -> Json:
    messages: list[Json] = []
    for number in range(turns):
        messages += [{"role": "user", "content": f"{prefix}{number} " + "words " * 50}, {"role": "assistant", "content": "words " * 50}]
    return {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": messages[:-1]}


def run_alternately(store_address: str | None, turns: int, wait: float = 20.0) -> tuple[int, list[Json]]:
    """Send a growing conversation to two gateways in turns. Return how many prompts were refused, and the accepted ones."""
    refused = 0
    taken: list[Json] = []

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        nonlocal refused
        tokens = len(body) // 4
        if tokens > 1_500:
            refused += 1
            message = f"prompt is too long: {tokens} tokens > 1500 maximum"
            says(400, json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).encode())(handler, body)
        else:
            taken.append(json.loads(body))
            says(200, b"{}")(handler, body)

    def shared() -> SharedRefusals | None:
        return None if store_address is None else SharedRefusals(store_address, wait_seconds=wait)

    with (
        upstream_that(answer) as upstream,
        gateway(upstream.url, 3_000, refusals=shared()) as first,
        gateway(upstream.url, 3_000, refusals=shared()) as second,
    ):
        for turn in range(1, turns):
            assert post((first, second)[turn % 2], body=json.dumps(growing(turn, "the secret ")).encode()).status_code == 200
    return refused, taken


def cache_breaks(requests: list[Json]) -> int:
    return breaks([request["messages"] for request in requests])


def test_a_refusal_that_one_gateway_saw_holds_for_the_other(store_address: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Without the store both are refused, and their requests do not continue each other's. With it, one refusal in all; and the store
    holds nothing of a message."""
    refused_alone, alone = run_alternately(None, 22)
    refused, taken = run_alternately(store_address, 22)
    assert refused < refused_alone
    assert cache_breaks(taken) < cache_breaks(alone) / 2
    if store_address.startswith("postgresql"):
        server: PostgresServer = request.getfixturevalue("postgres")
        with server.connect() as connection:
            rows = connection.execute("SELECT gateway_refusals::text FROM context_window.gateway_refusals").fetchall()
        content = str(rows).encode()
        assert rows
    else:
        content = b"".join(file.read_bytes() for file in (tmp_path / "shared").iterdir())
        assert b"gateway_refusals" in content
    assert b"secret" not in content
    assert b"words" not in content


def test_a_refusal_that_could_not_be_shared_is_shared_when_the_store_is_back(tmp_path: Path) -> None:
    """The worker that saw it uses it meanwhile."""
    window, provider = ContextWindow(max_tokens=3_000, keep_first_message=True), Provider(1_000, says_figures=True)
    address = tmp_path / "folder" / "r.db"
    address.parent.write_text("in the way")
    first, second = (SharedRefusals(str(address), wait_seconds=60.0, pause_seconds=0.0) for _ in range(2))
    worker = Windows(window, first)
    for turns in range(1, 12):
        accepted(worker, ANTHROPIC, growing(turns), provider)
    assert provider.refused == 1
    address.parent.unlink()
    sent = accepted(worker, ANTHROPIC, growing(12), provider)
    assert accepted(Windows(window, second), ANTHROPIC, growing(12), provider) == sent
    assert provider.refused == 1
    first.close()
    second.close()


def test_of_two_refusals_of_the_same_messages_all_workers_go_by_the_first(tmp_path: Path) -> None:
    """The second worker, whose provider said other figures, saw it while the store was away. It makes its log again."""
    window = ContextWindow(max_tokens=3_000, keep_first_message=True)
    address = tmp_path / "folder" / "r.db"
    address.parent.write_text("in the way")
    late = SharedRefusals(str(address), wait_seconds=60.0, pause_seconds=0.0)
    second = Windows(window, late)
    accepted(second, ANTHROPIC, growing(9), Provider(1_100, says_figures=True))
    address.parent.unlink()
    refusals = SharedRefusals(str(address), wait_seconds=60.0)
    first = Windows(window, refusals)
    accepted(first, ANTHROPIC, growing(9), Provider(1_600, says_figures=True))
    lenient = Provider(10**9, says_figures=True)
    for turns in (10, 11, 12):
        sent = accepted(first, ANTHROPIC, growing(turns), lenient)
        assert accepted(second, ANTHROPIC, growing(turns), lenient) == sent
    refusals.close()
    late.close()


def test_a_refusal_says_nothing_about_another_branch_of_the_conversation(tmp_path: Path) -> None:
    window = ContextWindow(max_tokens=3_000, keep_first_message=True)
    refusals = SharedRefusals(str(tmp_path / "r.db"), wait_seconds=60.0)
    body, provider = growing(12), Provider(1_000, says_figures=True)
    accepted(Windows(window, refusals), ANTHROPIC, body, provider)
    assert provider.refused == 1
    branch = growing(12, "another ")
    branch["messages"][0] = body["messages"][0]
    lenient = Provider(10**9, says_figures=True)
    assert accepted(Windows(window, refusals), ANTHROPIC, branch, lenient) == accepted(Windows(window), ANTHROPIC, branch, lenient)
    assert accepted(Windows(window, refusals), ANTHROPIC, body, lenient) != accepted(Windows(window), ANTHROPIC, body, lenient)
    refusals.close()


def test_a_refusal_says_nothing_about_requests_of_another_kind(tmp_path: Path) -> None:
    """Another window makes other views; other tools are another prompt; another first message is another conversation."""
    body = growing(12)
    window, other_window = (ContextWindow(max_tokens=tokens, keep_first_message=True) for tokens in (3_000, 2_900))
    refusals = SharedRefusals(str(tmp_path / "r.db"), wait_seconds=60.0)
    provider = Provider(1_000, says_figures=True)
    accepted(Windows(window, refusals), ANTHROPIC, body, provider)
    assert provider.refused == 1
    tool = {"name": "t", "input_schema": {"type": "object"}}
    kinds: list[tuple[ContextWindow, Json]] = [(other_window, body), (window, body | {"tools": [tool]}), (window, growing(12, "other "))]
    lenient = Provider(10**9, says_figures=True)
    for used_window, other in kinds:
        assert accepted(Windows(used_window, refusals), ANTHROPIC, other, lenient) == accepted(
            Windows(used_window), ANTHROPIC, other, lenient
        )
    refusals.close()


def test_without_its_store_a_gateway_sends_what_it_would_send_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"no store, and longer than the shortest one" * 100)
    assert run_alternately(str(tmp_path / "file"), 15) == run_alternately(None, 15)
    assert sum("goes on without its store" in record.getMessage() for record in caplog.records) == 2  # once for each gateway
