"""The exception of the parts of this room that need a cluster, a remote file system, or packages for them."""

from __future__ import annotations

from session.extras import install_line

from ..errors import ContextWindowError


class FleetError(ContextWindowError):
    """Something beyond this machine's files cannot be used: a package is missing, or a cluster or a file system does not answer.

    Attributes:
        what: The package, or the address.
        problem: The reason, and what to do, in words.
    """

    def __init__(self, what: str, problem: str) -> None:
        self.what = what
        self.problem = problem
        super().__init__(what, problem)

    def __str__(self) -> str:
        return f"{self.what} {self.problem}"


def missing(package: str) -> FleetError:
    """Return the error about a package that is not installed."""
    return FleetError(package, f"is not installed: {install_line('fleet')}")
