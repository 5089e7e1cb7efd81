"""`context-window demo`: the main job on the session that ships with the package."""

from __future__ import annotations

import click

EPILOG = """\b
Example:
  context-window demo
"""
SAMPLE = "sample_session.jsonl"
BUDGET = 32_000
"""Tokens to fit the sample into: few enough to need every kind of trim, enough to keep the conversation."""


@click.command(epilog=EPILOG)
def demo() -> None:
    """Trim a sample session, and explain each step. Needs no file, no key, no network."""
    from importlib.resources import as_file, files

    from session.transcripts import read_transcript

    from ..config import ContextWindow
    from ..display import PlanTold, plan_draw, usage_draw
    from ..manager import ContextWindowManager
    from .output import say, show
    from .telling import step

    with as_file(files("context_window") / "data" / SAMPLE) as path:
        session = read_transcript(path)
    model = session.metadata.get("model")
    manager = ContextWindowManager(model, context_window=ContextWindow(max_tokens=BUDGET))
    before = manager.usage(session, title="before")
    plan = manager.plan_session(session)
    view = manager.process_session(session)
    after = manager.usage(title="after")

    log, seen = f"{len(session.items):,} items", f"{len(view.items):,} items"
    show(
        step(
            1,
            f"A coding assistant's log: {log}, {before.total:,} tokens if sent as it is. Say a prompt may have {BUDGET:,}.",
            "The cells show what fills it. A category's share is what it may keep when room is short.",
        )
    )
    show(usage_draw(before, brief=True))
    show(
        step(
            2,
            "The plan. Nothing is done yet.",
            "The least important goes first, the oldest first: tool outputs become one line with an id to recall them by, then whole calls "
            "go with their results. Older images become placeholders. What the model is about to read stays.",
        )
    )
    show(plan_draw(PlanTold(plan, brief=True)))
    show(
        step(
            3,
            f"What the model is shown: {seen}.",
            "A trim goes further than it must: then many turns change nothing, and the prompt cache stays warm.",
        )
    )
    show(usage_draw(after, brief=True))
    show(step(4, f"The log itself is as it was: {log}. Now yours:"))
    for line in (
        "usage ~/.claude/projects/*/*.jsonl",
        "plan LOG --max-tokens 32000",
        "process LOG --max-tokens 32000 -o OUT",
    ):
        say(f"   context-window {line}")
