"""Session logs that coding tools write, read into sessions.

One reader for each format, in a file or a package of its own; `detect.py` lists them. What became of each line is in `account.py`.
"""

from .account import LineRecord, TranscriptAccount
from .detect import read_account, read_transcript, read_transcripts

__all__ = ["LineRecord", "TranscriptAccount", "read_account", "read_transcript", "read_transcripts"]
