"""Copies the files of the project from one directory to another: `snapshot.py FROM TO`.

What git tracks is copied, as it now stands in the working tree: a file that somebody forgot to add is missed here as it would be in
a clone. Without git (an unpacked source distribution) it is everything but hidden and generated directories.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

GENERATED = {"__pycache__", "build", "dist"}
HIDDEN_BUT_OURS = {".ci"}


def tracked(root: Path) -> list[Path] | None:
    """The tracked files, relative to `root`; None where git cannot say."""
    try:
        answer = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True)  # noqa: S603, S607 - no outside input
    except (OSError, subprocess.CalledProcessError):
        return None
    return [Path(name) for name in answer.stdout.decode().split("\0") if name] or None


def found(directory: Path) -> Iterator[Path]:
    """The files below `directory` that look like the project's."""
    for path in sorted(directory.iterdir()):
        if not path.is_dir():
            yield path
        elif path.name in HIDDEN_BUT_OURS or not (path.name in GENERATED or path.name.startswith(".") or path.suffix == ".egg-info"):
            yield from found(path)


def main() -> None:
    """Copies."""
    root, target = map(Path, sys.argv[1:])
    names = tracked(root)
    if names is None:
        print("git cannot tell what is tracked here; everything that is not hidden or generated is taken")
        names = [path.relative_to(root) for path in found(root)]
    for name in names:
        if (root / name).is_file():  # else it is deleted in the working tree
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target / name)
    print(f"{len(names)} files")


main()
