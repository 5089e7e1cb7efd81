"""The command that adds an extra is that for this very installation. (pipx, uv and uvx were tried by hand: each line does it.)"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest

from session.extras import install_line, package_line

posix = pytest.mark.skipif(Path("/").drive != "", reason="paths as POSIX has them")


@pytest.fixture(autouse=True)
def _an_environment_of_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever environment runs this: one that pip made, whose `pip` is the first on PATH."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "bin" / "python"))
    monkeypatch.setattr(shutil, "which", lambda name: str(tmp_path / "env" / "bin" / name))
    (tmp_path / "env").mkdir()


class Installed:
    """What an installation has written down."""

    def __init__(self, **files: str | None) -> None:
        self._files = files

    def read_text(self, name: str) -> str | None:
        return self._files[name.partition(".")[0]]


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
@posix
def test_the_line_names_where_this_came_from(origin: object, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = origin if isinstance(origin, str) or origin is None else json.dumps(origin)
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(direct_url=text, INSTALLER="pip\n"))
    assert install_line("gateway") == line
    assert len(shlex.split(line)) in (3, 4)  # one requirement, whatever is in its name


def test_it_can_be_run_from_a_checkout_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert install_line("mcp") == "pip install 'context-window[mcp]'"


@posix
@pytest.mark.parametrize(
    ("installer", "mark", "ours", "other"),
    [
        ("pip", "pipx_metadata.json", "pipx install --force '/src/it[chat]'", "pipx inject context-window openai"),
        ("uv", "pipx_metadata.json", "pipx install --force '/src/it[chat]'", "pipx inject context-window openai"),
        ("uv", "uv-receipt.toml", "uv tool install --force '/src/it[chat]'", "uv tool install --force --with openai /src/it"),
        ("uv", "../CACHEDIR.TAG", "uvx --from '/src/it[chat]' context-window", "uvx --with openai --from /src/it context-window"),
        ("uv", "CACHEDIR.TAG", "uv pip install --python ENV/bin/python '/src/it[chat]'", "uv pip install --python ENV/bin/python openai"),
        ("pip", "CACHEDIR.TAG", "pip install '/src/it[chat]'", "pip install openai"),
    ],
)
def test_the_line_is_one_of_the_program_that_made_the_environment(
    installer: str, mark: str, ours: str, other: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "env" / mark).touch()
    installed = Installed(direct_url='{"url": "file:///src/it", "dir_info": {}}', INSTALLER=installer)
    monkeypatch.setattr(metadata, "distribution", lambda _: installed)
    assert install_line("chat") == ours.replace("ENV", str(tmp_path / "env"))
    assert package_line("openai") == other.replace("ENV", str(tmp_path / "env"))


@posix
@pytest.mark.parametrize("first", [None, "/usr/bin/pip"])
def test_pip_is_that_of_this_environment_even_if_another_is_first(
    first: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(direct_url=None, INSTALLER=None))
    monkeypatch.setattr(shutil, "which", lambda _: first)
    assert install_line("chat") == f"{tmp_path}/env/bin/python -m pip install 'context-window[chat]'"
