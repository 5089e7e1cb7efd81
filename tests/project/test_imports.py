"""What an import costs: the slow libraries are loaded by the call that needs them, not by the first `import`."""

import subprocess
import sys

import pytest

SLOW = {
    *("PIL", "anthropic", "ctok", "genai_prices", "gigatoken", "prompt_toolkit"),
    *("distributed", "fsspec", "pyarrow", "pydantic", "rich", "textual", "tiktoken", "tinytag", "wcwidth"),
}


def _loaded_by(statement: str) -> set[str]:
    """The modules that a statement brings into a fresh interpreter."""
    code = f"import sys\nbefore = set(sys.modules)\n{statement}\nprint(*sorted(set(sys.modules) - before))"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout.split())


def test_session_loads_the_standard_library_only() -> None:
    tops = {name.partition(".")[0] for name in _loaded_by("from session import *")}
    assert tops - set(sys.stdlib_module_names) == {"session"}


def test_session_loads_no_wire_format_and_no_file_format() -> None:
    """The import contracts allow `Session` its conversions; this is what makes sure that they stay inside its methods."""
    loaded = _loaded_by("from session import *")
    assert [name for name in loaded if name.startswith(("session.providers", "session.transcripts"))] == []


@pytest.mark.parametrize(("package", "own"), [("session", {"session.lazy"}), ("context_window", {"session", "session.lazy"})])
def test_a_package_loads_its_modules_when_a_name_is_first_used(package: str, own: set[str]) -> None:
    loaded = {name for name in _loaded_by(f"import {package}") if name.startswith(("session", "context_window"))}
    assert loaded == {package, *own}


def test_the_class_of_managers_is_imported_without_the_objects_that_a_manager_makes() -> None:
    loaded = _loaded_by("from context_window import ContextWindowManager, Session")
    assert {name for name in loaded if name.startswith("context_window")} == {"context_window", "context_window.manager"}
    assert {"hashlib", "pathlib", "session.files"} & loaded == set()


def test_a_window_manages_a_session_in_a_program_that_never_named_the_manager() -> None:
    code = (
        "import asyncio\nfrom context_window import ContextWindow, Session\nasyncio.run(ContextWindow(max_tokens=8_000).manage(Session()))"
    )
    assert "context_window.manager" in _loaded_by(code)


def test_a_manager_loads_no_validator_and_no_reader_of_payloads() -> None:
    loaded = _loaded_by("from context_window import ContextWindowManager\nContextWindowManager('gpt-5')")
    assert "context_window.requests.session_calls" in loaded
    assert [name for name in loaded if name.startswith("session.providers.") and name.endswith((".rules", ".schema", ".read"))] == []


@pytest.mark.parametrize("model", ["", "'gpt-5'", "'anthropic/claude-sonnet-5-5', tools=[{'name': 'look', 'input_schema': {}}]"])
def test_a_manager_for_a_current_model_never_needs_the_price_list(model: str) -> None:
    create = f"from context_window import *\nmanager = ContextWindowManager({model})\n"
    count = "manager.process_session(Session([Message('user', 'Hello')]))"
    assert SLOW & _loaded_by(create + count) <= {"tiktoken", "ctok"}


@pytest.mark.parametrize("module", ["context_window", "context_window.manager", "context_window.cli"])
def test_the_slow_libraries_wait_until_they_are_needed(module: str) -> None:
    assert SLOW & _loaded_by(f"import {module}") == set()


def test_the_help_loads_no_command() -> None:
    loaded = {name for name in _loaded_by("from context_window.cli import run\nrun(['--help'])") if name.startswith("context_window")}
    assert loaded == {"context_window", "context_window.cli", "context_window.cli.output", "context_window.printable"}


def test_a_command_with_a_path_does_not_load_what_finds_logs() -> None:
    loaded = _loaded_by("from context_window.cli.newest import chosen_paths\nchosen_paths(('session.jsonl',), last=False)")
    assert [name for name in loaded if name.startswith("context_window.spend")] == []
