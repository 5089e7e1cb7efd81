"""The gateway's page: figures of conversations, for a browser on this machine only, and none of their words."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from context_window import ContextWindow
from context_window.cli import run
from session.transcripts.usage import usage_of
from tests.gateway.test_gateway_http import MESSAGES, WAIT, post, says, upstream_that
from tests.gateway.test_gateway_recall import TURNS, WINDOW, Model, anthropic_turns, chat_turns, google_turns, responses_turns
from tests.pages.test_pages import Elements
from tests.support.gateways import gateway
from tests.support.stubs.anthropic import AnthropicStub
from tests.support.stubs.gemini import GeminiStub
from tests.support.stubs.openai_chat import OpenAIChatStub
from tests.support.stubs.openai_responses import OpenAIResponsesStub

SECRET = "on-no-page-4711"
USAGE = {"input_tokens": 40, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 60, "output_tokens": 5}
Turns = Callable[..., Iterator[Any]]


def get(address: str, path: str = "/", **headers: str) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=WAIT) as client:
        return client.get(address + path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def page_with(address: str, is_complete: Callable[[str], bool]) -> str:
    """Return the page as soon as it has the awaited text: usage is read after the client has its answer. If it never has, the last one."""
    end = time.monotonic() + WAIT
    while not is_complete(page := get(address).text) and time.monotonic() < end:
        time.sleep(0.02)
    return page


def facts(page: str) -> dict[str, list[int]]:
    """Return the numbers of each fact of the conversation that is shown."""
    pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page, re.DOTALL)
    return {name: [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", value)] for name, value in pairs}


def columns(page: str, chart: str) -> list[list[int]]:
    """Return the amounts in the rows of a chart's table, the sum last."""
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", page.split(f'id="{chart}-values"')[1].partition("</table>")[0])
    return [[int(cell.replace(",", "")) for cell in re.findall(r'<td class="number">([\d,]+)</td>', row)] for row in rows]


def body(words: int = 5, **more: Any) -> bytes:
    messages = [
        {"role": ("user", "assistant")[turn % 2], "content": f"{turn} {SECRET} " + "word " * (words if turn else 5)} for turn in range(21)
    ]
    fields = {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": messages, "system": SECRET, "metadata": {"user_id": SECRET}}
    return json.dumps({**fields, **more}).encode()


@pytest.mark.parametrize("has_recall", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("stub_type", "turns"),
    [
        pytest.param(AnthropicStub, anthropic_turns, id="anthropic"),
        pytest.param(OpenAIChatStub, chat_turns, id="chat"),
        pytest.param(OpenAIResponsesStub, responses_turns, id="responses"),
        pytest.param(GeminiStub, google_turns, id="google"),
    ],
)
def test_the_page_has_what_the_provider_reported(stub_type: Any, turns: Turns, streamed: bool, has_recall: bool) -> None:
    """Every token that the provider bills is on the page, in every format, streamed or not; those for recalls, too."""
    model = Model()
    with stub_type(model) as stub, gateway(stub.url, WINDOW, recall=has_recall) as address:
        for _ in turns(address, streamed):
            pass
        reports = [usage_of(answer.get("usage") or answer["usageMetadata"]) for answer in stub.answers]
        uncached, read, written, *_ = (sum(amounts) for amounts in zip(*(report for report in reports if report), strict=True))
        page = page_with(address, lambda page: sum(facts(page).get("Cache", [0])[1:]) >= uncached + read + written)
    assert (model.recalls > 0) == has_recall
    assert facts(page)["Cache"][1:] == [read, written, uncached]
    assert facts(page)["Requests"][0] == TURNS
    assert len(columns(page, "window")) == len(columns(page, "cache")) == TURNS
    assert sum(sum(row[:-1]) for row in columns(page, "cache")) == uncached + read + written


def test_the_window_is_that_of_the_request_that_was_sent() -> None:
    """Each request has a point. Its categories sum to the counted total, which is within the budget, and a trim makes it smaller."""
    with AnthropicStub(Model()) as stub, gateway(stub.url, WINDOW) as address:
        for _ in anthropic_turns(address, streamed=False, turns=20):
            pass
        page = get(address).text
        sizes = [len(json.dumps(request["messages"])) for request in stub.requests]
    rows = columns(page, "window")
    totals = [row[-1] for row in rows]
    assert [sum(row[:-1]) for row in rows] == totals
    budget = facts(page)["Window now"][2]
    assert max(totals) <= budget <= WINDOW
    shrunk = [number for number in range(1, 20) if totals[number] < totals[number - 1]]
    assert shrunk == [number for number in range(1, 20) if sizes[number] < sizes[number - 1]]
    marked = re.findall(r'aria-label="request ([\d]+), [^"]*trimmed', page)
    assert {str(number + 1) for number in shrunk} <= set(marked)
    assert facts(page)["Requests"][1] == len(marked) >= 2
    assert facts(page)["Left out now"][0] > 0


def test_a_request_that_is_refused_or_only_counts_tokens_is_no_point() -> None:
    counted = json.dumps({"input_tokens": 3}).encode()
    with upstream_that(says(200, counted)) as upstream, gateway(upstream.url, 8_000) as address:
        post(address, f"{MESSAGES}/count_tokens", body())
        assert "No conversation yet" in get(address).text
    with upstream_that(says(429, b"{}")) as upstream, gateway(upstream.url, 8_000) as address:
        post(address, body=body())
        assert "No conversation yet" in get(address).text


def test_nothing_that_was_said_is_on_the_page() -> None:
    """Keys and contents are never shown: neither words, nor names of tools, nor a key that stands where a name belongs."""
    answer = json.dumps({"content": [{"type": "text", "text": SECRET}], "usage": USAGE}).encode()
    tool = {"name": SECRET, "description": SECRET, "input_schema": {"type": "object"}}
    with upstream_that(says(200, answer)) as upstream, gateway(upstream.url, 8_000) as address:
        for words in (5, 1_000):
            reply = post(address, f"{MESSAGES}?key={SECRET}", body(words, tools=[tool]), {"x-api-key": SECRET, "cookie": SECRET})
            assert reply.status_code == 200
        pages = [get(address).text, get(address, "/live?conversation=1").text]
    assert all(facts(page)["Requests"][0] == 2 for page in pages)
    assert not any(SECRET in page for page in pages)


def test_the_page_says_what_it_cannot_compare() -> None:
    """A request that the model could not have taken whole has no cost without management, and an unknown price is no price."""
    with upstream_that(says(200, json.dumps({"usage": {**USAGE, "input_tokens": 150_000}}).encode())) as upstream:
        with gateway(upstream.url, 8_000) as address:
            post(address, body=body(1_000, model="claude-haiku-4-5"))
            page = page_with(address, lambda page: "Money" in page and "no usage" not in page)
        assert "Not compared: 1 of the requests" in page
        assert "The model takes prompts of at most 200,000 tokens" in page
        assert "Without management" not in facts(page)
        with gateway(upstream.url, 8_000) as address:
            post(address, body=body(1_000, model="nobody-knows-1"))
            page = page_with(address, lambda page: "Cache" in page)
        assert "unknown<small>the model's price is not known</small>" in page.replace("&#39;", "'")


def test_names_from_requests_are_short_words_and_never_markup() -> None:
    hostile = "<script>alert(1)</script>\"'&\u202e"
    usage = json.dumps({"usage": USAGE}).encode()
    with upstream_that(says(200, usage)) as upstream, gateway(upstream.url, 8_000) as address:
        post(address, body=body(), headers={"user-agent": "claude-cli/2.1.0 (external, cli)"})
        plain = get(address).text
        post(address, body=body(model=hostile), headers={"user-agent": "x<script>alert(1)</script>"})
        post(address, body=body(model="m" * 200, system="another"), headers={"user-agent": "c" * 5_000})
        page = get(address, "/?conversation=1").text
    assert "claude-cli/2.1.0, claude-sonnet-5-5, " in Elements(plain).text
    assert "alert" not in page
    assert f"{'c' * 40}, another model, " in Elements(page).text
    assert "m" * 81 not in page


def test_the_page_loads_nothing_from_anywhere() -> None:
    """The policy that a browser gets allows the page's own style and scripts, and requests to the gateway itself."""
    with gateway("http://127.0.0.1:9", 8_000) as address:
        answer = get(address)
        update = get(address, "/live")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert update.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text.count("<main") == update.text.count("<main") == 1
    assert "<script" not in update.text


def test_an_update_is_sent_only_after_a_change() -> None:
    usage = json.dumps({"usage": USAGE}).encode()
    with upstream_that(says(200, usage)) as upstream, gateway(upstream.url, 8_000) as address:
        version = re.findall(r'data-version="(\d+)"', get(address).text)[0]
        assert get(address, f"/live?version={version}").status_code == 204
        post(address, body=body())
        changed = get(address, f"/live?version={version}&conversation=")
        assert changed.status_code == 200
        assert facts(changed.text)["Requests"][0] == 1
        assert re.findall(r'data-conversation="(\d*)"', changed.text) == ["1"]
        post(address, body=body(system="another"))
        assert re.findall(r'data-conversation="(\d*)"', get(address, "/live?conversation=1").text) == ["1"]
        assert re.findall(r'data-conversation="(\d*)"', get(address).text) == ["2"]


@pytest.mark.parametrize(
    "query", ["?conversation=99", "?conversation=-1", "?conversation=%00", "?conversation=1e9", f"?version={'9' * 5000}", "?x=1"]
)
def test_any_query_gets_the_page(query: str) -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 8_000) as address:
        post(address, body=body())
        for path in ("/", "/live"):
            answer = get(address, path + query)
            assert answer.status_code == 200
            assert facts(answer.text)["Requests"][0] == 1


def test_without_the_page_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`--no-page` turns it off: its addresses are as unknown as any other, and nothing is remembered."""
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 8_000, page=False) as address:
        assert post(address, body=body()).status_code == 200
        assert [get(address, path).status_code for path in ("/", "/live")] == [404, 404]
        assert get(address, "/metrics").status_code == 200
    pages: list[bool] = []

    def app(_: ContextWindow, *, page: bool, **__: object) -> None:
        pages.append(page)

    monkeypatch.setattr("context_window.gateway.app.gateway_app", app)
    for line in ([], ["--no-page"]):
        assert run(["gateway", "--host", "203.0.113.1", "--token", str(tmp_path / "tokens"), *line]) == 2  # nobody can listen there
    assert pages == [True, False]


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "a.example"},
        {"origin": "http://a.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "null"},
    ],
)
def test_another_page_does_not_get_it(headers: dict[str, str]) -> None:
    """Host and Origin are checked. A name that leads here, frames and links of other pages make no difference."""
    with gateway("http://127.0.0.1:9", None) as address:
        for path in ("/", "/live"):
            answer = get(address, path, **headers)
            assert answer.status_code == 403
            assert "<main" not in answer.text


def test_the_page_itself_may_ask_for_updates_and_for_nothing_else() -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, None) as address:
        assert get(address, "/live", sec_fetch_site="same-origin").status_code == 200
        assert get(address, "/", sec_fetch_site="same-origin").status_code == 200
        assert get(address, "/metrics", sec_fetch_site="same-origin").status_code == 403
        assert post(address, body=body(), headers={"sec-fetch-site": "same-origin"}).status_code == 403
        assert upstream.bodies == []


def test_the_page_compares_with_the_clients_own_compaction() -> None:
    """For clients whose own way is known."""
    answer = json.dumps({"usage": USAGE}).encode()
    with upstream_that(says(200, answer)) as upstream, gateway(upstream.url, 100_000) as address:
        post(address, body=body(), headers={"user-agent": "curl/8"})
        assert "own compaction" not in page_with(address, lambda page: "<dt>Money</dt>" in page and "unknown" not in page)
        other = json.loads(body())
        other["messages"][0]["content"] = "another conversation"
        post(address, body=json.dumps(other).encode(), headers={"user-agent": "claude-cli/2.1.197 (external, cli)"})
        assert "With Claude Code's own compaction" in page_with(address, lambda page: "own compaction" in page).replace("&#39;", "'")


@pytest.mark.parametrize("header", ["x-claude-code-agent-id", "x-openai-subagent"])
def test_the_page_names_sub_agents(header: str) -> None:
    """By the header with which Claude Code and Codex mark their requests. The status line shows the user's own conversation."""
    answer = json.dumps({"usage": USAGE}).encode()
    with upstream_that(says(200, answer)) as upstream, gateway(upstream.url, 100_000) as address:
        for _ in range(2):
            post(address, body=body(), headers={"user-agent": "claude-cli/2.1.197"})
        view = get(address, "/status").json()["view"]
        for _ in range(2):
            post(address, body=body(300, system="Count."), headers={"user-agent": "claude-cli/2.1.197", header: "aab28"})
        page = page_with(address, lambda page: "sub-agent" in page)
        assert "sub-agent of claude-cli/2.1.197, claude-sonnet-5-5" in page
        assert "aab28" not in page
        assert get(address, "/status").json()["view"] == view
