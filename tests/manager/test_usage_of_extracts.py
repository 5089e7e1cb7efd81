"""The usage report names the extracts of a view, after each request of a session that grows."""

from __future__ import annotations

from collections.abc import Sequence

from context_window import ContextWindow, ContextWindowManager, Extract, UsageReport
from context_window.counting.item_tokens import Measurer
from context_window.counting.tiktoken_counter import TiktokenCounter
from context_window.decision.placeholders import GONE
from session import Compaction, Item, Session
from session.identity import digested, is_digest
from session.items import parts_of_item
from session.parts import Text

TURNS = 24
WINDOW = ContextWindow(max_tokens=6_000, strategy=Extract())


def output_text(turn: int) -> str:
    return "\n".join(f"def function_{turn}_{line}(value_{line}): return load_table_{line}(value_{line}, {turn})" for line in range(30))


def digests_in(items: Sequence[Item]) -> list[Item]:
    return list(filter(is_digest, items))


def check(report: UsageReport, digests: Sequence[Item]) -> None:
    measurer = Measurer(TiktokenCounter())
    entries = [entry for digest in digests for entry in digested(digest)]
    sections = [part for digest in digests for part in parts_of_item(digest)[1:] if isinstance(part, Text)]
    assert report.extracts == len(entries) == sum(not section.text.startswith(GONE) for section in sections)
    assert report.extract_tokens == sum(measurer.measure(item).tokens for item in digests)
    assert report.to_dict()["extracts"] == {"count": report.extracts, "tokens": report.extract_tokens}
    of_tools = {(entry["name"], entry["call_id"]) for entry in entries if "name" in entry}
    assert sum(row.extracts for row in report.tools) == len(of_tools)
    for row in report.tools:
        assert row.extracts == sum(name == row.name for name, _ in of_tools)


def grow(session: Session, turn: int) -> None:
    tool = ("read_file", "search")[turn % 2]
    call = session.add_function_call(tool, {"path": f"src/module_{turn}.py"})
    session.add_function_output(tool, output_text(turn), call.call_id)


def test_extracts_are_counted_in_all_and_by_tool_at_each_request() -> None:
    """Their number, their tokens, and the calls of a tool that have one agree with the view's items."""
    manager, session, most = ContextWindowManager("gpt-5", context_window=WINDOW), Session(), 0
    session.add_message("user", "Read all files.")
    for turn in range(TURNS):
        grow(session, turn)
        view = manager.process_session(session)
        check(manager.usage(), digests_in(view.items))
        most = max(most, manager.usage().extracts)
    assert most >= 3
    assert f"{manager.usage().extracts} extracts ({manager.usage().extract_tokens:,} tokens)" in manager.format_token_usage()


def test_extracts_that_a_summary_replaces_are_counted_no_more() -> None:
    """A view that is continued as a log, and then summarised, has the extracts that are left."""
    manager, session = ContextWindowManager("gpt-5", context_window=WINDOW), Session()
    session.add_message("user", "Read all files.")
    for turn in range(TURNS):
        grow(session, turn)
    log = manager.process_session(session).fork()
    digests = digests_in(log.items)
    check(manager.usage(log), digests)
    log.append(Compaction("Some files were read.", [digests[0].id]))
    check(manager.usage(log), digests[1:])
