"""What the page is made of: reported usage as it passes, bounded figures, and the estimate without management."""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.gateway.history import CONVERSATIONS, REQUESTS, History, reported_request
from context_window.gateway.unmanaged import LeftOut, cost_without_management, prompt_tokens, unmanaged_request
from context_window.gateway.usage_reader import LONGEST, UsageReader
from context_window.settings.usage_snapshot import Rows
from context_window.spend.money import cost_of
from context_window.usage.view_figures import ViewFigures
from session.transcripts.reported_requests import Request

MODEL = "claude-sonnet-5-5"
NOW = 1_790_000_000.0
JSON = {b"content-type": b"application/json"}
STREAM = {b"content-type": b"text/event-stream; charset=utf-8"}

tokens = st.integers(0, 300_000)
requests = st.builds(
    lambda time, plain, read, write, hour, output: Request(
        "", NOW + time, "", MODEL, "", "", input_tokens=plain, cache_read=read, cache_write=write, cache_write_1h=hour, output_tokens=output
    ),
    st.integers(0, 1_000),
    tokens,
    tokens,
    st.one_of(st.just(0), tokens),
    st.one_of(st.just(0), tokens),
    tokens,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["usage", "message", "response", "usageMetadata", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def reports_of(headers: dict[bytes, bytes], content: bytes, size: int) -> list[Any]:
    """Return what a reader reports of an answer that comes in pieces of this size."""
    reports: list[Any] = []
    reader = UsageReader(headers, reports.append)
    for start in range(0, len(content), size):
        reader.read(content[start : start + size])
    reader.end()
    reader.end()
    return reports


def encoded(content: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return gzip.compress(content)
    return zlib.compress(content) if encoding == "deflate" else content


@given(st.integers(1, 200), st.sampled_from(["identity", "gzip", "deflate"]), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_the_report_does_not_depend_on_the_pieces(size: int, encoding: str, streamed: bool, line_end: str) -> None:
    """Whatever pieces an answer comes in, compressed or not, its usage is found once."""
    first = {"type": "message_start", "message": {"usage": {"input_tokens": 7, "cache_read_input_tokens": 90, "output_tokens": 1}}}
    noise = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": 'He said "usage": {"input_tokens": 5}\n\ndata: {}'}}
    last = {"type": "message_delta", "usage": {"output_tokens": 33, "cache_read_input_tokens": None}}
    events = "".join(f"event: x{line_end}data: {json.dumps(data)}{line_end}{line_end}" for data in (first, noise, last))
    whole = json.dumps({"content": [noise], "usage": {"input_tokens": 7, "cache_read_input_tokens": 90, "output_tokens": 33}})
    headers = {**(STREAM if streamed else JSON), b"content-encoding": encoding.encode()}
    content = encoded((events if streamed else whole).encode(), encoding)
    assert reports_of(headers, content, size) == [{"input_tokens": 7, "cache_read_input_tokens": 90, "output_tokens": 33}]


@given(
    st.one_of(st.binary(max_size=200), values.map(lambda value: json.dumps(value).encode())),
    st.sampled_from(["identity", "gzip", "deflate", "br"]),
    st.booleans(),
)
def test_no_answer_breaks_the_reader(content: bytes, encoding: str, is_broken: bool) -> None:
    """Garbage, cut streams and absurd figures are passed over."""
    for headers in (JSON, STREAM):
        sent = b"data: " + content + b"\n\n" if headers is STREAM else content
        sent = encoded(sent, encoding)[: -3 if is_broken else None]
        for report in reports_of({**headers, b"content-encoding": encoding.encode()}, sent, 50):
            assert isinstance(report, dict)
            reported_request(report, MODEL, NOW)


def test_the_reader_keeps_a_bounded_part_of_an_answer() -> None:
    """An event without an end, and an answer that is small only as long as it is compressed, are given up."""
    for encoding in (b"identity", b"gzip"):
        reader = UsageReader({**STREAM, b"content-encoding": encoding}, lambda _: pytest.fail("nothing was reported"))
        piece = b"data: " + b'"usage"' * 1_000_000
        reader.read(piece if encoding == b"identity" else gzip.compress(piece))
        assert len(reader._decoder.content) <= LONGEST
        reader.end()


def test_the_reader_keeps_a_bounded_part_of_many_reports() -> None:
    """A stream whose every event names a new figure, or a figure of megabytes, grew in memory for as long as it lasted."""
    reports: list[dict[str, Any]] = []
    reader = UsageReader(STREAM, reports.append)
    for number in range(1_000):
        fields = {f"k{number}": number, f"s{number}": "x" * 1_000, f"d{number}": {str(part): part for part in range(100)}}
        reader.read(b"data: " + json.dumps({"usage": fields}).encode() + b"\n\n")
    reader.read(b'data: {"usage": {"k0": 5}}\n\n')
    reader.end()
    [report] = reports
    assert report["k0"] == 5
    assert len(json.dumps(report)) < 100_000


@pytest.mark.parametrize("usage", [{}, {"input_tokens": 0}, {"input_tokens": 10**40}, {"prompt_tokens": "many"}, {"input_tokens": True}])
def test_a_report_without_sensible_tokens_is_none(usage: dict[str, Any]) -> None:
    assert reported_request(usage, MODEL, NOW) is None


def test_what_was_cached_for_an_hour_is_known() -> None:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_creation": {"ephemeral_1h_input_tokens": 60}, "output_tokens": 2}
    request = reported_request(usage, MODEL, NOW)
    assert request is not None
    assert (request.input_tokens, request.cache_write, request.cache_write_1h, request.output_tokens) == (5, 40, 60, 2)


@given(requests, st.none() | requests, tokens, tokens, st.booleans())
def test_without_management_the_same_answer_has_a_prompt_with_all_tokens(
    request: Request, earlier: Request | None, left_out: int, appended: int, is_trim: bool
) -> None:
    """The estimate adds exactly the tokens that were left out. Where nothing was, it is the request itself."""
    whole = unmanaged_request(request, LeftOut(left_out, appended, is_trim), earlier)
    assert prompt_tokens(whole) == prompt_tokens(request) + left_out
    assert whole.output_tokens == request.output_tokens
    assert min(whole.input_tokens, whole.cache_read, whole.cache_write, whole.cache_write_1h) >= 0
    if not left_out:
        assert whole == request
        cost = cost_without_management(request, LeftOut(0, appended, is_trim), earlier)
        assert cost.managed == cost.unmanaged
    elif not is_trim and request.cache_read:
        assert whole.cache_read == request.cache_read + left_out


def test_a_trim_costs_what_it_writes_to_the_cache() -> None:
    """At a trim the unmanaged client reads all but the new tokens from the cache, unless the cache was not in use or has expired."""
    earlier = Request("", NOW, "", MODEL, "", "", cache_read=90_000, cache_write=1_000, output_tokens=500)
    trimmed = Request("", NOW + 10, "", MODEL, "", "", input_tokens=3, cache_write=40_000, output_tokens=500)
    whole = unmanaged_request(trimmed, LeftOut(60_000, 2_000, is_trim=True), earlier)
    assert (whole.input_tokens, whole.cache_read, whole.cache_write) == (0, 98_003, 2_000)
    late = Request("", NOW + 1_000, "", MODEL, "", "", input_tokens=3, cache_write=40_000, output_tokens=500)
    for request, before in ((late, earlier), (trimmed, None)):
        whole = unmanaged_request(request, LeftOut(60_000, 2_000, is_trim=True), before)
        assert (whole.input_tokens, whole.cache_read, whole.cache_write) == (3, 0, 100_000)


@pytest.mark.parametrize(
    ("seconds", "is_hour", "is_cached"), [(300, False, True), (301, False, False), (3_600, True, True), (3_601, True, False)]
)
def test_a_cache_is_kept_for_five_minutes_or_for_an_hour(seconds: int, is_hour: bool, is_cached: bool) -> None:
    """Tokens are written for as long as the request's own."""
    earlier, trimmed = (
        Request(
            "", NOW + after, "", MODEL, "", "", cache_read=read, cache_write=0 if is_hour else written, cache_write_1h=written * is_hour
        )
        for after, read, written in ((0, 90_000, 1_000), (seconds, 0, 40_000))
    )
    whole = unmanaged_request(trimmed, LeftOut(60_000, 2_000, is_trim=True), earlier)
    assert (whole.cache_read, whole.cache_write + whole.cache_write_1h) == ((98_000, 2_000) if is_cached else (0, 100_000))
    assert (whole.input_tokens, whole.cache_write if is_hour else whole.cache_write_1h) == (0, 0)


def test_a_prompt_that_the_model_cannot_take_is_not_compared() -> None:
    request = Request("", NOW, "", "claude-haiku-4-5", "", "", input_tokens=150_000, output_tokens=500)
    cost = cost_without_management(request, LeftOut(60_000, 0, is_trim=False), None)
    assert cost.managed
    assert (cost.unmanaged, cost.is_sendable) == (None, False)
    assert cost_without_management(request, LeftOut(10_000, 0, is_trim=False), None).is_sendable


def figures(total: int = 10, freed: int = 0) -> ViewFigures:
    return ViewFigures(Rows((total, 0, 0, 0), 0), 100, freed, (("output", freed // 10),) if freed else ())


def test_the_history_is_bounded() -> None:
    """It keeps the most recently used conversations and their newest requests. Totals have all."""
    history = History()
    for number in range(CONVERSATIONS + 20):
        history.begin(f"id {number}", "client", MODEL, figures())
        history.begin("id 0", "client", MODEL, figures())
    for _ in range(2 * REQUESTS):
        history.begin("id 0", "client", MODEL, figures())({"input_tokens": 2, "output_tokens": 1})
    _, conversations = history.snapshot()
    assert len(conversations) == CONVERSATIONS
    latest = conversations[0]
    assert (latest.number, len(latest.requests), latest.requests[-1].number) == (1, REQUESTS, latest.count)
    assert latest.count == CONVERSATIONS + 21 + 2 * REQUESTS
    assert (latest.uncached, latest.output, latest.priced) == (4 * REQUESTS, 2 * REQUESTS, 2 * REQUESTS)
    assert latest.cost == latest.compared_cost == latest.unmanaged_cost > 0


def test_the_history_says_what_each_trim_took() -> None:
    """Also after a rewind, when less is left out than before."""
    history = History()
    for total, freed in ((80, 0), (40, 50), (60, 50), (45, 120), (30, 20), (40, 40)):
        history.begin("id", "client", MODEL, figures(total, freed))
    (conversation,) = history.snapshot()[1]
    assert [request.freed for request in conversation.requests] == [0, 50, 0, 70, 0, 20]
    assert [dict(request.taken) for request in conversation.requests] == [{}, {"output": 5}, {}, {"output": 7}, {}, {"output": 2}]
    assert conversation.trims == 3


def test_a_trim_is_compared_with_what_was_appended_since_the_request_before() -> None:
    """The conversation grew by 50 of our tokens, which are 100 of the provider's; the other 2,900 were in its cache."""
    history = History()
    for view, written in (figures(1_450), 2_900), (figures(500, 1_000), 1_000):
        history.begin("id", "client", MODEL, view)({"input_tokens": 0, "cache_creation_input_tokens": written, "output_tokens": 0})
    (conversation,) = history.snapshot()[1]
    (first, second) = conversation.requests
    assert first.cost is not None
    assert first.reported is not None
    assert second.cost is not None
    assert first.cost.unmanaged == first.cost.managed
    assert second.cost.unmanaged == cost_of(replace(first.reported, cache_read=2_900, cache_write=100))
    assert second.cost.managed == cost_of(replace(first.reported, cache_write=1_000))


def test_what_was_left_out_is_scaled_to_the_provider_s_tokens() -> None:
    """Our count of the prompt is 1,000 and the provider's 2,000: 500 of our tokens that were left out are 1,000 of the provider's."""
    history = History()
    history.begin("id", "client", MODEL, figures(1_000, 500))({"input_tokens": 2_000, "output_tokens": 0})
    (conversation,) = history.snapshot()[1]
    assert conversation.unmanaged_cost == conversation.cost * Decimal(3_000) / 2_000
