"""Google's Gemini API: sessions as contents (`write.py`), contents as sessions (`read.py`), a validator (`rules.py`)."""

from typing import TYPE_CHECKING

from session.lazy import lazy_names

if TYPE_CHECKING:
    from .read import from_google
    from .rules import validate_google
    from .write import GoogleContents, to_google
else:
    __getattr__, __dir__ = lazy_names(__name__, {".read": "from_google", ".rules": "validate_google", ".write": "GoogleContents to_google"})

__all__ = ["GoogleContents", "from_google", "to_google", "validate_google"]
