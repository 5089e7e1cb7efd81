"""`Coder`: a scripted model that works through the files of a made-up project. `write_project` makes them."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.stubs.answers import Block, Call, Say, Think

TASK = "Work through all modules of this project, one after the other, and make each one's limit configurable."
RULE = "Never rename a public function of this project."
DONE = "All modules are done."
DELEGATED = "Look whether any module defines a limit twice."
TESTS = """import sys
number, words = sys.argv[1], WORDS
print("collected the tests of module", number)
for test in range(40 if sys.argv[2:] else 400):
    name, first, second = (words[test // step % len(words)] for step in (1, 3, 7))
    print("test of the", name, "limit in the", first, second, "of the module passed")
if sys.argv[2:]:
    sys.exit(f"E   AssertionError: limit {number} is not read from the settings\\ntests/test_module_{number}.py:41: AssertionError")
"""
"""Prints 28 kB, or less and fails."""
AROUND = 60
"""Lines on each side of an edit that are read by a command: Codex cuts longer outputs."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SUMMARY_REQUESTS = ("create a detailed summary", "CONTEXT CHECKPOINT COMPACTION", "generate the <state_snapshot>")
"""Texts of Claude Code's, Codex's and Qwen Code's request for a summary."""
WORDS = [
    "account",
    "batch",
    "buffer",
    "cache",
    "channel",
    "client",
    "cursor",
    "entry",
    "event",
    "field",
    "filter",
    "handle",
    "index",
    "limit",
    "node",
    "order",
    "page",
    "queue",
    "range",
    "record",
    "result",
    "retry",
    "route",
    "sample",
    "schema",
    "segment",
    "server",
    "session",
    "signal",
    "source",
    "state",
    "stream",
    "table",
    "target",
    "token",
    "value",
    "window",
    "worker",
    "writer",
]


class File(NamedTuple):
    """A file of the project.

    Attributes:
        path: Its path.
        lines: Its lines.
        number: The number of the line that is edited.
    """

    path: Path
    lines: Sequence[str]
    number: int

    @property
    def old(self) -> str:
        """The line that is edited."""
        return self.lines[self.number]

    @property
    def new(self) -> str:
        """The line afterwards."""
        return f"{self.old}  # from the settings"


def write_project(folder: Path, files: int) -> list[File]:
    """Write modules of 13 to 40 kB, an image, and a file of rules. The same ones every time."""
    chance = random.Random(29)
    (folder / "CLAUDE.md").write_text(f"# Rules\n\n- {RULE}\n", encoding="utf-8")
    (folder / "AGENTS.md").write_text(f"# Rules\n\n- {RULE}\n", encoding="utf-8")
    (folder / "run_tests.py").write_text(TESTS.replace("WORDS", repr(WORDS)), encoding="utf-8")
    (folder / "plan.png").write_bytes(base64.b64decode(PIXEL))
    return [_file(folder / f"module_{number:02}.py", number, chance) for number in range(files)]


def _file(path: Path, number: int, chance: random.Random) -> File:
    size, lines = chance.randrange(13_000, 40_000), [f'"""Module {number} of the project."""', ""]
    while sum(map(len, lines)) + len(lines) < size:
        name, first, second, other = ("_".join(chance.sample(WORDS, 2)) for _ in range(4))
        lines += [f"def {name}({first}: int, {second}: str) -> int:", f'    """Return the {other} of each {second} that has a {first}."""']
        lines += [f"    if {first} > maximum_{other}({second}):", f"        raise ValueError(f'the {second} has too many of {other}')"]
        lines += [f"    return {first} * smallest_{other} + {name}_of({second})", "", ""]
    edited = chance.randrange(len(lines) // 2, len(lines))
    while not lines[edited].startswith("    return"):
        edited = edited - 1 if edited > 2 else len(lines) - 1
    path.write_text("\n".join(lines), encoding="utf-8")
    return File(path, lines, edited)


class Names(NamedTuple):
    """How a client's tools are called.

    Attributes:
        main: A tool that only requests of the main conversation and of sub-agents have.
        shell: The tool that runs a command, and the name of its argument.
        read: The tool that reads a file; "" if a command does.
        edit: The tool that edits one; "" if a command does.
        delegate: Tools that delegate; the one that is there is used.
        cuts_files: True if the tool that reads a file shows a part of a long one.
    """

    main: str
    shell: tuple[str, str]
    read: str = ""
    edit: str = ""
    delegate: tuple[str, ...] = ()
    cuts_files: bool = False

    @property
    def reads_whole(self) -> bool:
        """True if a file is read as a whole, False if the lines around the edit are."""
        return bool(self.read) and not self.cuts_files


CLAUDE_CODE = Names("Bash", ("Bash", "command"), "Read", "Edit", ("Agent", "Task"))
CODEX = Names("exec_command", ("exec_command", "cmd"))
QWEN_CODE = Names("todo_write", ("run_shell_command", "command"), "read_file", "edit", ("agent",), cuts_files=True)


@dataclass(slots=True)
class Coder:
    """Says what to do next. It sees nothing but the request.

    Attributes:
        names: The names of the client's tools.
        files: The project's files.
        requests: Number of requests that it has answered.
        working: By number of a request of the main conversation, the request, and the file that is worked on; None if it was not read yet.
        recovered: Requests made to find a line that was out of view.
        given_up: Edits for which the line was not found.
    """

    names: Names
    files: Sequence[File]
    requests: int = 0
    working: dict[int, tuple[Mapping[str, Any], File | None]] = field(default_factory=dict)
    recovered: int = 0
    given_up: int = 0
    _steps: Iterator[Sequence[Block]] | None = None
    _request: Mapping[str, Any] = field(default_factory=dict)
    _current: File | None = None

    def __call__(self, request: Mapping[str, Any]) -> Sequence[Block]:
        """Answer a request: of the main conversation, of a sub-agent, for a summary, or another one, such as for a title."""
        self.requests += 1
        text = json.dumps(request, ensure_ascii=False)
        last = json.dumps(messages_of(request)[-1:], ensure_ascii=False)
        if any(words in last for words in SUMMARY_REQUESTS):
            tag = "state_snapshot" if "state_snapshot" in last else "summary"
            return [Say(f"<{tag}>{self._summary()}</{tag}>")]
        if self.names.main not in text.replace(TASK, "") or not request.get("tools"):
            return [Say("Modules")]
        if not shows(request, TASK):
            return [Say("No module defines a limit twice.")]
        self._request = request
        self._steps = self._steps or self._work()
        self.working[self.requests - 1] = request, self._current
        return [Think(f"Step {len(self.working)}."), *next(self._steps, [Say(DONE)])]

    def _summary(self) -> str:
        """What was done: some 2,500 tokens, as models write them for these requests."""
        done = self.files[: self.files.index(self._current) + 1] if self._current is not None else self.files
        rows = [
            f"- {file.path}: read it whole, ran its tests, changed line {file.number}, {file.old.strip()}, to {file.new.strip()}"
            for file in done
        ]
        rows += [f"- The new test of {file.path.name} fails still, since its limit is not read from the settings." for file in done]
        return f"{TASK} {RULE}\n" + "\n".join((rows * 40)[:66])

    def _work(self) -> Iterator[Sequence[Block]]:
        for number, file in enumerate(self.files):
            self._current = None
            yield [Say(f"I read module {number}."), self._read(file)]
            self._current = file
            yield [Say("I run its tests."), self._shell(f"python3 run_tests.py {number}")]
            yield from self._edit(file)
            yield [Say("I run the new test."), self._shell(f"python3 run_tests.py {number} new")]
            yield [self._look(number, file)]

    def _edit(self, file: File) -> Iterator[Sequence[Block]]:
        for attempt in range(3):
            if shows(self._request, file.old):
                yield [self._edit_call(file)]
                return
            self.recovered += 1
            can_recall = any(_name(tool) == "recall" for tool in self._request.get("tools", []))
            yield [Call("recall", {"query": file.old.strip()}) if can_recall and not attempt else self._read(file)]
        self.given_up += 1
        yield [Say("I cannot find the line."), self._shell("true")]

    def _look(self, number: int, file: File) -> Block:
        offered = {_name(tool) for tool in self._request.get("tools", [])}
        delegate = next((name for name in self.names.delegate if name in offered), None)
        if number % 8 == 3 and delegate is not None:
            return Call(delegate, {"description": "Look for limits", "prompt": DELEGATED, "subagent_type": "general-purpose"})
        if number % 8 == 5 and self.names.read:
            return Call(self.names.read, {"file_path": str(file.path.parent / "plan.png")})
        return self._read(self.files[number - 1] if number % 2 else file)

    def _read(self, file: File) -> Block:
        start, end = self._part(file)
        if self.names.read:
            part = {} if self.names.reads_whole else {"offset": start, "limit": end - start}
            return Call(self.names.read, {"file_path": str(file.path), **part})
        return self._shell(f"sed -n '{start + 1},{end}p' {file.path.name}")

    def lines_of(self, file: File) -> Sequence[str]:
        """Return the lines that the coder reads of a file: all, or those around the edit where a command's output is cut."""
        start, end = self._part(file)
        return file.lines[start:end]

    def _part(self, file: File) -> tuple[int, int]:
        around = max(0, file.number - AROUND), min(len(file.lines), file.number + AROUND)
        return (0, len(file.lines)) if self.names.reads_whole else around

    def _edit_call(self, file: File) -> Block:
        if self.names.edit:
            return Call(self.names.edit, {"file_path": str(file.path), "old_string": f"{file.old}\n", "new_string": f"{file.new}\n"})
        return self._shell(f"sed -i '{file.number + 1}s/$/  # from the settings/' {file.path.name}; echo {json.dumps(file.new.strip())}")

    def _shell(self, command: str) -> Block:
        name, argument = self.names.shell
        return Call(name, {argument: command} | ({"description": "Runs a command"} if name == "Bash" else {}))


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool.get("function", {}).get("name") or "")


def messages_of(request: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a request in any wire format."""
    return list(request.get("messages") or request.get("input") or request.get("contents") or [])


def texts_of(value: object) -> Iterator[str]:
    """Yield all texts of a value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from texts_of(member)
    elif isinstance(value, Sequence):
        for member in value:
            yield from texts_of(member)


def shows(request: Mapping[str, Any], text: str) -> bool:
    """True if a request's messages show a text."""
    return any(text in each for each in texts_of(messages_of(request)))
