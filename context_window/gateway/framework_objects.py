"""Messages that `manage` takes as objects, with the adapters that the frameworks' own middleware has."""

from __future__ import annotations

from typing import Any, ClassVar

from ..integrations.message_adapter import MessageAdapter
from .wire_format import MessageFormat


def format_of_objects(first: object) -> MessageFormat | None:
    """Return the format of messages that begin with LangChain's or Pydantic AI's; None for all others. Their packages are imported.

    Args:
        first: The first message.
    """
    packages = {kind.__module__.partition(".")[0] for kind in type(first).__mro__}
    if "langchain_core" in packages:
        from ..integrations.langchain_messages import LangChainAdapter

        class LangChainFormat(_ObjectFormat):
            adapter: ClassVar[MessageAdapter[Any]] = LangChainAdapter()

        return LangChainFormat()
    if "pydantic_ai" in packages:
        from ..integrations.pydantic_ai_messages import PydanticAdapter

        class PydanticFormat(_ObjectFormat):
            adapter: ClassVar[MessageAdapter[Any]] = PydanticAdapter()

        return PydanticFormat()
    return None


class _ObjectFormat(MessageFormat):
    is_of_objects: ClassVar[bool] = True
