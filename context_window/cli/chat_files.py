"""Session files of the chat's commands, such as /save and /load."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .output import BadInputError

if TYPE_CHECKING:
    from session.session import Session


class ChatFiles:
    """Reads and writes sessions. A transcript that was read is never overwritten."""

    def __init__(self, transcripts: Iterable[str] = (), read_files_below: str | None = None) -> None:
        """
        Args:
            transcripts: Paths that must not be overwritten.
            read_files_below: Folder from which images that a session names by path are read; None for no folder.
        """
        self._transcripts = list(transcripts)
        self._read_files_below = read_files_below

    def read(self, path: str) -> Session:
        """Return the session in a file.

        Raises:
            TranscriptError: The file cannot be read, or is not a transcript.
            ChatError: The file holds several sessions.
        """
        from ..repl.chat import ChatError
        from .read_transcript import read

        try:
            transcript = read(path, None, self._read_files_below)
        except BadInputError as error:
            raise ChatError(error.message) from None
        if transcript.main_count > 1:
            problem = f"{transcript.name} holds {transcript.main_count:,} sessions"
            raise ChatError(f"{problem}; to see one of them, run `context-window chat --replay` with --session ID")
        if not transcript.is_saved_session:
            self._transcripts.append(path)
        return transcript.session

    def write(self, session: Session, path: str, force: bool) -> None:
        """Write the session to a file, completely or not at all.

        Args:
            session: The session.
            path: The file.
            force: True to replace an existing file.

        Raises:
            ChatError: The file cannot be written or must not be replaced.
        """
        from ..repl.chat import ChatError
        from .export import SESSION, export
        from .safe_write import Target

        try:
            Target(path, self._transcripts, force=force).write(export(session, SESSION).content)
        except BadInputError as error:
            raise ChatError(error.message) from None
