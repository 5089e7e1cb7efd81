"""Plain and coloured renderings of usage reports and plans. Numbers are taken from them as they are; layout only is made here.

`lines.py` fits text to widths, `cells.py` draws amounts, `usage.py` and `plan.py` say what stands where, `rendering.py` hands
it out. rich is imported only for colours.
"""

from __future__ import annotations

from ..trimming.plan import Plan
from ..usage import UsageReport
from .plan import PlanTold, draw_plan
from .rendering import Draw, Drawing, ansi_of, text_of
from .usage import draw_usage

__all__ = [
    "Draw",
    "Drawing",
    "PlanTold",
    "ansi_of",
    "plan_renderable",
    "plan_text",
    "text_of",
    "usage_ansi",
    "usage_renderable",
    "usage_text",
]


def usage_text(report: UsageReport, width: int | None = None) -> str:
    """The report as plain text.

    Args:
        report: What to show.
        width: Columns; the terminal's where not given, 80 where there is none.
    """
    return text_of(usage_draw(report), width)


def usage_ansi(report: UsageReport, width: int | None = None) -> str:
    """The report as text with ANSI colours. Prints nothing.

    Args:
        report: What to show.
        width: Columns; the terminal's where not given, 80 where there is none.
    """
    return ansi_of(usage_draw(report), width)


def usage_renderable(report: UsageReport) -> Drawing:
    """The report as something that rich prints, in a console of any width."""
    return Drawing(usage_draw(report))


def plan_text(plan: Plan | PlanTold, width: int | None = None) -> str:
    """The plan as plain text, as `usage_text`."""
    return text_of(plan_draw(plan), width)


def plan_renderable(plan: Plan | PlanTold) -> Drawing:
    """The plan as something that rich prints, in a console of any width."""
    return Drawing(plan_draw(plan))


def usage_draw(report: UsageReport, *, brief: bool = False) -> Draw:
    """The report, to be drawn; without its lists and notes where it is to be brief."""
    return lambda width, glyphs: draw_usage(report, width, glyphs, brief=brief)


def plan_draw(plan: Plan | PlanTold) -> Draw:
    """The plan, to be drawn."""
    told = plan if isinstance(plan, PlanTold) else PlanTold(plan)
    return lambda width, glyphs: draw_plan(told, width, glyphs)
