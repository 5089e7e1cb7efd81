"""What an import costs: the slow libraries are loaded by the call that needs them, not by the first `import`."""

import subprocess
import sys

import pytest

SLOW = {"PIL", "anthropic", "ctok", "genai_prices", "pathspec", "prompt_toolkit", "pydantic", "re2", "rich", "tiktoken", "wcwidth"}


def _loaded_by(statement: str) -> set[str]:
    """The modules that a statement brings into a fresh interpreter."""
    code = f"import sys\nbefore = set(sys.modules)\n{statement}\nprint(*sorted(set(sys.modules) - before))"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout.split())


def test_session_loads_the_standard_library_only() -> None:
    tops = {name.partition(".")[0] for name in _loaded_by("import session")}
    assert tops - set(sys.stdlib_module_names) == {"session"}


def test_session_loads_no_wire_format_and_no_file_format() -> None:
    """The import contracts allow `Session` its conversions; this is what makes sure that they stay inside its methods."""
    loaded = _loaded_by("import session")
    assert [name for name in loaded if name.startswith(("session.providers", "session.transcripts"))] == []


@pytest.mark.parametrize("module", ["context_window", "context_window.cli"])
def test_the_slow_libraries_wait_until_they_are_needed(module: str) -> None:
    assert SLOW & _loaded_by(f"import {module}") == set()
