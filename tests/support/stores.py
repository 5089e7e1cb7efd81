"""Stores as tests look into them."""

import sqlite3

from session.store import SessionStore
from session.store.file import StoreFile


def raw(store: SessionStore) -> sqlite3.Connection:
    """Return the connection of a store in a file."""
    assert isinstance(store._database, StoreFile)
    return store._database._connection


def hurried(store: SessionStore) -> SessionStore:
    """Return the store without flushing a file to the disk, which would slow down hundreds of examples."""
    if isinstance(store._database, StoreFile):
        raw(store).execute("PRAGMA synchronous = OFF")
    return store
