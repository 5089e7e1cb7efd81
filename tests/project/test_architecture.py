"""ARCHITECTURE.md and the pages it links name only files and folders that exist, and the map is complete; no circles of imports."""

import ast
import re
from collections.abc import Collection
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path

import pytest

from tests.support.shared import ROOT

PACKAGES = {name: Path(str(files(name))) for name in ("session", "context_window")}
"""The packages, wherever they are installed."""
PAGES = ("ARCHITECTURE.md", "docs/decisions.md", "docs/limits.md", "docs/how-it-works.md", "docs/provider-rules.md")
PATH = re.compile(r"`([\w./-]+/[\w.-]*)`")
"""A path in backticks: `decision/limits.py`, `session/transcripts/`."""


def page_text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def map_lines() -> list[tuple[Path, str]]:
    """Return each line of the map with the folder that it describes."""
    block = page_text("ARCHITECTURE.md").split("```")[1]
    package = folder = Path()
    lines = []
    for line in block.strip().splitlines():
        start = re.match(r"( *)([\w]+/)?", line)
        assert start
        if start[1] == "":
            package = folder = PACKAGES[line.split("/")[0]]
        elif start[1] == "  ":
            folder = package / start[2] if start[2] else package
        lines.append((folder, line))
    return lines


def path_exists(path: str) -> bool:
    """True if a path from the repository, or from one of the packages, exists."""
    name, _, rest = path.partition("/")
    candidates = [ROOT / path, *(package / path for package in PACKAGES.values())]
    if name in PACKAGES:
        candidates.append(PACKAGES[name] / rest)
    return any(candidate.exists() for candidate in candidates)


def test_every_file_on_the_map_exists() -> None:
    named = [(folder, name) for folder, line in map_lines() for name in re.findall(r"[\w]+\.py", line)]
    assert len(named) > 60
    assert [(folder.name, name) for folder, name in named if not [*folder.glob(name), *folder.glob(f"*/{name}")]] == []


def test_every_folder_and_every_top_level_file_is_on_the_map() -> None:
    lines = map_lines()
    text = "\n".join(line for _, line in lines)
    for package in PACKAGES.values():
        folders = {path for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"}
        assert folders - {folder for folder, _ in lines} == set()
        modules = {path.name for path in package.glob("*.py")} - {"__init__.py", "__main__.py", "errors.py"}
        assert {name for name in modules if name not in text} == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_path_in_the_prose_exists(page: str) -> None:
    assert [path for path in sorted(set(PATH.findall(page_text(page)))) if not path_exists(path)] == []


def test_where_do_i_change_names_a_file_in_each_row() -> None:
    table = page_text("ARCHITECTURE.md").split("## Where do I change …?")[1].split("##")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 15
    assert [row for row in rows if ".py`" not in row.split("|")[2]] == []


# Imports of `session`

DOORS = {
    ("session.session", "session.providers"): "a session converts itself, and converters make sessions",
    ("session.session_log", "session.providers"): "a message takes parts in a provider's form, which the converters read",
    ("session.session", "session.read_only"): "a session returns a view of itself that is a kind of session",
    ("session.summarizers", "session.session"): "a loop's model is asked for a summary with a session",
}
"""Imports inside functions that lead back up, by the importing module and the module or package, with the reason."""


def imported_by(module: str, path: Path, modules: Collection[str]) -> set[str]:
    """Return the modules that a module imports, in its functions too, but not for type checkers alone."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    names: set[str] = set()
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes += node.orelse
            continue
        if isinstance(node, ast.ImportFrom):
            above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            names |= {full if (full := f"{base}.{alias.name}") in modules else base for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        nodes += ast.iter_child_nodes(node)
    return (names & set(modules)) - {module}


def test_no_modules_of_session_import_each_other_in_a_circle() -> None:
    root = PACKAGES["session"]
    paths = {".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in root.rglob("*.py")}
    imports = {module: imported_by(module, path, paths) for module, path in paths.items()}
    used = {door for door in DOORS for name in imports[door[0]] if f"{name}.".startswith(f"{door[1]}.")}
    assert used == set(DOORS), "a door that nobody takes"
    below = {
        module: {name for name in names if not any(module == door[0] and f"{name}.".startswith(f"{door[1]}.") for door in DOORS)}
        for module, names in imports.items()
    }
    tuple(TopologicalSorter(below).static_order())  # raises CycleError, which names the circle
