"""Answers to a model that recalls: pages of a long content, and the lines of the whole log that match a query. Each has a largest size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

LONGEST_LINE = 2_000
"""Characters of a line that is cut into pieces in any case: any part of it can be asked for."""
AROUND = 2
"""Lines shown on each side of a line that matches."""
GAP = "…"
WORDS = 50
"""Different words of a query that are looked for. A model can write a hundred thousand."""


class Source(NamedTuple):
    """An item to search: what it is, with its id, and its lines."""

    heading: str
    lines: Sequence[str]


def lines_of(texts: Iterable[str], characters: int) -> list[str]:
    """Return the lines of some texts. One that is too long for a page with others is cut into pieces, which count as lines."""
    longest = min(LONGEST_LINE, max(1, characters // 4))
    lines = (line for text in texts for line in text.split("\n"))
    return [line[start : start + longest] for line in lines for start in range(0, max(1, len(line)), longest)]


def page(lines: Sequence[str], first: int, count: int | None, characters: int) -> str:
    """Return lines from number `first` on, counted from 1, and in a last line how to read on.

    At least one line, and at most `count`; None for as many as there is room for.
    """
    if first > len(lines):
        return f"[its last line is {len(lines):,}; pass a from_line of at most {len(lines)}]"
    end, size = first - 1, 0
    while end < len(lines) and (count is None or end < first - 1 + count):
        size += len(lines[end]) + 1
        if size > characters and end >= first:
            break
        end += 1
    rest = f"; pass from_line={end + 1} to read on" if end < len(lines) else ""
    return "\n".join([*lines[first - 1 : end], f"[lines {first:,} to {end:,} of {len(lines):,}{rest}]"])


def found(sources: Sequence[Source], query: str, characters: int) -> str | None:
    """Return the lines that match best, in the order of the log, each with its number and the lines around it; None if none matches.

    Lines that contain the query as it stands come before those that have its words.
    """
    hits = list(dict.fromkeys([*_literal(sources, query), *_ranked(sources, query)]))
    shown: dict[int, set[int]] = {}
    size = used = 0
    for source, line in hits:
        lines = sources[source].lines
        new = set(range(max(0, line - AROUND), min(len(lines), line + AROUND + 1))) - shown.get(source, set())
        size += sum(len(lines[number]) + 8 for number in new) + (0 if source in shown else len(sources[source].heading) + 4)
        if size > characters and used:
            break
        shown.setdefault(source, set()).update(new)
        used += 1
    if not hits:
        return None
    text = "\n".join(f"## {sources[source].heading}\n{_numbered(sources[source].lines, sorted(shown[source]))}" for source in sorted(shown))
    return text if used == len(hits) else f"{text}\n[{used:,} of {len(hits):,} lines that match; a longer query finds fewer]"


def _numbered(lines: Sequence[str], numbers: Sequence[int]) -> str:
    rows = [f"{numbers[0] + 1}: {lines[numbers[0]]}"]
    for before, number in pairwise(numbers):
        rows += [*([GAP] if number > before + 1 else []), f"{number + 1}: {lines[number]}"]
    return "\n".join(rows)


def _literal(sources: Sequence[Source], query: str) -> Iterator[tuple[int, int]]:
    """Yield the lines that contain the query, the newest item first."""
    wanted = query.strip().lower()
    for source in range(len(sources) - 1, -1, -1):
        for number, line in enumerate(sources[source].lines):
            if wanted and wanted in line.lower():
                yield source, number


def _ranked(sources: Sequence[Source], query: str) -> list[tuple[int, int]]:
    """Return the lines that have words of the query: those with all of them first, then the best by the ranking of SQLite's FTS5."""
    words = [f'"{word}"' for word in list(dict.fromkeys(re.findall(r"\w+", query.lower())))[:WORDS]]
    if not words:
        return []
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as base:
        try:
            base.execute("CREATE VIRTUAL TABLE line USING fts5 (text, source UNINDEXED, number UNINDEXED)")
        except sqlite3.OperationalError:  # a SQLite without FTS5: the query as it stands must do
            return []
        rows = ((line, at, number) for at, source in enumerate(sources) for number, line in enumerate(source.lines))
        base.executemany("INSERT INTO line VALUES (?, ?, ?)", ((_utf8(line), at, number) for line, at, number in rows))
        query_rows = "SELECT source, number FROM line WHERE line MATCH ? ORDER BY rank, source DESC, number LIMIT 200"
        return [hit for joint in (" AND ", " OR ") for hit in base.execute(query_rows, (joint.join(words),))]


def _utf8(text: str) -> str:
    return text.encode(errors="replace").decode()
