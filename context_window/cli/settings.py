"""The options that all commands share, and the manager that they make. What is said about the budget's source is here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from session.redaction import is_name, short, veiled

from ..printable import printable
from .output import BadInputError, complain

if TYPE_CHECKING:
    from session.session import Session

    from ..events import Listener
    from ..manager import ContextWindowManager

Command = TypeVar("Command", bound=Callable[..., Any])


class Whole(click.IntRange):
    """A whole number, asked for in words that need no knowledge of types."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails where it is none, or too small."""
        try:
            int(value)
        except ValueError:
            self.fail(f"{veiled(value)} is not a whole number; write it out in digits, such as 32000.", param, ctx)
        return super().convert(value, param, ctx)


max_tokens_option = click.option(
    "--max-tokens", type=Whole(min=1), metavar="N", help="Tokens a prompt may have. Default: what the model allows."
)

read_files_option = click.option(
    "--read-files-below",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Read images that the transcript only names, where they lie in FOLDER. Default: none is opened.",
)

OPTIONS = (
    max_tokens_option,
    click.option("--model", metavar="NAME", help="The model to fit. Default: the one that the transcript names."),
    click.option(
        "--target-ratio",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="R",
        help="Trim down to this part of the budget, so that the next turns change nothing (default 0.65).",
    ),
    click.option("--images-kept", type=Whole(min=0), metavar="N", help="Images, the newest, that stay (default 1)."),
    click.option(
        "--session", "session_id", metavar="ID", help="The session to take, where a transcript has several; its first letters do."
    ),
    read_files_option,
    click.option("--strict", is_flag=True, help="Exit 1 where it does not fit the budget."),
)


def window_options(command: Command) -> Command:
    """The command with the options above."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user set. Names and meanings are those of the options; `max_tool_calls` is the chat's, and no option.

    `told` are the warnings that were said: of many transcripts, each is said once.
    """

    max_tokens: int | None = None
    model: str | None = None
    target_ratio: float | None = None
    images_kept: int | None = None
    session_id: str | None = None
    read_files_below: str | None = None
    strict: bool = False
    max_tool_calls: int | None = None
    told: set[str] = field(default_factory=set, compare=False)

    def manager(self, session: Session, on_event: Listener | None = None) -> tuple[ContextWindowManager, str]:
        """A manager for the session, and in words where its budget comes from.

        Args:
            session: Whose model is meant where none is set.
            on_event: Who is told of trims and warnings.

        Raises:
            BadInputError: The model that was asked for is not known and no `--max-tokens` is given.
        """
        from ..config import ContextWindow
        from ..errors import UnknownModelError
        from ..manager import ContextWindowManager

        set_here = {
            "target_ratio": self.target_ratio,
            "images_kept": self.images_kept,
            "max_tool_calls_per_turn": self.max_tool_calls,
        }
        given: dict[str, Any] = {name: value for name, value in set_here.items() if value is not None}
        window = ContextWindow(max_tokens=self.max_tokens, **given)
        named = session.metadata.get("model")
        model = self.model or (named if isinstance(named, str) and named else None)
        try:
            manager = ContextWindowManager(model, context_window=window, on_event=on_event)
        except UnknownModelError as error:
            if self.model:
                alike = str(error).partition("Did you mean ")[2].partition("?")[0]
                hint = f"did you mean {alike}? Else pass" if alike else "pass"
                raise BadInputError(f"the context window of {short(self.model)} is not known; {hint} --max-tokens N too") from None
            unknown = printable(str(model)) if is_name(str(model)) else short(model)
            manager = ContextWindowManager(context_window=window, on_event=on_event)
            return manager, f"the default, for {unknown} is not known; --max-tokens sets another"
        if self.max_tokens is not None:
            self._warn_above_window(manager, model)
            return manager, "set by --max-tokens"
        if self.model:
            return manager, f"what {printable(self.model)} allows"
        if model:
            return manager, f"what {printable(model)}, which the transcript names, allows"
        return manager, "the default, for the transcript names no model; --model or --max-tokens sets another"

    def _warn_above_window(self, manager: ContextWindowManager, model: str | None) -> None:
        """Says once where the budget that was set is more than the model's window holds."""
        report = manager.usage()
        if report.window is None or report.budget <= report.window:
            return
        what = f"a budget of {report.budget:,} is more than the window of {printable(str(model))}, {report.window:,} tokens"
        if what not in self.told:
            self.told.add(what)
            complain(f"{what}: the model takes no request that is larger")
