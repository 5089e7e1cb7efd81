"""What a log says of the work: the plan, the last failure, and the texts of files as they were read and edited since."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.decision.working_state import AROUND, ERROR_LINES, Section, edited_path, files_under_edit, last_failure, plan_of_work
from session.items import FunctionCall, FunctionCallOutput, Item, Message


class Log(list[Item]):
    """A log of calls with their outputs."""

    def call(self, name: str, output: str, *, is_error: bool = False, **arguments: object) -> None:
        call_id = f"c{len(self)}"
        self.append(FunctionCall(name, json.dumps(arguments), call_id))
        self.append(FunctionCallOutput(name, output, call_id, is_error=is_error))


def shown(section: Section | None) -> list[str]:
    """The lines of a section that a note may show, in order."""
    assert section is not None
    numbers = sorted(number for group in section.groups for number in group)
    assert len(set(numbers)) == len(numbers)
    return [section.lines[number] for number in numbers]


# Files

LINES = st.lists(st.sampled_from(["", "a = 1", "    return a", "def f():", "x", "12: 3", "}"]), min_size=2, max_size=60)


def numbered(lines: Sequence[str]) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, 1))


def patch_of(path: str, old: Sequence[str], new: Sequence[str]) -> str:
    return "\n".join(
        ("*** Begin Patch", f"*** Update File: {path}", "@@", *(f"-{line}" for line in old), *(f"+{line}" for line in new), "*** End Patch")
    )


@given(LINES, st.lists(st.tuples(st.integers(0, 59), st.integers(1, 4), LINES), min_size=1, max_size=6), st.data())
def test_a_file_is_its_last_reading_with_the_edits_made_since(
    lines: list[str], edits: list[tuple[int, int, list[str]]], data: st.DataObject
) -> None:
    """The text of a file is put together from what was read of it and the edits that were made since."""
    log = Log()
    lines = [f"{line} # {number}" for number, line in enumerate(lines)]  # no two are the same, so that an edit has one place
    is_numbered = data.draw(st.booleans())
    log.call("Read", numbered(lines) if is_numbered else "\n".join(lines), file_path="/work/src/a.py")
    for known, (drawn, length, texts) in enumerate(edits):
        start = drawn % len(lines)
        old, new = lines[start : start + length], [f"{line} ## {known} {at}" for at, line in enumerate(texts)]
        if data.draw(st.booleans()):
            log.call("apply_patch", "done", input=patch_of("src/a.py", old, new))
        else:
            log.call("Edit", "done", file_path="/work/src/a.py", old_string="\n".join(old), new_string="\n".join(new))
        lines[start : start + length] = new
    (file,) = files_under_edit(log)
    assert list(file.lines) == lines
    assert file.groups[0]
    newest = {at for at, line in enumerate(lines) if f"## {len(edits) - 1} " in line}
    around = {at for number in newest for at in range(number - AROUND, number + AROUND + 1)}
    assert newest <= set(file.groups[0]) <= around


def test_only_edits_that_succeeded_are_made() -> None:
    log = Log()
    log.call("read", "one\ntwo", path="a.txt")
    log.call("edit", "done", path="a.txt", old_string="one", new_string="1")
    log.call("edit", "no such text", is_error=True, path="a.txt", old_string="two", new_string="2")
    (file,) = files_under_edit(log)
    assert file.lines == ["1", "two"]


def test_files_of_the_same_name_are_told_apart() -> None:
    log = Log()
    log.call("read", "one\ntwo", path="/work/a/__init__.py")
    log.call("read", "three\nfour", path="/work/b/__init__.py")
    log.call("write", "done", path="b/__init__.py", content="five\nsix")
    (file,) = files_under_edit(log)
    assert file.lines == ["five", "six"]
    assert file.title == "b/__init__.py as last seen"


def test_an_edit_of_unknown_text_is_known_by_itself() -> None:
    log = Log()
    log.call("edit", "done", path="a.txt", old_string="one", new_string="1\n2")
    (file,) = files_under_edit(log)
    assert file.lines == ["1", "2"]


def test_three_files_belong_to_the_state_the_newest_first() -> None:
    log = Log()
    for number in (1, 2, 3, 4, 2):
        log.call("write", "done", path=f"{number}.txt", content=f"text {number}\nend")
    assert [file.title for file in files_under_edit(log)] == [f"{number}.txt as last seen" for number in (2, 4, 3)]


@pytest.mark.parametrize(
    ("name", "arguments", "path"),
    [
        ("Edit", {"file_path": "a.py", "old_string": "1", "new_string": "2"}, "a.py"),
        ("mcp__files__write_file", {"path": "a.py", "content": "2"}, "a.py"),
        ("shell", {"command": ["apply_patch", "*** Begin Patch\n*** Add File: b/a.py\n+1\n*** End Patch"]}, "b/a.py"),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, None),
        ("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "1", "new_str": "2"}, "a.py"),
        ("Read", {"file_path": "a.py"}, None),
        ("Edit", {}, None),
    ],
)
def test_which_file_a_call_edits(name: str, arguments: dict[str, object], path: str | None) -> None:
    assert edited_path(FunctionCall(name, json.dumps(arguments), "c")) == path


def test_a_shell_reads_files_too() -> None:
    log = Log()
    log.call("Bash", "one\ntwo\nthree", command="cat src/a.py")
    log.call("Bash", "a.py and b.py", command="cat src/a.py src/b.py")
    log.call("Edit", "done", file_path="/work/src/a.py", old_string="two", new_string="2")
    (file,) = files_under_edit(log)
    assert file.lines == ["one", "2", "three"]


# Plan and failure


def test_the_plan_that_was_written_last() -> None:
    log = Log()
    log.call("TodoWrite", "done", todos=[{"content": "first", "status": "pending"}])
    log.call("TodoWrite", "done", todos=[{"content": "second", "status": "done"}])
    assert shown(plan_of_work(log)) == ["second", "done"]


def test_a_plan_that_was_written_step_by_step() -> None:
    log = Log()
    log.call("TodoWrite", "done", todos=[{"content": "old", "status": "pending"}])
    log.call("TaskCreate", "done", subject="first")
    log.call("TaskCreate", "done", subject="second")
    assert shown(plan_of_work(log))[-2:] == ["first", "second"]
    assert plan_of_work(log[:0]) is None


def test_the_last_failure_is_of_a_command_and_not_of_a_text_that_names_errors() -> None:
    log = Log()
    log.call("bash", "collected 3 items\nE   ValueError: no rows\nFAILED tests/test_a.py", command="pytest")
    log.call("bash", "src/a.py:3: raise ValueError: no\nFAILED", command="grep -n Error src")
    log.call("Read", "Traceback (most recent call last):", file_path="log.txt")
    log.call("bash", "3 passed", command="pytest tests/test_b.py")
    assert shown(last_failure(log)) == ["E   ValueError: no rows", "FAILED tests/test_a.py"]


def test_what_failed_and_passed_since_is_no_failure_any_more() -> None:
    log = Log()
    log.call("bash", "make: *** Error 2\nfatal: no rule", command="make")
    log.call("bash", "E   ValueError: no rows\nFAILED tests/test_a.py", command="pytest")
    log.call("bash", "3 passed", command="pytest")
    assert shown(last_failure(log)) == ["make: *** Error 2", "fatal: no rule"]
    log.call("bash", "E   ValueError: again\nFAILED tests/test_a.py", command="pytest")
    assert shown(last_failure(log)) == ["E   ValueError: again", "FAILED tests/test_a.py"]


def test_the_newest_lines_of_a_long_failure() -> None:
    log = Log()
    log.call("bash", "\n".join(f"E   ValueError: {number}" for number in range(90)), command="pytest")
    assert shown(last_failure(log)) == [f"E   ValueError: {number}" for number in range(90 - ERROR_LINES, 90)]


def test_in_a_log_without_calls_a_failure_is_what_follows_an_answer() -> None:
    log: list[Item] = [Message("user", "FAILED is what I see: error: why?"), Message("assistant", "`make`"), Message("user", "fine")]
    assert last_failure(log) is None
    log += [Message("assistant", "`make test`"), Message("user", "ok\nfatal: no rule to make target")]
    assert shown(last_failure(log)) == ["fatal: no rule to make target"]
