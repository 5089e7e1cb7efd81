"""The names that users import: adding one is a decision, taking one away breaks somebody."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from importlib.resources import files

import pytest

import context_window
import session

NAMES = [
    "AgentConfigUpdate",
    "AgentHandoff",
    "AnthropicSummarizer",
    "Compaction",
    "Content",
    "Document",
    "DuplicateItemError",
    "FormatError",
    "FunctionCall",
    "FunctionCallOutput",
    "Image",
    "Item",
    "Message",
    "MessageCategory",
    "Part",
    "PositionError",
    "ReadOnlyError",
    "ReadOnlySession",
    "Reasoning",
    "Removed",
    "Role",
    "Session",
    "SessionError",
    "StoreBusyError",
    "StoreConflictError",
    "StoreDamagedError",
    "StoreError",
    "Summarizer",
    "SummaryError",
    "Text",
    "TranscriptError",
    "UnknownItemError",
    "UnknownSessionError",
    "Usage",
    "render_items",
]

OWN_NAMES = [
    "Action",
    "Answer",
    "AnthropicModel",
    "ArgumentError",
    "BudgetError",
    "CalibrationReset",
    "Chain",
    "CharacterCounter",
    "Choice",
    "ClientError",
    "Compacted",
    "CompactionError",
    "CompactionFailed",
    "ContextOverflowError",
    "ContextWindow",
    "ContextWindowError",
    "ContextWindowManager",
    "ContextWindowWarning",
    "CounterFellBack",
    "CountingError",
    "CtokCounter",
    "Decision",
    "DropOldest",
    "Extract",
    "Extraction",
    "GigatokenCounter",
    "GoogleModel",
    "Interceptor",
    "MeasuredUnit",
    "Model",
    "ModelAccessError",
    "ModelArgumentError",
    "ModelConfig",
    "ModelError",
    "ModelNetworkError",
    "ModelOverloadedError",
    "ModelRateLimitError",
    "NeverTrim",
    "OpenAIModel",
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
    "SchemaTool",
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
    "ToolRule",
    "Toolbox",
    "ToolsError",
    "Trimmed",
    "TurnInterceptor",
    "TurnResult",
    "UnknownModelError",
    "UsageReport",
    "WindowEvent",
    "__version__",
    "keep_lines",
    "manage",
    "run_turn",
]


def test_session_exports_these_names() -> None:
    assert vars(session)["__all__"] == NAMES


def test_each_of_them_is_there() -> None:
    assert [name for name in NAMES if not hasattr(session, name)] == []


def test_every_error_is_a_session_error() -> None:
    errors = [getattr(session, name) for name in NAMES if name.endswith("Error")]
    assert len(errors) == 13
    assert all(issubclass(error, session.SessionError) for error in errors)


def test_context_window_exports_these_names_and_those_of_session() -> None:
    assert vars(context_window)["__all__"] == [*OWN_NAMES, *NAMES]


def test_each_of_those_is_there_and_the_same_as_in_session() -> None:
    assert [name for name in OWN_NAMES if not hasattr(context_window, name)] == []
    assert [name for name in NAMES if getattr(context_window, name) is not getattr(session, name)] == []


def test_an_import_of_everything_brings_nothing_else() -> None:
    code = "known = set(dir()) | {'known'}\nfrom context_window import *\nprint(*sorted(set(dir()) - known))"
    brought = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout.split()
    assert brought == sorted({*OWN_NAMES, *NAMES})


LAZY = [
    "context_window",
    "session",
    "session.providers",
    *(f"session.providers.{wire}" for wire in ("anthropic", "google", "openai_chat", "openai_responses")),
]


def modules_by_name(package: str) -> dict[str, str]:
    """Return the names that type checkers see in a package, each with the module that it comes from."""
    stub = files(package).joinpath("__init__.pyi")
    tree = ast.parse((stub if stub.is_file() else files(package).joinpath("__init__.py")).read_text(encoding="utf-8"))
    blocks = [node.body for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for node in (blocks[0] if blocks else tree.body) if isinstance(node, ast.ImportFrom)]
    names = {alias.name: "." * node.level + (node.module or "") for node in imports for alias in node.names}
    star = names.pop("*", None)
    return names if star is None else names | dict.fromkeys(import_module(star).__all__, star)


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_see_the_names_that_a_package_exports(package: str) -> None:
    module = import_module(package)
    assert {*modules_by_name(package)} == {*module.__all__} - {"__version__"}
    assert {*module.__all__} <= {*dir(module)}


@pytest.mark.parametrize("package", LAZY)
def test_a_name_is_the_object_that_type_checkers_see(package: str) -> None:
    for name, module in modules_by_name(package).items():
        assert getattr(import_module(package), name) is getattr(import_module(module, package), name), name


@pytest.mark.parametrize("package", LAZY)
def test_an_unknown_name_is_the_usual_error(package: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"module {package!r} has no attribute 'Nonsense'")):
        _ = import_module(package).Nonsense


def test_every_error_is_a_context_window_error_or_a_session_error() -> None:
    errors = [getattr(context_window, name) for name in OWN_NAMES if name.endswith("Error")]
    assert len(errors) == 19
    assert all(issubclass(error, context_window.ContextWindowError) for error in errors)


def test_the_version_is_a_semantic_one() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+|\.dev\d+)?", context_window.__version__)
