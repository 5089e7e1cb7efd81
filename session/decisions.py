"""The settled decisions of a conversation: a block at the end of its summary, carried word for word from summary to summary.

    Settled decisions:
    - The ledger stays in SQLite.
    - Tests are never edited.

A model that sums up its own summaries forgets a little each time. So the block does not depend on it: lines of earlier summaries that the
new one lacks are added again, unless it says that they no longer hold.
"""

from __future__ import annotations

from collections.abc import Iterable

HEADING = "Settled decisions:"
REVOKED = "revoked: "
MOST = 4_000
"""Characters of a block, so that it cannot crowd out the summary. The oldest decisions leave first."""
REQUEST = f"""\
End with a line that reads {HEADING} and below it a line for each decision that holds, beginning with "- ". Repeat those of earlier
summaries word for word. If one no longer holds, put "{REVOKED}" before its words.
"""


def decisions_of(summary: str) -> list[str]:
    """Return the lines of a summary's block, in order, without their dashes."""
    return _split(summary)[1]


def with_decisions(summary: str, earlier: Iterable[str]) -> str:
    """Return a summary with the decisions of earlier ones, in order, that it neither repeats nor revokes."""
    text, own = _split(summary)
    revoked = {line.removeprefix(REVOKED) for line in own if line.startswith(REVOKED)}
    lines = [*(line for other in earlier for line in decisions_of(other)), *(line for line in own if not line.startswith(REVOKED))]
    decisions = [line for line in dict.fromkeys(lines) if line not in revoked]
    while decisions and sum(map(len, decisions)) > MOST:
        del decisions[0]
    return "\n".join([*([text, ""] if text else []), HEADING, *(f"- {line}" for line in decisions)]) if decisions else text


def _split(summary: str) -> tuple[str, list[str]]:
    """Return a summary's text without its block, and the lines of the block."""
    lines = summary.splitlines()
    starts = [number for number, line in enumerate(lines) if line.strip(" #*") == HEADING]
    if not starts:
        return summary, []
    block = lines[starts[-1] + 1 :]
    count = next((number for number, line in enumerate(block) if line.strip() and not line.lstrip().startswith("- ")), len(block))
    decisions = [line.strip()[2:].strip() for line in block[:count] if line.strip()]
    rest = [*lines[: starts[-1]], *block[count:]]
    return "\n".join(rest).strip(), [line for line in decisions if line]
