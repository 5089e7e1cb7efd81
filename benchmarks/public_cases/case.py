"""One case: a recipe, what is right, and the verdict on what was found."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Number
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from context_window import ContextWindowWarning

ROUGH = 0.1
"""Part by which a figure may differ and still be rough rather than wrong."""


class Case(NamedTuple):
    """A case.

    Attributes:
        find: Takes an empty folder, and returns what our code finds.
        expected: What is right.
        note: What to know about it; empty if nothing.
    """

    find: Callable[[Path], object]
    expected: object
    note: str = ""


def verdict_on(case: Case, kept: Path | None = None) -> tuple[str, object]:
    """Return the verdict, `right`, `rough` or `wrong`, and what was found. A fault of our code is wrong.

    Args:
        case: The case.
        kept: An empty folder for its logs. Default: one that does not stay.
    """
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextWindowWarning)  # what is mended is said, and that is not what a case is about
        try:
            found = case.find(kept or Path(folder))
        except Exception as error:
            return "wrong", f"{type(error).__name__}: {error}"
    if found == case.expected:
        return "right", found
    pairs = list(zip(_figures(found), _figures(case.expected), strict=False))
    is_near = bool(pairs) and len(_figures(found)) == len(_figures(case.expected)) and all(abs(a - b) <= ROUGH * abs(b) for a, b in pairs)
    return "rough" if is_near else "wrong", found


def _figures(value: object) -> list[Any]:
    values = value if isinstance(value, tuple) else (value,)
    return [figure for figure in values if isinstance(figure, Number) and not isinstance(figure, bool)]
