# The names of this package for type checkers, each with its module. At run time `__init__.py` imports them at their first use.

from .conversation_text import render_items as render_items
from .errors import (
    DuplicateItemError as DuplicateItemError,
    FormatError as FormatError,
    PositionError as PositionError,
    ReadOnlyError as ReadOnlyError,
    SessionError as SessionError,
    StoreBusyError as StoreBusyError,
    StoreConflictError as StoreConflictError,
    StoreDamagedError as StoreDamagedError,
    StoreError as StoreError,
    SummaryError as SummaryError,
    TranscriptError as TranscriptError,
    UnknownItemError as UnknownItemError,
    UnknownSessionError as UnknownSessionError,
)
from .items import (
    AgentConfigUpdate as AgentConfigUpdate,
    AgentHandoff as AgentHandoff,
    Compaction as Compaction,
    FunctionCall as FunctionCall,
    FunctionCallOutput as FunctionCallOutput,
    Item as Item,
    Message as Message,
    MessageCategory as MessageCategory,
    Reasoning as Reasoning,
    Role as Role,
)
from .parts import Content as Content, Document as Document, Image as Image, Part as Part, Text as Text
from .read_only import ReadOnlySession as ReadOnlySession
from .removed import Removed as Removed
from .session import Session as Session
from .summarizers import AnthropicSummarizer as AnthropicSummarizer, Summarizer as Summarizer
from .usage import Usage as Usage

SESSION_OF_CONTEXT_WINDOW: bool
