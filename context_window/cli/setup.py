"""`context-window setup`: writes our part into an assistant's settings, and takes it out again."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import click

from session.opening import read_regular

from ..gateway.client_settings import codex_provider, opencode_providers, toml_fields
from ..printable import printable
from .output import BadInputError, complain, say
from .safe_write import replace_file

EPILOG = """\b
Examples:
  context-window setup claude-code
  context-window setup codex --gateway --mcp
  context-window setup claude-code --undo
"""
BACKUP, MISSING = ".before-context-window", b"\0missing"
"""Ends the name of the file that holds what was there before; and its content if there was nothing."""
GATEWAY = "http://127.0.0.1:8383"
MCP = ["context-window", "mcp"]
Change = Callable[[str], str]
"""Makes an assistant's settings with one part of ours of those without it, as text."""


class Setup(NamedTuple):
    """What can be written for an assistant.

    Attributes:
        path: Its settings, below the home folder.
        read: Reads them.
        parts: What they become, by part: `always`, `gateway` and `mcp`.
    """

    path: str
    read: Callable[[str], Any]
    parts: Mapping[str, Change]

    def changed(self, text: str, names: Sequence[str]) -> str:
        """Return settings with these parts of ours, those that there are.

        Raises:
            ValueError: The settings cannot be read, or have something of the user's in the same place.
        """
        for name, change in self.parts.items():
            text = change(text) if name in names else text
        return text


@click.command(epilog=EPILOG)
@click.argument("assistant", type=click.Choice(("claude-code", "codex", "gemini", "opencode")))
@click.option("--gateway", "has_gateway", is_flag=True, help=f"Send its requests to a gateway on this machine, at {GATEWAY}.")
@click.option("--mcp", "has_mcp", is_flag=True, help="Let it look into the log of its own session.")
@click.option("--yes", "is_agreed", is_flag=True, help="Write without asking.")
@click.option("--undo", "is_undone", is_flag=True, help="Restore the settings as they were before, byte for byte.")
def setup(assistant: str, *, has_gateway: bool, has_mcp: bool, is_agreed: bool, is_undone: bool) -> None:
    """Write our part into an assistant's settings, after showing it.

    For Claude Code the status line; for Gemini CLI the kind of its key, without which it reaches no gateway; and what the options name.
    With --gateway its requests need a gateway that runs: context-window gateway. A client that the gateway starts needs none of it.

    What was there before is kept beside the settings, for --undo.
    """
    chosen = SETUPS[assistant]
    path = Path.home() / chosen.path
    backup = path.with_name(path.name + BACKUP)
    names = ["always", *["gateway"] * has_gateway, *["mcp"] * has_mcp]
    if not is_undone:
        _check(assistant, names)
    try:
        if is_undone:
            _undo(path, backup, chosen)
            return
        old = read_regular(path) if path.exists() else None
        new = chosen.changed("" if old is None else old.decode(), names).encode()
        if new == (old or b""):
            say(printable(f"{path} has it already"))
            return
        for line in difflib.unified_diff((old or b"").decode().splitlines(), new.decode().splitlines(), str(path), str(path), lineterm=""):
            say(printable(line))
        _say_replaced(chosen.read("" if old is None else old.decode()), chosen.read(new.decode()), backup)
        if not is_agreed and not click.confirm("Write this?", err=True):
            say("nothing was written")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if not backup.exists():
            replace_file(backup, MISSING if old is None else old)
        replace_file(path, new)
    except OSError as error:
        raise BadInputError(f"{printable(str(error.filename or path))} cannot be used: {error.strerror or error}") from error
    except ValueError as error:
        raise BadInputError(f"{printable(str(path))} was not changed: {printable(str(error))}") from error
    say(printable(f"wrote {path}; context-window setup {assistant} --undo restores it"))


def _check(assistant: str, names: Sequence[str]) -> None:
    """Raise `BadInputError` if a part cannot be written for an assistant, or nothing would be."""
    parts = SETUPS[assistant].parts
    for name in names[1:]:
        if name not in parts:
            raise BadInputError(f"setup cannot write this for {assistant}: run {INSTEAD[assistant, name]}")
    if names == ["always"] and "always" not in parts:
        raise BadInputError(f"{assistant} needs no settings of ours; pass {' or '.join(f'--{name}' for name in parts)}")


def _undo(path: Path, backup: Path, chosen: Setup) -> None:
    """Restore the settings.

    Raises:
        BadInputError: There is nothing to restore, or the settings were changed by somebody else since.
        OSError: A file cannot be used.
        ValueError: The settings cannot be read.
    """
    if not backup.exists():
        raise BadInputError(f"{printable(str(path))} was not changed by setup")
    old = read_regular(backup)
    if path.exists():
        written, text = chosen.read(read_regular(path).decode()), "" if old == MISSING else old.decode()
        choices = (names for count in range(len(chosen.parts) + 1) for names in combinations(chosen.parts, count))
        if all(chosen.read(chosen.changed(text, names)) != written for names in choices):
            raise BadInputError(f"{printable(str(path))} was changed since; what was there before is in {printable(str(backup))}")
    if old == MISSING:
        path.unlink(missing_ok=True)
    else:
        replace_file(path, old)
    backup.unlink()
    say(printable(f"restored {path}"))


def _object_in(text: str) -> dict[str, Any]:
    value = json.loads(text) if text.strip() else {}
    if not isinstance(value, dict):
        raise ValueError("it holds no JSON object")  # noqa: TRY004 - the text has the wrong value
    return value


def _json(fields: Mapping[str, Any]) -> Change:
    """Return a change that sets fields of a JSON object, and of objects in it, in the form in which assistants write theirs."""

    def change(text: str) -> str:
        settings = _object_in(text)
        merged = _merged(settings, fields)
        return text if merged == settings else json.dumps(merged, indent=2, ensure_ascii=False) + "\n"

    return change


def _merged(settings: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with these fields, and those of objects in them."""
    ours = {name: _merged(_table(settings, name), value) if isinstance(value, dict) else value for name, value in fields.items()}
    return {**settings, **ours}


def _with_key(text: str) -> str:
    """Return Gemini CLI's settings with the kind of its key, unless it has one."""
    security = _object_in(text).get("security")
    auth = security.get("auth") if isinstance(security, dict) else None
    is_set = isinstance(auth, dict) and bool(auth.get("selectedType"))
    return text if is_set else _json({"security": {"auth": {"selectedType": "gemini-api-key"}}})(text)


def _toml(addition: str) -> Change:
    """Return a change that adds to a TOML file: lines before the first table at its beginning, the table at its end.

    Args:
        addition: At most one line, and one table.
    """
    first, bracket, table = addition.partition("[")
    (outer, inner), added = table.partition("]")[0].split("."), tomllib.loads(addition)

    def change(text: str) -> str:
        settings = tomllib.loads(text)
        if _merged(settings, added) == settings:
            return text
        own = [*(name for name in added if name in settings and name != outer), *({inner} & {*_table(settings, outer)})]
        if own:
            raise ValueError(f"it has a {own[0]} of its own")
        return first + text + "\n" * (bool(text) and not text.endswith("\n")) + bracket + table

    return change


def _say_replaced(old: Mapping[str, Any], new: Mapping[str, Any], backup: Path) -> None:
    """Name the user's values that new settings no longer have.

    Raises:
        ValueError: There are some, and the place to keep them is taken.
    """
    for name in _replaced(old, new):
        if backup.exists():
            raise ValueError(f"its {name} is not ours, and {backup} already holds what was there before; move one of them away")
        complain(f"your own {name} is replaced; {backup} keeps it, and --undo brings it back")


def _replaced(old: Mapping[str, Any], new: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Yield the names of the user's values that new settings no longer have, such as `statusLine.command`."""
    for name, value in old.items():
        if isinstance(value, dict) and isinstance(new.get(name), dict):
            yield from _replaced(value, new[name], f"{before}{name}.")
        elif new.get(name) != value:
            yield f"{before}{name}"


def _table(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    return value if isinstance(value := settings.get(name), dict) else {}


def _with_provider(text: str) -> str:
    """Return Codex's settings with the gateway as its provider."""
    fields = toml_fields(codex_provider(GATEWAY, os.environ))
    return _toml("\n".join(['model_provider = "gateway"', "[model_providers.gateway]", *fields, ""]))(text)


_CODEX_SERVER = f"""\
[mcp_servers.context-window]
command = "{MCP[0]}"
args = ["{MCP[1]}"]
"""
_SERVER = {"command": MCP[0], "args": MCP[1:]}
SETUPS: Mapping[str, Setup] = {
    "claude-code": Setup(
        ".claude/settings.json",
        _object_in,
        {
            "always": _json({"statusLine": {"type": "command", "command": "context-window statusline"}}),
            "gateway": _json({"env": {"ANTHROPIC_BASE_URL": f"{GATEWAY}/anthropic", "ENABLE_TOOL_SEARCH": "true"}}),
        },
    ),
    "codex": Setup(
        ".codex/config.toml",
        tomllib.loads,
        {
            "gateway": _with_provider,
            "mcp": _toml(_CODEX_SERVER),
        },
    ),
    "gemini": Setup(".gemini/settings.json", _object_in, {"always": _with_key, "mcp": _json({"mcpServers": {"context-window": _SERVER}})}),
    "opencode": Setup(
        ".config/opencode/opencode.json",
        _object_in,
        {
            "gateway": _json({"provider": opencode_providers(GATEWAY)}),
            "mcp": _json({"mcp": {"context-window": {"type": "local", "command": MCP}}}),
        },
    ),
}
INSTEAD = {
    ("claude-code", "mcp"): f"claude mcp add context-window -- {' '.join(MCP)}",
    ("gemini", "gateway"): "context-window gateway -- gemini, for it takes the address from the environment alone",
}
"""What to do where an assistant keeps this elsewhere."""
