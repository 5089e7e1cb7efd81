"""What a request's prompt was made of: tokens by reason, worked out from a session's items. It holds no content."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """Tokens of a prompt that are there for one reason.

    Attributes:
        kind: The reason, such as `shell commands`.
        call: The tool that was called; empty if none was.
        detail: The command, the skill or the MCP server; empty for other kinds.
        read: Tokens read from the cache.
        lost: Tokens that the cache had held for the request before, and were paid for again.
        paid: The other tokens.
    """

    kind: str
    call: str
    detail: str
    read: int
    lost: int
    paid: int


class Makeup(NamedTuple):
    """What a prompt was made of, and what came of it.

    Attributes:
        parts: Its tokens by reason. Those of the prompt that no part has belong to what the log does not hold.
        lost: Tokens of the prompt that the cache had held for the request before, and were paid for again.
        cause: Why; empty if none were lost.
        commit: The commit that the work went into: its hash and subject; empty if none followed.
        pull_request: The address of the pull request; empty if there is none.
    """

    parts: tuple[Part, ...]
    lost: int = 0
    cause: str = ""
    commit: str = ""
    pull_request: str = ""
