"""The options that several commands share, and the manager that they configure. Also explains where its budget comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from session.redaction import is_name, short, veiled

from ..printable import printable
from .output import BadInputError, complain
from .recorded_window import RecordedWindow, recorded_window, refutation

if TYPE_CHECKING:
    from session.session import Session

    from ..decision.strategy_api import Strategy
    from ..events.definitions import Listener
    from ..manager import ContextWindowManager
    from ..settings.budget import ModelConfig

Command = TypeVar("Command", bound=Callable[..., Any])

READABLE_FORMATS = """\
Formats: logs of Claude Code, Codex, Copilot CLI, opencode, Gemini CLI, Qwen Code, Kimi, Amp, Goose, crush, Hermes, pi, droid,
Grok, Cursor, ATIF, mini-swe-agent, SWE-agent, OpenHands, Cline and aider; exports of OpenTelemetry and Langfuse; message lists
in the format of OpenAI, Anthropic or Google, anywhere in a JSON or JSON Lines file; and saved sessions. The format is detected
from the content, not from the file name.

"""
"""A paragraph for the end of a command's help, before its examples. `session/transcripts/detect.py` detects the formats."""


STRATEGIES = ("priority", "extract", "drop-oldest")
"""Names of strategies on the command line."""


class WholeNumber(click.IntRange):
    """A whole number. Errors are explained without the names of types."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Fails if the value is not a whole number or is out of range."""
        try:
            int(value)
        except ValueError:
            self.fail(f"{veiled(value)} is not a whole number; write it in digits, such as 32000.", param, ctx)
        return super().convert(value, param, ctx)


class TokenBudget(WholeNumber):
    """A whole number of at least 1, or `auto`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number or the word. Fails for anything else."""
        return value if value == "auto" else super().convert(value, param, ctx)


max_tokens_option = click.option(
    "--max-tokens",
    type=TokenBudget(min=1),
    metavar="N|auto",
    help="Token budget of a request; auto: what costs least by the model's prices. Default: the model's limit.",
)

model_option = click.option(
    "--model", metavar="NAME", help="Model whose limit and tokenizer to use. Default: the one named in the transcript."
)

read_files_option = click.option(
    "--read-files-below",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="Read images that the transcript names by path, if they are in FOLDER. Default: no such file is opened.",
)

session_option = click.option(
    "--session", "session_id", metavar="ID", help="Session to use if the transcript has several. The first characters of its id are enough."
)


def strategy_option(default: str) -> Callable[[Command], Command]:
    """Return the option that names the strategy."""
    return click.option(
        "--strategy",
        type=click.Choice(STRATEGIES),
        default=default,
        help="How a full window is trimmed: the lowest category first (priority), all but the most valuable lines (extract), or the oldest "
        f"first. Default: {default}.",
    )


def named_strategy(name: str) -> Strategy:
    """Return the strategy that the option names."""
    from ..strategies import DropOldest, Extract, PriorityTrim

    strategies: dict[str, Callable[[], Strategy]] = {"priority": PriorityTrim, "extract": Extract, "drop-oldest": DropOldest}
    return strategies[name]()


OPTIONS = (
    max_tokens_option,
    model_option,
    click.option(
        "--target-ratio",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="R",
        help="Trim down to this fraction of the budget, so that the next turns need no trim (default 0.65).",
    ),
    strategy_option("priority"),
    click.option("--images-kept", type=WholeNumber(min=0), metavar="N", help="Number of newest images that a trim leaves (default 1)."),
    session_option,
    read_files_option,
    click.option("--strict", is_flag=True, help="Exit with 1 if the result does not fit the budget."),
)


def window_options(command: Command) -> Command:
    """Add the options above to a command."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """Values of the shared options, under the options' names.

    `max_tool_calls` is set by the chat and is no option. `printed_warnings` are the warnings printed so far: with several transcripts,
    each is printed once.
    """

    max_tokens: int | Literal["auto"] | None = None
    model: str | None = None
    target_ratio: float | None = None
    strategy: str = "priority"
    images_kept: int | None = None
    session_id: str | None = None
    read_files_below: str | None = None
    strict: bool = False
    max_tool_calls: int | None = None
    printed_warnings: set[str] = field(default_factory=set, compare=False)

    def manager(self, session: Session, on_event: Listener = lambda _: None) -> tuple[ContextWindowManager, str]:
        """Return a manager for the session, and the source of its budget in words.

        Args:
            session: The session; its model is used if none is set.
            on_event: Listener for trims and warnings. Default: one that does nothing; commands say themselves what does not fit.

        Raises:
            BadInputError: The model that was set is unknown and `--max-tokens` is missing.
        """
        from ..errors import UnknownModelError
        from ..manager import ContextWindowManager
        from ..settings.context_window import ContextWindow

        recorded_model = session.metadata.get("model")
        model = self.model or (recorded_model if isinstance(recorded_model, str) and recorded_model else None)
        recorded = recorded_window(session) if not isinstance(self.max_tokens, int) and self.model in (None, recorded_model) else None
        refuted = "" if recorded is None else refutation(session, recorded)
        recorded = None if refuted else recorded
        options = {
            "target_ratio": self.target_ratio,
            "strategy": named_strategy(self.strategy),
            "images_kept": self.images_kept,
            "max_tool_calls_per_turn": self.max_tool_calls,
            "output_reserve": 0 if recorded is not None and recorded.is_stated else None,
        }
        set_options: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        window = ContextWindow(max_tokens=self.max_tokens, keep_first_message=True, **set_options)
        try:
            config = _config(model, recorded, keeps_thinking=session.metadata.get("keeps_thinking") is True)
            manager = ContextWindowManager(config, context_window=window, on_event=on_event)
        except UnknownModelError as error:
            if self.model:
                raise BadInputError(_unknown_model(self.model, error.alike)) from None
            unknown = printable(str(model)) if is_name(str(model)) else short(model)
            manager = ContextWindowManager(context_window=window, on_event=on_event)
            return manager, f"the default, because the limit of {unknown} is unknown{refuted}; use --max-tokens to set another"
        if self.max_tokens == "auto":
            return manager, "at most the model's limit; each request's window is chosen by prices"
        if self.max_tokens is not None:
            self._warn_above_limit(manager, model)
            return manager, "set by --max-tokens"
        if recorded is not None:
            return manager, recorded.source
        if self.model:
            return manager, f"the limit of {printable(self.model)}{refuted}"
        if model:
            return manager, f"the limit of {printable(model)}, the transcript's model{refuted}"
        return manager, f"the default, because the transcript names no model{refuted}; use --model or --max-tokens to set another"

    def _warn_above_limit(self, manager: ContextWindowManager, model: str | None) -> None:
        """Warn once if the budget is larger than any prompt that the model accepts."""
        from ..models import describe_model

        budget = manager.usage().budget
        limits = describe_model(model or "")
        if limits.input_limit is None or budget <= limits.input_limit:
            return
        limit = "window" if limits.input_limit == limits.window else "largest prompt"
        warning = f"the budget of {budget:,} tokens is larger than the {limit} of {printable(str(model))}, {limits.input_limit:,} tokens"
        if warning not in self.printed_warnings:
            self.printed_warnings.add(warning)
            complain(f"{warning}; the model will refuse larger requests")


def _config(model: str | None, recorded: RecordedWindow | None, *, keeps_thinking: bool) -> ModelConfig | str | None:
    """Return the model, with what its transcript says of the session.

    Args:
        model: The model's name; None if there is none.
        recorded: The window that the session had; None if it is not known.
        keeps_thinking: True if the tool kept the thinking of earlier turns in its prompts.
    """
    from ..settings.budget import ModelConfig

    if recorded is None and not (model and keeps_thinking):
        return model
    window = None if recorded is None else recorded.tokens
    return ModelConfig(model, window=window, drops_thinking=False if keeps_thinking else None)


def _unknown_model(name: str, similar_names: tuple[str, ...]) -> str:
    hint = f"did you mean {' or '.join(similar_names)}? Otherwise add" if similar_names else "add"
    return f"the context window of {short(name)} is unknown; {hint} --max-tokens N"
