"""Fills in the templates of pages. Every value is printable and escaped, unless it is markup that a template has made."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from session.extras import install_line

from ..printable import printable_lines
from .chart import BANDS_MAX, Chart
from .shapes import HEIGHT, WIDTH, Shapes, amount_text, money_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

FOLDER = Path(__file__).parent


def chart_markup(chart: Chart) -> Markup:
    """Return a chart as a `figure`: the picture, the legend and the table of its amounts."""
    return filled("chart.html", FOLDER, chart=chart, shapes=Shapes(chart), width=WIDTH, height=HEIGHT)


def filled(name: str, folder: Path, **values: object) -> Markup:
    """Return a filled-in template.

    Args:
        name: The template's file name.
        folder: The folder of the template. It may use those of this room, too.
        values: The values of its fields.

    Raises:
        ModuleNotFoundError: The extra `pages` is not installed.
    """
    try:
        from markupsafe import Markup

        environment = _environment(folder)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"pages need more packages: {install_line('pages')}", name=error.name) from None
    return Markup(environment.get_template(name).render(**values))  # noqa: S704 - the template has escaped its values


@cache
def _environment(folder: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        finalize=_shown,
        loader=FileSystemLoader([folder, FOLDER]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals.update(chart_markup=chart_markup, styles=range(BANDS_MAX))
    environment.filters.update(amount=amount_text, money=money_text)
    return environment


def _shown(value: object) -> object:
    """Return a value as a page shows it: a text without characters that reverse or hide what stands around them."""
    from markupsafe import Markup

    return printable_lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value
