"""A conversation as text, for a summariser or for a model that takes no history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .errors import FormatError, short
from .items import ITEM_TYPES, AgentConfigUpdate, AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Item, Message
from .parts import Document, Image, Part
from .printable import short_name
from .record import listed

INDENT = "  "
TITLE_SHOWN = 200


def render_items(items: Iterable[Item]) -> str:
    """The conversation as text, an item after the other.

        user: What is in main.py?
        assistant calls read_file (call_1): {"path": "main.py"}
        read_file answers (call_1): print("hello")

    A line that begins without white space begins an item, whatever the texts hold: their further lines are indented. Images and
    documents are named, sealed reasoning is left out.

    Args:
        items: The items, in order.

    Raises:
        FormatError: Something is no item.
    """
    return "\n".join(_rendered(listed(items, "render_items")))


def _rendered(items: Iterable[Item]) -> Iterator[str]:
    for place, item in enumerate(items):
        if type(item) not in ITEM_TYPES:
            raise FormatError(f"render_items[{place}]", f"{short(item)} is no item; pass `session.items`")
        said = _said(item)
        if said is not None:
            who, text = said
            yield f"{who}: {_indented(text)}" if text else f"{who}:"


def _said(item: Item) -> tuple[str, str] | None:
    """Who says something, and what; None where there is nothing to show."""
    agent = f" {_line(item.agent_id)}" if item.agent_id else ""
    match item:
        case Message(is_summary=True):
            return "summary", _content(item.content)
        case Message():
            return f"{item.role}{agent}{' (interrupted)' if item.interrupted else ''}", _content(item.content)
        case FunctionCall():
            return f"assistant{agent} calls {_line(item.name)} ({_line(item.call_id)})", item.arguments
        case FunctionCallOutput():
            verb = "fails" if item.is_error else "answers"
            return f"{_line(item.name)} {verb} ({_line(item.call_id)})", _content(item.output)
        case AgentHandoff():
            origin = f" from {_line(item.from_agent)}" if item.from_agent else ""
            return f"handoff{origin} to {_line(item.to_agent)}", item.reason or ""
        case AgentConfigUpdate():
            tools = [] if item.tools is None else [f"tools: {', '.join(item.tools) or 'none'}"]
            told = [] if item.instructions is None else [f"instructions: {item.instructions}"]
            return f"config{agent}", "\n".join((*tools, *told))
        case Compaction():
            return "summary", item.summary
        case _:
            return (f"assistant{agent} thinks", item.text) if item.text.strip() else None


def _content(parts: tuple[Part, ...]) -> str:
    return "\n".join(map(_part, parts))


def _part(part: Part) -> str:
    if isinstance(part, Image):
        size = f" of {part.width}×{part.height} pixels" if part.width and part.height else ""
        return f"[image{size}]"
    if isinstance(part, Document):
        title = f" {short_name(part.title, TITLE_SHOWN)}" if part.title else ""
        return f"[document{title}]" if part.text is None else f"[document{title}]\n{part.text}"
    return part.text


def _indented(text: str) -> str:
    return f"\n{INDENT}".join(text.splitlines())  # splits at all that any reader may take for the end of a line


def _line(text: str) -> str:
    return " ".join(text.split())
