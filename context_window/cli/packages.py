"""`needs`: the line that a command says if packages of its extra are missing, before it has done any work."""

from __future__ import annotations

from importlib.util import find_spec

from session.extras import install_line

from .output import BadInputError


def needs(extra: str, who: str, *modules: str) -> None:
    """Do nothing if the modules can be imported.

    Args:
        extra: The extra that brings them.
        who: What needs them.
        modules: Their names.

    Raises:
        BadInputError: One is missing.
    """
    if any(find_spec(name) is None for name in modules):
        raise BadInputError(f"{who} needs more packages: {install_line(extra)}")
