"""Damaged databases of Goose and crush: every value is accounted for, and every fault is an error with a name."""

from __future__ import annotations

import json
import marshal
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.spend import read_ledger
from session import TranscriptError
from session.transcripts import read_account
from tests.fuzz.checks import check_database
from tests.fuzz.mutations import Mutator
from tests.fuzz.seeds import Seed
from tests.support.databases import write_rows
from tests.support.tool_logs import check_account
from tests.transcripts import test_transcripts_crush as crush
from tests.transcripts import test_transcripts_goose as goose
from tests.transcripts import test_transcripts_hermes as hermes


def _goose(folder: Path) -> Path:
    ledger = [goose.ledger(1, input_tokens=5, output_tokens=6)]
    return write_rows(folder / "sessions.db", sessions=[goose.SESSION], messages=goose.MESSAGES, usage_ledger=ledger)


WRITERS: dict[str, Callable[[Path], Path]] = {"goose": _goose, "crush": crush.database, "hermes": hermes.database}
TABLES = {"goose": ("sessions", "messages", "usage_ledger"), "crush": ("sessions", "messages"), "hermes": ("sessions", "messages")}


@pytest.mark.no_cover
@given(st.sampled_from(sorted(WRITERS)), st.integers(0, 1 << 32))
def test_damaged_values_are_accounted_for(tmp_path_factory: pytest.TempPathFactory, name: str, seed: int) -> None:
    chance = Random(seed)
    path = WRITERS[name](tmp_path_factory.mktemp("damaged"))
    table = chance.choice(TABLES[name])
    with closing(sqlite3.connect(path)) as database, database:
        database.row_factory = sqlite3.Row
        rows = [dict(row) for row in database.execute(f"SELECT rowid AS place, * FROM {table}").fetchall()]
        row = chance.choice(rows)
        column = chance.choice([column for column in row if column != "place"])
        value = row[column]
        is_json = isinstance(value, str) and value[:1] in ("[", "{")
        seeded = Seed("", "value", "document", marshal.dumps([json.loads(value) if is_json else value]))
        mutated = Mutator(chance, recorded=False).mutant(seeded)
        new = mutated[0] if isinstance(mutated, list) and mutated else mutated
        with suppress(ValueError, RecursionError, TypeError, OverflowError, sqlite3.Error):  # a value that neither JSON nor SQLite can hold
            database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (json.dumps(new) if is_json else new, row["place"]))
    check_database(path, seed)


@pytest.mark.no_cover
@given(st.sampled_from(sorted(WRITERS)), st.integers(0, 1 << 20), st.binary(min_size=1, max_size=200), st.booleans())
def test_damaged_bytes_are_an_error_with_a_name(
    tmp_path_factory: pytest.TempPathFactory, name: str, place: int, damage: bytes, is_cut: bool
) -> None:
    path = WRITERS[name](tmp_path_factory.mktemp("damaged"))
    raw = bytearray(path.read_bytes())
    offset = place % len(raw)
    raw[offset : offset + len(damage)] = damage[: len(raw) - offset]
    path.write_bytes(raw[:offset] if is_cut else raw)
    with suppress(TranscriptError):
        check_account(read_account(path))
    read_ledger([path])
