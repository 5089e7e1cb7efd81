"""OpenAI's Responses API: sessions as input items (`write.py`), items as sessions (`read.py`), a validator (`rules.py`).

`item_kinds.py` lists the items other than messages, function calls and reasoning.
"""

from typing import TYPE_CHECKING

from session.lazy import lazy_names

if TYPE_CHECKING:
    from .read import from_openai_responses
    from .rules import validate_openai_responses
    from .write import to_openai_responses
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {".read": "from_openai_responses", ".rules": "validate_openai_responses", ".write": "to_openai_responses"}
    )

__all__ = ["from_openai_responses", "to_openai_responses", "validate_openai_responses"]
