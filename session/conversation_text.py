"""Renders a conversation as text, for a summarizer or for a model that accepts no history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from .errors import FormatError, short
from .items import (
    ITEM_TYPES,
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    checked_iterable,
)
from .parts import Document, Image, Part
from .printable import short_name

INDENT = "  "
QUOTE = "> "
TITLE_SHOWN = 200
ROWS_SHOWN, TEXT_SHOWN = 100, 500
"""Items that a table shows, and characters of each."""


def render_items(items: Iterable[Item]) -> str:
    """Render the conversation as text, one item after the other.
        user: What is in main.py?
        assistant calls read_file (call_1): {"path": "main.py"}
        read_file answers (call_1):
          > print("hello")

    A line that begins without white space begins an item: further lines of a text are indented. Each line of a tool's output is quoted, so
    that no output looks like anything else. Images and documents appear by name
    only. Encrypted reasoning is left out.

    Args:
        items: The items, in order.

    Raises:
        FormatError: A value is not an item.
    """
    return "\n".join(_rendered(checked_iterable(items, "render_items")))


def items_table(title: str, items: Sequence[Item]) -> str:
    """Return the items as an HTML table for a notebook, a row each; of a long log the last ones. All texts are escaped and cut."""
    first = max(0, len(items) - ROWS_SHOWN)
    rows = []
    for index in range(first, len(items)):
        heading, text = _heading_and_text(items[index]) or ("assistant thinks", "")
        cut = text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]}…"
        rows.append("".join(f'<td style="text-align: left">{escape(cell)}</td>' for cell in (str(index), heading, cut)))
    earlier = f"<p>{first} earlier items</p>" if first else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<p>{escape(title)}</p>{earlier}<table><tr><th></th><th>item</th><th>content</th></tr>{body}</table>"


def _rendered(items: Iterable[Item]) -> Iterator[str]:
    for position, item in enumerate(items):
        if type(item) not in ITEM_TYPES:
            raise FormatError(f"render_items[{position}]", f"{short(item)} is not an item; pass `session.items`")
        heading_and_text = _heading_and_text(item)
        if heading_and_text is not None:
            heading, text = heading_and_text
            if isinstance(item, FunctionCallOutput) and text:
                quoted = "\n".join(f"{QUOTE}{line}" for line in text.splitlines())
                yield f"{heading}:\n{INDENT}{_indented(quoted)}"
            else:
                yield f"{heading}: {_indented(text)}" if text else f"{heading}:"


def _heading_and_text(item: Item) -> tuple[str, str] | None:
    """Return who speaks and the text, or None if there is nothing to show."""
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
            instructions = [] if item.instructions is None else [f"instructions: {item.instructions}"]
            return f"config{agent}", "\n".join((*tools, *instructions))
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
    return f"\n{INDENT}".join(text.splitlines())  # splits at everything that some reader takes for a line break


def _line(text: str) -> str:
    return " ".join(text.split())
