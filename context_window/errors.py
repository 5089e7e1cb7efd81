"""The exceptions of `context_window`: what does not fit, and what cannot be decided.

ContextWindowError
├── ContextOverflowError   what must be kept is larger than the budget      (`.needed`, `.budget`, `.culprits`, `.overhead`)
├── BudgetError            limits that make no sense                        (also a ValueError; `.field`, `.value`)
├── StrategyError          a strategy raised, or chose what it may not      (`.strategy`, `.problem`)
├── UnknownModelError      a model whose window is not known                (also a ValueError; `.model`)
├── RecallError            an id under which nothing can be given back  (also a KeyError; `.item_id`)
├── CountingError          a token counter gave something that is no count  (`.counter`, `.answer`)
├── CompactionError        no usable summary came; the log is as it was     (`.why`)
└── ModelError             the model's provider gave no answer; it and its kinds are in `model_errors.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from reprlib import Repr

from session.redaction import LETTERS, short, veiled

BESIDE = "tools, instructions and what else is beside the items"
"""What a request has that is in no item."""
FEWER_TOOLS = "Send fewer or shorter tools and instructions, or allow more tokens"
"""What to do where that stands in the way."""


class _Shown(Repr):
    """Values of any size in few words, by the rule of `session.redaction`; figures in lists and mappings stay readable."""

    def repr_str(self, x: str, level: int) -> str:
        """A text: in a list or a mapping by its first letters alone."""
        return veiled(x) if level == self.maxlevel else f"{x[:LETTERS]!r}{'…' if len(x) > LETTERS else ''}"

    def repr_instance(self, x: object, level: int) -> str:
        """A class or a number as it is; of another object the type."""
        return super().repr_instance(x, level) if isinstance(x, type | Number) else veiled(x)

    def repr_int(self, x: int, level: int) -> str:
        """A number; of one that Python will not write out, its size."""
        try:
            return super().repr_int(x, level)
        except ValueError:
            return f"<a number of {x.bit_length():,} bits>"


_shown = _Shown()
_shown.maxother = 100
_shown.maxlevel = 1
"""A wrong value may be a key or megabytes, or fail to show itself."""


class ContextWindowError(Exception):
    """The root: catch this to catch everything that `context_window` raises on purpose."""

    # The classes below hand their arguments, not a message, to `Exception`: those are what pickle and copy make them from.

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"  # not the arguments: one may be a key


@dataclass(frozen=True, slots=True)
class Culprit:
    """An item that stands in the way.

    Attributes:
        item_id: The item.
        what: What it is, without its content: `read_file output`, `user message`.
        tokens: What it costs.
        why: Why it was kept.
    """

    item_id: str
    what: str
    tokens: int
    why: str

    def __str__(self) -> str:
        return f"{self.what} {self.item_id} ({self.tokens:,} tokens: {self.why})"


def overhead_leads(overhead: int, largest: int) -> bool:
    """Whether what stands in the way is what a request has beside its items rather than one of these.

    Args:
        overhead: Its tokens.
        largest: Tokens of the largest item that was kept; 0 where none is left.
    """
    return overhead > largest


def overhead_told(overhead: int) -> str:
    """The overhead as what stands in the way."""
    return f"overhead ({overhead:,} tokens: {BESIDE})"


class ContextOverflowError(ContextWindowError):
    """What must be kept is larger than the budget: all that could go is gone.

    Attributes:
        needed: Tokens of the smallest view there is.
        budget: Tokens there are.
        culprits: The largest items of that view, largest first.
        overhead: Tokens of the request beside the items: tools, instructions, and what the provider's reports say beyond the local count.
    """

    def __init__(self, needed: int, budget: int, culprits: Sequence[Culprit], overhead: int = 0) -> None:
        self.needed = needed
        self.budget = budget
        self.culprits = tuple(culprits)
        self.overhead = overhead
        super().__init__(needed, budget, self.culprits, overhead)

    def __str__(self) -> str:
        largest = [str(one) for one in self.culprits[:3]]
        overhead = self.overhead if self.culprits else self.needed  # without items, it is all there is
        advice = "Shorten or unpin one of these, or use a larger window"
        if overhead_leads(overhead, self.culprits[0].tokens if self.culprits else 0):
            largest = [overhead_told(overhead), *largest[:2]]
            advice = FEWER_TOOLS
        return (
            f"what must be kept needs {self.needed:,} tokens, {self.needed - self.budget:,} more than the budget of {self.budget:,}. "
            f"Largest: {'; '.join(largest)}. {advice}."
        )


class BudgetError(ContextWindowError, ValueError):
    """A limit makes no sense.

    Attributes:
        field: The name of the setting.
        value: What it was given.
        problem: What is wrong with it, and what to pass.
    """

    def __init__(self, field: str, value: object, problem: str) -> None:
        self.field = field
        self.value = value
        self.problem = problem
        super().__init__(field, value, problem)

    def __str__(self) -> str:
        return f"{self.field}={_shown.repr(self.value)}: {self.problem}"


class StrategyError(ContextWindowError):
    """A strategy raised, or gave what cannot be carried out. The session is as it was; the view was not made.

    Attributes:
        strategy: Its name.
        problem: What it did, and what it must do instead.
    """

    def __init__(self, strategy: str, problem: str) -> None:
        self.strategy = strategy
        self.problem = problem
        super().__init__(strategy, problem)

    def __str__(self) -> str:
        return f"the strategy {short(self.strategy)} {self.problem}"


class UnknownModelError(ContextWindowError, ValueError):
    """A model's window is not known.

    Attributes:
        model: The name that was given.
        alike: Names that are known and look like it.
    """

    def __init__(self, model: str, alike: Sequence[str] = ()) -> None:
        self.model = model
        self.alike = tuple(alike)
        super().__init__(model, self.alike)

    def __str__(self) -> str:
        hint = f" Did you mean {' or '.join(self.alike)}?" if self.alike else ""
        return (
            f"the context window of model {short(self.model)} is not known.{hint} "
            "Pass ContextWindow(max_tokens=…) with the tokens its prompt may have, or ModelConfig(name, max_tokens=…) for the model."
        )


class CountingError(ContextWindowError):
    """A token counter gave something that is no count.

    Attributes:
        counter: The counter's name.
        answer: What it gave.
    """

    def __init__(self, counter: str, answer: object) -> None:
        self.counter = counter
        self.answer = answer
        super().__init__(counter, answer)

    def __str__(self) -> str:
        return (
            f"the token counter {short(self.counter)} answered {_shown.repr(self.answer)}; it must give a whole number of tokens, 0 or more"
        )


class CompactionError(ContextWindowError):
    """Nobody wrote a summary that is of use. The log is as it was.

    Attributes:
        why: What was in the way; names no content.
    """

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)

    def __str__(self) -> str:
        return f"no summary was made, and the log is unchanged: {self.why}"


class RecallError(ContextWindowError, KeyError):
    """Nothing can be given back under this id.

    Attributes:
        item_id: What was asked for.
        problem: Why there is nothing, and what to do.
    """

    def __init__(self, item_id: str, problem: str) -> None:
        self.item_id = item_id
        self.problem = problem
        super().__init__(item_id, problem)

    def __str__(self) -> str:  # a KeyError would show what it was made of
        return f"recall id {short(self.item_id)}: {self.problem}"
