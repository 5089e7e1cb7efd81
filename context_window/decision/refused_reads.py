"""Rule: where an assistant refuses to show a file again, and the view lacks it, the earlier result stands in the notice's place.

Claude Code answers a second read of an unchanged file with a notice that refers to the earlier result. A model that does not see that
result any more would go on blind. The log still has it.
"""

from __future__ import annotations

import re

from session.items import FunctionCallOutput, copy_with
from session.json_strings import object_of
from session.parts import Text
from session.units import KIND_OUTPUT, NONE

from .frontier import outputs_of
from .plan import Action
from .view import Rule, View

_NOTICE = re.compile(r"\W{0,9}(?:File unchanged since last read\.|Wasted call\W{1,5}file unchanged since your last Read)")
"""How the notices begin that are known: of Claude Code. The other assistants that are tested show a file again."""


class RefusedReads(Rule):
    """Puts back what notices refer to, if the model has not read them yet and the view does not have it whole.

    Before trims, which then make room for it; and after a trim that has taken it, if it fits.
    """

    def decide(self, view: View) -> View:
        """Return the view with earlier results in the place of notices."""
        return _put_back(view, only_if_it_fits=False)

    def settle(self, view: View, before: View) -> View:  # noqa: ARG002 - as in `Rule`
        """Return the view with what the trim has taken from it, if there is room."""
        return _put_back(view, only_if_it_fits=True)


def _put_back(view: View, *, only_if_it_fits: bool) -> View:
    draft = view
    for at in outputs_of(view):
        if at < view.log.groups.frontier or view.edit(at).action is not Action.KEEP or (source := source_of(draft, at)) == NONE:
            continue
        tokens = view.log.measures.measure(restored(_output(view, at), _output(view, source))).tokens
        if not only_if_it_fits or draft.total + tokens - draft.costs[at] <= view.limits.budget:
            draft = view.draft() if draft is view else draft
            draft.restore(at, source, tokens)
    return draft


def source_of(view: View, index: int) -> int:
    """Return the position of the result that a notice refers to; -1 if this is no notice, nothing is known, or the view has it whole."""
    if not is_notice(_output(view, index)):
        return NONE
    call, source = view.log.calls[index], NONE
    asked = object_of(call.arguments)
    for earlier in range(index - 1, -1, -1):
        if view.log.groups.kind[earlier] != KIND_OUTPUT or (made := view.log.calls[earlier]).name != call.name:
            continue
        if object_of(made.arguments) != asked or _output(view, earlier).is_error:
            continue
        edit = view.edit(earlier)
        if is_notice(_output(view, earlier)):
            if edit.action is Action.RESTORE:
                return NONE
            continue
        source = earlier
        break
    if source == NONE or view.edit(source).action is Action.KEEP:
        return NONE
    return source if all(isinstance(part, Text) for part in _output(view, source).output) else NONE


def is_notice(output: FunctionCallOutput) -> bool:
    """True if the output only says that a file has not changed since it was read."""
    return bool(output.output) and isinstance(output.output[0], Text) and _NOTICE.match(output.output[0].text) is not None


def restored(notice: FunctionCallOutput, source: FunctionCallOutput) -> FunctionCallOutput:
    """Return a notice with the content that it refers to."""
    return copy_with(notice, output=source.output)


def _output(view: View, index: int) -> FunctionCallOutput:
    output = view.log.items[index]
    assert isinstance(output, FunctionCallOutput)
    return output
