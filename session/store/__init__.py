"""Sessions on disk: one SQLite file, or one schema of a PostgreSQL database, that holds many sessions.

Theory of operation. Comments in this folder refer to the numbers.

1. Layout. Table `journal` has one row per event of a session, and table `sessions` has one row per session: its title, its counts
   and the position of its last journal row. `sessions` only repeats what the journal says, so that listing is cheap. The file's
   `application_id` and `user_version` tell a store from any other SQLite file (`schema.py`). 1 to 9 say how a file is; 10 says how
   a server differs.
2. Rows are only added. A new item adds one row. An edit (a pin, an insertion, a truncation, a summary) adds a row for each new item
   and one `edit` row that says which runs of the old log and of the new items make up the log now (`journal.py`). No row is ever
   changed, and only `delete` removes rows: all of one session, overwritten with zeros.
3. Revisions. Because of (2) the log before every edit stays readable. Revision n is the log just before edit n; the last revision is
   the log now. Reading one replays the rows from the first to the edit that ended it (`replay.py`).
4. Checksums. Each row holds a CRC-32 over its session, number, kind, time and body, so a row that was damaged, or moved to another
   session or position, is found when it is read. Row numbers have no gaps and `sessions` holds the row count, so a missing row is
   found too. What rows say is still checked like data from a stranger: a checksum can be forged (`tables.py`, `replay.py`).
5. Concurrent writers. The file is in WAL mode: readers never wait for a writer, and writers take turns, waiting up to `busy_seconds`.
   A save continues from the row count it last saw. If another process has added rows since, the save raises StoreConflictError and
   writes nothing; the unique index on (session, number) would stop it in any case (`store.py`).
6. Crashes. A save is one transaction, flushed to the disk before it returns. After a crash or a power cut the file holds every save
   that returned, and of an interrupted save everything or nothing. The `…-wal` file next to the store is part of it: copy both. Where
   the file system cannot do WAL, SQLite uses a rollback journal instead: as safe, but readers and writers wait for each other.
7. Damage. Reading a damaged page or row raises StoreDamagedError with the session's id and the row, never a wrong session. The
   other sessions still load, and so do the damaged session's revisions that end before the damaged row:
   `load(id, revision=0)`, 1, … `list` and `latest` fail if a row of `sessions` is damaged; load by id then.
8. Recovery. Close the store everywhere, keep a copy of FILE and FILE-wal, and run

       sqlite3 FILE .recover | sqlite3 NEW

   Then open NEW with SessionStore. Opening takes in rows that SQLite could not assign to a table (`lost_and_found`) and rebuilds
   the rows of `sessions` that are lost or damaged (`recovered.py`). A session with a damaged or missing row is still listed and
   raises StoreDamagedError when it is loaded; everything else reads as before. One loss goes unnoticed: if a session's row in
   `sessions` and the last rows of its journal are both lost, nothing is left that says how long it was.
9. `.recover` needs a `sqlite3` program compiled with SQLITE_ENABLE_DBPAGE_VTAB. The downloads from sqlite.org have it; the packages
   of Debian 12 and Ubuntu 24.04 do not. Those print "SQL logic error" or "no such table: sqlite_dbpage" and leave NEW without any
   session. FILE is never changed by `.recover`. NEW is created with your umask: `chmod 600 NEW` if others use the machine.
10. PostgreSQL. The rows and their meaning are the same, in the schema `context_window`, whose table `store` holds the version. Texts are
    bytes there, since PostgreSQL's text holds no NUL. A writer takes a lock on its session alone, which ends with the transaction
    or the connection, so a killed writer leaves neither rows nor a lock. A commit waits until the server has flushed its log, even
    where the server is set otherwise. A connection lost during a commit leaves it unknown whether the rows are stored. Saving again
    finds out: if they are, it adds only what comes after them. Deleted rows are the server's to erase, and damage is repaired from
    a backup.

`store.py` has the public class, `stored_session.py` the session that saves itself, `tables.py` the SQL that both databases share and
`dialect.py` their differences. For SQLite, `file.py` has the connection and its transactions, `paths.py` the creation of the file and
`sqlite_errors.py` the translation of its errors; for PostgreSQL these are `server.py`, `postgres_url.py` and `postgres_errors.py`.
"""

from .store import Revision, SessionStore
from .stored_session import StoredSession
from .tables import SessionInfo

__all__ = ["Revision", "SessionInfo", "SessionStore", "StoredSession"]
