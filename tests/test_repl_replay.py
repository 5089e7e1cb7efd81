"""A transcript gone through turn by turn: it becomes the same log, and shows what a manager that was there would have shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.display.glyphs import UNICODE
from context_window.display.lines import width_of
from context_window.display.rendering import Draw, text_of
from context_window.repl.chat import Chat, News
from context_window.repl.commands import REPLAYED
from context_window.repl.live import Voice
from context_window.repl.replay import Replay, empty_copy, turns_of
from context_window.repl.terminal import Terminal, run_replay
from session.transcripts import read_transcript
from tests.support.counting import Letters
from tests.support.screens import long_session
from tests.support.shared import TRANSCRIPTS, needs_transcripts
from tests.support.strategies import reported, sessions


def started(log: Session, budget: int) -> Chat:
    news = News()
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=budget), on_event=news.hear)
    return Chat(manager, empty_copy(log), news, replaying=True)


def test_a_turn_is_a_user_message_and_all_up_to_the_next() -> None:
    log = Session()
    log.add_message("system", "s")
    log.add_context("a file")
    for turn in range(3):
        log.add_message("user", f"q{turn}")
        log.add_context("another")
        log.add_message("assistant", f"a{turn}")
    assert [len(turn.items) for turn in turns_of(log)] == [5, 3, 3]
    assert turns_of(Session()) == []


@given(sessions(max_steps=12))
def test_the_turns_together_are_the_log(log: Session) -> None:
    turns = turns_of(log)
    assert [item for turn in turns for item in turn.items] == list(log.items)
    assert [turn.number for turn in turns] == list(range(1, len(turns) + 1))


@given(sessions(max_steps=12).flatmap(reported), st.integers(1, 2_000))
def test_each_turn_shows_what_a_manager_that_was_there_holds(log: Session, budget: int) -> None:
    chat, replay = started(log, budget), Replay(log)
    while replay.left:
        shown = [text_of(draw, 80) for draw in replay.step(chat)]
        prefix = Session(log.items[: len(chat.session.items)], id=log.id, metadata=log.metadata)
        prefix.restore_seams(log.response_breaks & {item.id for item in prefix.items}, 0)
        other = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=budget))
        view = other.process_session(prefix)
        usage = other.get_token_usage()
        assert chat.manager.get_token_usage() == usage
        assert list(chat.manager.process_session(chat.session).items) == list(view.items)
        assert f"{usage['total']:,} of {budget:,} tokens" in " ".join("\n".join(shown).split())
    assert list(chat.session.items) == list(log.items)
    assert chat.session.response_breaks == log.response_breaks & {item.id for item in log.items}


def test_a_trim_is_told_in_the_turn_in_which_it_happens() -> None:
    log = long_session()
    chat, replay = started(log, 9_000), Replay(log)
    freed = 0
    told = 0
    while replay.left:
        shown = "\n".join(text_of(draw, 100) for draw in replay.step(chat))
        plan = chat.manager.plan_session(chat.session)
        assert ("freed" in shown) == (plan.freed > freed), shown
        told += "freed" in shown
        freed = plan.freed
    assert told > 1


def test_commands_between_the_turns_do_not_disturb_the_replay() -> None:
    log = long_session(8)
    chat, replay = started(log, 2_000), Replay(log)
    list(replay.step(chat))
    list(replay.step(chat))
    chat.session.pin(chat.session.items[2].id)
    chat.session = chat.session.fork()
    while replay.left:
        list(replay.step(chat))
    assert [item.id for item in chat.session.items] == [item.id for item in log.items]
    assert chat.session.items[2].pinned


@needs_transcripts
@pytest.mark.parametrize("tool", ["claude_code", "gemini_chat", "cline", "copilot_cli"])
def test_real_transcripts_are_gone_through(tool: str) -> None:
    paths = sorted((path for path in (TRANSCRIPTS / tool).rglob("*") if path.is_file()), key=lambda path: (path.stat().st_size, path.name))
    path = next(path for path in reversed(paths) if path.stat().st_size < 120_000)
    log = read_transcript(path)
    chat, replay = started(log, 12_000), Replay(log)
    while replay.left:
        for draw in replay.step(chat):
            for width in (40, 120):
                assert all(width_of(line) <= width for line in text_of(draw, width).split("\n"))
    assert list(chat.session.items) == list(log.items)


class User:
    """Types these lines, and presses Ctrl-C where there is none; also while the drawings of these numbers are shown."""

    def __init__(self, *lines: str | None, stops: tuple[int, ...] = ()) -> None:
        self._lines = iter(lines)
        self._stops = stops
        self._drawn = 0
        self.told = ""

    def read(self, prompt: str) -> str | None:
        self.told += f"{prompt}\n"
        line = next(self._lines, "/quit")
        if line is None:
            raise KeyboardInterrupt
        return line

    def show(self, draw: Draw) -> None:
        self._drawn += 1
        if self._drawn in self._stops:
            raise KeyboardInterrupt
        self.told += f"{text_of(draw, 80)}\n"

    def write(self, text: str) -> None:
        self.told += text

    def watches(self, log: Session) -> Chat:
        chat = started(log, 90_000)
        run_replay(chat, Replay(log), Terminal(self, Voice(self.show, self.write, lambda: (80, UNICODE))), auto=False)
        return chat


def test_help_lists_what_a_replay_can_do_and_an_empty_line_stands_between_two_turns() -> None:
    user = User("/help", "")
    user.watches(long_session(2))
    assert [line.split()[0] for line in user.told.splitlines() if line.startswith("/")] == list(REPLAYED)
    assert not {"/image", "/retry", "/compact", "/load"} & set(REPLAYED)
    assert "\n\n\n" not in user.told


def test_ctrl_c_leaves_nothing_out_of_a_replay() -> None:
    log = long_session(2)
    user = User(None, "", stops=(8,))
    chat = user.watches(log)
    assert "Ctrl-D or /quit leaves" in user.told
    assert "stopped: the turn is in the log" in user.told
    shown = turns_of(log)[:2]
    assert list(chat.session.items) == [item for turn in shown for item in turn.items]
