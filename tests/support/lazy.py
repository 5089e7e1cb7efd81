"""Modules that are imported at first use. The clients and frameworks take seconds to import, and collecting the tests needs none of them.

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """A stand-in for a module. Imports it when an attribute is first looked up."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks for some at every name of a test module
            raise AttributeError(attribute)
        value = getattr(import_module(self._name), attribute)
        setattr(self, attribute, value)
        return value
