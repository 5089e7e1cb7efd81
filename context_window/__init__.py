"""Fits the sessions of coding assistants into a model's context window: counts tokens, trims by priority, explains every decision.

from context_window import ContextWindowManager, Session

manager = ContextWindowManager("claude-sonnet-5-5")
view = manager.process_session(session)  # before every call of the model
print(manager.format_token_usage())
"""

import logging as _logging

import session as _session

if not hasattr(_session, "SESSION_OF_CONTEXT_WINDOW"):  # checked first: the imports below would fail with a confusing message
    raise ImportError(
        f"context_window needs its own package `session`, but `import session` found {getattr(_session, '__file__', None) or _session!r}. "
        "Rename that file, or move it out of the directories that Python searches before site-packages."
    )

from session import __all__ as _session_names
from session.lazy import lazy_names as _lazy_names

_NAMES = {
    ".counting": "CharacterCounter CtokCounter GigatokenCounter TiktokenCounter TokenCounter",
    ".errors": (
        "ArgumentError BudgetError ClientError CompactionError ContextOverflowError ContextWindowError ContextWindowWarning "
        "CountingError ModelArgumentError RecallError StrategyError ToolsError UnknownModelError"
    ),
    ".events.definitions": (
        "CalibrationReset Compacted CompactionFailed CounterFellBack OverBudget PartRefused PartUnusable "
        "ProviderOverBudget ThresholdCrossed Trimmed WindowEvent"
    ),
    ".loop": ("Answer AnthropicModel GoogleModel Interceptor Model OpenAIModel SchemaTool Toolbox TurnInterceptor TurnResult run_turn"),
    ".managed_messages": "manage",
    ".manager": "ContextWindowManager",
    ".model_errors": (
        "ModelAccessError ModelError ModelNetworkError ModelOverloadedError ModelRateLimitError PartRefusedError PromptTooLongError"
    ),
    ".recall": "RecallTool",
    ".settings.budget": "ModelConfig",
    ".settings.context_window": "ContextWindow",
    ".settings.shares": "Shares TokenBudget",
    ".strategies": "Chain DropOldest Extract NeverTrim PriorityTrim SlidingWindow Summarize",
    ".decision.plan": "Action Decision Plan Reason",
    ".decision.strategy_api": "Choice Extraction MeasuredUnit Strategy StrategyBudget keep_lines",
    ".decision.tool_rules": "ToolRule",
    ".usage.report": "SessionStats UsageReport",
    ".usage.tool_calls": "ToolCalls",
}
__getattr__, __dir__ = _lazy_names(
    __name__,
    {"session": " ".join(_session_names), **_NAMES},
    renamed={
        "ChatContext": "it is Session here",
        "ReadOnlyChatContext": "it is session.read_only() here",
        "ChatMessage": "it is Message here",
        "ChatRole": 'roles are texts here: "system", "developer", "user", "assistant"',
        "ImageContent": "it is Image here",
        "trim_messages": "it is ContextWindowManager(…).process_session(session) here",
    },
)

__version__ = "0.1.0"

_logging.getLogger(__name__).addHandler(_logging.NullHandler())  # logging stays silent until the user configures it

__all__ = [*sorted(["__version__", *" ".join(_NAMES.values()).split()]), *_session_names]
