"""Sessions on disk: one SQLite file of many, to which is only added.

`store.py` is what users meet, `stored.py` a session that is written as it changes. `journal.py` says what the rows mean, `replay.py`
reads them back; `schema.py` says what the tables are, `tables.py` reads and writes them. `file.py` keeps the file, `paths.py`
makes it, `complaints.py` says what SQLite has against it. `salvaging.py` and `pages.py` read a damaged one without SQLite.
"""

from .salvaging import Salvage, Salvaged, salvage
from .store import Revision, SessionStore
from .stored import StoredSession
from .tables import SessionInfo

__all__ = ["Revision", "Salvage", "Salvaged", "SessionInfo", "SessionStore", "StoredSession", "salvage"]
