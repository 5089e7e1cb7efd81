"""The project's own files, for the tests that check them."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.shared import ROOT

_GENERATED = {"__pycache__", "build", "dist"}


def project_files() -> list[Path]:
    """The files that git tracks; in a copy without git, all but hidden and generated ones."""
    try:
        answer = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True)
        names = [name for name in answer.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = []
    files = [ROOT / name for name in names] or list(_found(ROOT))
    return [path for path in files if path.is_file()]


def _found(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        if not path.is_dir():
            yield path
        elif path.name == ".ci" or not (path.name in _GENERATED or path.name.startswith(".") or path.suffix == ".egg-info"):
            yield from _found(path)


def texts() -> Iterator[tuple[str, str]]:
    """Name and text of each of them that is a text."""
    for path in project_files():
        try:
            yield path.relative_to(ROOT).as_posix(), path.read_bytes().decode()  # as it is: `read_text` would hide the line ends
        except UnicodeDecodeError:
            continue


def readme_command(name: str) -> str:
    """The command that README.md shows under the comment `<!-- run: NAME -->`; `.ci/run` takes it from there too."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(rf"^<!-- run: {name} -->\n```\w*\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert len(found) == 1, f"README.md has {len(found)} commands marked {name!r}"
    command: str = found[0].strip()
    return command
