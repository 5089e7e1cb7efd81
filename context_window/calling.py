"""The part of a manager that counts a turn's tool calls and their tools, for the loop that runs them. It stops nothing itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from session.items import FunctionCall, Message, MessageCategory
from session.session import Session

from .errors import BudgetError
from .switching import Switching
from .tools import Tool, anthropic_tools


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Tool calls of a session's last turn.

    Attributes:
        used: Calls that the model made since the last user message, those that were refused too.
        left: Calls that it may still make in this turn, 0 or more.
    """

    used: int
    left: int


class Calling(Switching):
    """What is used of a turn's tool calls, and what their tools cost."""

    def count_tools(self, tools: Iterable[Tool]) -> None:
        """Counts these tools in every request from now on, where they cost more than those that the manager knows of.

        Args:
            tools: Functions, or definitions in any provider's form.

        Raises:
            BudgetError: One of them is no tool.
        """
        definitions = anthropic_tools(tools)
        if definitions:
            self._count_tools(definitions)

    def tool_calls(self, session: Session) -> ToolCalls:
        """Tool calls used since the last user message, and left of `max_tool_calls_per_turn`.

            if not manager.tool_calls(session).left:
                ...  # answer the call with an error, and ask the model without tools

        User messages of category CONTEXT begin no turn. It costs what the turn is long.

        Args:
            session: The log. A view may have lost calls of a long turn.

        Raises:
            BudgetError: It is no session.
        """
        if not isinstance(session, Session):
            raise BudgetError("session", type(session), "pass a Session")
        used = 0
        for item in reversed(session.items):
            if isinstance(item, Message) and item.role == "user" and item.category is not MessageCategory.CONTEXT:
                break
            used += isinstance(item, FunctionCall)
        return ToolCalls(used, max(0, self.context_window.max_tool_calls_per_turn - used))
