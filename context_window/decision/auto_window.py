"""`limits_now`: the window that costs least at this place of the conversation. Pure: the same log always has the same windows.

A view that grows by g tokens a request is read from the cache at every request, at price r, and written anew at every trim, at price w.
With P tokens that no trim takes, and K tokens kept besides, a step of S tokens from one trim to the next costs, for each request,

    r (P + K + S/2) + (w - r) K g / S

which is least with S = √(2 K g (w - r) / r). A view is trimmed above P + K + S, and goes down to P + K. So a trim is rare where much would
be written anew, and the window grows with what cannot be taken: a large head, or an output that the model has not read yet.

After a pause in which the cache forgets, everything is written anew in any case, so a trim costs nothing: there the view goes down to P + K
as soon as that saves a quarter of K.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from .limits import Limits
from .view import View


def limits_now(view: View) -> Limits:
    """Return the limits of a view at the end of its log: the trigger and the target are at most those that the settings allow."""
    limits = view.limits
    if limits.auto is None:
        return limits
    base, kept = view.total_of(view.protected()), limits.auto.kept
    step = max(kept, isqrt(2 * kept * _growth(view) * limits.auto.rewrite // 100))
    if _is_forgotten(view, limits.auto.lifetime):
        step = kept // 4
    trigger = min(limits.trigger, base + kept + step)
    return replace(limits, trigger=trigger, target=min(limits.target, base + kept, trigger - 1))


def _is_forgotten(view: View, lifetime: float) -> bool:
    """True if the newest item came so long after the last response that the provider's cache has forgotten the request before."""
    log, starts = view.log, view.log.groups.response_starts
    return bool(starts) and log.items[-1].created_at - log.items[starts[-1]].created_at > lifetime


def _growth(view: View) -> int:
    """Return the tokens by which a request is larger than the one before, on average. The first one is not counted."""
    starts = view.log.groups.response_starts
    if not starts:
        return 0
    return (view.log.total - sum(view.log.tokens[: starts[0]])) // len(starts)
