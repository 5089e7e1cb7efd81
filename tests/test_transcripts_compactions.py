"""What compactions replace, in logs of many: each item once, and exactly what a slow look at the whole log finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session import Compaction, Message, MessageCategory, Session
from session.transcripts import read_account
from session.transcripts.claude_code.entry import Entry
from session.transcripts.claude_code.standing import Standing
from session.transcripts.codex import compaction
from session.transcripts.draft import Draft
from session.transcripts.replacing import Keeps, is_prompt, is_repeated, replaced
from tests.support.tool_logs import codex, codex_call, codex_item, codex_output, codex_said, pi, write_lines

Json = dict[str, Any]

# The walk that settles what is replaced

KINDS = st.sampled_from(["prompt", "prompt", "memory", "answer", "system", "compaction", "compaction"])


@given(st.data())
def test_the_walk_finds_what_a_look_at_all_that_stands_finds(data: st.DataObject) -> None:
    items: list[Any] = []
    compactions: dict[str, Keeps] = {}
    standing: list[Any] = []
    expected: dict[str, tuple[str, ...]] = {}
    for place in range(data.draw(st.integers(1, 14))):
        match data.draw(KINDS):
            case "prompt":
                item: Any = Message("user", "a" * data.draw(st.integers(0, 5)), id=str(place))
            case "memory":
                item = Message("user", "m", category=MessageCategory.CONTEXT, extra={"source": "memory"}, id=str(place))
            case "answer":
                item = Message("assistant", "yes", id=str(place))
            case "system":
                item = Message("system", "be brief", id=str(place))
            case _:
                item = Compaction("sum", id=str(place))
                ids = data.draw(st.sets(st.sampled_from([one.id for one in items]))) if items else set()
                keeps = Keeps(
                    data.draw(st.integers(0, place)),
                    frozenset(ids),
                    data.draw(st.none() | st.integers(0, 12)),
                    is_optional=data.draw(st.booleans()),
                )
                compactions[item.id] = keeps
                gone = [one for one in standing if int(one.id) < keeps.start and not _stays(one, standing, keeps)]
                if keeps.is_optional and not gone:
                    items.append(item)
                    continue
                expected[item.id] = tuple(one.id for one in gone)
                standing = [one for one in standing if one not in gone]
        items.append(item)
        if item.category is not MessageCategory.SYSTEM:
            standing.append(item)
    assert replaced(items, compactions) == expected
    assert max(Counter(id for ids in expected.values() for id in ids).values(), default=1) == 1


def _stays(item: Any, standing: list[Any], keeps: Keeps) -> bool:
    if keeps.letters is None:
        return item.id in keeps.ids
    later = [one for one in standing[standing.index(item) :] if is_prompt(one)]
    return is_repeated(item) or (is_prompt(item) and sum(len(one.text) for one in later) <= keeps.letters)


# Codex

PROMPTS = ["yes", "no", "<environment_context>x</environment_context>", "# AGENTS.md instructions for x", "sum", "a" * 50_000, "b" * 30_000]


@st.composite
def response_items(draw: st.DrawFn) -> Json:
    made: Json = draw(
        st.sampled_from(
            [
                *(codex_said("user", text) for text in PROMPTS),
                codex_said("user", "# AGENTS.md instructions for x", "yes"),
                *(codex_said("assistant", "done"), codex_said("developer", "be brief")),
                *(codex_call("a"), codex_output("a"), codex_item("compaction", encrypted_content="sealed")),
            ]
        )
    )
    return made


@st.composite
def compacted_lines(draw: st.DrawFn) -> list[Json]:
    lines: list[Json] = [codex_said("developer", "be brief")]
    for _ in range(draw(st.integers(1, 25))):
        kind = draw(st.sampled_from(["item", "item", "item", "history", "plain", "back"]))
        if kind == "item":
            lines.append(draw(response_items()))
        elif kind == "back":
            lines.append(codex("event_msg", type="thread_rolled_back", num_turns=draw(st.integers(1, 3))))
        else:
            history = [line["payload"] for line in draw(st.lists(response_items(), max_size=5))]
            replacement: dict[str, Any] = {"replacement_history": history} if kind == "history" else {}
            lines.append(codex("compacted", message="sum", **replacement))
    return lines


def gone_by_now(draft: Draft) -> set[str]:
    """What compactions stand for so far, by the walk over all of it."""
    items = [item for mark in range(draft.mark()) if (item := draft.item_at(mark)) is not None]
    return {one for ids in replaced(items, draft._compactions).values() for one in ids}


@pytest.mark.no_cover  # its examples are drawn
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(compacted_lines())
def test_a_history_repeats_what_a_look_at_the_whole_log_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[Json]) -> None:
    class Slow(compaction.Copies):
        """Compares each answer with one that is found by looking at everything."""

        noted: list[tuple[bytes, tuple[str, ...]]]

        def note(self, draft: Draft, payload: Json, items: Any) -> None:
            self.noted = [*getattr(self, "noted", []), (compaction._mark(payload), tuple(item.id for item in items))]
            super().note(draft, payload, items)

        def _repeated(self, draft: Draft, history: list[object]) -> tuple[dict[str, int], set[int]]:
            there = {item.id for mark in range(draft.mark()) if (item := draft.item_at(mark)) is not None}
            shown = there - gone_by_now(draft)
            times: Counter[bytes] = Counter()
            kept: set[str] = set()
            places: set[int] = set()
            for place, one in enumerate(history):
                mark = compaction._mark(one) if isinstance(one, dict) else b""
                copies = [ids for noted, ids in getattr(self, "noted", []) if noted == mark and ids and shown.issuperset(ids)]
                times[mark] += 1
                if times[mark] <= len(copies):
                    kept.update(copies[-times[mark]])
                    places.add(place)
            found = super()._repeated(draft, history)
            assert (set(found[0]), found[1]) == (kept, places)
            return found

    monkeypatch.setattr("session.transcripts.codex.log.Copies", Slow)
    read_account(write_lines(tmp_path, lines))


def test_a_compaction_of_nothing_is_none_and_no_other_replaces_it(tmp_path: Path) -> None:
    lines = [codex_said("developer", "x"), codex("compacted", message=""), codex_said("user", "hi"), codex("compacted", message="sum")]
    account = read_account(write_lines(tmp_path, [*lines, codex("compacted", message="sum 2")]))
    session = account.sessions[0]
    assert [item.type for item in session.items] == ["message", "message", "compaction", "compaction"]
    assert [item.replaces for item in session.items if isinstance(item, Compaction)] == [(), (session.items[2].id,)]
    assert (account.lines[1].fate, account.lines[1].reason) == ("not context", "a compaction of nothing")


# Claude Code


@given(st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["item", "item", "all", "some"]), st.integers(1, 30), st.integers(1, 30))))
def test_what_stands_in_a_log_of_claude_code_is_what_no_compaction_has_replaced(steps: list[tuple[int, str, int, int]]) -> None:
    entries = [Entry(line, f"u{line}", "", "s", "") for line in range(1, 31)]
    standing, slow, gone = Standing(entries), [], set()
    for number, (line, kind, first, last) in enumerate(steps):
        if kind == "item":
            standing.add(str(number), line)
            slow.append((str(number), line))
            continue
        told: dict[str, str | int] | None = {"head": f"u{first}", "tail": f"u{last}"} if kind == "some" else None
        kept = range(first, last + 1) if kind == "some" else range(0)
        expected = [item for item, line in slow if line not in kept and item not in gone]
        assert standing.replaced_by(Entry(31, "", "", "s", "", told=told)) == tuple(expected)
        gone.update(expected)


# The saved form


def size(session: Session) -> int:
    return sum(len(item.replaces) for item in session.items if isinstance(item, Compaction))


@pytest.mark.parametrize(
    "turn",
    [
        lambda number: [codex_said("user", "yes"), codex("compacted", message="sum")],
        lambda number: [codex_said("user", "yes"), codex("compacted", message="sum", replacement_history=[])],
        lambda number: [pi("user", "yes"), {**pi("user", "x"), "type": "compaction", "summary": "sum"}],
    ],
    ids=["codex", "codex with a history", "pi"],
)
def test_all_compactions_of_a_log_together_name_no_more_items_than_it_has(tmp_path: Path, turn: Callable[[int], list[Json]]) -> None:
    """Else a session that is saved would be as large as the square of its log."""
    session = read_account(write_lines(tmp_path, [line for number in range(50) for line in turn(number)])).sessions[0]
    assert len(session.items) == 100
    assert size(session) < len(session.items)
