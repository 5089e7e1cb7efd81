"""OpenAI's Chat Completions API: sessions as messages (`write.py`), messages as sessions (`read.py`), a validator (`rules.py`).

The Responses API shares `content.py` and `parse.py`.
"""

from typing import TYPE_CHECKING

from session.lazy import lazy_names

if TYPE_CHECKING:
    from .read import from_openai_chat
    from .rules import validate_openai_chat
    from .write import to_openai_chat
else:
    __getattr__, __dir__ = lazy_names(__name__, {".read": "from_openai_chat", ".rules": "validate_openai_chat", ".write": "to_openai_chat"})

__all__ = ["from_openai_chat", "to_openai_chat", "validate_openai_chat"]
