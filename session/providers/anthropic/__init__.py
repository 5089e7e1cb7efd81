"""Anthropic's Messages API: sessions as messages (`write.py`), messages as sessions (`read.py`), a validator (`rules.py`)."""

from typing import TYPE_CHECKING

from session.lazy import lazy_names

if TYPE_CHECKING:
    from .read import from_anthropic
    from .rules import validate_anthropic
    from .write import AnthropicMessages, to_anthropic
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {".read": "from_anthropic", ".rules": "validate_anthropic", ".write": "AnthropicMessages to_anthropic"}
    )

__all__ = ["AnthropicMessages", "from_anthropic", "to_anthropic", "validate_anthropic"]
