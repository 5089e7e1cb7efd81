"""Replays: they rebuild the same log, and show the figures that a manager would have shown at the time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.display.glyphs import UNICODE
from context_window.display.lines import width_of
from context_window.display.render import Draw, text_of
from context_window.repl.chat import Chat, Notices
from context_window.repl.chat_loop import run_replay
from context_window.repl.commands import REPLAY_NAMES
from context_window.repl.replay import Replay, empty_copy, turns_of
from context_window.repl.terminal import Output, Terminal
from session.transcripts import read_transcript
from tests.support.counting import Letters
from tests.support.screens import long_session
from tests.support.shared import TRANSCRIPTS, needs_transcripts
from tests.support.strategies import reported, sessions


def started(log: Session, budget: int) -> Chat:
    notices = Notices()
    manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=budget), on_event=notices.add_event)
    return Chat(manager, empty_copy(log), notices, is_replay=True)


def test_a_turn_is_a_user_message_and_everything_up_to_the_next() -> None:
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
def test_each_turn_shows_the_usage_of_a_live_manager(log: Session, budget: int) -> None:
    chat, replay = started(log, budget), Replay(log)
    while replay.turns_left:
        output = [text_of(draw, 80) for draw in replay.step(chat)]
        prefix = Session(log.items[: len(chat.session.items)], id=log.id, metadata=log.metadata)
        prefix.restore_seams(log.response_breaks & {item.id for item in prefix.items}, 0)
        other = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=budget))
        view = other.process_session(prefix)
        usage = other.get_token_usage()
        assert chat.manager.get_token_usage() == usage
        assert list(chat.manager.process_session(chat.session).items) == list(view.items)
        assert f"{usage['total']:,} of {budget:,} tokens" in " ".join("\n".join(output).split())
    assert list(chat.session.items) == list(log.items)
    assert chat.session.response_breaks == log.response_breaks & {item.id for item in log.items}


def test_a_trim_is_announced_in_the_turn_in_which_it_happens() -> None:
    log = long_session()
    chat, replay = started(log, 9_000), Replay(log)
    freed = 0
    trim_notices = 0
    while replay.turns_left:
        output = "\n".join(text_of(draw, 100) for draw in replay.step(chat))
        plan = chat.manager.plan_session(chat.session)
        assert ("freed" in output) == (plan.freed > freed), output
        trim_notices += "freed" in output
        freed = plan.freed
    assert trim_notices > 1


def test_commands_between_the_turns_do_not_disturb_the_replay() -> None:
    log = long_session(8)
    chat, replay = started(log, 2_000), Replay(log)
    list(replay.step(chat))
    list(replay.step(chat))
    chat.session.pin(chat.session.items[2].id)
    chat.session = chat.session.fork()
    while replay.turns_left:
        list(replay.step(chat))
    assert [item.id for item in chat.session.items] == [item.id for item in log.items]
    assert chat.session.items[2].pinned


@needs_transcripts
@pytest.mark.parametrize("tool", ["claude_code", "gemini_chat", "cline", "copilot_cli"])
def test_real_transcripts_can_be_replayed(tool: str) -> None:
    paths = sorted((path for path in (TRANSCRIPTS / tool).rglob("*") if path.is_file()), key=lambda path: (path.stat().st_size, path.name))
    path = next(path for path in reversed(paths) if path.stat().st_size < 120_000)
    log = read_transcript(path)
    chat, replay = started(log, 12_000), Replay(log)
    while replay.turns_left:
        for draw in replay.step(chat):
            for width in (40, 120):
                assert all(width_of(line) <= width for line in text_of(draw, width).split("\n"))
    assert list(chat.session.items) == list(log.items)


class User:
    """A user who types these lines. None means Ctrl-C; `stops` are the numbers of drawings during which it is pressed too."""

    def __init__(self, *lines: str | None, stops: tuple[int, ...] = ()) -> None:
        self._lines = iter(lines)
        self._stops = stops
        self._drawn = 0
        self.text = ""

    def read(self, prompt: str) -> str | None:
        self.text += f"{prompt}\n"
        line = next(self._lines, "/quit")
        if line is None:
            raise KeyboardInterrupt
        return line

    def show(self, draw: Draw) -> None:
        self._drawn += 1
        if self._drawn in self._stops:
            raise KeyboardInterrupt
        self.text += f"{text_of(draw, 80)}\n"

    def write(self, text: str) -> None:
        self.text += text

    def watches(self, log: Session) -> Chat:
        chat = started(log, 90_000)
        run_replay(chat, Replay(log), Terminal(self, Output(self.show, self.write, lambda: (80, UNICODE))), auto=False)
        return chat


def test_help_lists_the_replay_commands_and_turns_are_separated_by_an_empty_line() -> None:
    user = User("/help", "")
    user.watches(long_session(2))
    assert [line.split()[0] for line in user.text.splitlines() if line.startswith("/")] == list(REPLAY_NAMES)
    assert not {"/image", "/retry", "/compact", "/load"} & set(REPLAY_NAMES)
    assert "\n\n\n" not in user.text


def test_ctrl_c_skips_nothing_in_a_replay() -> None:
    log = long_session(2)
    user = User(None, "", stops=(8,))
    chat = user.watches(log)
    assert "use Ctrl-D or /quit to leave" in user.text
    assert "interrupted; the log holds the whole turn" in user.text
    first_turns = turns_of(log)[:2]
    assert list(chat.session.items) == [item for turn in first_turns for item in turn.items]
