"""Writes small databases of tools."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def write_rows(path: Path, **tables: list[Json]) -> Path:
    """A database with these rows. A value that is a list or an object is stored as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        for table, rows in tables.items():
            names = list(dict.fromkeys(name for row in rows for name in row))
            database.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            for row in rows:
                values = [json.dumps(value) if isinstance(value, dict | list) else value for value in map(row.get, names)]
                database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", values)
        database.commit()
    return path
