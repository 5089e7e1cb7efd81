"""Anthropic's Messages API: a session in its words (`write.py`), its words as a session (`read.py`), its rules (`rules.py`)."""

from .read import from_anthropic
from .rules import validate_anthropic
from .write import AnthropicMessages, to_anthropic

__all__ = ["AnthropicMessages", "from_anthropic", "to_anthropic", "validate_anthropic"]
