"""Renders usage reports and plans as plain or coloured text. The numbers are those of the report or plan; only the layout is made here.

`lines.py` fits text to widths, `charts.py` draws amounts, `usage.py`, `plan.py` and `models.py` arrange the content, `render.py` turns
lines into text. rich is imported only for colours.
"""

from __future__ import annotations

from ..trimming.plan import Plan
from ..usage.report import UsageReport
from .plan import PlanDisplay, plan_lines
from .render import Draw, Drawing, ansi_of, text_of
from .usage import usage_lines

__all__ = [
    "Draw",
    "Drawing",
    "PlanDisplay",
    "ansi_of",
    "plan_renderable",
    "plan_text",
    "text_of",
    "usage_ansi",
    "usage_renderable",
    "usage_text",
]


def usage_text(report: UsageReport, width: int | None = None) -> str:
    """Return the report as plain text.

    Args:
        report: The report.
        width: Columns. Default: the terminal's width, or 80 without a terminal.
    """
    return text_of(usage_draw(report), width)


def usage_ansi(report: UsageReport, width: int | None = None) -> str:
    """Return the report as text with ANSI colours. Prints nothing.

    Args:
        report: The report.
        width: Columns. Default: the terminal's width, or 80 without a terminal.
    """
    return ansi_of(usage_draw(report), width)


def usage_renderable(report: UsageReport) -> Drawing:
    """Return the report as a rich renderable, for a console of any width."""
    return Drawing(usage_draw(report))


def plan_text(plan: Plan | PlanDisplay, width: int | None = None) -> str:
    """Return the plan as plain text. `width` is that of `usage_text`."""
    return text_of(plan_draw(plan), width)


def plan_renderable(plan: Plan | PlanDisplay) -> Drawing:
    """Return the plan as a rich renderable, for a console of any width."""
    return Drawing(plan_draw(plan))


def usage_draw(report: UsageReport, *, brief: bool = False) -> Draw:
    """Return a function that draws the report. A brief report has no lists and notes."""
    return lambda width, glyphs: usage_lines(report, width, glyphs, brief=brief)


def plan_draw(plan: Plan | PlanDisplay) -> Draw:
    """Return a function that draws the plan."""
    display = plan if isinstance(plan, PlanDisplay) else PlanDisplay(plan)
    return lambda width, glyphs: plan_lines(display, width, glyphs)
