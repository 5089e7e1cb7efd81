"""The command that adds an extra is that for this very installation."""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path

import pytest

from session.extras import install_line


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (None, "pip install 'context-window[gateway]'"),
        ("{", "pip install 'context-window[gateway]'"),
        ("[]", "pip install 'context-window[gateway]'"),
        ({"url": "file:///home/me/context%20window", "dir_info": {"editable": True}}, "pip install -e '/home/me/context window[gateway]'"),
        ({"url": "file:///src/context-window", "dir_info": {}}, "pip install '/src/context-window[gateway]'"),
        ({"url": "file:///tmp/context_window-0.1.0-py3-none-any.whl"}, "pip install '/tmp/context_window-0.1.0-py3-none-any.whl[gateway]'"),
        (
            {"url": "https://example.org/me/it.git", "vcs_info": {"vcs": "git", "commit_id": "a"}},
            "pip install 'context-window[gateway] @ git+https://example.org/me/it.git'",
        ),
        ({"url": "file:///a'b;rm -rf x", "dir_info": {}}, """pip install '/a'"'"'b;rm -rf x[gateway]'"""),
    ],
)
@pytest.mark.skipif(Path("/").drive != "", reason="paths as POSIX has them")
def test_the_line_names_where_this_came_from(origin: object, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return origin if isinstance(origin, str) or origin is None else json.dumps(origin)

    monkeypatch.setattr(metadata, "distribution", lambda _: Installed())
    assert install_line("gateway") == line
    assert len(shlex.split(line)) in (3, 4)  # one requirement, whatever is in its name


def test_it_can_be_run_from_a_checkout_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert install_line("mcp") == "pip install 'context-window[mcp]'"
