"""Files that the chat's commands read and write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .output import BadInputError

if TYPE_CHECKING:
    from session.session import Session


class Files:
    """Reads sessions from files and writes them. A transcript that was read is never overwritten."""

    def __init__(self, transcripts: Iterable[str] = (), read_files_below: str | None = None) -> None:
        """
        Args:
            transcripts: Paths that must not be overwritten.
            read_files_below: The folder in which images may be read that a session names by path; None for no folder.
        """
        self._transcripts = list(transcripts)
        self._read_files_below = read_files_below

    def read(self, path: str) -> Session:
        """Return the session in a file.

        Raises:
            TranscriptError: It cannot be read, or is no transcript.
            ChatError: It holds several sessions.
        """
        from ..repl.chat import ChatError
        from .reading import read

        try:
            transcript = read(path, None, self._read_files_below)
        except BadInputError as error:
            raise ChatError(error.message) from None
        if transcript.equals > 1:
            several = f"{transcript.name} holds {transcript.equals:,} sessions"
            raise ChatError(f"{several}; `context-window chat --replay` with --session ID shows one of them")
        if not transcript.is_saved_session:
            self._transcripts.append(path)
        return transcript.session

    def write(self, session: Session, path: str, force: bool) -> None:
        """Write the session to a file: all of it, or nothing that stays.

        Args:
            session: The session.
            path: The file. An empty file is replaced, and so is a save of the same session that holds nothing else.
            force: True to replace any other file too.

        Raises:
            ChatError: It cannot be written, or must not be replaced.
        """
        from ..repl.chat import ChatError
        from .payloads import SESSION, payload_of
        from .saving import Target

        forced = f"/save --force {path} replaces it"
        try:
            target = Target(path, self._transcripts, session=True, force=force, instead="pass", forced=forced)
            target.permit(session)
            target.write(payload_of(session, SESSION).content)
        except BadInputError as error:
            raise ChatError(error.message) from None
