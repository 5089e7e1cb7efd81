"""Compare our input and output limits of models with litellm's table, which is a list of its own.

    pip install litellm && python benchmarks/model_limits.py [FILE]

FILE is litellm's table; without it, that of the installed package. Prints each limit that differs, and the reason why ours stands, if
there is one. The exit status is 1 if there are differences without a reason.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from context_window.models import describe_model

TABLE = "model_prices_and_context_window_backup.json"
MAKERS = ("anthropic", "openai", "gemini", "deepseek", "xai", "moonshot", "mistral")
"""Providers of litellm's whose models are compared: those that sell their own."""
MODES = ("chat", "responses")
KNOWN = (
    (r"input gpt-5(-pro|\.1-codex|\.[45])", "litellm has the window, of which OpenAI keeps 128,000 for the answer"),
    (r"input deepseek", "litellm has the windows of later models of these names"),
    (r"output gpt-4(-0613)?$", "https://developers.openai.com/api/docs/models/gpt-4: 8,192"),
    (r"input gemini/gemini-omni|gemini/(gemma|lyria)|-tts$", "no maker states it for conversations"),
)
"""Patterns of `limit model`, and the reason why our figure stands."""


class Difference(NamedTuple):
    """A limit that differs. Amounts are tokens."""

    model: str
    limit: str
    ours: int
    theirs: int

    @property
    def reason(self) -> str:
        """The reason why ours is right; empty if the difference is not known."""
        return next((reason for pattern, reason in KNOWN if re.search(pattern, f"{self.limit} {self.model}")), "")


def differences(table: Mapping[str, Mapping[str, Any]]) -> Iterator[Difference]:
    """Yield the limits that both state and that differ."""
    for name, entry in sorted(table.items()):
        if entry.get("litellm_provider") not in MAKERS or entry.get("mode") not in MODES or name.startswith("ft:"):
            continue
        model = describe_model(name)
        for limit, ours, theirs in (
            ("input", model.input_limit, entry.get("max_input_tokens")),
            ("output", model.output_limit, entry.get("max_output_tokens")),
        ):
            if ours is not None and isinstance(theirs, int) and ours != theirs:
                yield Difference(name, limit, ours, theirs)


def compared(table: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the number of models of the table that we know too."""
    return sum(
        entry.get("litellm_provider") in MAKERS and entry.get("mode") in MODES and describe_model(name).window is not None
        for name, entry in table.items()
    )


def report(table: Mapping[str, Mapping[str, Any]]) -> tuple[str, int]:
    """Return the printed report, and the number of differences that are not known."""
    found = list(differences(table))
    lines = [f"{compared(table):,} models compared, {len(found):,} limits differ"]
    lines += [f"{one.model:48}{one.limit:8}{one.ours:>12,}{one.theirs:>12,}  {one.reason}" for one in found]
    return "\n".join(lines), sum(not one.reason for one in found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(description="Our limits of models against litellm's table.")
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="litellm's table")
    path: Path | None = parser.parse_args(arguments).file
    if path is None:
        package = find_spec("litellm")
        if package is None or package.origin is None:
            print("litellm is not installed; name a file with its table", file=sys.stderr)
            return 2
        path = Path(package.origin).parent / TABLE
    text, unknown = report(json.loads(path.read_text(encoding="utf-8")))
    print(text)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
