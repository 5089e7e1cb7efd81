"""Rules for the results of single tools: what settings state, which file a call reads or writes, and what rules keep or clear early.

What follows from it for a trim is in `priority.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from posixpath import normpath
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from session.items import FunctionCall, FunctionCallOutput
from session.json_strings import object_of
from session.parts import Text
from session.removed import short_id
from session.units import NONE

from ..errors import BudgetError
from ..validation import check_amount, check_ratio
from .placeholders import CLEARED, MARK

if TYPE_CHECKING:
    from .edits import Edit

Clearing: TypeAlias = Literal["normal", "first", "never"]


@dataclass(frozen=True, slots=True)
class ToolRule:
    """Treatment of one tool's results by a trim. Results are the outputs of its calls, and long values in the calls' arguments.

        ContextWindow(tool_rules={"list_files": ToolRule(clear="first", keep_last=1), "read_plan": ToolRule(clear="never")})

    A name may be a pattern, which covers every tool that matches and has no rule of its own name:

        ContextWindow(tool_rules={"mcp__github__*": ToolRule(clear="first"), "mcp__github__get_issue": ToolRule(keep_last=3)})

    A result that a rule keeps is not cleared, and its unit is not dropped while anything else can be. If the view does not fit
    otherwise, the unit is dropped, the oldest first: only pinned items stay whatever happens.

    Attributes:
        clear: "normal" to clear by age. "first" to clear before the results of other tools. "never" to keep every result.
        keep_last: Number of newest results of each tool to keep, counted among those that the view shows in full.
        reads: For `clear_superseded`: the argument with the path of the file that the tool reads. None if the name of the tool decides.
        writes: The argument with the path of the file that it writes as a whole.
        largest_output: For this tool, in place of `ContextWindow.largest_output`; 1 to leave its outputs as they are. So are, by
            default, those of a tool whose results the rule keeps.
    """

    clear: Clearing = "normal"
    keep_last: int = 0
    reads: str | None = None
    writes: str | None = None
    largest_output: float | None = None

    def __post_init__(self) -> None:
        if self.clear not in get_args(Clearing):
            raise BudgetError("ToolRule.clear", self.clear, 'pass "normal", "first" or "never"')
        object.__setattr__(self, "keep_last", check_amount("ToolRule.keep_last", self.keep_last, least=0))
        for name in ("reads", "writes"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value):
                raise BudgetError(f"ToolRule.{name}", value, "pass the name of the argument that holds the path of the file, or None")
        if self.reads is not None and self.writes is not None:
            raise BudgetError("ToolRule.writes", self.writes, "pass `reads` or `writes`, not both")
        if self.largest_output is not None:
            check_ratio("ToolRule.largest_output", self.largest_output, zero=False)

    @property
    def keeps(self) -> bool:
        """True if the rule keeps some results or all."""
        return self.clear == "never" or self.keep_last > 0


ToolRules: TypeAlias = Mapping[str, ToolRule]
"""Rules by the name of the tool, or by a pattern of names such as `mcp__github__*`."""


def rule_for(tool: str, rules: ToolRules) -> ToolRule | None:
    """Return the rule with exactly this name, otherwise the first one whose pattern matches it, otherwise None.

    In a pattern `*` stands for any characters, `?` for one, and `[…]` for one of several; case counts.
    """
    exact = rules.get(tool)
    return exact if exact is not None else next((rule for pattern, rule in rules.items() if fnmatchcase(tool, pattern)), None)


def check_rules(rules: object) -> dict[str, ToolRule]:
    """Return a copy of the rules. Raises BudgetError if they are not a mapping from names of tools to rules."""
    if isinstance(rules, Mapping) and all(isinstance(name, str) and isinstance(rule, ToolRule) for name, rule in rules.items()):
        return dict(rules)
    raise BudgetError("tool_rules", rules, 'pass rules by the name of the tool, such as {"read_file": ToolRule(keep_last=3)}')


RECALL = "recall"
"""Name of the tool with which a model recalls. What it gives back is in the log already, and goes first once it was read."""

KEEP, RELEASE, COMPACT = "keep_in_view", "release_from_view", "compact_conversation"
"""Names of the tools with which a model says what it still needs (`view_tools.py`)."""
LOADED_TOOLS, TOOL_REFERENCE = "loaded_tools", "tool_reference"
"""Name in `extra` of the number of tools that an output loads, and type of the blocks that name them."""

# The files of calls

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
COMMANDS = ("command", "cmd")
"""Arguments that hold a command of a shell."""
HARMLESS = frozenset(("command", "description", "encoding", "explanation"))
"""Other arguments with which a read is still in full. Any other may choose a part of the file, such as `offset` or `view_range`."""


@dataclass(frozen=True, slots=True)
class FileAccess:
    """A file that a call reads or writes, without `.` and double slashes in its path.

    `replaces`: results of earlier calls about the file are no longer needed, as it was read in full, or written.
    """

    path: str
    replaces: bool


def tool_name(tool: str) -> str:
    """Return the name of a tool in lower case, without a prefix that ends in `__` or `.`: `mcp__files__Read_File` is `read_file`."""
    return tool.rpartition("__")[2].rpartition(".")[2].lower()


def file_access(tool: str, arguments: str, rule: ToolRule | None = None) -> FileAccess | None:
    """Return the file that a call reads or writes; None if it does neither. The tool's rule comes before the names that are known here."""
    name = tool_name(tool)
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


def named_text(values: Mapping[str, object], names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first of these arguments that is a text and not blank, with its name; None without one."""
    return next(((name, value) for name in names if isinstance(value := values.get(name), str) and value.strip()), None)


def subject_of(call: FunctionCall) -> str | None:
    """Return what a call is about: the path of a file, or the first line of a command; None if it names neither."""
    keys = (*PATHS, *(() if tool_name(call.name) in EDITORS else COMMANDS))
    subject = named_text(object_of(call.arguments) or {}, keys)
    return None if subject is None else subject[1].strip().split("\n", 1)[0]


def is_writer(tool: str, arguments: str) -> bool:
    """True if the tool writes a whole file, by the names that are known here."""
    name = tool_name(tool)
    if name in EDITORS:
        name = str((object_of(arguments) or {}).get("command")).lower()
    return name in WRITERS


def _access(values: Mapping[str, object], names: tuple[str, ...], *, writes: bool) -> FileAccess | None:
    named = named_text(values, names)
    if named is None:
        return None
    other_names = (name for name, value in values.items() if value is not None and name != named[0])
    return FileAccess(normpath(named[1]), replaces=writes or all(name in HARMLESS for name in other_names))


# Results


def tools_loaded_by(output: FunctionCallOutput) -> Sequence[str]:
    """Return the names of the tools whose definitions the provider adds where this output stands (`tool_reference`)."""
    texts = [part.text for part in output.output if isinstance(part, Text)]
    if output.extra.get(LOADED_TOOLS):
        return texts
    references = [object_of(text) or {} for text in texts if TOOL_REFERENCE in text]
    return [str(block["tool_name"]) for block in references if block.get("type") == TOOL_REFERENCE and "tool_name" in block]


def names_of_result(call: FunctionCall, output: FunctionCallOutput) -> frozenset[str]:
    """Return what a model may call a result: its recall id, the file or command that the call is about, and the file's name alone."""
    subject = subject_of(call)
    return frozenset({short_id(output.id), *([subject, subject.rpartition("/")[2]] if subject else [])})


@dataclass
class RuledResults:
    """The results of a log that do not go by their age alone. A result is an output and the call that it answers, by position."""

    _output_of: dict[int, int] = field(default_factory=dict)  # by position of an output that a rule may keep, and of its call
    _outputs: dict[str, list[int]] = field(default_factory=dict)  # by tool: those outputs, in order
    _tools: dict[int, str] = field(default_factory=dict)  # by position of such an output
    _rules: dict[str, ToolRule] = field(default_factory=dict)  # of these tools
    first: set[int] = field(default_factory=set)  # results whose rule says that they are cleared before others
    _loaders: dict[str, dict[int, int]] = field(default_factory=dict)  # by tool: outputs that loaded its definition, each with its call
    _in_use: set[int] = field(default_factory=set)  # such outputs of which a tool was called since, and those that the model keeps
    _names: dict[int, tuple[int, frozenset[str]]] = field(default_factory=dict)  # by output: its call, and by what the model may name it
    _by_file: dict[str, list[int]] = field(default_factory=dict)  # by file: results about it that nothing supersedes yet
    _superseders: dict[int, int] = field(default_factory=dict)  # by position of an output or call: the first output that supersedes it

    def add(
        self, call: int, made: FunctionCall, output: int, answer: FunctionCallOutput, rules: ToolRules, *, clear_superseded: bool
    ) -> None:
        """Take the output of a call, which is new in the log."""
        if made.name in (KEEP, RELEASE) and not answer.is_error:
            self._take_wish(made)
        self._names[output] = call, names_of_result(made, answer)
        for loader, loader_call in self._loaders.pop(made.name, {}).items():
            self._keep(loader, loader_call)
        for tool in tools_loaded_by(answer):
            self._loaders.setdefault(tool, {})[output] = call
        rule = rule_for(made.name, rules)
        if clear_superseded and not answer.is_error and (access := file_access(made.name, made.arguments, rule)) is not None:
            results = self._by_file.setdefault(access.path, [])
            if access.replaces:
                self._superseders.update(dict.fromkeys(results, output))
                results.clear()
            results += (call, output)
        if rule is None or answer.extra.get(MARK) == CLEARED:
            return
        if rule.clear == "first":
            self.first.update((call, output))
        if rule.keeps:
            self._output_of[call] = self._output_of[output] = output
            self._tools[output] = made.name
            self._rules[made.name] = rule
            self._outputs.setdefault(made.name, []).append(output)

    def _take_wish(self, made: FunctionCall) -> None:
        """Keep or release the results that the model names, until it says otherwise."""
        what = (object_of(made.arguments) or {}).get("what")
        for output, (call, names) in self._names.items():
            if what in names and made.name == KEEP:
                self._keep(output, call)
                self.first.difference_update((call, output))
            elif what in names:
                self._in_use.discard(output)
                self.first.update((call, output))
                for loaders in self._loaders.values():
                    loaders.pop(output, None)

    def _keep(self, output: int, call: int) -> None:
        self._output_of[call] = self._output_of[output] = output
        self._in_use.add(output)

    def is_kept(self, index: int, edits: Mapping[int, Edit]) -> bool:
        """True if a rule keeps this result or the call that it belongs to: it is in the view, and must not be cleared."""
        output = self._output_of.get(index)
        if output is None or ((edit := edits.get(output)) is not None and edit.gone is not None):
            return False
        if output in self._in_use:
            return _is_whole(edit)
        if output not in self._tools:
            return False
        tool = self._tools[output]
        rule = self._rules[tool]
        whole = (other for other in reversed(self._outputs[tool]) if _is_whole(edits.get(other)))
        return rule.clear == "never" or output in islice(whole, rule.keep_last)

    def kept(self, edits: Mapping[int, Edit]) -> list[int]:
        """Return the outputs that the view shows in full and a rule keeps, in order."""
        return sorted(
            output for output in self._tools.keys() | self._in_use if _is_whole(edits.get(output)) and self.is_kept(output, edits)
        )

    def superseder(self, index: int) -> int:
        """Return the position of the first output that supersedes this result, -1 if there is none: its file was read or written later."""
        return self._superseders.get(index, NONE)

    def is_superseded(self, index: int, edits: Mapping[int, Edit]) -> bool:
        """True if an output that supersedes this result is in the view."""
        later = self.superseder(index)
        while later != NONE and (edit := edits.get(later)) is not None and edit.gone is not None:
            later = self.superseder(later)
        return later != NONE

    def early(self, edits: Mapping[int, Edit]) -> list[int]:
        """Return the results that are cleared before others now."""
        return [index for index in self.first | self._superseders.keys() if index in self.first or self.is_superseded(index, edits)]


def _is_whole(edit: Edit | None) -> bool:
    """True if the view shows the output in full."""
    return edit is None or (edit.gone is None and not edit.is_shortened)
