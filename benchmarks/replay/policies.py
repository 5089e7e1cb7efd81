"""The ways to trim that are compared: this library's, and others' that need no package of theirs.

Those of opencode and Anthropic are written here from what their documentation says they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from context_window import ContextWindow, ContextWindowManager
from context_window.counting.tiktoken_counter import TiktokenCounter
from context_window.strategies import DropOldest, Extract, SlidingWindow
from session import Session
from session.items import FunctionCallOutput, Item, Message
from session.parts import Text

from .sessions import tokens_of

View: TypeAlias = Callable[[Session], Sequence[Item]]
"""Returns the items to send of a log that ends before a request. Called with the same session, which grows."""
Policy: TypeAlias = Callable[[int], View]
"""Makes a `View` for one session and a window of so many tokens."""


# This library's


def ours(**settings: Any) -> Policy:
    """Return the policy of a `ContextWindow` with these settings."""

    def policy(window: int) -> View:
        settled = ContextWindow(max_tokens=window, coverage=None, **settings)  # the log's reports are of other requests
        manager = ContextWindowManager(token_counter=TiktokenCounter(), context_window=settled)
        return lambda log: manager.process_session(log).items

    return policy


def _oldest_first(window: int) -> View:
    """Drop the oldest units, at every request, down to the budget and no further."""
    return ours(strategy=DropOldest(), target_ratio=1.0, note_removed=False)(window)


# opencode's prune: older tool outputs are erased beyond a protected amount of the newest, if that is worth a new cache. What it then asks
# a model to summarise, here the oldest units are dropped for. Its amounts (40,000 and 20,000 tokens of a window of 100,000 or so) are parts
# of the window here.

OPENCODE_PROTECTED, OPENCODE_LEAST = 0.4, 0.2
OPENCODE_NOTE = (Text("[Old tool result content cleared]"),)


def _opencode(window: int) -> View:
    cleared: dict[str, Item] = {}
    trim = _oldest_first(window)
    pruned = Session()

    def view(log: Session) -> Sequence[Item]:
        nonlocal pruned
        outputs = [item for item in log.items if isinstance(item, FunctionCallOutput)]
        protected, candidates = 0, []
        for output in reversed(outputs):
            if output.id in cleared:
                break
            protected += tokens_of(output)
            if protected > OPENCODE_PROTECTED * window:
                candidates.append(output)
        if sum(map(tokens_of, candidates)) > OPENCODE_LEAST * window:
            cleared.update((output.id, replace(output, output=OPENCODE_NOTE)) for output in candidates)
            pruned = Session()
        return trim(_extended(pruned, log, cleared))

    return view


# Anthropic's context editing, `clear_tool_uses_20250919` with its defaults: once the request exceeds the trigger, all tool results but
# those of the three newest uses are cleared. What is cleared stays cleared, so that the cache can be used again.

ANTHROPIC_KEPT = 3
ANTHROPIC_NOTE = (Text("[Tool result cleared to save context]"),)


def _anthropic(window: int) -> View:
    cleared: dict[str, Item] = {}

    def view(log: Session) -> Sequence[Item]:
        shown = [cleared.get(item.id, item) for item in log.items]
        if sum(map(tokens_of, shown)) > window:
            outputs = [item for item in log.items if isinstance(item, FunctionCallOutput)]
            for output in outputs[:-ANTHROPIC_KEPT]:
                cleared.setdefault(output.id, replace(output, output=ANTHROPIC_NOTE))
            shown = [cleared.get(item.id, item) for item in log.items]
        return shown

    return view


# Observation masking, as in "The Complexity Trap" (arXiv 2508.21433): at every request, outputs older than the newest ten are placeholders.
# There is no window.

MASKING_KEPT = 10
MASKING_NOTE = (Text("Previous observation omitted."),)


def _masking(_window: int) -> View:
    masked: dict[str, Item] = {}

    def view(log: Session) -> Sequence[Item]:
        has_calls = any(isinstance(item, FunctionCallOutput) for item in log.items)
        results = [item for item in log.items if isinstance(item, FunctionCallOutput)]
        if not has_calls:
            results = [item for item in log.items if isinstance(item, Message) and item.role == "user"][1:]
        for result in results[:-MASKING_KEPT]:
            field = "output" if isinstance(result, FunctionCallOutput) else "content"
            masked.setdefault(result.id, replace(result, **{field: MASKING_NOTE}))
        return [masked.get(item.id, item) for item in log.items]

    return view


def _extended(copy: Session, log: Session, changed: dict[str, Item]) -> Session:
    """Append what is new in the log to a copy of it in which some items are changed, and return the copy."""
    copy.restore_seams(log.response_breaks, 0)
    for item in log.items[len(copy.items) :]:
        copy.append(changed.get(item.id, item))
    return copy


# By name


class Named(NamedTuple):
    """A policy with its name in the tables."""

    label: str
    policy: Policy


def known_policies() -> dict[str, Named]:
    """Return the policies by the names that the command takes, in the order of the tables."""
    return {
        "default": Named("our default", ours()),
        "target-90": Named("target .9 instead of .65", ours(target_ratio=0.9)),
        "extract": Named("`Extract()`", ours(strategy=Extract())),
        "arrivals": Named("`Extract()`, outputs of at most a tenth", ours(strategy=Extract(), largest_output=0.1)),
        "drop-oldest": Named("`DropOldest()`", ours(strategy=DropOldest())),
        "sliding-window": Named("`SlidingWindow(40, step=20)`", ours(strategy=SlidingWindow(40, step=20))),
        "oldest-first": Named("oldest first, to the budget, every turn", _oldest_first),
        "opencode": Named("opencode's prune", _opencode),
        "masking": Named("observation masking, newest ten kept", _masking),
        "anthropic": Named("Anthropic's clear_tool_uses", _anthropic),
    }


def chosen_policies(names: Sequence[str], known: Mapping[str, Named]) -> dict[str, Named]:
    """Return the policies of these names; all known ones if there are none.

    Args:
        names: Names of known policies, or `module:name` of a policy anywhere.
        known: The known policies.

    Raises:
        LookupError: There is no such policy.
    """
    return {name: known[name] if name in known else _imported(name, known) for name in names} if names else dict(known)


def _imported(name: str, known: Iterable[str]) -> Named:
    module, _, attribute = name.partition(":")
    if not attribute:
        raise LookupError(f"there is no policy {name!r}; pass some of {', '.join(known)}, or module:name")
    try:
        return Named(name, getattr(import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise LookupError(f"there is no policy {name!r}: {error}") from error
