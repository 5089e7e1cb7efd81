"""The managed loop: `run_turn` runs one user turn. Also: the `Model` protocol, functions as tools, and hooks for other loops.

Theory of operation, one turn:

1. Input. The user's message is appended to the session. With `user_input=None` an unfinished turn is resumed: every call since the last
   user message that has no output gets an error output, because nobody knows if it ran (`unanswered.py`).
2. View. `manager.manage(session)` summarises older turns if that is due, trims, and returns the view. This happens before every request,
   also between two rounds of tool calls.
3. Request. `model.answer(view, tools, allow_tools=…)`. Text is passed on while it streams. Tools stay in the request when they may not
   be called, because the calls in the history need their definitions and the cached prefix should stay valid.
4. Refusal. A provider may refuse the prompt as too long, or an image or document as unreadable. `manager.accept_refusal` then lowers
   the session's budget, or puts a note in place of the part, and the turn goes back to 2. Each kind of refusal is retried once per
   request (`retries.py`); the second one is raised.
5. Answer. Its items are appended. The first one carries the reported usage, the model's name and what the manager notes about the
   request. Call ids that appear twice in the answer, or item ids that are already in the log, are replaced.
6. End. An answer without calls ends the turn, unless its stop reason is `pause_turn`: then the turn goes back to 2, at most `MAX_PAUSES`
   times in a row. An answer that was cut off or refused ends the turn too, and its calls get error outputs: their arguments may be
   incomplete.
7. Tool calls. The calls of one answer run concurrently, plain functions in threads (`tool_runner.py`). Arguments are checked against the
   type hints (`toolbox.py`). Every call gets an output; a tool that raises gets an error output. Back to 2.
8. Limit. Calls beyond `max_tool_calls_per_turn` get an error output instead of being run. Once none is left, the model is asked once
   more with `allow_tools=False`. If it calls tools all the same, those calls get error outputs and the turn ends.
9. Cancellation. During a request, text that has arrived is kept as an interrupted message. During tool calls, calls that have finished
   keep their outputs and the others get an error output. Then the cancellation goes on.

So after any error or cancellation each call in the log has an output, or step 1 gives it one.
"""

from .anthropic import AnthropicModel
from .google import GoogleModel
from .interceptor import Interceptor, TurnInterceptor
from .model import Answer, Model
from .openai import OpenAIModel
from .toolbox import SchemaTool, Toolbox
from .turn import TurnResult, run_turn

__all__ = [
    "Answer",
    "AnthropicModel",
    "GoogleModel",
    "Interceptor",
    "Model",
    "OpenAIModel",
    "SchemaTool",
    "Toolbox",
    "TurnInterceptor",
    "TurnResult",
    "run_turn",
]
