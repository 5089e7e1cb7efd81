"""Names why each item of a log is in the prompt: the tool, command or skill that brought it, and the commits that the work went into."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from session.items import AgentConfigUpdate, Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from session.json_strings import object_of
from session.units import is_summary

from ..decision.plan import describe
from ..decision.tool_rules import COMMANDS, file_access, is_writer, named_text
from ..decision.working_state import edited_path
from ..spend.reasons import CONTEXT, INSTRUCTIONS, MCP, MESSAGES, OTHER, READ, READ_AGAIN, REASONING, SHELL, SUMMARIES
from ..spend.reasons import SKILL as SKILL_KIND

LOOKED_AT = 2_000
"""Characters of a command that are looked at, and of an output to which a commit or a pull request gives its name."""
SUBJECT = 300
"""Characters of what an item is about that are kept."""
SOUGHT = ("pattern", "query", "url", "skill", "description")
"""Arguments that say what a call is about if it names neither a file nor a command."""
NAME_LENGTH = 60
"""Characters of a name that are kept: of a skill, a commit, a title."""
SKILL_TOOL = "skill"
MCP_PREFIX = "mcp__"
SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
WRAPPERS = frozenset(("sudo", "time", "nohup", "env", "exec", "command", "timeout", "xargs", "set", "uvx", "npx", "bunx"))
"""Programs whose argument is the command that counts."""
PRELUDES = frozenset(("cd", "export", "source", ".", "set", "sleep", "echo", "true", "pushd", "mkdir"))
"""Commands that come before the one that counts, if another follows."""
WITH_SUBCOMMANDS = frozenset(
    (
        "git",
        "gh",
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "cargo",
        "go",
        "docker",
        "kubectl",
        "pip",
        "uv",
        "poetry",
        "make",
        "dotnet",
        "terraform",
        "mvn",
    )
)
NO_NAME = "(other)"
_PROGRAM, _SUBCOMMAND = re.compile(r"[\w.+@-]{1,40}"), re.compile(r"[a-z][\w:-]{0,30}")
_ASSIGNMENT = re.compile(r"\w+=\S*")
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
_COMMIT = re.compile(r"^\[[^\]\n]{1,200}? ([0-9a-f]{7,40})\] (.{1,100})", re.MULTILINE)
_PULL_REQUEST = re.compile(r"https://[\w.-]+/[\w./-]+/(?:pull|merge_requests)/\d+")
_MAKES_PULL_REQUEST = re.compile(r"\b(?:gh pr|glab mr) create\b")


class Reason(NamedTuple):
    """Why an item is in the prompt. Attributes as of `Part`."""

    kind: str
    call: str = ""
    detail: str = ""


def reasons_of(items: Sequence[Item]) -> list[Reason]:
    """Return the reason of each item."""
    reasons: list[Reason] = []
    of_calls: dict[str, Reason] = {}
    files: set[str] = set()
    skill: Reason | None = None  # whose content the next message brings
    for item in items:
        if isinstance(item, FunctionCall):
            reason = of_calls[item.call_id] = _of_call(item, files)
        elif isinstance(item, FunctionCallOutput):
            reason = of_calls.get(item.call_id, Reason(MCP if item.name.startswith(MCP_PREFIX) else OTHER, item.name))
        elif skill is not None and isinstance(item, Message) and item.role == "user":
            reason = skill
        else:
            reason = _of_other(item)
        skill = reason if isinstance(item, FunctionCallOutput) and reason.kind == SKILL_KIND else None
        reasons.append(reason)
    return reasons


def _of_call(call: FunctionCall, files: set[str]) -> Reason:
    if call.name.startswith(MCP_PREFIX):
        return Reason(MCP, call.name, call.name.removeprefix(MCP_PREFIX).partition("__")[0])
    arguments = object_of(call.arguments) or {}
    if call.name.lower() == SKILL_TOOL:
        name = next((value for key in ("skill", "command", "name") if isinstance(value := arguments.get(key), str)), "")
        return Reason(SKILL_KIND, call.name, shortened(name.split()[0].lstrip("/")) if name.split() else NO_NAME)
    command = command_of(call)
    if command is not None:
        return Reason(SHELL, call.name, command_name(command))
    access = None if is_writer(call.name, call.arguments) else file_access(call.name, call.arguments)
    if access is None:
        return Reason(OTHER, call.name)
    is_again = access.path in files
    files.add(access.path)
    return Reason(READ_AGAIN if is_again else READ, call.name)


def _of_other(item: Item) -> Reason:
    if isinstance(item, Reasoning):
        return Reason(REASONING)
    if isinstance(item, Compaction) or is_summary(item):
        return Reason(SUMMARIES)
    if isinstance(item, AgentConfigUpdate) or item.category is MessageCategory.SYSTEM:
        return Reason(INSTRUCTIONS)
    return Reason(CONTEXT if item.category is MessageCategory.CONTEXT else MESSAGES)


def command_of(call: FunctionCall) -> str | None:
    """Return the beginning of the command that a call gives to a shell; None if it gives none."""
    arguments = object_of(call.arguments) or {}
    value = next((value for name in COMMANDS if (value := arguments.get(name))), None)
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = value[-1] if value[0].rpartition("/")[2] in SHELLS else " ".join(value)
    return value[:LOOKED_AT] if isinstance(value, str) and value.strip() and not arguments.keys() & {"path", "file_path"} else None


def command_name(command: str) -> str:
    """Return the program that a command is about, with its subcommand: `git diff` for `cd src && git diff --stat | head`."""
    names = [name for part in _SEPARATOR.split(command) if (name := _program(part.split()))]
    return next((name for name in names if name not in PRELUDES), names[0] if names else NO_NAME)


def _program(words: list[str]) -> str:
    words = [word.strip("()'\"{}") for word in words]
    while words and (not words[0] or words[0] in WRAPPERS or _ASSIGNMENT.fullmatch(words[0]) or words[0][0] in "-0123456789#"):
        if words[0].startswith("#"):
            return ""
        words = words[1:]
    if not words:
        return ""
    program = words[0].replace("\\", "/").rpartition("/")[2]
    if program in SHELLS and len(words) > 2 and words[1].startswith("-"):
        return _program(words[2:])
    if not _PROGRAM.fullmatch(program):
        return NO_NAME
    if program.startswith("python") and len(words) > 2 and words[1] == "-m" and _PROGRAM.fullmatch(words[2]):
        return f"{program} -m {words[2]}"
    subcommand = next((word for word in words[1:4] if _SUBCOMMAND.fullmatch(word)), "") if program in WITH_SUBCOMMANDS else ""
    return f"{program} {subcommand}" if subcommand else program


def _file_or_command(call: FunctionCall) -> str:
    access = file_access(call.name, call.arguments)
    other = named_text(object_of(call.arguments) or {}, SOUGHT)
    return ((access.path if access else None) or edited_path(call) or command_of(call) or (other[1] if other else ""))[:SUBJECT]


def subjects_of(
    items: Sequence[Item], *, with_words: bool = False, subject_of: Callable[[FunctionCall], str] = _file_or_command
) -> list[str]:
    """Return what each item is, and what it is about, in one line.

    Args:
        items: The items.
        with_words: True to add the first words of messages.
        subject_of: Returns what a call and its output are about. Default: the file or the command.
    """
    of_calls: dict[str, str] = {}
    subjects = []
    for item in items:
        subject = ""
        if isinstance(item, FunctionCall):
            subject = of_calls[item.call_id] = subject_of(item)
        elif isinstance(item, FunctionCallOutput):
            subject = of_calls.get(item.call_id, "")
        elif isinstance(item, Message) and with_words:
            subject = item.text[:SUBJECT]
        words = " ".join(subject.split())
        subjects.append(f"{describe(item)}: {words}" if words else describe(item))
    return subjects


def commits_of(items: Sequence[Item], linked: object = None) -> list[tuple[str, str]]:
    """Return for each item the commit and the pull request that the work at that point went into; empty texts if none followed.

    Work belongs to the next commit, and to the next pull request, or to the last one if there is no other.

    Args:
        items: The items.
        linked: Pull requests that the tool itself links to the session, by address, with its time in Unix seconds; else ignored.
    """
    commits, pulls = [""] * len(items), [""] * (len(items) + 1)
    times = list(accumulate((item.created_at for item in items), max))
    for link, time in linked.items() if isinstance(linked, dict) else ():
        if isinstance(time, int | float):
            pulls[bisect_right(times, time)] = link
    for position, commit, pull in _made(items):
        commits[position], pulls[position] = commit, pull or pulls[position]
    last = next((pull for pull in reversed(pulls) if pull), "")
    commit, pull, into = "", last, [("", "")] * len(items)
    for position in range(len(items) - 1, -1, -1):
        into[position] = commit, pull
        commit, pull = commits[position] or commit, pulls[position] or pull
    return into


def _made(items: Sequence[Item]) -> Iterator[tuple[int, str, str]]:
    """Yield the positions of outputs that report a new commit or pull request, with the name of it."""
    commands: dict[str, str] = {}
    for position, item in enumerate(items):
        if isinstance(item, FunctionCall):
            if (command := command_of(item)) is not None and ("commit" in command or " create" in command):
                commands[item.call_id] = command
        elif isinstance(item, FunctionCallOutput) and (command := commands.pop(item.call_id, "")):
            text = item.text[:LOOKED_AT]
            commit = list(_COMMIT.finditer(text)) if "git" in command and "commit" in command else []
            pull = _PULL_REQUEST.search(text) if _MAKES_PULL_REQUEST.search(command) else None
            named = f"{commit[-1][1][:10]} {commit[-1][2]}".strip() if commit else ""
            if named or pull:
                yield position, shortened(named), pull[0] if pull else ""


def shortened(name: str, most: int = NAME_LENGTH) -> str:
    """Return a name of at most so many characters."""
    return name if len(name) <= most else f"{name[: most - 1]}…"
