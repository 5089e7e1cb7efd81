"""OpenAI's Chat Completions API: a session in its words (`write.py`), its words as a session (`read.py`), its rules (`rules.py`).

`pieces.py` and `reading.py` are shared with the Responses API.
"""

from .read import from_openai_chat
from .rules import validate_openai_chat
from .write import to_openai_chat

__all__ = ["from_openai_chat", "to_openai_chat", "validate_openai_chat"]
