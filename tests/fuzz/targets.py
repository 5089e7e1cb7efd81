"""The table of targets: each is a reader of foreign data or a writer of its names, with its inputs and its check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from .checks import check_reader
from .gateway import answer_seeds, check_answer, check_request, request_seeds
from .lists import check_list, list_seeds
from .outputs import check_outputs, output_seeds
from .programs import check_mcp, check_recall, check_statusline, mcp_seeds, recall_seeds, statusline_seeds
from .seeds import Seed, make_seed, seeds

CORPUS = Path(__file__).parent / "corpus"
"""Mutants that once broke a promise, as files named TARGET.INPUT.NAME.mutant. Each is an input of its target."""

CHECKS: dict[str, Callable[[Seed, Any, int], str]] = {
    "readers": check_reader,
    "requests": check_request,
    "answers": check_answer,
    "statusline": check_statusline,
    "mcp": check_mcp,
    "recall": check_recall,
    "outputs": check_outputs,
    "lists": check_list,
}
"""The check of each target: takes a seed, its mutant and a number, and returns the outcome."""


@cache
def inputs(*, recorded: bool = True) -> tuple[Seed, ...]:
    """Return the inputs of all targets.

    Args:
        recorded: False to leave out excerpts of recorded transcripts.
    """
    own = (*request_seeds(), *answer_seeds(), *statusline_seeds(), *mcp_seeds(), *recall_seeds(), *output_seeds(), *list_seeds())
    return (*seeds(recorded=recorded), *own, *kept())


def kept() -> Iterator[Seed]:
    """Yield the mutants in the corpus."""
    for path in sorted(CORPUS.glob("*.mutant")):
        target, name, _ = path.name.split(".", 2)
        yield make_seed(name, "file", "bytes", path.read_bytes(), target)
