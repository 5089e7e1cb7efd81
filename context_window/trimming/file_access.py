"""Which file a tool call reads or writes, by the names of the tool and its arguments. Pure; knows no log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from posixpath import normpath

from session.json_strings import object_of

from .tool_rules import ToolRule

READERS = frozenset(
    ("read", "readfile", "read_file", "read_text_file", "fs_read", "view", "view_file", "viewfile", "open_file", "cat", "get_file_contents")
)
"""Names of tools that return the content of a file, in lower case."""
WRITERS = frozenset(("write", "writefile", "write_file", "write_to_file", "create", "create_file", "save_file", "fs_write"))
"""Names of tools that write a whole file."""
EDITORS = frozenset(("str_replace_based_edit_tool", "str_replace_editor", "text_editor", "editor"))
"""Names of tools whose argument `command` is the name of one of the others: `view` or `create`."""
PATHS = ("path", "file_path", "filepath", "filePath", "filename", "file_name", "file", "absolute_path", "target_file", "uri")
"""Arguments that name the file; the first one that is a text counts."""
HARMLESS = frozenset(("command", "description", "encoding", "explanation"))
"""Other arguments with which a read is still in full. Any other may choose a part of the file, such as `offset` or `view_range`."""


@dataclass(frozen=True, slots=True)
class FileAccess:
    """A file that a call reads or writes.

    Attributes:
        path: Its path, without `.` and double slashes.
        replaces: True if results of earlier calls about the file are no longer needed: it was read in full, or written.
    """

    path: str
    replaces: bool


def file_access(tool: str, arguments: str, rule: ToolRule | None = None) -> FileAccess | None:
    """Return the file that a call reads or writes; None if it does neither.

    Args:
        tool: Name of the tool. A prefix that ends in `__` or `.` is left out: `mcp__files__read_file` is `read_file`.
        arguments: Its arguments, as JSON.
        rule: The rule for the tool; its `reads` and `writes` come before the names that are known here.
    """
    name = tool.rpartition("__")[2].rpartition(".")[2].lower()
    known_by_rule = rule is not None and (rule.reads or rule.writes)
    if not (known_by_rule or name in READERS or name in WRITERS or name in EDITORS):
        return None
    values = object_of(arguments)
    if values is None:
        return None
    if rule is not None and known_by_rule:
        return _access(values, (rule.writes or rule.reads or "",), writes=rule.writes is not None)
    if name in EDITORS:
        name = str(values.get("command")).lower()
    return _access(values, PATHS, writes=name in WRITERS) if name in READERS or name in WRITERS else None


def is_writer(tool: str, arguments: str) -> bool:
    """True if the tool writes a whole file, by the names that are known here.

    Args:
        tool: As for `file_access`.
        arguments: As for `file_access`.
    """
    name = tool.rpartition("__")[2].rpartition(".")[2].lower()
    if name in EDITORS:
        name = str((object_of(arguments) or {}).get("command")).lower()
    return name in WRITERS


def _access(values: Mapping[str, object], names: tuple[str, ...], *, writes: bool) -> FileAccess | None:
    named = next(((name, value) for name in names if isinstance(value := values.get(name), str) and value.strip()), None)
    if named is None:
        return None
    other_names = (name for name, value in values.items() if value is not None and name != named[0])
    return FileAccess(normpath(named[1]), replaces=writes or all(name in HARMLESS for name in other_names))
