"""Items that compactions replace in logs with many of them: each item once, and exactly those that a slow search of the log finds."""

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
from session.transcripts.claude_code.conversations import UncompactedItems
from session.transcripts.claude_code.entry import Entry
from session.transcripts.codex import compaction
from session.transcripts.compactions import KeepRule, is_prompt, is_repeated_context, resolve_replacements
from session.transcripts.draft import Draft
from tests.support.tool_logs import codex, codex_call, codex_item, codex_output, codex_said, pi, write_lines

Json = dict[str, Any]

# The walk that resolves replacements

KINDS = st.sampled_from(["prompt", "prompt", "memory", "answer", "system", "compaction", "compaction"])


@given(st.data())
def test_the_walk_equals_a_slow_search_of_all_live_items(data: st.DataObject) -> None:
    items: list[Any] = []
    compactions: dict[str, KeepRule] = {}
    standing: list[Any] = []
    expected: dict[str, tuple[str, ...]] = {}
    for position in range(data.draw(st.integers(1, 14))):
        match data.draw(KINDS):
            case "prompt":
                item: Any = Message("user", "a" * data.draw(st.integers(0, 5)), id=str(position))
            case "memory":
                item = Message("user", "m", category=MessageCategory.CONTEXT, extra={"source": "memory"}, id=str(position))
            case "answer":
                item = Message("assistant", "yes", id=str(position))
            case "system":
                item = Message("system", "be brief", id=str(position))
            case _:
                item = Compaction("sum", id=str(position))
                ids = data.draw(st.sets(st.sampled_from([earlier.id for earlier in items]))) if items else set()
                keeps = KeepRule(
                    data.draw(st.integers(0, position)),
                    frozenset(ids),
                    data.draw(st.none() | st.integers(0, 12)),
                    is_optional=data.draw(st.booleans()),
                )
                compactions[item.id] = keeps
                replaced = [old for old in standing if int(old.id) < keeps.start and not _stays(old, standing, keeps)]
                if keeps.is_optional and not replaced:
                    items.append(item)
                    continue
                expected[item.id] = tuple(old.id for old in replaced)
                standing = [old for old in standing if old not in replaced]
        items.append(item)
        if item.category is not MessageCategory.SYSTEM:
            standing.append(item)
    assert resolve_replacements(items, compactions) == expected
    assert max(Counter(id for ids in expected.values() for id in ids).values(), default=1) == 1


def _stays(item: Any, standing: list[Any], keeps: KeepRule) -> bool:
    if keeps.prompt_chars is None:
        return item.id in keeps.ids
    prompts = [prompt for prompt in standing[standing.index(item) :] if is_prompt(prompt)]
    return is_repeated_context(item) or (is_prompt(item) and sum(len(prompt.text) for prompt in prompts) <= keeps.prompt_chars)


# Codex

PROMPTS = ["yes", "no", "<environment_context>x</environment_context>", "# AGENTS.md instructions for x", "sum", "a" * 50_000, "b" * 30_000]


@st.composite
def response_items(draw: st.DrawFn) -> Json:
    item: Json = draw(
        st.sampled_from(
            [
                *(codex_said("user", text) for text in PROMPTS),
                codex_said("user", "# AGENTS.md instructions for x", "yes"),
                *(codex_said("assistant", "done"), codex_said("developer", "be brief")),
                *(codex_call("a"), codex_output("a"), codex_item("compaction", encrypted_content="sealed")),
            ]
        )
    )
    return item


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


def replaced_so_far(draft: Draft) -> set[str]:
    """Return the ids of all items that compactions have replaced, from a walk over the whole log."""
    items = [item for mark in range(draft.mark()) if (item := draft.item_at(mark)) is not None]
    return {item_id for ids in resolve_replacements(items, draft._compactions).values() for item_id in ids}


@pytest.mark.no_cover  # its examples are drawn
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(compacted_lines())
def test_repeats_in_a_history_equal_a_slow_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[Json]) -> None:
    class Slow(compaction.CompactionReader):
        """Compares each result with one found by searching everything."""

        originals: list[tuple[bytes, tuple[str, ...]]]

        def remember(self, draft: Draft, payload: Json, items: Any) -> None:
            original = compaction._fingerprint(payload), tuple(item.id for item in items)
            self.originals = [*getattr(self, "originals", []), original]
            super().remember(draft, payload, items)

        def _find_repeated(self, draft: Draft, history: list[object]) -> tuple[dict[str, int], set[int]]:
            present = {item.id for mark in range(draft.mark()) if (item := draft.item_at(mark)) is not None}
            visible = present - replaced_so_far(draft)
            counts: Counter[bytes] = Counter()
            kept_ids: set[str] = set()
            indices: set[int] = set()
            for index, entry in enumerate(history):
                mark = compaction._fingerprint(entry) if isinstance(entry, dict) else b""
                copies = [ids for original, ids in getattr(self, "originals", []) if original == mark and ids and visible.issuperset(ids)]
                counts[mark] += 1
                if counts[mark] <= len(copies):
                    kept_ids.update(copies[-counts[mark]])
                    indices.add(index)
            marks, repeated_indices = super()._find_repeated(draft, history)
            assert (set(marks), repeated_indices) == (kept_ids, indices)
            return marks, repeated_indices

    monkeypatch.setattr("session.transcripts.codex.line_reader.CompactionReader", Slow)
    read_account(write_lines(tmp_path, lines))


def test_a_compaction_that_replaces_nothing_is_left_out(tmp_path: Path) -> None:
    lines = [codex_said("developer", "x"), codex("compacted", message=""), codex_said("user", "hi"), codex("compacted", message="sum")]
    account = read_account(write_lines(tmp_path, [*lines, codex("compacted", message="sum 2")]))
    session = account.sessions[0]
    assert [item.type for item in session.items] == ["message", "message", "compaction", "compaction"]
    assert [item.replaces for item in session.items if isinstance(item, Compaction)] == [(), (session.items[2].id,)]
    assert (account.lines[1].fate, account.lines[1].reason) == ("not context", "a compaction that replaces nothing")


# Claude Code


@given(st.lists(st.tuples(st.integers(1, 30), st.sampled_from(["item", "item", "all", "some"]), st.integers(1, 30), st.integers(1, 30))))
def test_uncompacted_items_of_claude_code_equal_a_slow_search(steps: list[tuple[int, str, int, int]]) -> None:
    entries = [Entry(line, f"u{line}", "", "s", "") for line in range(1, 31)]
    uncompacted, slow, replaced = UncompactedItems(entries), [], set()
    for number, (line, kind, first, last) in enumerate(steps):
        if kind == "item":
            uncompacted.add(str(number), line)
            slow.append((str(number), line))
            continue
        metadata: dict[str, str | int] | None = {"head": f"u{first}", "tail": f"u{last}"} if kind == "some" else None
        preserved = range(first, last + 1) if kind == "some" else range(0)
        expected = [item for item, line in slow if line not in preserved and item not in replaced]
        assert uncompacted.replaced_by(Entry(31, "", "", "s", "", compaction=metadata)) == tuple(expected)
        replaced.update(expected)


# The saved session


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
    """Otherwise the size of a saved session would grow with the square of its log."""
    session = read_account(write_lines(tmp_path, [line for number in range(50) for line in turn(number)])).sessions[0]
    assert len(session.items) == 100
    assert size(session) < len(session.items)
