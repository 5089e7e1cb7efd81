# The names of this package for type checkers, each with its module. At run time `__init__.py` imports them at their first use.

from session import *
from .counting import (
    CharacterCounter as CharacterCounter,
    CtokCounter as CtokCounter,
    GigatokenCounter as GigatokenCounter,
    TiktokenCounter as TiktokenCounter,
    TokenCounter as TokenCounter,
)
from .decision.plan import Action as Action, Decision as Decision, Plan as Plan, Reason as Reason
from .decision.strategy_api import (
    Choice as Choice,
    Extraction as Extraction,
    MeasuredUnit as MeasuredUnit,
    Strategy as Strategy,
    StrategyBudget as StrategyBudget,
    keep_lines as keep_lines,
)
from .decision.tool_rules import ToolRule as ToolRule
from .errors import (
    ArgumentError as ArgumentError,
    BudgetError as BudgetError,
    ClientError as ClientError,
    CompactionError as CompactionError,
    ContextOverflowError as ContextOverflowError,
    ContextWindowError as ContextWindowError,
    ContextWindowWarning as ContextWindowWarning,
    CountingError as CountingError,
    ModelArgumentError as ModelArgumentError,
    RecallError as RecallError,
    StrategyError as StrategyError,
    ToolsError as ToolsError,
    UnknownModelError as UnknownModelError,
)
from .events.definitions import (
    CalibrationReset as CalibrationReset,
    Compacted as Compacted,
    CompactionFailed as CompactionFailed,
    CounterFellBack as CounterFellBack,
    OverBudget as OverBudget,
    PartRefused as PartRefused,
    PartUnusable as PartUnusable,
    ProviderOverBudget as ProviderOverBudget,
    ThresholdCrossed as ThresholdCrossed,
    Trimmed as Trimmed,
    WindowEvent as WindowEvent,
)
from .loop import (
    Answer as Answer,
    AnthropicModel as AnthropicModel,
    GoogleModel as GoogleModel,
    Interceptor as Interceptor,
    Model as Model,
    OpenAIModel as OpenAIModel,
    SchemaTool as SchemaTool,
    Toolbox as Toolbox,
    TurnInterceptor as TurnInterceptor,
    TurnResult as TurnResult,
    run_turn as run_turn,
)
from .managed_messages import manage as manage
from .manager import ContextWindowManager as ContextWindowManager
from .model_errors import (
    ModelAccessError as ModelAccessError,
    ModelError as ModelError,
    ModelNetworkError as ModelNetworkError,
    ModelOverloadedError as ModelOverloadedError,
    ModelRateLimitError as ModelRateLimitError,
    PartRefusedError as PartRefusedError,
    PromptTooLongError as PromptTooLongError,
)
from .recall import RecallTool as RecallTool
from .settings.budget import ModelConfig as ModelConfig
from .settings.context_window import ContextWindow as ContextWindow
from .settings.shares import Shares as Shares, TokenBudget as TokenBudget
from .strategies import (
    Chain as Chain,
    DropOldest as DropOldest,
    Extract as Extract,
    NeverTrim as NeverTrim,
    PriorityTrim as PriorityTrim,
    SlidingWindow as SlidingWindow,
    Summarize as Summarize,
)
from .usage.report import SessionStats as SessionStats, UsageReport as UsageReport
from .usage.tool_calls import ToolCalls as ToolCalls

__version__: str
