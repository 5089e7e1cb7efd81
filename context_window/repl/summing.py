"""`/compact`: the older turns summed up because the user wants it, whether or not the window is full."""

from __future__ import annotations

from ..display.rendering import Draw
from .chat import Chat, ChatError
from .drawing import quiet, usage_line


async def compact(chat: Chat, _: str) -> list[Draw]:
    """Has all but the last turns summed up: a summary is appended, and stands for them from then on."""
    from session.errors import SummaryError
    from session.items import Compaction
    from session.summary import job, written

    if chat.summarizer is None:
        raise ChatError("there is no model to write a summary: a replay asks none")
    keep = chat.manager.context_window.keep_recent_turns
    due = job(chat.session, keep)
    if due is None:
        raise ChatError(f"there is nothing to sum up: the last {keep} turns always stay as they are")
    before = chat.usage()["total"]
    try:
        text = await written(chat.summarizer, due.prompt)
    except SummaryError as error:
        raise ChatError(f"not summed up, and nothing is changed: {error}") from error
    chat.session.append(Compaction(text, [item.id for item in chat.session.items if item.id in due.ids]))
    usage = chat.usage()
    told = f"{len(due.ids):,} items summed up: {before:,} tokens became {usage['total']:,}; /recall gives the items back"
    return [quiet(told), usage_line(usage, chat.news.latest())]
