"""Read the session logs that coding tools write.

    session = read_transcript("~/.claude/projects/my-project/0d3c….jsonl")

How a transcript becomes a session:

1. Detect. `detect.py` finds the first JSON value that one of the registered formats recognizes with its `claims` function.
2. Read. The format's `read` function gets a `Source` (`source.py`): the file as a stream of JSON lines, as
   one JSON document, or as text. `record_feed.py` passes the lines or entries to the format's reader, one record at a time.
3. Interpret. The reader decides what each record means: an item, a copy of something in another record, metadata, or nothing
   that the model saw. Most formats pass messages on to `writer.py`, which knows the providers' message styles.
4. Draft. The reader puts items into a `Draft` (`draft.py`). The draft makes ids unique, groups the items of a response,
   attaches reported usage, undoes what the user took back, and resolves what each compaction replaces (`compactions.py`).
   Claude Code is the exception: its records form a tree, which `claude_code/` sorts into conversations first.
5. Account. `finish` turns the drafts into a `TranscriptAccount` (`account.py`): the sessions, and the fate of every line. A
   damaged line never stops the reading. It is counted and mentioned in `session.metadata["warnings"]`.

To support another log format, write a module (or package) with `NAME`, `claims` and `read`, as described by `Format` in
`detect.py`, and add it to a list of formats there. `swe_agent.py` is a short example. Add a sample of the
format to `tests/fuzz/seeds.py`, and its name to the README and to the help of the command line. Tests check that none is missing.
"""

from .account import LineRecord, TranscriptAccount
from .detect import read_account, read_transcript, read_transcripts

__all__ = ["LineRecord", "TranscriptAccount", "read_account", "read_transcript", "read_transcripts"]
