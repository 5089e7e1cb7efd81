"""How the lines of a file are sorted into sessions: sidechains, abandoned branches, several sessions in one file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from session import Message, Session, TranscriptError
from session.transcripts import read_account, read_transcript, read_transcripts
from tests.support.claude_lines import Json, Log, call, result, text, uuid


def prompts_of(session: Session) -> list[str]:
    return [item.text for item in session.items if isinstance(item, Message)]


def as_agent(log: Log, path: Path) -> Path:
    """Write the log with every line marked as belonging to agent `a7`."""
    lines = [{**json.loads(line), "isSidechain": True, "agentId": "a7"} for line in log.lines]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def agent_log(session: str = "s-1") -> Log:
    log = Log(session)
    log.user("search")
    log.answer("x1", call("x"))
    log.user([result("x")])
    log.answer("x2", text("found"))
    return log


# Sidechains


def test_inline_sidechains_are_sessions_of_their_own(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    main = log.answer("m1", call("task", "Task"))
    for name in ("first", "second"):
        log.user(f"{name}, search", isSidechain=True, parentUuid=None)
        log.answer(f"x-{name}", text(f"{name} found"), isSidechain=True)
    log.user([result("task")], parentUuid=main)
    path = log.write(tmp_path)
    sessions = read_transcripts(path)
    assert [prompts_of(session) for session in sessions] == [["look"], ["first, search", "first found"], ["second, search", "second found"]]
    assert [session.id for session in sessions] == ["s-1", "s-1/00000003", "s-1/00000005"]
    assert sessions[1].metadata["agent_id"] == "00000003"
    assert sessions[1].metadata["sidechain"] is True
    assert {item.agent_id for item in sessions[1].items} == {"00000003"}
    assert read_transcript(path).to_dict() == sessions[0].to_dict()


def test_interleaved_sidechains_are_separated(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    last: dict[str, str | None] = {"a": None, "b": None}
    for turn in range(3):
        for agent, parent in last.items():
            last[agent] = log.user(f"{agent}{turn}", isSidechain=True, parentUuid=parent)
    assert [prompts_of(session) for session in read_transcripts(log.write(tmp_path))] == [["look"], ["a0", "a1", "a2"], ["b0", "b1", "b2"]]


def test_a_file_with_only_a_sidechain_is_its_session(tmp_path: Path) -> None:
    session = read_transcript(as_agent(agent_log(), tmp_path / "agent-a7.jsonl"))
    assert session.id == "s-1/a7"
    assert prompts_of(session) == ["search", "found"]
    assert (session.metadata["agent_id"], session.metadata["sidechain"]) == ("a7", True)


@pytest.mark.parametrize("name", ["s-1/subagents/agent-a7.jsonl", "agent-a7.jsonl"])
def test_sub_agents_files_are_found(tmp_path: Path, name: str) -> None:
    log = Log()
    log.user("look")
    path = log.write(tmp_path, "s-1.jsonl")
    as_agent(agent_log(), tmp_path / name)
    as_agent(agent_log("other"), tmp_path / "agent-other.jsonl")
    account = read_account(path)
    assert [session.id for session in account.sessions] == ["s-1", "s-1/a7"]
    assert [(line.file, line.line, line.session) for line in account.lines] == [
        ("s-1.jsonl", 1, "s-1"),
        *(("agent-a7.jsonl", line, "s-1/a7") for line in (1, 2, 3, 4)),
    ]


def test_a_broken_file_of_a_sub_agent_is_a_warning(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    path = log.write(tmp_path, "s-1.jsonl")
    folder = tmp_path / "s-1" / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a7.jsonl").write_text("{", encoding="utf-8")
    (session,) = read_transcripts(path)
    assert session.metadata["warnings"][0].startswith("agent-a7.jsonl: none of its 1 lines is a message")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
@pytest.mark.parametrize("name", ["agent-a7.jsonl", "s-1/subagents/agent-a7.jsonl", "s-1/subagents", "s-1"])
def test_a_link_in_place_of_a_sub_agents_file_is_not_followed(tmp_path: Path, name: str) -> None:
    """The user names one file. Other files are read only if they really are in its folder."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    log = Log()
    log.user("look")
    path = log.write(inside, "s-1.jsonl")
    elsewhere = outside / "s-1" / "subagents" / "agent-a7.jsonl"
    as_agent(agent_log(), elsewhere)
    (inside / name).parent.mkdir(parents=True, exist_ok=True)
    (inside / name).symlink_to(elsewhere if name.endswith(".jsonl") else outside / name)
    account = read_account(path)
    assert [prompts_of(session) for session in account.sessions] == [["look"]]
    warnings = account.sessions[0].metadata["warnings"]
    assert warnings == [] if name == "agent-a7.jsonl" else "are not followed" in warnings[0]


def progress_of(agent: str, message: Json, kind: str = "user") -> Json:
    return {"type": "agent_progress", "agentId": agent, "message": {"type": kind, "uuid": f"in-{agent}", "message": message}}


def test_messages_in_progress_lines_are_a_sidechain(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    log.add("progress", data=progress_of("a7", {"role": "user", "content": "search"}))
    log.add("progress", data=progress_of("a7", {"role": "assistant", "id": "x", "content": [text("found")]}, "assistant"))
    log.user("and?")
    account = read_account(log.write(tmp_path))
    assert [prompts_of(session) for session in account.sessions] == [["look", "and?"], ["search", "found"]]
    assert [(line.fate, line.session) for line in account.lines[1:3]] == [("item", "s-1/a7")] * 2


def test_an_agent_with_a_file_of_its_own_appears_once(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    log.add("progress", data=progress_of("a7", {"role": "user", "content": "search"}))
    as_agent(agent_log(), tmp_path / "s-1" / "subagents" / "agent-a7.jsonl")
    account = read_account(log.write(tmp_path, "s-1.jsonl"))
    assert [prompts_of(session) for session in account.sessions] == [["look"], ["search", "found"]]
    assert "in the sub-agent's own file" in account.lines[1].reason


# Branches


def test_a_branch_that_the_user_left_is_left_out(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    fork = log.answer("m1", text("seen"))
    log.user("go left")
    log.answer("m2", call("a"))
    log.user([result("a")])
    log.user("go right", parentUuid=fork)
    log.answer("m3", text("right it is"))
    account = read_account(log.write(tmp_path))
    assert prompts_of(account.sessions[0]) == ["look", "seen", "go right", "right it is"]
    assert len(account.sessions[0].items) == 4
    reason = "on a branch that the user left; the session continues on line 6"
    assert [(line.fate, line.reason) for line in account.lines[2:5]] == [("not context", reason)] * 3


def test_the_branch_with_the_latest_activity_stays(tmp_path: Path) -> None:
    log = Log()
    fork = log.user("look")
    left_branch = log.user("go left", parentUuid=fork)
    log.user("go right", parentUuid=fork)
    log.answer("m1", text("back to the left"), parentUuid=left_branch)
    assert prompts_of(read_transcript(log.write(tmp_path))) == ["look", "go left", "back to the left"]


def long_turns(log: Log, count: int) -> None:
    for turn in range(count):
        log.user(f"question {turn}")
        log.answer(f"m{turn}", text(f"answer {turn}"))


@pytest.mark.parametrize("parent", ["the same", "another", "none"])
def test_a_progress_record_that_stands_twice_is_no_branch(tmp_path: Path, parent: str) -> None:
    """Its copy was taken for a second branch, and everything below the record was left out with it."""
    log = Log()
    log.user("look")
    log.answer("m", text("seen"))
    progress = log.add("progress", data={"type": "hook_progress"})
    long_turns(log, 4)
    copy = json.loads(log.lines[2])
    log.raw(json.dumps({**copy, "parentUuid": {"the same": copy["parentUuid"], "another": log.last, "none": None}[parent]}))
    assert len(log.lines) == 12
    log.user("go on", parentUuid=progress if parent == "none" else log.last)
    account = read_account(log.write(tmp_path))
    assert len(account.sessions[0].items) == 11
    assert account.sessions[0].metadata["warnings"] == []


def test_a_record_under_two_uuids_is_one(tmp_path: Path) -> None:
    """The first half follows one of the copies, the second half the other. They are equal but for the uuid, to the millisecond."""
    log = Log()
    log.user("look")
    log.answer("m", text("seen"))
    log.add("progress", data={"type": "hook_progress"})
    second = json.loads(log.lines[-1]) | {"uuid": uuid(500)}
    log.raw(json.dumps(second))
    long_turns(log, 3)
    log.last = second["uuid"]
    long_turns(log, 2)
    account = read_account(log.write(tmp_path))
    assert len(account.sessions[0].items) == 12
    assert account.sessions[0].metadata["warnings"] == []


def test_a_prompt_under_two_uuids_stands_once(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    log.raw(json.dumps(json.loads(log.lines[0]) | {"uuid": uuid(500)}))
    log.answer("m", text("seen"))
    log.user("go on", parentUuid=uuid(500))
    account = read_account(log.write(tmp_path))
    assert prompts_of(account.sessions[0]) == ["look", "seen", "go on"]
    assert (account.lines[1].fate, account.lines[1].reason) == ("merged", "a copy of line 1")


@pytest.mark.parametrize(("turns", "is_told"), [(2, False), (3, True)])
def test_a_branch_of_more_than_a_few_messages_is_left_out_with_a_warning(tmp_path: Path, turns: int, is_told: bool) -> None:
    log = Log()
    log.user("look")
    fork = log.answer("m", text("seen"))
    long_turns(log, turns)
    log.user("go right", parentUuid=fork)
    session = read_transcript(log.write(tmp_path))
    assert prompts_of(session) == ["look", "seen", "go right"]
    warning = "lines 3 to 8: left out 6 messages on a branch that the user left; the session continues on line 9"
    assert session.metadata["warnings"] == ([warning] if is_told else [])


def test_notices_can_have_branches(tmp_path: Path) -> None:
    log = Log()
    fork = log.user("look")
    log.system("turn_duration")
    log.user("go left")
    log.add("attachment", attachment={"type": "skill_listing", "content": "- x"}, parentUuid=fork)
    log.user("go right")
    assert prompts_of(read_transcript(log.write(tmp_path))) == ["look", "- x", "go right"]


def test_parallel_calls_are_not_branches(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    first = log.answer("m1", call("a"))
    second = log.answer("m1", call("b"))
    log.user([result("a")], parentUuid=first)
    log.user([result("b")], parentUuid=second)
    log.answer("m2", text("both"), parentUuid=second)
    log.user("thanks")
    assert len(read_transcript(log.write(tmp_path)).items) == 7


def test_queued_prompts_are_not_branches(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    log.answer("m1", call("a"))
    after = log.user([result("a")])
    for words in ("and there", "and here"):
        log.add("attachment", attachment={"type": "queued_command", "prompt": words}, parentUuid=after)
    assert prompts_of(read_transcript(log.write(tmp_path))) == ["look", "and there", "and here"]


def test_a_tree_with_a_cycle_is_read(tmp_path: Path) -> None:
    log = Log()
    log.user("one", uuid="a", parentUuid="b")
    log.user("two", uuid="b", parentUuid="a")
    log.user("three", uuid="c", parentUuid="c")
    assert prompts_of(read_transcript(log.write(tmp_path))) == ["one", "two", "three"]


def test_long_chains_of_forks_are_read_in_linear_time(tmp_path: Path) -> None:
    log = Log()
    for turn in range(3_000):  # a walk below every fork would take minutes
        log.answer(f"m{turn}", call(f"a{turn}"))
        result_uuid = log.user([result(f"a{turn}")])
        log.add("progress", data={}, parentUuid=log.last)
        log.last = result_uuid
    assert len(read_transcript(log.write(tmp_path)).items) == 6_000


# Copies and several sessions


def test_a_repeated_record_is_merged(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    log.answer("m1", text("seen"))
    log.raw(log.lines[0]).raw(log.lines[1])
    log.user("go on")
    account = read_account(log.write(tmp_path))
    assert prompts_of(account.sessions[0]) == ["look", "seen", "go on"]
    assert [(line.fate, line.reason) for line in account.lines[2:4]] == [("merged", "a copy of line 1"), ("merged", "a copy of line 2")]


def test_a_resumed_session_is_one(tmp_path: Path) -> None:
    log = Log("old")
    log.user("look")
    log.session = "new"
    log.user("go on")
    (session,) = read_transcripts(log.write(tmp_path))
    assert session.id == "new"
    assert prompts_of(session) == ["look", "go on"]


def test_a_session_resumed_at_a_compaction_is_one(tmp_path: Path) -> None:
    log = Log("old")
    end = log.user("look")
    log.session = "new"
    log.system("compact_boundary", parentUuid=None, logicalParentUuid=end)
    log.user("We looked.", isCompactSummary=True)
    log.user("go on")
    (session,) = read_transcripts(log.write(tmp_path))
    assert prompts_of(session) == ["look", "go on"]


def test_several_main_sessions_are_an_error_that_names_them(tmp_path: Path) -> None:
    log = Log("one")
    log.user("look")
    log.session = "two"
    log.user("listen", parentUuid=None)
    path = log.write(tmp_path)
    assert [(session.id, prompts_of(session)) for session in read_transcripts(path)] == [("one", ["look"]), ("two", ["listen"])]
    with pytest.raises(TranscriptError, match=r"holds 2 sessions \(one, two\); use read_transcripts\(\)"):
        read_transcript(path)


def test_a_fragment_of_another_session_is_not_a_main_session(tmp_path: Path) -> None:
    log = Log("one")
    log.session = "stray"
    log.answer("m9", call("z"), parentUuid="elsewhere")
    log.session = "one"
    log.user("look", parentUuid=None)
    path = log.write(tmp_path)
    assert read_transcript(path).id == "one"
    assert [session.id for session in read_transcripts(path)] == ["one", "stray"]


def test_lines_without_a_session_belong_to_the_previous_one(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    log.user("go on", sessionId=..., parentUuid=None)
    assert prompts_of(read_transcript(log.write(tmp_path))) == ["look", "go on"]


def test_counts_of_all_sessions_add_up_to_the_lines(tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    log.user("search", isSidechain=True, parentUuid=None)
    log.raw("{broken")
    log.add("summary", summary="t")
    sessions = read_transcripts(log.write(tmp_path))
    assert [session.metadata["lines"] for session in sessions] == [{"item": 1, "damaged": 1, "not context": 1}, {"item": 1}]
    assert [len(session.metadata["warnings"]) for session in sessions] == [1, 0]
