"""Requests from small logs, their sums and prices, and the command."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend import GROUPINGS, SpendRow, choose, cost_of, find_logs, leading, read_ledger, spend_by
from session.transcripts.reported_requests import Request
from session.transcripts.trajectory_readers import OpenHandsReader
from tests.spend.logs import answer, write
from tests.support.shell import Shell

NOON = datetime(2026, 3, 25, 12, tzinfo=UTC).timestamp()


def tokens(total: int, cached: int, output: int) -> dict[str, int]:
    return {"input_tokens": total, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": 1}


def count(total: dict[str, int], last: dict[str, int]) -> dict[str, Any]:
    """A line of Codex with its totals and its last request."""
    info = {"total_token_usage": total, "last_token_usage": last}
    return {"timestamp": "2026-06-22T12:11:21Z", "type": "event_msg", "payload": {"type": "token_count", "info": info}}


class TestReading:
    def test_a_request_counts_once_with_its_last_report(self, tmp_path: Path) -> None:
        log = write(tmp_path / "a.jsonl", answer("m1", 2), answer("m1", 90), answer("m2", 5))
        copy = write(tmp_path / "b.jsonl", answer("m1", 90, sessionId="fork"), answer("m3", 7, sessionId="fork"))
        ledger = read_ledger([log, copy])
        assert [request.output_tokens for request in ledger.requests] == [90, 5, 7]
        assert [request.session for request in ledger.requests] == ["s1", "s1", "fork"]
        assert (ledger.repeated, ledger.logs, ledger.faults) == (1, 2, ())

    def test_each_request_names_its_log(self, tmp_path: Path) -> None:
        """Of a request that two logs report, the one that it is taken from."""
        first = write(tmp_path / "a.jsonl", answer("m1", 90), answer("m2", 5))
        second = write(tmp_path / "b.jsonl", answer("m1", 91), answer("m3", 7))
        ledger = read_ledger([first, second])
        named = {request.output_tokens: Path(origin).name for request, origin in zip(ledger.requests, ledger.origins, strict=True)}
        assert named == {5: "a.jsonl", 91: "b.jsonl", 7: "b.jsonl"}

    def test_writes_to_the_cache_are_told_apart_by_lifetime(self, tmp_path: Path) -> None:
        (request,) = read_ledger([write(tmp_path / "a.jsonl", answer("m1", 2))]).requests
        assert (request.cache_write, request.cache_write_1h, request.total) == (100, 200, 1312)

    def test_a_sub_agent_belongs_to_its_parent(self, tmp_path: Path) -> None:
        inner = {"type": "agent_progress", "agentId": "a7", "message": answer("m2", 5)}
        progress = {"type": "progress", "sessionId": "s1", "uuid": "u", "timestamp": "2026-03-25T12:00:00Z", "data": inner}
        log = write(tmp_path / "a.jsonl", answer("m1", 2, isSidechain=True), progress)
        requests = read_ledger([log]).requests
        assert [(request.session, request.agent) for request in requests] == [("s1", "sidechain"), ("s1", "a7")]

    def test_damage_costs_its_line_and_an_unknown_log_is_a_fault(self, tmp_path: Path) -> None:
        damaged = write(tmp_path / "a.jsonl", answer("m1", 2), "{]", "{]", answer("m2", 3))
        others = [write(tmp_path / "b.jsonl", {"x": 1}), tmp_path / "none.jsonl", write(tmp_path / "c.json", {"instance_id": "i", "x": []})]
        entry = write(tmp_path / "d.jsonl", answer("m9", 2), "{]", answer("m8", 3))
        ledger = read_ledger([damaged, *others, entry])
        assert len(ledger.requests) == 4
        assert [fault.problem for fault in ledger.faults] == [
            "2 lines are damaged and were left out",
            "no log of a known format found",
            "no log of a known format found",
            "1 line is damaged and was left out",
            "no such file",
        ]

    def test_codex_follows_its_totals(self, tmp_path: Path) -> None:
        """A repeated total is a repeated report; a total that grows by more holds a request that the log has lost."""
        spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "parent"}}}
        meta = {"timestamp": "2026-06-22T12:11:14Z", "type": "session_meta", "payload": {"id": "own", "cwd": "/x", "source": spawn}}
        turn = {"timestamp": "2026-06-22T12:11:15Z", "type": "turn_context", "payload": {"model": "gpt-5.5"}}
        first, lost, anew = tokens(100, 40, 5), tokens(400, 240, 11), tokens(50, 0, 2)
        log = write(
            tmp_path / "r.jsonl", meta, turn, count(first, first), count(first, first), count(lost, tokens(100, 80, 3)), count(anew, anew)
        )
        requests = read_ledger([log]).requests
        assert [(r.input_tokens, r.cache_read, r.output_tokens) for r in requests] == [(60, 40, 5), (100, 200, 6), (50, 0, 2)]
        assert {(r.session, r.agent, r.model, r.project) for r in requests} == {("parent", "own", "gpt-5.5", "/x")}

    def test_copilot_has_requests_or_sums(self, tmp_path: Path) -> None:
        start = {"type": "session.start", "id": "1", "parentId": None, "data": {"sessionId": "c", "context": {"cwd": "/x"}}}
        usage = {"inputTokens": 100, "cacheReadTokens": 60, "outputTokens": 7}
        event = {"type": "assistant.usage", "id": "2", "parentId": "1", "data": usage | {"model": "gpt-5.5"}}
        metrics = {"modelMetrics": {"gpt-5.5": {"usage": usage}}}
        end = {"type": "session.shutdown", "id": "3", "parentId": "2", "data": metrics}
        for values in ((start, event, end), (start, end)):
            (request,) = read_ledger([write(tmp_path / "c.jsonl", *values)]).requests
            assert (request.input_tokens, request.cache_read, request.output_tokens, request.session) == (40, 60, 7, "c")


def test_other_formats(tmp_path: Path) -> None:
    gemini = {
        "sessionId": "g",
        "projectHash": "h",
        "messages": [{"id": "1", "type": "gemini", "model": "gemini-2.5-flash", "tokens": {"input": 9, "cached": 4, "output": 2}}],
    }
    session = {"type": "session", "id": "p", "timestamp": "2025-11-20T23:33:50Z", "cwd": "/x"}
    usage = {"input": 3, "output": 191, "cacheRead": 0, "cacheWrite": 1684, "cost": {"total": 0.009189}}
    reply = {"type": "message", "timestamp": "2025-11-20T23:33:54Z", "message": {"role": "assistant", "content": [], "usage": usage}}
    metrics = {"inputTokens": 50, "outputTokens": 4, "cacheReadTokens": 30, "cost": True}
    cline = {"sessionId": "k", "agent": "lead", "updated_at": "", "messages": [{"id": "m"}, {"id": "n", "metrics": metrics}]}
    info = {"role": "assistant", "id": "o", "modelID": "gpt-5.5", "time": {"created": 1773062774681}, "cost": 0.5}
    step = {"tokens": {"input": 5, "output": 2, "reasoning": 1, "total": 8, "cache": {}}}
    messages = [{"info": info | step, "parts": []}, {"info": {"role": "user"}, "parts": []}]
    logs = (gemini, cline, {"info": {"id": "ses", "parentID": "up"}, "messages": messages})
    paths = [write(tmp_path / f"{index}.json", log) for index, log in enumerate(logs)]
    requests = read_ledger([*paths, write(tmp_path / "p.jsonl", session, reply)]).requests
    assert [(r.session, r.input_tokens, r.cache_read, r.cache_write, r.output_tokens, r.cost) for r in requests] == [
        ("g", 5, 4, 0, 2, None),
        ("k", 20, 30, 0, 4, None),
        ("up", 5, 0, 0, 3, Decimal("0.5")),
        ("p", 3, 0, 1684, 191, Decimal("0.009189")),
    ]


def test_runs_of_agents(tmp_path: Path) -> None:
    """SWE-agent has sums only; OpenHands' SDK reports totals, which may start again from 0; a response in several events counts once."""
    stats = {"model_stats": {"instance_cost": 0.25, "tokens_sent": 90, "tokens_received": 7, "api_calls": 2}}
    swe = {"environment": "e", "trajectory": [], "history": [{"role": "system", "content": "x"}], "info": stats}
    response = {"id": "r1", "created": 1738046713, "model": "m", "usage": {"prompt_tokens": 30, "completion_tokens": 4}}
    event = {"id": 1, "source": "agent", "action": "run", "args": {}, "tool_call_metadata": {"model_response": response}}
    listed = {"response_id": "r2", "model": "m", "prompt_tokens": 8, "completion_tokens": 1, "cache_read_tokens": 5}
    record = {"instance_id": "i", "history": [[event, event]], "metrics": {"token_usages": [listed]}}
    run = write(tmp_path / "a.json", [event, event])
    paths = [run, write(tmp_path / "b.json", swe), write(tmp_path / "c.jsonl", record, {**record, "instance_id": "j"})]
    ledger = read_ledger(paths)
    assert [(r.tool, r.session, r.input_tokens, r.cache_read, r.output_tokens, r.cost) for r in ledger.requests] == [
        ("openhands", "", 30, 0, 4, None),
        ("swe_agent", "e", 90, 0, 7, Decimal("0.25")),
        ("openhands", "i", 3, 5, 1, None),
    ]
    assert not ledger.faults


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.booleans()), max_size=6))
def test_totals_so_far_become_requests(reports: list[tuple[int, int, bool]]) -> None:
    """The requests between two reports add up to the totals; a total that fell has started again from 0."""
    prompt = output = cost = used = charged = 0
    requests: list[Request] = []
    reader = OpenHandsReader()
    for more_prompt, more_output, is_anew in reports:
        if is_anew and more_prompt < prompt:
            prompt = output = cost = 0
        prompt, output, cost = prompt + more_prompt, output + more_output, cost + 1
        used, charged = used + more_prompt + more_output, charged + 1
        usage = {"prompt_tokens": prompt, "completion_tokens": output}
        metrics = {"model_name": "m", "accumulated_cost": cost, "accumulated_token_usage": usage}
        requests += reader.read({"value": {"usage_to_metrics": {"condenser": metrics}}})
    assert sum(request.total for request in requests) == used
    assert sum(request.cost or 0 for request in requests) == charged
    assert {request.agent for request in requests} <= {"condenser"}


class TestMoney:
    def test_each_token_at_its_price(self) -> None:
        request = Request("", NOON, "t", "claude-opus-4-6", "", "", "", 10, 1000, 100, 200, 50)
        assert cost_of(request) == (10 * 5 + 1000 * Decimal("0.5") + 100 * Decimal("6.25") + 200 * 10 + 50 * 25) / Decimal(1_000_000)

    def test_a_long_prompt_costs_more(self) -> None:
        short, long = (Request("", NOON, "t", "gemini-2.5-pro", "", "", input_tokens=n) for n in (200_000, 200_001))
        assert (cost_of(short), cost_of(long)) == (Decimal("0.25"), Decimal("0.5000025"))

    @pytest.mark.parametrize("time", [None, NOON, 1e18])
    def test_what_is_not_known_is_none(self, time: float | None) -> None:
        assert cost_of(Request("", time, "t", "nobody-knows-1" if time == NOON else "claude-opus-4-6", "", "", input_tokens=5)) is None
        assert cost_of(Request("", NOON, "t", "", "", "", input_tokens=5)) is None


REQUESTS = st.lists(
    st.builds(
        Request,
        id=st.just(""),
        time=st.none() | st.floats(NOON - 9e6, NOON + 9e6) | st.just(1e18),
        tool=st.sampled_from(["codex", "pi"]),
        model=st.sampled_from(["claude-opus-4-6", "gpt-5.5", "nobody-knows-1", ""]),
        project=st.sampled_from(["/x/shop", "/x/blog", ""]),
        session=st.sampled_from("abc"),
        agent=st.sampled_from(["", "a7"]),
        input_tokens=st.integers(0, 10**6),
        cache_read=st.integers(0, 10**6),
        cache_write=st.integers(0, 10**6),
        cache_write_1h=st.integers(0, 10**6),
        output_tokens=st.integers(0, 10**6),
    ),
    max_size=8,
)


class TestSums:
    @given(REQUESTS, st.integers(1, 4))
    def test_every_grouping_has_the_same_total(self, requests: list[Request], top: int) -> None:
        totals = set()
        for grouping in GROUPINGS:
            total = SpendRow("")
            for row in leading(spend_by(grouping, requests, zone=UTC), top):
                total = total.plus(row)
            totals.add(total)
        assert len(totals) == 1
        assert totals.pop().total == sum(request.total for request in requests)

    @given(REQUESTS, st.dates(date(2026, 1, 1), date(2026, 6, 1)))
    def test_filters_part_the_requests(self, requests: list[Request], day: date) -> None:
        early, late = choose(requests, until=day - timedelta(days=1)), choose(requests, since=day)
        timed = [request for request in requests if request.time is not None and request.time < 1e18]
        assert sorted(map(id, early + late)) == sorted(map(id, timed))
        assert len(requests) == sum(len(choose(requests, tool=tool)) for tool in ("codex", "pi"))
        assert choose(requests, project="shop") == choose(requests, project="*shop")
        assert choose(requests, model="gpt*") == [request for request in requests if request.model == "gpt-5.5"]

    def test_a_week_begins_on_monday(self) -> None:
        request = Request("", NOON, "t", "", "", "")
        assert [spend_by(name, [request], zone=UTC)[0].name for name in ("day", "week", "month")] == ["2026-03-25", "2026-03-23", "2026-03"]


def test_logs_are_found_where_tools_write_them(tmp_path: Path) -> None:
    paths = [
        ".claude/projects/p/a.jsonl",
        "cx/sessions/2026/r.jsonl",
        ".gemini/tmp/h/chats/s.json",
        ".copilot/session-state/x/events.jsonl",
    ]
    logs = sorted(write(tmp_path / path, {}) for path in paths)
    write(tmp_path / ".claude/notes.txt", "")
    assert find_logs(environment={"CODEX_HOME": f"{tmp_path}/cx"}, home=tmp_path) == logs
    moved = {"CLAUDE_CONFIG_DIR": f"{tmp_path}/none, {tmp_path}/.claude"}
    assert find_logs(environment=moved, home=tmp_path / "empty") == [tmp_path / paths[0]]
    assert find_logs([str(tmp_path), f"{tmp_path}/cx/*"]) == logs
    assert find_logs([str(tmp_path / "none.json")]) == [tmp_path / "none.json"]


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        nameless = answer("m4", 9) | {"cwd": " =cmd()"}
        nameless["message"] = nameless["message"] | {"model": "nobody-knows-1"}
        write(tmp_path / "a.jsonl", answer("m1", 2), answer("m1", 90), answer("m2", 5))
        write(tmp_path / "b.jsonl", answer("m1", 90), nameless)
        return tmp_path

    def test_table(self, shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        code, out, err = shell("spend", folder, "--by", "model", "--sort", "cost")
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 80
        assert [line.split()[-1] for line in out.splitlines()[1:4]] == ["0.01", "unknown", "0.01+"]
        assert "The price of 1 of 3 requests is unknown" in out
        assert "1 request is in several logs and was counted once." in out

    def test_filters_that_nothing_passes_say_so(self, shell: Shell, folder: Path) -> None:
        code, out, _ = shell("spend", folder, "--model", "nothing")
        assert code == 0
        assert "requests were read; none passes the filters." in out

    def test_json_and_csv_have_the_same_rows(self, shell: Shell, folder: Path) -> None:
        write(folder / "c.jsonl", {"x": 1})
        code, out, _ = shell("spend", folder, "--by", "project", "--timezone", "UTC", "--json")
        report = json.loads(out)
        assert code == 0
        assert [row["total_tokens"] for row in report["rows"]] == [2715, 1319]
        assert [row["cost_usd"] is None for row in report["rows"]] == [False, True]
        assert report["total"]["total_tokens"] == 4034
        assert [fault["problem"] for fault in report["faults"]] == ["no log of a known format found"]
        code, out, err = shell("spend", folder, "--by", "project", "--timezone", "UTC", "--csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        assert [row["name"] for row in rows] == ["/home/me/shop", "' =cmd()"]  # some programs pass over spaces
        assert [int(row["total_tokens"]) for row in rows] == [2715, 1319]
        assert err.endswith("c.jsonl: no log of a known format found\n")

    def test_a_name_stays_in_its_row_and_runs_nowhere(self, shell: Shell, folder: Path) -> None:
        """In CSV, too: no line break begins a row of its own, and no terminal sequence gets through."""
        line = {"type": "assistant", "requestId": "q", "uuid": "q", "sessionId": "q", "timestamp": "2026-03-25T12:00:00Z"}
        line["cwd"] = "/a\r=1+1\x1b[31m\u202eb"
        usage = {"input_tokens": 5, "output_tokens": 2}
        write(folder / "hostile.jsonl", {**line, "message": {"id": "q", "role": "assistant", "model": "claude-opus-4-6", "usage": usage}})
        _, out, _ = shell("spend", folder, "--by", "project", "--csv")
        assert not set("\r\x1b\u202e") & set(out)
        assert "/a =1+1[31mb" in [row["name"] for row in csv.DictReader(io.StringIO(out))]

    def test_filters_and_top(self, shell: Shell, folder: Path) -> None:
        _, out, _ = shell("spend", folder, "--since", "2027-01-01", "--json")
        assert json.loads(out)["rows"] == []
        assert shell("spend", folder, "--since", "2027-01-01", "--csv")[1].startswith("name,requests")
        _, out, _ = shell("spend", folder, "--by", "model", "--top", 1, "--json")
        assert [row["name"] for row in json.loads(out)["rows"]] == ["claude-opus-4-6", "(1 other)"]

    def test_rows_are_in_the_order_of_time_or_of_cost(self, shell: Shell, tmp_path: Path) -> None:
        days = [answer(f"m{day}", 100 * day) | {"timestamp": f"2026-03-0{day}T12:00:00Z", "cwd": f"/p{day}"} for day in (2, 1, 3)]
        write(tmp_path / "a.jsonl", *days)
        for grouping, names in (("day", ["2026-03-01", "2026-03-02", "2026-03-03"]), ("project", ["/p3", "/p2", "/p1"])):
            rows = json.loads(shell("spend", tmp_path, "--by", grouping, "--timezone", "UTC", "--json")[1])["rows"]
            assert [row["name"] for row in rows] == names

    def test_claude_code_s_own_links_say_which_pull_request_the_work_is_for(self, shell: Shell, tmp_path: Path) -> None:
        """Work is for the next one, or for the last; that of sub-agents, too. A link is repeated when a session goes on, and what is no
        address is none.
        """

        def link(number: int, minute: int, address: str = "https://github.com/me/shop/pull/") -> dict[str, Any]:
            named = {"prNumber": number, "prUrl": f"{address}{number}", "prRepository": "me/shop"}
            return {"type": "pr-link", "sessionId": "s1", "timestamp": f"2026-03-25T12:{minute:02}:30Z", **named}

        def work(minute: int) -> dict[str, Any]:
            line = answer(f"m{minute}", 5, timestamp=f"2026-03-25T12:{minute:02}:00Z", uuid=f"u{minute}")
            return line | {"message": line["message"] | {"content": [{"type": "text", "text": "Done."}]}}

        links = [link(7, 2), link(6, 2, "javascript:"), link(7, 2), link(8, 4), link(7, 5)]
        write(tmp_path / "a.jsonl", *map(work, range(1, 3)), *links[:3], *map(work, range(3, 5)), *links[3:], work(6))
        asked = {
            "type": "user",
            "uuid": "u",
            "sessionId": "s1",
            "isSidechain": True,
            "agentId": "b",
            "message": {"role": "user", "content": "Do."},
        }
        helped = [work(minute) | {"isSidechain": True, "agentId": "b", "parentUuid": "u"} for minute in (0, 5, 9)]
        for line in helped:
            line["message"] |= {"id": f"b{line['timestamp']}"}
        write(tmp_path / "a" / "subagents" / "agent-b.jsonl", asked, *helped)
        rows = json.loads(shell("spend", tmp_path, "--by", "pr", "--json")[1])["rows"]
        assert {row["name"][-7:]: row["requests"] for row in rows} == {"/pull/7": 2 + 1, "/pull/8": 3 + 2}

    def test_standard_input(self, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        class Input:
            buffer = io.BytesIO(json.dumps(answer("m1", 2)).encode())

        monkeypatch.setattr("sys.stdin", Input)
        assert json.loads(shell("spend", "-", "--json")[1])["total"]["requests"] == 1

    def test_faults_are_named_and_counted(self, shell: Shell, tmp_path: Path) -> None:
        for index in range(7):
            write(tmp_path / f"{index}.json", {"x": 1})
            write(tmp_path / f"a{index}.jsonl", answer(f"m{index}", 2), *["{]"] * index)
        code, _, err = shell("spend", tmp_path)
        assert code == 0
        assert err.count("no log of a known format found (6 others too; --json lists all)") == 1
        assert err.count("a1.jsonl: 1 line is damaged and was left out\n") == 1
        assert "2 more logs have faults" in err

    @pytest.mark.parametrize(
        ("args", "problem"),
        [(("",), "is empty"), (("-", "x"), "cannot be combined"), (("--json", "--csv"), "exclude"), (("--by", "moon"), "is not one of")],
    )
    def test_bad_input(self, shell: Shell, args: tuple[str, ...], problem: str) -> None:
        code, _, err = shell("spend", *args)
        assert code == 2
        assert problem in err

    def test_no_logs(self, shell: Shell, tmp_path: Path) -> None:
        code, _, err = shell("spend", tmp_path)
        assert code == 2
        assert "no logs found below the given paths" in err
