"""The commands of the chat, without a terminal: what each gives, what it changes, and how it says what it cannot do."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from inspect import isawaitable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import Compaction, ContextWindow, ContextWindowManager, FunctionCallOutput, Image, Session
from context_window.cli.files import Files
from context_window.display.glyphs import UNICODE
from context_window.display.lines import plain, width_of
from context_window.display.rendering import Draw, text_of
from context_window.errors import ContextWindowError
from context_window.repl.chat import Chat, ChatError, News
from context_window.repl.commands import COMMANDS, REPLAYED, find
from context_window.repl.drawing import fault, item_lines, pairs, text_block, usage_line, used
from context_window.repl.sessions import welcome
from session.errors import SessionError
from session.store import SessionStore
from tests.support.claude_lines import a_bit_of_everything
from tests.support.pictures import png
from tests.support.screens import long_session, read_report

BUDGET = 3_000
WIDTHS = (20, 40, 80, 120)


def made(session: Session, keeper: SessionStore | None = None, *, replaying: bool = False) -> Chat:
    news = News()
    manager = ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(max_tokens=BUDGET), on_event=news.hear)
    files = Files()
    return Chat(manager, session, news, files.write, files.read, model="claude-sonnet-4-5", keeper=keeper, replaying=replaying)


@pytest.fixture
def chat() -> Chat:
    return made(long_session())


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[SessionStore]:
    with SessionStore(tmp_path / "kept" / "sessions.db") as store:
        yield store


def draws(chat: Chat, line: str) -> list[Draw]:
    command, rest = find(line)
    found = command.run(chat, rest)

    async def awaited() -> list[Draw]:
        return list(await found if isawaitable(found) else found)

    return asyncio.run(awaited())


def said(chat: Chat, line: str, width: int = 100) -> str:
    return "\n".join(text_of(draw, width) for draw in draws(chat, line))


def ids_of(chat: Chat) -> list[str]:
    """The ids that /trims lists."""
    return [line.split()[0] for line in said(chat, "/trims all").splitlines()[1:]]


def test_context_shows_the_figures_of_the_view(chat: Chat) -> None:
    shown = read_report(said(chat, "/context"))
    other = made(long_session())
    other.manager.process_session(other.session)
    usage = other.manager.get_token_usage()
    assert shown.total == usage["total"] <= BUDGET
    assert shown.rows == {name: usage[name] for name in ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT", "overhead")}


def test_plan_shows_what_the_manager_plans(chat: Chat) -> None:
    plan = chat.manager.plan_session(chat.session)
    told = said(chat, "/plan")
    assert f"{plan.before:,} → {plan.after:,} tokens of {BUDGET:,}" in told or f"{plan.before:,} -> {plan.after:,}" in told
    assert len(said(chat, "/plan all").splitlines()) >= len(told.splitlines())


def test_trims_lists_what_is_out_and_recall_gives_it_back(chat: Chat) -> None:
    changes = chat.manager.plan_session(chat.session).changes
    assert ids_of(chat) == [one.item_id for one in changes]
    assert f"{len(changes) - 20} earlier ones: /trims all" in said(chat, "/trims")
    output = next(item for item in chat.session.items if isinstance(item, FunctionCallOutput))
    told = said(chat, f"/recall {output.id}")
    assert all(line in told for line in output.text.splitlines())


def test_an_image_that_was_taken_out_is_recalled_by_its_own_id(chat: Chat) -> None:
    message = next(item for item in chat.session.messages() if item.text == "Look at these.")
    assert "[image 800x600]" in said(chat, f"/recall {message.id}#1")


def test_a_long_recall_is_cut_unless_all_is_asked_for(chat: Chat) -> None:
    item = chat.session.add_message("user", "\n".join(f"line {number}" for number in range(500)))
    assert "440 more lines" in said(chat, f"/recall {item.id}")
    assert "line 499" in said(chat, f"/recall {item.id} all")


def test_what_is_pinned_stays_in_the_view(chat: Chat) -> None:
    gone = ids_of(chat)[0]
    assert f"{gone} stays in the view" in said(chat, f"/pin {gone}")
    assert gone in said(chat, "/pin")
    assert gone not in ids_of(chat)
    assert chat.manager.process_session(chat.session).get_by_id(gone) == chat.session.get_by_id(gone)
    said(chat, f"/unpin {gone}")
    assert gone in ids_of(chat)
    assert said(chat, "/pin") == "nothing is pinned"


def test_the_beginning_of_an_id_will_do_where_it_is_the_only_one(chat: Chat) -> None:
    item = chat.session.items[-1]
    assert item.id in said(chat, f"/pin {item.id[:10]}")
    assert item.id in said(chat, f"/unpin {item.id[:10]}…")
    two = made(Session())
    two.session.add_message("user", "a", "same-1")
    two.session.add_message("user", "b", "same-2")
    with pytest.raises(ChatError, match="2 ids begin with same"):
        draws(two, "/pin same")


def test_a_name_may_be_cut_short_where_no_other_begins_so() -> None:
    assert find("/con")[0].name == "/context"
    assert find("/pin x y ")[1] == "x y"
    assert find("/pla all") == (find("/plan")[0], "all")
    for line in ("/p", "/", "/nothing", "/Context"):
        with pytest.raises(ChatError, match="is no command; there are"):
            find(line)


def test_a_replay_offers_only_what_it_has() -> None:
    with pytest.raises(ChatError) as told:
        find("/foo", replaying=True)
    assert str(told.value).partition("there are ")[2] == ", ".join(REPLAYED)
    assert find("/co", replaying=True)[0].name == "/context"  # /compact needs a model
    assert find("/compact", replaying=True)[0].name == "/compact"  # which says so itself
    with pytest.raises(ChatError, match=r"there are /context, /compact$"):
        find("/co")


@pytest.mark.parametrize(("lines", "told"), [(1, "1 more line"), (2, "2 more lines")])
def test_one_line_is_no_lines(lines: int, told: str) -> None:
    drawn = text_block("\n".join("abcdef"[: 3 + lines]), most=3)(80, UNICODE)
    assert plain(drawn[-1]).endswith(f" {told}")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/recall", "/trims lists the ids"),
        ("/recall nobody", "no item has the id nobody; /trims lists"),
        ("/pin nobody", "no item has the id nobody; /trims lists"),
        ("/unpin", "say which"),
        ("/image", "say which"),
        ("/image /no/such/file.png", "cannot be read"),
        ("/image .", "is a folder"),
        ("/image a\0b", "NUL"),
        ("/image ~nobody-at-all/a.png", "is no path"),
        ("/save ~nobody-at-all/a.json", "is no path"),
        ("/load ~nobody-at-all/a.json", "is no path"),
        ("/load a\0b", "NUL"),
        ("/model nobody-knows", "is not known"),
        ("/compact", "no model to write a summary"),
        ("/save", "say where"),
        ("/load nowhere", "no kept session and no file"),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_what_to_do(chat: Chat, line: str, told: str) -> None:
    before = list(chat.session.items)
    with pytest.raises((ContextWindowError, SessionError), match=told) as caught:
        draws(chat, line)
    assert "\n" not in str(caught.value)
    assert list(chat.session.items) == before


def test_an_image_waits_for_the_next_message(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "a b.png").write_bytes(png(30, 20))
    assert "30x20" in said(chat, f"/image {tmp_path / 'a b.png'}")
    assert [(one.width, one.height, one.media_type) for one in chat.attached] == [(30, 20, "image/png")]
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "half.png").write_bytes(png(30, 20)[:50])
    (tmp_path / "large.png").write_bytes(png(3, 2) + bytes(6 * 1024 * 1024))
    for name, told in (("text.png", "is no PNG"), ("half.png", "is damaged: it ends in the middle"), ("large.png", "may have")):
        with pytest.raises(ChatError, match=told):
            draws(chat, f"/image {tmp_path / name}")
    assert len(chat.attached) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_regular_file_is_no_image(chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    for path, told in ((pipe, "is no file"), ("/dev/zero", "is no file"), ("/proc/self/environ", "is no PNG"), (tmp_path, "is a folder")):
        with pytest.raises(ChatError, match=told):
            draws(chat, f"/image {path}")
    with open(os.open(pipe, os.O_RDWR | os.O_NONBLOCK), "r+b", buffering=0):  # as a file of the kernel's log: regular, with nothing to read
        monkeypatch.setattr(stat, "S_ISREG", lambda mode: True)
        with pytest.raises(ChatError, match="is no PNG"):
            draws(chat, f"/image {pipe}")
    assert chat.attached == []


def test_another_model_takes_over_with_its_own_window_and_the_same_log(chat: Chat) -> None:
    before = list(chat.session.items)
    assert "gpt-5" in said(chat, "/model gpt-5")
    assert said(chat, "/model") == "the model is gpt-5"
    assert list(chat.session.items) == before
    assert chat.manager.usage().model == "gpt-5"

    def only_claude(name: str) -> None:
        raise ChatError(f"{name} is none of Anthropic's")

    chat.check_model = only_claude
    with pytest.raises(ChatError, match="none of Anthropic"):
        draws(chat, "/model gpt-4.1")
    assert chat.model == "gpt-5"


def test_compact_has_older_turns_summed_up_and_keeps_the_originals(chat: Chat) -> None:
    async def summed(prompt: str) -> str:
        return f"They looked at files ({len(prompt) > 100})."

    chat.summarizer = summed
    before, length = chat.usage()["total"], len(chat.session.items)
    chat.manager.use_model("claude-sonnet-4-5")
    told = said(chat, "/compact")
    summary = chat.session.items[-1]
    assert isinstance(summary, Compaction)
    assert "summed up" in told
    assert len(chat.session.items) == length + 1
    assert chat.usage()["total"] < before
    first = chat.session.get_by_id(summary.replaces[0])
    assert first is not None
    said(chat, f"/recall {first.id}")


def test_a_summary_that_fails_changes_nothing(chat: Chat) -> None:
    async def broken(prompt: str) -> str:
        raise ConnectionError("no network")

    chat.summarizer = broken
    before = list(chat.session.items)
    with pytest.raises((ContextWindowError, SessionError)) as caught:
        draws(chat, "/compact")
    assert "\n" not in str(caught.value)
    assert list(chat.session.items) == before


def test_what_is_saved_is_read_back(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    said(chat, f"/save {path}")
    assert json.loads(path.read_text(encoding="utf-8")) == chat.session.to_dict()
    chat.session.add_message("user", "more")
    said(chat, f"/save {path}")
    other = made(Session())
    assert f"{len(chat.session.items)} items" in said(other, f"/load {path}")
    assert list(other.session.items) == list(chat.session.items)


def test_a_file_of_a_session_that_is_kept_is_gone_on_with_as_another(tmp_path: Path, keeper: SessionStore) -> None:
    chat = made(long_session(2), keeper)
    said(chat, f"/save {tmp_path / 'early.json'}")
    chat.session.add_message("user", "What is in the store alone.")
    chat.keep()
    said(chat, f"/load {tmp_path / 'early.json'}")
    chat.session.add_message("user", "What is in the other alone.")
    chat.keep()
    assert len(keeper.list()) == 2
    assert keeper.load("long").messages()[-1].text == "What is in the store alone."


@pytest.mark.parametrize("line", ["/save --force {}", "/save {} --force"])
def test_any_other_file_is_left_alone_unless_forced(chat: Chat, tmp_path: Path, line: str) -> None:
    """`/save` replaces its own earlier output of the same session, and any other file with `/save --force NAME`."""
    path = tmp_path / "out of the way.json"
    path.write_text("precious")
    with pytest.raises(ChatError, match=r"already exists .* /save --force .*out of the way\.json replaces it") as caught:
        draws(chat, f"/save {path}")
    assert "\n" not in str(caught.value)
    assert path.read_text() == "precious"
    assert f"written to {path}" in said(chat, line.format(path), 400)
    assert json.loads(path.read_text(encoding="utf-8")) == chat.session.to_dict()


def test_a_file_of_another_session_is_left_alone(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    said(chat, f"/save {path}")
    first = path.read_bytes()
    said(chat, "/fork")
    with pytest.raises(ChatError, match=r"holds another session \(long\)"):
        draws(chat, f"/save {path}")
    assert path.read_bytes() == first
    said(chat, f"/save --force {path}")
    assert json.loads(path.read_text(encoding="utf-8"))["id"] == chat.session.id


def test_a_session_that_was_read_from_a_file_is_written_back_there(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    said(chat, f"/save {path}")
    other = made(Session())
    said(other, f"/load {path}")
    other.session.add_message("user", "More.")
    said(other, f"/save {path}")
    assert json.loads(path.read_text(encoding="utf-8"))["items"][-1]["content"][0]["text"] == "More."


def test_one_item_is_told_as_one(tmp_path: Path) -> None:
    short = Session()
    short.add_message("user", "Hello")
    path = tmp_path / "out.json"
    assert said(made(short), f"/save {path}", 200).startswith("1 item written to ")
    assert "1 item, 1 turn\n" in said(made(Session()), f"/load {path}", 200)


def test_a_transcript_that_was_read_is_never_overwritten(chat: Chat, tmp_path: Path) -> None:
    """Not even with `--force`: the log of a tool is the only one there is."""
    log = a_bit_of_everything().write(tmp_path, "log.jsonl")
    before = Path(log).read_bytes()
    said(chat, f"/load {log}")
    for line in (f"/save {log}", f"/save --force {log}"):
        with pytest.raises(ChatError, match="never overwritten"):
            draws(chat, line)
    assert Path(log).read_bytes() == before


@pytest.mark.parametrize("line", ["/save --force", "/save --force "])
def test_force_needs_a_name(keeper: SessionStore, line: str) -> None:
    with pytest.raises(ChatError, match="/save --force FILE"):
        draws(made(long_session(2), keeper), line)


def test_sessions_are_kept_listed_and_gone_on_with(keeper: SessionStore) -> None:
    chat = made(long_session(3), keeper)
    assert "no session is kept yet" in said(chat, "/load")
    said(chat, "/save")
    said(chat, "/fork")
    fork = chat.session
    fork.add_message("user", "Only in the fork.")
    assert "long" in said(chat, "/load")
    told = said(chat, "/load long")
    assert chat.session.id == "long"
    assert "Only in the fork." not in [item.text for item in chat.session.messages()]
    assert "And this?" in told
    said(chat, f"/load {fork.id[:8]}")
    assert chat.session.messages()[-1].text == "Only in the fork."


def test_a_session_in_which_nothing_was_said_is_not_kept(keeper: SessionStore) -> None:
    chat = made(Session(), keeper)
    chat.session.add_message("system", "Be terse.")
    said(chat, "/save")
    said(chat, "/fork")
    assert keeper.latest() is None


@pytest.mark.parametrize("line", ["/image x.png", "/load", "/retry", "/compact", "/save"])
def test_a_replay_says_what_it_has_no_use_for(line: str) -> None:
    with pytest.raises(ChatError):
        draws(made(long_session(2), replaying=True), line)


def test_help_names_every_command(chat: Chat) -> None:
    for width in WIDTHS:
        told = said(chat, "/help", width)
        assert [command.name for command in COMMANDS if command.name not in told] == []


def test_quit_ends_it(chat: Chat) -> None:
    assert said(chat, "/quit") == ""
    assert chat.over


def test_a_session_that_is_gone_on_with_says_how_it_stands(chat: Chat, tmp_path: Path) -> None:
    chat.session.metadata["directory"] = "/elsewhere"
    told = "\n".join(text_of(draw, 100) for draw in welcome(chat, str(tmp_path)))
    assert "begun in /elsewhere" in told
    assert "And this?" in told
    assert f"{chat.usage()['total']:,} of {BUDGET:,} tokens" in told


HOSTILE = "\x1b]0;title\x07\x1b[2J漢字 👩\u200d💻 \u202egnp.exe\r\n\tx\u0301" * 5


def test_no_line_is_wider_than_the_screen_and_nothing_steers_it(keeper: SessionStore) -> None:
    session = long_session()
    session.metadata["title"] = HOSTILE
    session.add_message("user", ["Look:", HOSTILE, Image(url="https://example.org/x.png", width=5, height=6)], "an id " + HOSTILE[:40])
    session.add_function_call(HOSTILE[:60], {"path": HOSTILE})
    session.add_message("assistant", HOSTILE)
    chat = made(session, keeper)
    chat.keep()
    lines = ["/context", "/plan all", "/trims all", "/pin", "/help", "/model", "/load", f"/recall {session.items[-1].id}", "/unpin an id"]
    for width in WIDTHS:
        for line in lines:
            for draw in draws(chat, line):
                shown = text_of(draw, width)
                assert max(map(width_of, shown.split("\n"))) <= width, (line, width)
                assert "\x1b" not in shown
                assert "\u202e" not in shown
        for item in session.items:
            drawn = item_lines(item)
            if drawn is not None:
                shown = text_of(drawn, width)
                assert max(map(width_of, shown.split("\n"))) <= width
                assert not {"\x1b", "\u202e", "\x07", "\r"} & set(shown)


FIGURES = st.integers(0, 10**7)


@given(
    st.lists(FIGURES, min_size=5, max_size=5), st.integers(1, 10**7), st.lists(st.text(max_size=60), max_size=3), st.sampled_from(WIDTHS)
)
def test_the_usage_line_says_the_figures_and_fits(amounts: list[int], budget: int, news: list[str], width: int) -> None:
    names = ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT", "overhead")
    total = sum(amounts)
    usage = {**dict(zip(names, amounts, strict=True)), "total": total, "budget": budget, "available": budget - total}
    shown = text_of(usage_line(usage, news), width)
    flat = " ".join(shown.split())
    assert max(map(width_of, shown.split("\n"))) <= width
    if width >= 80:
        assert f"{total:,} of {budget:,} tokens" in flat
        assert (f"over budget by {total - budget:,}" in flat) == (total > budget)
    assert used(usage) in flat


@given(st.text(max_size=200), st.sampled_from(WIDTHS))
def test_any_text_is_drawn_within_the_width(text: str, width: int) -> None:
    for draw in (text_block(text, before="> "), text_block(text, most=3), fault(text), pairs([(text[:50], text)])):
        assert all(width_of(line) <= width for line in text_of(draw, width).split("\n"))
