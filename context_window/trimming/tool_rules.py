"""Rules for the results of single tools, as settings state them. What they mean for a view is in `view_contents.py` and `trim.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, get_args

from ..errors import BudgetError
from ..validation import check_amount

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
    """

    clear: Clearing = "normal"
    keep_last: int = 0
    reads: str | None = None
    writes: str | None = None

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

    @property
    def keeps(self) -> bool:
        """True if the rule keeps some results or all."""
        return self.clear == "never" or self.keep_last > 0


ToolRules: TypeAlias = Mapping[str, ToolRule]
"""Rules by the name of the tool, or by a pattern of names such as `mcp__github__*`."""


def rule_for(tool: str, rules: ToolRules) -> ToolRule | None:
    """Return the rule with exactly this name, otherwise the first one whose pattern matches it, otherwise None.

    Args:
        tool: Name of the tool.
        rules: Rules by name or pattern. `*` stands for any characters, `?` for one, and `[…]` for one of several; case counts.
    """
    exact = rules.get(tool)
    return exact if exact is not None else next((rule for pattern, rule in rules.items() if fnmatchcase(tool, pattern)), None)


def check_rules(rules: object) -> dict[str, ToolRule]:
    """Return a copy of the rules.

    Raises:
        BudgetError: They are not a mapping from names of tools to rules.
    """
    if isinstance(rules, Mapping) and all(isinstance(name, str) and isinstance(rule, ToolRule) for name, rule in rules.items()):
        return dict(rules)
    raise BudgetError("tool_rules", rules, 'pass rules by the name of the tool, such as {"read_file": ToolRule(keep_last=3)}')
