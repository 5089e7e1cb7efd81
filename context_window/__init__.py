"""What a model sees of a session that has outgrown its context window: counted, trimmed by priority, explained.

from context_window import ContextWindowManager, Session

manager = ContextWindowManager("claude-sonnet-5-5")
view = manager.process_session(session)  # before every call of the model
print(manager.format_token_usage())
"""

import logging as _logging

import session as _session

if not hasattr(_session, "SESSION_OF_CONTEXT_WINDOW"):  # before anything below imports from it and fails in a riddle
    raise ImportError(
        f"context_window needs its own package `session`, but `import session` found {getattr(_session, '__file__', None) or _session!r}. "
        "Rename that file, or move it out of the directories that Python searches before site-packages."
    )

from session import *  # noqa: F403 - all of session's public names are ours too
from session import __all__ as _session_names

from .budget import ModelConfig
from .calling import ToolCalls
from .config import ContextWindow, Shares, TokenBudget
from .counting import CharacterCounter, CtokCounter, TiktokenCounter, TokenCounter
from .errors import (
    BudgetError,
    CompactionError,
    ContextOverflowError,
    ContextWindowError,
    CountingError,
    RecallError,
    StrategyError,
    UnknownModelError,
)
from .events import (
    CalibrationReset,
    Compacted,
    CompactionFailed,
    CounterFellBack,
    OverBudget,
    PartRefused,
    PartUnusable,
    ProviderOverBudget,
    ThresholdCrossed,
    Trimmed,
    WindowEvent,
)
from .loop import Answer, AnthropicModel, Interceptor, Model, Toolbox, TurnInterceptor, TurnResult, run_turn
from .manager import ContextWindowManager
from .model_errors import (
    ModelAccessError,
    ModelError,
    ModelNetworkError,
    ModelOverloadedError,
    ModelRateLimitError,
    PartRefusedError,
    PromptTooLongError,
)
from .recall import RecallTool
from .strategies import Chain, DropOldest, NeverTrim, PriorityTrim, SlidingWindow, Summarize
from .trimming.choices import Choice, MeasuredUnit, Strategy, StrategyBudget
from .trimming.plan import Action, Decision, Plan, Reason
from .usage import SessionStats, UsageReport

__version__ = "0.1.0"

_logging.getLogger(__name__).addHandler(_logging.NullHandler())  # what is logged is shown only where the user wants it

__all__ = [
    "Action",
    "Answer",
    "AnthropicModel",
    "BudgetError",
    "CalibrationReset",
    "Chain",
    "CharacterCounter",
    "Choice",
    "Compacted",
    "CompactionError",
    "CompactionFailed",
    "ContextOverflowError",
    "ContextWindow",
    "ContextWindowError",
    "ContextWindowManager",
    "CounterFellBack",
    "CountingError",
    "CtokCounter",
    "Decision",
    "DropOldest",
    "Interceptor",
    "MeasuredUnit",
    "Model",
    "ModelAccessError",
    "ModelConfig",
    "ModelError",
    "ModelNetworkError",
    "ModelOverloadedError",
    "ModelRateLimitError",
    "NeverTrim",
    "OverBudget",
    "PartRefused",
    "PartRefusedError",
    "PartUnusable",
    "Plan",
    "PriorityTrim",
    "PromptTooLongError",
    "ProviderOverBudget",
    "Reason",
    "RecallError",
    "RecallTool",
    "SessionStats",
    "Shares",
    "SlidingWindow",
    "Strategy",
    "StrategyBudget",
    "StrategyError",
    "Summarize",
    "ThresholdCrossed",
    "TiktokenCounter",
    "TokenBudget",
    "TokenCounter",
    "ToolCalls",
    "Toolbox",
    "Trimmed",
    "TurnInterceptor",
    "TurnResult",
    "UnknownModelError",
    "UsageReport",
    "WindowEvent",
    "__version__",
    "run_turn",
    *_session_names,
]
