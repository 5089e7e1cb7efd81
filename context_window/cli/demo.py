"""`context-window demo`: usage, plan and view of the sample session that ships with the package, explained step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..display.glyphs import Glyphs
    from ..display.lines import Line
    from ..display.render import Draw

EPILOG = """\b
Example:
  context-window demo
"""
SAMPLE = "sample_session.jsonl"
BUDGET = 32_000
"""Tokens to fit the sample into: few enough to need every kind of trim, enough to keep the conversation."""


@click.command(epilog=EPILOG)
def demo() -> None:
    """Trim a sample session and explain each step. Needs no file, no key and no network."""
    from importlib.resources import as_file, files

    from session.transcripts import read_transcript

    from ..display.plan import PlanDisplay, plan_draw
    from ..display.usage import usage_draw
    from ..manager import ContextWindowManager
    from ..settings.context_window import ContextWindow
    from .output import say, show

    with as_file(files("context_window") / "data" / SAMPLE) as path:
        session = read_transcript(path)
    model = session.metadata.get("model")
    manager = ContextWindowManager(model, context_window=ContextWindow(max_tokens=BUDGET))
    before = manager.usage(session, title="before")
    plan = manager.plan_session(session)
    view = manager.process_session(session)
    after = manager.usage(title="after")

    log_size, view_size = f"{len(session.items):,} items", f"{len(view.items):,} items"
    show(
        _step(
            1,
            f"The log of a coding assistant: {log_size}, {before.total:,} tokens in all. Suppose the model takes {BUDGET:,}.",
            "The cells show what fills the window. A category's share is what it may keep when space is short.",
        )
    )
    show(usage_draw(before, brief=True))
    show(
        _step(
            2,
            "The plan. Nothing has been changed yet.",
            "The least important items go first, and the oldest of those. Tool outputs are cleared: one line stays, with an id to "
            "recall the output by. If that is not enough, whole calls are dropped with their outputs. Older images become "
            "placeholders. What the model is about to read stays as it is.",
        )
    )
    show(plan_draw(PlanDisplay(plan, brief=True)))
    show(
        _step(
            3,
            f"What the model sees: {view_size}.",
            "A trim removes more than it must, so that the next turns need no trim and keep hitting the provider's prompt cache.",
        )
    )
    show(usage_draw(after, brief=True))
    show(_step(4, f"The log itself has not changed: {log_size}. Now try your own:"))
    for line in (
        "usage ~/.claude/projects/*/*.jsonl",
        "plan LOG --max-tokens 80000",
        "process LOG --max-tokens 80000 -o OUT",
    ):
        say(f"   context-window {line}")


def _step(number: int, text: str, explanation: str = "") -> Draw:
    """Return a numbered paragraph with an explanation in a quieter style. Its lines are indented below the number."""
    from ..display.glyphs import QUIET, STRONG
    from ..display.lines import Span, wrapped
    from ..display.usage import WIDEST

    def draw(width: int, glyphs: Glyphs) -> list[Line]:
        room = min(width, WIDEST) - 3
        spans = [Span(line, STRONG) for line in wrapped(text, room, glyphs)]
        spans += [Span(line, QUIET) for line in wrapped(explanation, room, glyphs) if explanation]
        lines = [[Span(f"{number}. " if index == 0 else "   ", "bold cyan"), span] for index, span in enumerate(spans)]
        return [*([[]] if number > 1 else []), *lines, []]

    return draw
