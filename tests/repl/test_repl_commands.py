"""The commands of the chat, without a terminal: their output, their effects and their errors."""

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

from context_window import (
    Compaction,
    ContextWindow,
    ContextWindowManager,
    FunctionCallOutput,
    Image,
    Session,
)
from context_window.cli.chat_files import ChatFiles
from context_window.display.glyphs import UNICODE
from context_window.display.lines import plain, width_of
from context_window.display.render import Draw, text_of
from context_window.errors import ContextWindowError
from context_window.repl.chat import Chat, ChatError, Notices
from context_window.repl.commands import COMMANDS, REPLAY_NAMES, find_command
from context_window.repl.render import (
    definition_list,
    error_text,
    item_block,
    percent_used,
    text_block,
    usage_line,
)
from context_window.repl.session_commands import welcome
from session.errors import SessionError
from session.store import SessionStore
from tests.support.claude_lines import a_bit_of_everything
from tests.support.pictures import png
from tests.support.screens import long_session, read_report

BUDGET = 3_000
WIDTHS = (20, 40, 80, 120)


def new_chat(session: Session, store: SessionStore | None = None, *, is_replay: bool = False) -> Chat:
    notices = Notices()
    manager = ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(max_tokens=BUDGET), on_event=notices.add_event)
    files = ChatFiles()
    return Chat(manager, session, notices, files.write, files.read, model="claude-sonnet-4-5", store=store, is_replay=is_replay)


@pytest.fixture
def chat() -> Chat:
    return new_chat(long_session())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    with SessionStore(tmp_path / "kept" / "sessions.db") as store:
        yield store


def draws(chat: Chat, line: str) -> list[Draw]:
    command, rest = find_command(line)
    result = command.run(chat, rest)

    async def awaited() -> list[Draw]:
        return list(await result if isawaitable(result) else result)

    return asyncio.run(awaited())


def output_of(chat: Chat, line: str, width: int = 100) -> str:
    return "\n".join(text_of(draw, width) for draw in draws(chat, line))


def ids_of(chat: Chat) -> list[str]:
    """Return the ids that /trims lists."""
    return [line.split()[0] for line in output_of(chat, "/trims all").splitlines()[1:]]


def test_context_shows_the_figures_of_the_view(chat: Chat) -> None:
    report = read_report(output_of(chat, "/context"))
    other = new_chat(long_session())
    other.manager.process_session(other.session)
    usage = other.manager.get_token_usage()
    assert report.total == usage["total"] <= BUDGET
    assert report.rows == {name: usage[name] for name in ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT", "overhead")}


def test_plan_shows_what_the_manager_plans(chat: Chat) -> None:
    plan = chat.manager.plan_session(chat.session)
    output = output_of(chat, "/plan")
    assert f"{plan.before:,} → {plan.after:,} tokens of {BUDGET:,}" in output or f"{plan.before:,} -> {plan.after:,}" in output
    assert len(output_of(chat, "/plan all").splitlines()) >= len(output.splitlines())


def test_trims_lists_all_changes_and_recall_shows_the_original(chat: Chat) -> None:
    changes = chat.manager.plan_session(chat.session).changes
    assert ids_of(chat) == [change.item_id for change in changes]
    assert f"{len(changes) - 20} earlier trims are not shown: /trims all lists them" in output_of(chat, "/trims")
    output = next(item for item in chat.session.items if isinstance(item, FunctionCallOutput))
    recalled = output_of(chat, f"/recall {output.id}")
    assert all(line in recalled for line in output.text.splitlines())


def test_a_trimmed_image_is_recalled_by_its_own_id(chat: Chat) -> None:
    message = next(item for item in chat.session.messages() if item.text == "Look at these.")
    assert "[image 800x600]" in output_of(chat, f"/recall {message.id}#1")


def test_a_long_recall_is_cut_without_all(chat: Chat) -> None:
    item = chat.session.add_message("user", "\n".join(f"line {number}" for number in range(500)))
    assert "440 more lines" in output_of(chat, f"/recall {item.id}")
    assert "line 499" in output_of(chat, f"/recall {item.id} all")


def test_a_pinned_item_stays_in_the_view(chat: Chat) -> None:
    gone = ids_of(chat)[0]
    assert f"{gone} stays in the view" in output_of(chat, f"/pin {gone}")
    assert gone in output_of(chat, "/pin")
    assert gone not in ids_of(chat)
    assert chat.manager.process_session(chat.session).get_by_id(gone) == chat.session.get_by_id(gone)
    output_of(chat, f"/unpin {gone}")
    assert gone in ids_of(chat)
    assert output_of(chat, "/pin") == "nothing is pinned"


def test_a_unique_prefix_of_an_id_is_enough(chat: Chat) -> None:
    item = chat.session.items[-1]
    assert item.id in output_of(chat, f"/pin {item.id[:10]}")
    assert item.id in output_of(chat, f"/unpin {item.id[:10]}…")
    two = new_chat(Session())
    two.session.add_message("user", "a", "same-1")
    two.session.add_message("user", "b", "same-2")
    with pytest.raises(ChatError, match="2 ids begin with same"):
        draws(two, "/pin same")


def test_a_unique_prefix_of_a_command_is_enough() -> None:
    assert find_command("/con")[0].name == "/context"
    assert find_command("/pin x y ")[1] == "x y"
    assert find_command("/pla all") == (find_command("/plan")[0], "all")
    for line in ("/", "/nothing", "/Context"):
        with pytest.raises(ChatError, match=f"unknown command {line}; the commands are /context, /plan, "):
            find_command(line)
    with pytest.raises(ChatError, match=r"/p is ambiguous: /plan, /pin$"):
        find_command("/p")


def test_a_replay_offers_only_its_own_commands() -> None:
    with pytest.raises(ChatError) as caught:
        find_command("/foo", is_replay=True)
    assert str(caught.value).partition("the commands are ")[2] == ", ".join(REPLAY_NAMES)
    assert find_command("/co", is_replay=True)[0].name == "/context"  # /compact needs a model
    assert find_command("/compact", is_replay=True)[0].name == "/compact"  # which says so itself
    with pytest.raises(ChatError, match=r"/co is ambiguous: /context, /compact$"):
        find_command("/co")


@pytest.mark.parametrize(("lines", "note"), [(1, "1 more line"), (2, "2 more lines")])
def test_the_note_on_omitted_lines_has_the_right_plural(lines: int, note: str) -> None:
    drawn = text_block("\n".join("abcdef"[: 3 + lines]), most=3)(80, UNICODE)
    assert plain(drawn[-1]).endswith(f" {note}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/recall", "/trims lists the ids"),
        ("/recall nobody", "no item has the id nobody; /trims lists"),
        ("/pin nobody", "no item has the id nobody; /trims lists"),
        ("/unpin", "pass an id: /unpin ID"),
        ("/image", "pass an image file: /image PATH"),
        ("/image /no/such/file.png", "cannot read /no/such/file.png: No such file"),
        ("/image .", "is a folder"),
        ("/image a\0b", "NUL"),
        ("/image ~nobody-at-all/a.png", "names a user whose home folder is unknown"),
        ("/save ~nobody-at-all/a.json", "names a user whose home folder is unknown"),
        ("/load ~nobody-at-all/a.json", "names a user whose home folder is unknown"),
        ("/load a\0b", "NUL"),
        ("/model nobody-knows", "unknown model nobody-knows"),
        ("/compact", "no model to write a summary"),
        ("/save", "pass a file: /save FILE"),
        ("/load nowhere", "no saved session and no file nowhere"),
    ],
)
def test_a_command_error_is_one_line_that_says_what_to_do(chat: Chat, line: str, message: str) -> None:
    before = list(chat.session.items)
    with pytest.raises((ContextWindowError, SessionError), match=message) as caught:
        draws(chat, line)
    assert "\n" not in str(caught.value)
    assert list(chat.session.items) == before


def test_an_image_is_attached_for_the_next_message(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "a b.png").write_bytes(png(30, 20))
    assert "30x20" in output_of(chat, f"/image {tmp_path / 'a b.png'}")
    assert [(image.width, image.height, image.media_type) for image in chat.attached_images] == [(30, 20, "image/png")]
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "half.png").write_bytes(png(30, 20)[:50])
    (tmp_path / "large.png").write_bytes(png(3, 2) + bytes(6 * 1024 * 1024))
    for name, message in (
        ("text.png", "is not a PNG"),
        ("half.png", "is damaged: its content cannot be decoded"),
        ("large.png", "the limit for an image is 5,242,880"),
    ):
        with pytest.raises(ChatError, match=message):
            draws(chat, f"/image {tmp_path / name}")
    assert len(chat.attached_images) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_image_refuses_anything_but_a_regular_file(chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    for path, message in (
        (pipe, "is not a regular file"),
        ("/dev/zero", "is not a regular file"),
        ("/proc/self/environ", "is not a PNG"),
        (tmp_path, "is a folder"),
    ):
        with pytest.raises(ChatError, match=message):
            draws(chat, f"/image {path}")
    with open(os.open(pipe, os.O_RDWR | os.O_NONBLOCK), "r+b", buffering=0):  # as a file of the kernel's log: regular, with nothing to read
        monkeypatch.setattr(stat, "S_ISREG", lambda mode: True)
        with pytest.raises(ChatError, match="is not a PNG"):
            draws(chat, f"/image {pipe}")
    assert chat.attached_images == []


def test_switching_the_model_keeps_the_log(chat: Chat) -> None:
    before = list(chat.session.items)
    assert "gpt-5" in output_of(chat, "/model gpt-5")
    assert output_of(chat, "/model") == "the model is gpt-5"
    assert list(chat.session.items) == before
    assert chat.manager.usage().model == "gpt-5"

    def only_claude(name: str) -> None:
        raise ChatError(f"{name} is none of Anthropic's")

    chat.check_model = only_claude
    with pytest.raises(ChatError, match="none of Anthropic"):
        draws(chat, "/model gpt-4.1")
    assert chat.model == "gpt-5"


def test_compact_summarizes_older_turns_and_keeps_the_originals(chat: Chat) -> None:
    async def summed(prompt: str) -> str:
        return f"They looked at files ({len(prompt) > 100})."

    chat.summarizer = summed
    before, length = chat.usage()["total"], len(chat.session.items)
    chat.manager.use_model("claude-sonnet-4-5")
    output = output_of(chat, "/compact")
    summary = chat.session.items[-1]
    assert isinstance(summary, Compaction)
    assert "summarised" in output
    assert len(chat.session.items) == length + 1
    assert chat.usage()["total"] < before
    first = chat.session.get_by_id(summary.replaces[0])
    assert first is not None
    output_of(chat, f"/recall {first.id}")


def test_compact_takes_a_focus(chat: Chat) -> None:
    prompts: list[str] = []

    async def summed(prompt: str) -> str:
        prompts.append(prompt)
        return "They looked at files."

    chat.summarizer = summed
    output_of(chat, "/compact keep the API decisions")
    assert "in full detail: keep the API decisions\n" in prompts[0]


def test_a_failed_summary_changes_nothing(chat: Chat) -> None:
    async def broken(prompt: str) -> str:
        raise ConnectionError("no network")

    chat.summarizer = broken
    before = list(chat.session.items)
    with pytest.raises((ContextWindowError, SessionError)) as caught:
        draws(chat, "/compact")
    assert "\n" not in str(caught.value)
    assert list(chat.session.items) == before


def test_a_saved_session_can_be_loaded(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    output_of(chat, f"/save {path}")
    assert json.loads(path.read_text(encoding="utf-8")) == chat.session.to_dict()
    chat.session.add_message("user", "more")
    output_of(chat, f"/save --force {path}")
    other = new_chat(Session())
    assert f"{len(chat.session.items)} items" in output_of(other, f"/load {path}")
    assert list(other.session.items) == list(chat.session.items)


def test_loading_a_file_of_a_stored_session_continues_as_a_fork(tmp_path: Path, store: SessionStore) -> None:
    chat = new_chat(long_session(2), store)
    output_of(chat, f"/save {tmp_path / 'early.json'}")
    chat.session.add_message("user", "What is in the store alone.")
    chat.save()
    output_of(chat, f"/load {tmp_path / 'early.json'}")
    chat.session.add_message("user", "What is in the other alone.")
    chat.save()
    assert len(store.list()) == 2
    assert store.load("long").messages()[-1].text == "What is in the store alone."


@pytest.mark.parametrize("line", ["/save --force {}", "/save {} --force"])
def test_save_replaces_a_file_only_with_force(chat: Chat, tmp_path: Path, line: str) -> None:
    path = tmp_path / "out of the way.json"
    path.write_text("precious")
    with pytest.raises(ChatError, match=r"already exists; --force replaces it") as caught:
        draws(chat, f"/save {path}")
    assert "\n" not in str(caught.value)
    assert path.read_text() == "precious"
    assert f"items to {path}" in output_of(chat, line.format(path), 400)
    assert json.loads(path.read_text(encoding="utf-8")) == chat.session.to_dict()


def test_a_session_loaded_from_a_file_can_be_saved_back_to_it(chat: Chat, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    output_of(chat, f"/save {path}")
    other = new_chat(Session())
    output_of(other, f"/load {path}")
    other.session.add_message("user", "More.")
    output_of(other, f"/save --force {path}")
    assert json.loads(path.read_text(encoding="utf-8"))["items"][-1]["content"][0]["text"] == "More."


def test_counts_of_one_are_singular(tmp_path: Path) -> None:
    short = Session()
    short.add_message("user", "Hello")
    path = tmp_path / "out.json"
    assert output_of(new_chat(short), f"/save {path}", 200).startswith("wrote 1 item to ")
    assert "1 item, 1 turn\n" in output_of(new_chat(Session()), f"/load {path}", 200)


def test_save_never_overwrites_a_transcript(chat: Chat, tmp_path: Path) -> None:
    """Not even with `--force`: the log of a tool is the only one there is."""
    log = a_bit_of_everything().write(tmp_path, "log.jsonl")
    before = Path(log).read_bytes()
    output_of(chat, f"/load {log}")
    for line in (f"/save {log}", f"/save --force {log}"):
        with pytest.raises(ChatError, match="never overwritten"):
            draws(chat, line)
    assert Path(log).read_bytes() == before


@pytest.mark.parametrize("line", ["/save --force", "/save --force "])
def test_force_needs_a_name(store: SessionStore, line: str) -> None:
    with pytest.raises(ChatError, match="/save --force FILE"):
        draws(new_chat(long_session(2), store), line)


def test_sessions_are_saved_listed_and_continued(store: SessionStore) -> None:
    chat = new_chat(long_session(3), store)
    assert "no session is saved yet" in output_of(chat, "/load")
    output_of(chat, "/save")
    output_of(chat, "/fork")
    fork = chat.session
    fork.add_message("user", "Only in the fork.")
    assert "long" in output_of(chat, "/load")
    output = output_of(chat, "/load long")
    assert chat.session.id == "long"
    assert "Only in the fork." not in [item.text for item in chat.session.messages()]
    assert "And this?" in output
    output_of(chat, f"/load {fork.id[:8]}")
    assert chat.session.messages()[-1].text == "Only in the fork."


def test_a_session_without_messages_is_not_saved(store: SessionStore) -> None:
    chat = new_chat(Session(), store)
    chat.session.add_message("system", "Be terse.")
    output_of(chat, "/save")
    output_of(chat, "/fork")
    assert store.latest() is None


@pytest.mark.parametrize("line", ["/image x.png", "/load", "/retry", "/compact", "/save"])
def test_chat_only_commands_are_errors_in_a_replay(line: str) -> None:
    with pytest.raises(ChatError):
        draws(new_chat(long_session(2), is_replay=True), line)


def test_help_names_every_command(chat: Chat) -> None:
    for width in WIDTHS:
        output = output_of(chat, "/help", width)
        assert [command.name for command in COMMANDS if command.name not in output] == []


def test_quit_ends_the_chat(chat: Chat) -> None:
    assert output_of(chat, "/quit") == ""
    assert chat.is_over


def test_welcome_shows_where_a_continued_session_stands(chat: Chat, tmp_path: Path) -> None:
    chat.session.metadata["directory"] = "/elsewhere"
    output = "\n".join(text_of(draw, 100) for draw in welcome(chat, str(tmp_path)))
    assert "started in /elsewhere" in output
    assert "And this?" in output
    assert f"{chat.usage()['total']:,} of {BUDGET:,} tokens" in output


HOSTILE = "\x1b]0;title\x07\x1b[2J漢字 👩\u200d💻 \u202egnp.exe\r\n\tx\u0301" * 5


def test_no_line_is_wider_than_the_screen_or_holds_control_characters(store: SessionStore) -> None:
    session = long_session()
    session.metadata["title"] = HOSTILE
    session.add_message("user", ["Look:", HOSTILE, Image(url="https://example.org/x.png", width=5, height=6)], "an id " + HOSTILE[:40])
    session.add_function_call(HOSTILE[:60], {"path": HOSTILE})
    session.add_message("assistant", HOSTILE)
    chat = new_chat(session, store)
    chat.save()
    lines = ["/context", "/plan all", "/trims all", "/pin", "/help", "/model", "/load", f"/recall {session.items[-1].id}", "/unpin an id"]
    for width in WIDTHS:
        for line in lines:
            for draw in draws(chat, line):
                text = text_of(draw, width)
                assert max(map(width_of, text.split("\n"))) <= width, (line, width)
                assert "\x1b" not in text
                assert "\u202e" not in text
        for item in session.items:
            drawn = item_block(item)
            if drawn is not None:
                text = text_of(drawn, width)
                assert max(map(width_of, text.split("\n"))) <= width
                assert not {"\x1b", "\u202e", "\x07", "\r"} & set(text)


FIGURES = st.integers(0, 10**7)


@given(
    st.lists(FIGURES, min_size=5, max_size=5), st.integers(1, 10**7), st.lists(st.text(max_size=60), max_size=3), st.sampled_from(WIDTHS)
)
def test_the_usage_line_shows_the_figures_and_fits(amounts: list[int], budget: int, news: list[str], width: int) -> None:
    names = ("SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT", "overhead")
    total = sum(amounts)
    usage = {**dict(zip(names, amounts, strict=True)), "total": total, "budget": budget, "available": budget - total}
    text = text_of(usage_line(usage, news), width)
    flat = " ".join(text.split())
    assert max(map(width_of, text.split("\n"))) <= width
    if width >= 80:
        assert f"{total:,} of {budget:,} tokens" in flat
        assert (f"over budget by {total - budget:,}" in flat) == (total > budget)
    assert percent_used(usage) in flat


@given(st.text(max_size=200), st.sampled_from(WIDTHS))
def test_any_text_is_drawn_within_the_width(text: str, width: int) -> None:
    for draw in (text_block(text, before="> "), text_block(text, most=3), error_text(text), definition_list([(text[:50], text)])):
        assert all(width_of(line) <= width for line in text_of(draw, width).split("\n"))
