"""The points of small logs, their markers, the chart, and the command."""

from __future__ import annotations

import io
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_window import ContextWindowManager
from context_window.display.glyphs import ASCII, UNICODE
from context_window.display.lines import line_width, plain
from context_window.display.timeline import HEIGHT, timeline_lines
from context_window.spend import read_ledger
from context_window.spend.tables import sum_of
from context_window.timeline import MarkerKind, Point, Timeline, log_reports
from context_window.timeline.matches import match_requests
from session import Compaction, FunctionCall, FunctionCallOutput, Message, Session, Usage
from session.transcripts import read_account
from session.transcripts.reported_requests import Request
from tests.support.claude_lines import Log, call, result, text
from tests.support.shell import Shell

WORDS = "The quick brown fox jumps over the lazy dog. "


def usage(new: int, read: int, written: int, output: int = 50) -> dict[str, int]:
    return {"input_tokens": new, "cache_read_input_tokens": read, "cache_creation_input_tokens": written, "output_tokens": output}


def log_of_usage(*reports: tuple[int, int, int], model: str = "claude-opus-4-6", minutes: tuple[int, ...] = ()) -> Log:
    """A log of Claude Code with an answer per report: a call, which gets an output."""
    log = Log()
    log.user("Look at it.")
    for number, report in enumerate(reports):
        minute = {"minute": minutes[number]} if minutes else {}
        log.answer(f"m{number}", call(f"c{number}", file_path="a.py"), usage=usage(*report), model=model, requestId=f"r{number}", **minute)
        log.user([result(f"c{number}", WORDS * 20)], **minute)
    return log


def timeline_of(path: Path) -> Timeline:
    account = read_account(path)
    return ContextWindowManager().timeline(account.sessions[0], log_reports(path, account))


def kinds(timeline: Timeline) -> list[tuple[int, MarkerKind, str]]:
    return [(point.number, marker.kind, marker.cause) for point in timeline.points for marker in point.markers]


@pytest.mark.parametrize(("minutes", "cause"), [((0, 0, 0), "requests at the same time"), ((0, 1, 2), "earlier messages changed")])
def test_a_start_that_is_read_again_and_again(tmp_path: Path, minutes: tuple[int, ...], cause: str) -> None:
    """Everything after it was written anew: of answers a minute apart, the first had been written long before."""
    timeline = timeline_of(log_of_usage((10, 9_000, 50_000), (10, 9_000, 52_000), (10, 9_000, 54_000), minutes=minutes).write(tmp_path))
    assert [found for *_, found in kinds(timeline)] == [cause] * 2


class TestPoints:
    def test_a_reported_prompt_is_the_total_and_the_next_request_is_the_last_point(self, tmp_path: Path) -> None:
        timeline = timeline_of(log_of_usage((10, 0, 9_000), (10, 9_000, 500)).write(tmp_path))
        assert [point.total for point in timeline.points[:-1]] == [9_010, 9_510]
        assert [point.is_next for point in timeline.points] == [False, False, True]
        assert timeline.points[1].added == "Read output"
        assert timeline.points[0].overhead >= timeline.points[0].unlogged > 8_000
        assert timeline.spent.total == 9_060 + 9_560

    def test_a_log_without_reports_has_counted_points_and_no_money(self) -> None:
        log = Session()
        for turn in range(3):
            log.append(Message("user", WORDS * 10))
            log.append(Message("assistant", f"answer {turn}"))
        timeline = ContextWindowManager().timeline(log)
        assert [point.length for point in timeline.points] == [1, 3, 5, 6]
        assert not timeline.is_reported
        assert (timeline.spent.requests, timeline.points[0].cost, timeline.points[0].request) == (0, None, None)
        assert timeline.points[-1].total == ContextWindowManager().usage(log).total

    def test_sub_agents_are_elsewhere(self, tmp_path: Path) -> None:
        log = log_of_usage((10, 0, 9_000))
        log.user("search", isSidechain=True, agentId="a1", parentUuid=None)
        log.answer("s1", text("found"), usage=usage(7, 0, 0), isSidechain=True, agentId="a1", requestId="q")
        path = log.write(tmp_path)
        timeline = timeline_of(path)
        assert [request.agent for request in timeline.elsewhere] == ["a1"]
        assert timeline.spent_in_log == sum_of("total", read_ledger([path]).requests)

    def test_a_request_whose_answer_is_not_in_the_session_has_a_point(self) -> None:
        """An answer that broke off was paid for."""
        log = Session()
        for number in range(2):
            log.append(Message("user", WORDS))
            log.append(Message("assistant", "Done.", usage=Usage(input_tokens=100 + number)))
        requests = [Request(str(index), None, "pi", "", "", "", input_tokens=tokens) for index, tokens in enumerate((100, 777, 101, 999))]
        timeline = ContextWindowManager().timeline(log, match_requests(requests, log))
        assert [(point.total, point.is_in_log) for point in timeline.points[:-1]] == [
            (100, True),
            (777, False),
            (101, True),
            (999, False),
        ]
        assert timeline.spent_in_log == sum_of("total", requests)

    def test_counts_that_disagree_are_matched_by_their_order(self) -> None:
        """Codex's totals may include a request that is missing from the log: the report beside it then says less."""
        log = Session()
        for number in range(3):
            log.append(Message("user", WORDS))
            log.append(Message("assistant", "Done.", usage=Usage(input_tokens=100 + number)))
        requests = [Request(str(index), None, "codex", "", "", "", input_tokens=tokens) for index, tokens in enumerate((100, 900, 102))]
        reports = match_requests(requests, log)
        assert [request.total for request in reports.by_item.values()] == [100, 102, 900]
        assert reports.by_item[log.items[3].id].total == 900
        assert (reports.strays, reports.elsewhere) == ((), ())

    @given(st.lists(st.tuples(st.sampled_from(["user", "call", "answer"]), st.integers(0, 40_000)), max_size=30))
    def test_every_point_sums_up_and_the_last_is_usage(self, turns: list[tuple[str, int]]) -> None:
        """A reported prompt is its point's total, and the last point has the figures of `usage`."""
        log, prompts = Session(), []
        for number, (kind, tokens) in enumerate(turns):
            reported = Usage(input_tokens=tokens, output_tokens=3)
            if kind == "user":
                log.append(Message("user", WORDS))
                continue
            if kind == "call":
                log.append(FunctionCall("Read", "{}", f"c{number}", usage=reported))
                log.append(FunctionCallOutput("Read", WORDS * 5, f"c{number}"))
            else:
                log.append(Message("user", "go on"))
                log.append(Message("assistant", "Done.", usage=reported))
            prompts.append(tokens)
        timeline = ContextWindowManager().timeline(log)
        report = ContextWindowManager().usage(log)
        assert timeline.points[-1].tokens == tuple(row.tokens for row in report.rows)
        assert timeline.points[-1].overhead == report.overhead
        reported_points = [point for point in timeline.points if point.is_reported]
        assert [point.total for point in reported_points] == [tokens for tokens in prompts if tokens]
        assert timeline.spent.input_tokens == sum(prompts)


class TestMarkers:
    def test_a_pause_beyond_the_lifetime_breaks_the_cache(self, tmp_path: Path) -> None:
        timeline = timeline_of(log_of_usage((10, 0, 9_000), (10, 0, 9_500), minutes=(0, 12)).write(tmp_path))
        assert kinds(timeline) == [(2, MarkerKind.CACHE_BREAK, "a pause of 12 minutes")]
        (marker,) = timeline.points[1].markers
        assert marker.tokens == 9_000
        paid = (Decimal(10) * 5 + Decimal(9_500) * Decimal("6.25")) / 9_510  # dollars per million: input 5, written 6.25, read .5
        assert marker.cost is not None
        assert abs(marker.cost - 9_000 * (paid - Decimal("0.5")) / 1_000_000) < Decimal("1e-12")

    def test_another_model_breaks_the_cache_and_an_unknown_cause_is_said_to_be_unknown(self, tmp_path: Path) -> None:
        log = log_of_usage((10, 0, 9_000), (10, 0, 9_500))
        log.answer("m7", call("c7"), usage=usage(10, 0, 9_700), model="claude-sonnet-4-6", requestId="r7")
        assert kinds(timeline_of(log.write(tmp_path))) == [
            (2, MarkerKind.CACHE_BREAK, "the start of the prompt changed"),
            (3, MarkerKind.CACHE_BREAK, "another model"),
        ]

    def test_a_compaction_is_marked_and_is_the_cause(self, tmp_path: Path) -> None:
        log = log_of_usage((10, 0, 30_000), (10, 30_000, 500))
        log.system("compact_boundary", compactMetadata={"trigger": "auto"}, parentUuid=None, logicalParentUuid=log.last)
        log.user("So far.", isCompactSummary=True)
        log.answer("m8", text("Done."), usage=usage(10, 1_000, 4_400), model="claude-opus-4-6", requestId="r8")
        timeline = timeline_of(log.write(tmp_path))
        assert kinds(timeline) == [(3, MarkerKind.COMPACTION, ""), (3, MarkerKind.CACHE_BREAK, "a compaction")]
        assert timeline.points[2].markers[0].tokens > 200

    def test_a_prompt_that_shrinks_was_trimmed(self, tmp_path: Path) -> None:
        timeline = timeline_of(log_of_usage((10, 0, 30_000), (10, 12_000, 6_000)).write(tmp_path))
        assert kinds(timeline) == [(2, MarkerKind.TRIM, ""), (2, MarkerKind.CACHE_BREAK, "edited history")]

    def test_small_differences_are_noise(self, tmp_path: Path) -> None:
        assert kinds(timeline_of(log_of_usage((10, 0, 9_000), (10, 8_500, 500)).write(tmp_path))) == []


def work(turns: int, *, why: bool) -> int:
    """Function calls that a timeline of this many turns takes, with or without its reasons."""
    log = Session()
    for number in range(turns):
        log.append(FunctionCall("Read", "{}", f"c{number}", usage=Usage(input_tokens=100 + number)))
        log.append(FunctionCallOutput("Read", WORDS, f"c{number}"))
    manager, calls = ContextWindowManager(), 0
    manager.usage(Session())

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        if why:
            manager.why(log)
        else:
            manager.timeline(log)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("why", [False, True])
def test_the_work_is_linear_in_the_log(why: bool) -> None:
    """One pass, never one fold per request: four times the log takes about four times the work."""
    work(10, why=why)  # loads modules and tables
    assert work(400, why=why) < 4.4 * work(100, why=why)


TURNS = st.lists(st.tuples(st.sampled_from(["user", "call", "answer", "compaction", "look", "usage"]), st.integers(0, 40_000)), max_size=25)


@example([("call", 1), ("compaction", 534), ("usage", 0), ("call", 1)])
@given(TURNS)
def test_a_timeline_of_a_growing_session_is_that_of_the_whole(turns: list[tuple[str, int]]) -> None:
    """A manager that has looked before says what one says that looks for the first time."""
    log, live = Session(), ContextWindowManager()
    for number, (kind, tokens) in enumerate(turns):
        reported = Usage(input_tokens=tokens, output_tokens=3)
        if kind == "look":
            live.timeline(log)
        elif kind == "usage":
            live.usage(log)
        elif kind == "user":
            log.append(Message("user", WORDS))
        elif kind == "call":
            log.append(FunctionCall("Read", "{}", f"c{number}", usage=reported))
            log.append(FunctionCallOutput("Read", WORDS * 5, f"c{number}"))
        elif kind == "compaction":
            log.append(Compaction("So far.", [item.id for item in log.items[: tokens % 7]]))
        else:
            log.append(Message("assistant", "Done.", usage=reported))
    assert live.timeline(log) == ContextWindowManager().timeline(log)
    assert live.usage(log).to_dict() == ContextWindowManager().usage(log).to_dict()


class TestDisplay:
    @pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
    @pytest.mark.parametrize("width", [20, 40, 80, 120])
    @pytest.mark.parametrize("requests", [0, 1, 7, 200])
    def test_lines_fit_any_width(self, width: int, requests: int, glyphs: Any) -> None:
        log = Session()
        for number in range(requests):
            log.append(FunctionCall("Réad", "{}", f"c{number}", usage=Usage(input_tokens=10_000 * (number % 50), cache_read_tokens=7)))
            log.append(FunctionCallOutput("Réad", WORDS, f"c{number}"))
        timeline = ContextWindowManager().timeline(log)
        lines = timeline_lines(timeline, "log.jsonl", ["A note about all of this."], width, glyphs)
        assert max(map(line_width, lines)) <= width
        visible = "\n".join(map(plain, lines))
        assert visible.isascii() or glyphs is UNICODE
        assert f"{timeline.points[-1].total:,} tokens now" in " ".join(visible.split())

    def test_stacks_grow_with_their_prompts(self, tmp_path: Path) -> None:
        timeline = timeline_of(log_of_usage((0, 0, 5_000), (0, 5_000, 5_000), (0, 10_000, 10_000)).write(tmp_path))
        rows = [plain(line).partition("|")[2] for line in timeline_lines(timeline, "", [], 80, ASCII)]
        bars = [row for row in rows if set(row) <= set(" SCDO+") and row.strip()]
        heights = [sum(len(row) > column and row[column] != " " for row in bars) for column in (0, 4, 8)]
        highest = max(point.total for point in timeline.points)
        assert heights == [-(-12 * tokens // highest) for tokens in (5_000, 10_000, 20_000)]

    @given(st.tuples(*[st.integers(0, 50_000)] * 5).filter(any))
    def test_a_stack_is_divided_in_proportion(self, amounts: tuple[int, ...]) -> None:
        """A category is as high as its part of the prompt, but for the cells that it shares with its neighbours."""
        points = (Point(1, 1, amounts[:4], amounts[4], is_next=True),)
        lines = timeline_lines(Timeline("s", points, (), 100_000, None, None, ""), "", [], 80, ASCII)
        column = "".join(row[0] for line in lines if (row := plain(line).partition("|")[2]) and row[0] in "SCDO+")
        assert len(column) == HEIGHT
        for sign, tokens in zip("SCDO+", amounts, strict=True):
            assert abs(column.count(sign) - HEIGHT * tokens / sum(amounts)) < 2


class TestCommand:
    def test_json_has_the_points_and_sums(self, shell: Shell, tmp_path: Path) -> None:
        path = log_of_usage((10, 0, 9_000), (10, 9_000, 500)).write(tmp_path)
        code, out, _ = shell("timeline", path, "--json")
        values = json.loads(out)
        assert code == 0
        assert [point["total"] for point in values["points"][:2]] == [9_010, 9_510]
        assert values["points"][0]["reported"]["cache_write_tokens"] == 9_000
        assert values["spent"]["total_tokens"] == values["spent_in_log"]["total_tokens"] == 18_620
        code, out, _ = shell("usage", path, "--json")
        report = json.loads(out)
        last = values["points"][-1]
        assert (last["total"], last["overhead"]) == (report["total"], report["overhead"])
        assert last["categories"] == {name: row["tokens"] for name, row in report["categories"].items()}

    def test_the_chart_says_when_figures_are_counted(self, shell: Shell, tmp_path: Path) -> None:
        path = tmp_path / "messages.json"
        path.write_text(json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]))
        code, out, _ = shell("timeline", path)
        assert code == 0
        assert "counted: the log reports no usage" in out
        assert "all prompts are counted with" in out

    def test_standard_input_is_read(self, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        content = log_of_usage((10, 0, 9_000)).write(tmp_path).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        code, out, _ = shell("timeline", "-")
        assert (code, out.splitlines()[0].split(" · ")[0]) == (0, "standard input")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code, _, error = shell("timeline", "-")
        assert code == 2
        assert "standard input" in error

    def test_a_file_that_is_no_log_is_bad_input(self, shell: Shell, tmp_path: Path) -> None:
        code, out, error = shell("timeline", tmp_path / "none.jsonl")
        assert (code, out) == (2, "")
        assert error.count("\n") == 1
