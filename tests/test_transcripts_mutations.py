"""Fuzzing without Hypothesis, for numbers that it is too slow for: small logs of every format, their lines mutated at random.

    CONTEXT_WINDOW_MUTATIONS=1000000 pytest tests/test_transcripts_mutations.py -n auto

asks a million mutated lines (half an hour of one core); without the variable, some thousands. A failure names the seed that
makes it again: `CONTEXT_WINDOW_MUTATIONS_SEED=3.17 pytest …`.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from session import SessionError
from session.transcripts import read_account
from session.transcripts.detect import FORMATS, LIKELY, TEXTS
from session.units import grouping
from tests.properties.test_provider_valid import FORMATS as PROVIDERS
from tests.support.claude_lines import a_bit_of_everything
from tests.support.tool_logs import DOCUMENTS, LINES
from tests.test_transcripts_aider import BEGUN, TALK
from tests.test_transcripts_lists_fuzz import LOGS

MUTATIONS = int(os.environ.get("CONTEXT_WINDOW_MUTATIONS", "4000"))
"""Lines to be mutated, over all workers."""
WORKERS = 8
"""Tests that share the work, so that several cores can."""
SEED = os.environ.get("CONTEXT_WINDOW_MUTATIONS_SEED")

BATCH = 4
"""Mutations of one log, at most: more, and hardly any format knows it for its own."""


def saved() -> dict[str, Any]:
    from tests.support.screens import long_session

    data = long_session().to_dict()
    return {**data, "items": data["items"][:12]}


def by_line(records: list[Any]) -> Callable[[], str]:
    return lambda: "\n".join(json.dumps(record) for record in records)


def as_document(document: Any) -> Callable[[], str]:
    return lambda: json.dumps(document, indent=1)


SEEDS: dict[str, Callable[[], str]] = {
    "claude_code": lambda: "\n".join(a_bit_of_everything().lines),
    "session_json": lambda: json.dumps(saved(), indent=1),
    "aider": lambda: BEGUN + TALK,
    **{name: by_line(make()) for name, make in LINES.items()},
    **{name: as_document(make()) for name, make in DOCUMENTS.items()},
    **{name: as_document(log) for name, log in LOGS.items()},
    "requests": by_line([LOGS["anthropic"], LOGS["responses"], LOGS["google"]]),
}

WORDS = ("", "a", "user", "assistant", "tool", "text", "REDACTED", "\ud800", "\0", "x" * 3_000, "data:image/png;base64,AAAA", "2026-02-30")
KEYS = ("type", "role", "content", "id", "text", "parts", "messages", "usage", "timestamp", "payload", "name", "tool_calls", "")


TEXTS_OF_SEEDS = [(name, make()) for name, make in SEEDS.items()]


def anything(chance: random.Random, depth: int = 0) -> Any:
    """A value of any kind."""
    kind = chance.randrange(10)
    if kind < 3:
        return chance.choice(WORDS)
    if kind < 5:
        return chance.choice((None, True, False, 0, -1, 7, 10**30, 1.5, float("nan"), float("inf")))
    if depth > 3:
        return []
    if kind == 5:
        deep: Any = {}
        for _ in range(chance.choice((1, 30, 400))):
            deep = [deep] if chance.random() < 0.5 else {"content": deep}
        return deep
    if kind < 8:
        return [anything(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): anything(chance, depth + 1) for _ in range(chance.randrange(4))}


def holders(value: Any) -> list[Any]:
    """Every object and list inside that has something in it."""
    found, todo = [], [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict | list) and one:
            found.append(one)
            todo.extend(one.values() if isinstance(one, dict) else one)
    return found


def mutate_values(chance: random.Random, value: Any) -> Any:
    """The value with one thing inside it replaced, taken out, doubled, or moved."""
    places = holders(value)
    if not places:
        return anything(chance)
    holder = chance.choice(places)
    key = chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
    match chance.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, json.loads(json.dumps(holder[key])))
        case 2 if isinstance(holder, list):
            chance.shuffle(holder)
        case 3:
            other = chance.choice(places)
            holder[key] = json.loads(json.dumps(other[chance.choice(list(other))] if isinstance(other, dict) else chance.choice(other)))
        case 4 if isinstance(holder, dict):
            holder[chance.choice(KEYS)] = anything(chance)
        case _:
            holder[key] = anything(chance)
    return value


def mutate_bytes(chance: random.Random, raw: bytes) -> bytes:
    """The bytes with some lost, added, changed, or said twice."""
    start = chance.randrange(len(raw) + 1)
    length = chance.choice((0, 1, 1, 3, 40))
    match chance.randrange(4):
        case 0:
            return raw[:start] + raw[start + length :]
        case 1:
            return raw[:start] + chance.randbytes(length) + raw[start:]
        case 2:
            return raw[:start] + raw[start : start + 200] + raw[start:]
    return raw[:start]


def mutated(chance: random.Random, text: str) -> tuple[bytes, int]:
    """A log with some of its lines mutated, and how many."""
    count = chance.randint(1, BATCH)
    lines: list[Any] = text.split("\n")
    for _ in range(count):
        place = chance.randrange(len(lines))
        match chance.randrange(8):
            case 0:
                lines.insert(place, lines[chance.randrange(len(lines))])
            case 1:
                lines[place] = mutate_bytes(chance, lines[place].encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
            case 2 if len(lines) > 1:
                del lines[place]
            case _:
                lines = mutate_line_or_document(chance, lines, place)
    raw = "\n".join(lines).encode("utf-8", "surrogatepass") if lines else b""
    return raw, count


def mutate_line_or_document(chance: random.Random, lines: list[str], place: int) -> list[str]:
    """The lines with a value changed: on one line, or in the document that all of them are."""
    try:
        lines[place] = json.dumps(mutate_values(chance, json.loads(lines[place])))
    except (ValueError, RecursionError):
        try:
            return json.dumps(mutate_values(chance, json.loads("\n".join(lines))), indent=1).split("\n")
        except (ValueError, RecursionError):
            lines[place] = lines[place][: len(lines[place]) // 2]
    return lines


def check(path: Path, chance: random.Random) -> str:
    """Reads the file: every item is told of once, every record says what became of it, what was read can be saved and sent."""
    try:
        account = read_account(path)
    except SessionError:
        return "refused"
    told = sorted(item_id for record in account.lines for item_id in record.items)
    assert told == sorted(item.id for session in account.sessions for item in session.items)
    assert all(record.items or record.reason for record in account.lines)
    for session in account.sessions[:2]:
        grouping(session)
        json.dumps(session.to_dict(), allow_nan=False).encode()
        convert, _ = PROVIDERS[chance.choice(list(PROVIDERS))]
        json.dumps(convert(session), allow_nan=False).encode()
    return account.format


def test_every_format_has_a_log_here(tmp_path: Path) -> None:
    path = tmp_path / "log"
    found = set()
    for text in SEEDS.values():
        path.write_bytes(text().encode("utf-8", "surrogatepass"))
        found.add(read_account(path).format)
    assert found == {one.NAME for one in (*FORMATS, *LIKELY, *TEXTS)}


def tried(path: Path, worker: int, number: int) -> tuple[str, int]:
    """What became of one mutated log, and how many lines were mutated."""
    seed = f"{worker}.{number}"
    chance = random.Random(seed)
    name, text = TEXTS_OF_SEEDS[number % len(TEXTS_OF_SEEDS)]
    raw, count = mutated(chance, text)
    path.write_bytes(raw)
    try:
        return check(path, chance), count
    except Exception as error:
        error.add_note(f"seed {seed}, from a log of {name}: {raw[:2_000]!r}")
        raise


@pytest.mark.no_cover  # the mutations are drawn
@pytest.mark.parametrize("worker", range(WORKERS))
def test_mutated_lines_let_only_our_errors_out(tmp_path: Path, worker: int) -> None:
    path = tmp_path / "log"
    if SEED is not None:
        tried(path, *map(int, SEED.split(".")))
        return
    results: Counter[str] = Counter()
    done = number = 0
    while done < MUTATIONS // WORKERS:
        result, count = tried(path, worker, number)
        results[result] += 1
        done += count
        number += 1
    assert results["refused"] < results.total() / 2
