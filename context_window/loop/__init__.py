"""The managed loop: one user turn to its end (`run_turn`), the model it asks, the tools it runs, and hooks for loops of one's own."""

from .anthropic import AnthropicModel
from .interceptor import Interceptor, TurnInterceptor
from .model import Answer, Model
from .toolbox import Toolbox
from .turn import TurnResult, run_turn

__all__ = ["Answer", "AnthropicModel", "Interceptor", "Model", "Toolbox", "TurnInterceptor", "TurnResult", "run_turn"]
