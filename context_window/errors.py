"""The exceptions of `context_window`, except those about a model's provider (`model_errors.py`).

ContextWindowError
├── ContextOverflowError   the protected items are larger than the budget             (`.needed`, `.budget`, `.culprits`, `.overhead`)
├── ArgumentError          an argument makes no sense                                 (also a ValueError; `.field`, `.value`, `.problem`)
│   ├── BudgetError        … a limit or another setting of the window
│   ├── ModelArgumentError … a model's name, its configuration, or the object that answers
│   ├── ClientError        … a provider's client
│   └── ToolsError         … the tools of a request, or one of its options
├── StrategyError          a strategy raised, or made a choice that is not allowed     (`.strategy`, `.problem`)
├── UnknownModelError      the model's window is not known                            (also a ValueError; `.model`)
├── RecallError            nothing can be recalled by this id                         (also a KeyError; `.item_id`)
├── CountingError          a token counter returned something that is not a count     (`.counter`, `.answer`)
├── CompactionError        no usable summary was written; the log is unchanged        (`.why`)
└── ModelError             the model's provider did not answer; see `model_errors.py`

A `ContextWindowWarning` is what goes on although somebody should know of it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from reprlib import Repr

from session.redaction import LETTERS, short, veiled

OUTSIDE_ITEMS = "tools, instructions and other parts of the request outside its items"
"""The contents of the overhead, in words."""
FEWER_TOOLS = "Send fewer or shorter tools and instructions"
"""The advice if the overhead is the largest cost."""


class _RedactedRepr(Repr):
    """Short representations of values, redacted as in `session.redaction`. Numbers in lists and mappings stay readable."""

    def repr_str(self, x: str, level: int) -> str:
        """Return a redacted text; inside a list or mapping only its first letters."""
        return veiled(x) if level == self.maxlevel else f"{x[:LETTERS]!r}{'…' if len(x) > LETTERS else ''}"

    def repr_instance(self, x: object, level: int) -> str:
        """Return a class or a number unchanged; for any other object its type."""
        return super().repr_instance(x, level) if isinstance(x, type | Number) else veiled(x)

    def repr_int(self, x: int, level: int) -> str:
        """Return a number, or its size if Python refuses to write it out."""
        try:
            return super().repr_int(x, level)
        except ValueError:
            return f"<a number of {x.bit_length():,} bits>"


_redacted = _RedactedRepr()
_redacted.maxother = 100
_redacted.maxlevel = 1
"""A wrong argument may be an API key, megabytes long, or an object whose `repr` raises."""


class ContextWindowError(Exception):
    """The base class: catch it to catch everything that `context_window` raises on purpose."""

    # Subclasses pass their arguments, not a message, to `Exception`: pickle and copy recreate the exception from them.

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"  # not the arguments: one may be a key


@dataclass(frozen=True, slots=True)
class Culprit:
    """An item that takes up a large part of an overflowing view.

    Attributes:
        item_id: The item's id.
        what: A description without content: `read_file output`, `user message`.
        tokens: Its tokens.
        why: The reason why it could not be taken out.
    """

    item_id: str
    what: str
    tokens: int
    why: str

    def __str__(self) -> str:
        return f"{self.what} {self.item_id} ({self.tokens:,} tokens: {self.why})"


def is_overhead_largest(overhead: int, largest: int) -> bool:
    """True if the overhead takes up more of the request than any item."""
    return overhead > largest


def overhead_text(overhead: int) -> str:
    """Return a description of the overhead, in the form of a `Culprit`'s."""
    return f"overhead ({overhead:,} tokens: {OUTSIDE_ITEMS})"


class ContextOverflowError(ContextWindowError):
    """The protected items and the overhead are larger than the budget, although everything else was taken out.

    Attributes:
        needed: Tokens of the smallest possible view.
        budget: Tokens that a view may cost.
        culprits: The largest items of that view, largest first.
        overhead: Tokens of the request outside its items: tools, instructions, and any excess of the provider's reports over the local
            count.
    """

    def __init__(self, needed: int, budget: int, culprits: Sequence[Culprit], overhead: int = 0) -> None:
        self.needed = needed
        self.budget = budget
        self.culprits = tuple(culprits)
        self.overhead = overhead
        super().__init__(needed, budget, self.culprits, overhead)

    def __str__(self) -> str:
        largest = [str(culprit) for culprit in self.culprits[:3]]
        overhead = self.overhead if self.culprits else self.needed  # a view without items is overhead only
        advice = "Shorten or unpin one of these, or use a larger window"
        if is_overhead_largest(overhead, self.culprits[0].tokens if self.culprits else 0):
            largest = [overhead_text(overhead), *largest[:2]]
            advice = f"{FEWER_TOOLS}, or allow more tokens"
        return (
            f"what must be kept needs {self.needed:,} tokens, {self.needed - self.budget:,} more than the budget of {self.budget:,}. "
            f"Largest: {'; '.join(largest)}. {advice}."
        )


class ArgumentError(ContextWindowError, ValueError):
    """An argument makes no sense. The message names it, shows its value, and says what to pass instead.

    Attributes:
        field: The argument's name.
        value: Its value.
        problem: The problem with it, and what to pass instead.
    """

    def __init__(self, field: str, value: object, problem: str) -> None:
        self.field = field
        self.value = value
        self.problem = problem
        super().__init__(field, value, problem)

    def __str__(self) -> str:
        return f"{self.field}={_redacted.repr(self.value)}: {self.problem}"


class BudgetError(ArgumentError):
    """A limit makes no sense, or another setting of the window."""


class ModelArgumentError(ArgumentError):
    """This is not the name of a model, not its configuration, or not an object that answers as a `Model` does."""


class ClientError(ArgumentError):
    """This is not a provider's client, or one that cannot be used here."""


class ToolsError(ArgumentError):
    """The tools of a request make no sense, or one of its options does not."""


class StrategyError(ContextWindowError):
    """A strategy raised, or made a choice that cannot be carried out. The session is unchanged, and no view was made.

    Attributes:
        strategy: The strategy's name.
        problem: The strategy's mistake, and the remedy.
    """

    def __init__(self, strategy: str, problem: str) -> None:
        self.strategy = strategy
        self.problem = problem
        super().__init__(strategy, problem)

    def __str__(self) -> str:
        return f"the strategy {short(self.strategy)} {self.problem}"


class UnknownModelError(ContextWindowError, ValueError):
    """The context window of a model is not known.

    Attributes:
        model: The model's name, as it was passed.
        alike: Similar names of known models.
    """

    def __init__(self, model: str, alike: Sequence[str] = ()) -> None:
        self.model = model
        self.alike = tuple(alike)
        super().__init__(model, self.alike)

    def __str__(self) -> str:
        hint = f" Did you mean {' or '.join(self.alike)}?" if self.alike else ""
        return (
            f"the context window of model {short(self.model)} is not known.{hint} Pass max_tokens=…, the tokens that its prompt may have."
        )


class CountingError(ContextWindowError):
    """A token counter returned something that is not a count.

    Attributes:
        counter: The counter's name.
        answer: The value it returned.
    """

    def __init__(self, counter: str, answer: object) -> None:
        self.counter = counter
        self.answer = answer
        super().__init__(counter, answer)

    def __str__(self) -> str:
        return (
            f"the token counter {short(self.counter)} returned {_redacted.repr(self.answer)}; "
            "it must return a whole number of tokens, 0 or more"
        )


class CompactionError(ContextWindowError):
    """No usable summary was written. The log is unchanged.

    Attributes:
        why: The reason; it contains nothing of the session's content.
    """

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)

    def __str__(self) -> str:
        return f"no summary was made, and the log is unchanged: {self.why}"


class RecallError(ContextWindowError, KeyError):
    """Nothing can be recalled by this id.

    Attributes:
        item_id: The requested id.
        problem: The reason, and what to do.
    """

    def __init__(self, item_id: str, problem: str) -> None:
        self.item_id = item_id
        self.problem = problem
        super().__init__(item_id, problem)

    def __str__(self) -> str:  # KeyError would show the arguments
        return f"recall id {short(self.item_id)}: {self.problem}"


class ContextWindowWarning(UserWarning):
    """A request was made, and may not be what you meant: `warnings.simplefilter("error", ContextWindowWarning)` makes it an exception.

    Attributes:
        event: The event that no listener of yours was told of: an `OverBudget`. None for any other cause.
    """

    def __init__(self, message: str, event: object = None) -> None:
        self.event = event
        super().__init__(message)


def warn(message: str, event: object = None) -> None:
    """Warn with a `ContextWindowWarning`, at the line outside this package that is being run."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("context_window", "session"):
        level, frame = level + 1, frame.f_back
    warnings.warn(ContextWindowWarning(message, event), stacklevel=level)
