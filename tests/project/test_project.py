"""The project as a whole: its metadata is true, and nothing of one machine is in it."""

import re
import tomllib
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import context_window
from tests.support.project import project_files, readme_command, texts
from tests.support.shared import ROOT

PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@pytest.mark.parametrize("package", ["context_window", "session"])
def test_packages_tell_type_checkers_that_they_are_typed(package: str) -> None:
    assert files(package).joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", ["o200k_base.tokens", "sample_session.jsonl"])
def test_the_data_is_installed_with_the_package(name: str) -> None:
    assert files("context_window").joinpath("data", name).is_file()


def test_the_installed_version_is_the_one_in_the_code() -> None:
    assert metadata.version("context-window") == context_window.__version__


def test_the_changelog_knows_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## .*", changelog, re.MULTILINE)
    assert headings, "no release in it"
    assert context_window.__version__ in headings[0]


def test_the_command_is_declared() -> None:
    (script,) = [one for one in metadata.distribution("context-window").entry_points if one.group == "console_scripts"]
    assert (script.name, script.value) == ("context-window", "context_window.__main__:main")


def test_the_pythons_are_the_same_wherever_they_are_named() -> None:
    classifiers = [one.rpartition(" ")[2] for one in PYPROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", one)]
    checked = re.search(r"for minor in ([\d ]+);", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert checked
    assert tuple(classifiers) == PYTHONS
    assert tuple(f"3.{minor}" for minor in checked[1].split()) == PYTHONS
    assert PYPROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
    assert PYPROJECT["tool"]["mypy"]["python_version"] == PYTHONS[0]
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py{PYTHONS[0].replace('.', '')}"


def test_the_page_of_an_index_has_no_picture_and_no_link_that_leads_nowhere() -> None:
    """What the build's hook does, by its settings; `.ci/check_wheel.py` looks at what it really made."""
    hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    marks = [mark for fragment in hook["fragments"] for name, mark in fragment.items() if name in {"start-after", "end-before"}]
    assert [readme.count(mark) for mark in marks] == [1] * len(marks)
    assert "](docs/" in readme
    for substitution in hook["substitutions"]:
        readme = re.sub(substitution["pattern"], substitution["replacement"], readme)
    assert re.findall(r"\]\((?!https?://)|!\[", readme) == []
    assert "urls" not in PYPROJECT["project"], "none is known to be true"


def _entries(opening: str) -> list[tuple[str, str]]:
    """Each entry of the list that begins with this line of pyproject.toml, with the comment beside it or above it."""
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    result, above = [], ""
    for line in lines[lines.index(opening) + 1 :]:
        if line.startswith("]"):
            break
        entry, _, comment = line.partition("#")
        if entry.strip():
            result.append((entry.strip(' ",'), comment.strip() or above))
        above = comment.strip() if not entry.strip() else ""
    return result


def test_every_dependency_has_a_lower_bound_and_a_reason() -> None:
    entries = _entries("dependencies = [")
    assert [name for name, _ in entries] == PYPROJECT["project"]["dependencies"]
    assert [name for name, reason in entries if len(reason.split()) < 2] == []
    assert [name for name, _ in entries if ">=" not in name] == []


def test_every_rule_that_is_off_has_a_reason() -> None:
    entries = _entries("ignore = [")
    assert [name for name, _ in entries] == PYPROJECT["tool"]["ruff"]["lint"]["ignore"]
    assert [name for name, reason in entries if len(reason.split()) < 2] == []


def test_the_readme_has_the_two_commands() -> None:
    demo, tests = readme_command("demo"), readme_command("tests")
    for command in demo, tests:
        assert "\n" not in command, "one command, so that one paste is enough"
        assert command.startswith("python3 -m venv "), "it must not need an environment that is already there"
        assert " pip install " in command
    assert demo.endswith("context-window demo")
    assert tests.endswith("-m pytest -n auto")


def test_no_lock_file_and_no_registry() -> None:
    names = [path.name for path in project_files()]
    assert [name for name in names if name.endswith((".lock", "-lock.json")) or name.startswith(("pylock.", "requirements"))] == []
    # In pieces, since this file is searched too.
    hosts = ["files." + "pythonhosted.org", "pypi.org" + "/simple", "test." + "pypi.org", "registry." + "npmjs.org", "--" + "index-url"]
    hosts += ["--extra-" + "index-url", "--find-" + "links"]
    assert [(name, host) for name, text in texts() for host in hosts if host in text] == []


def test_no_path_of_this_machine() -> None:
    # A home or a checkout as short as "/root" or "/src" is too likely to stand in an example.
    own = {str(path) for path in (ROOT, Path.home(), ROOT.parent) if len(path.parts) > 2}
    assert [(name, path) for name, text in texts() for path in own if path in text] == []


CITED = re.compile(r"\bdocs/[\w/-]+\.md\b|\b[A-Z]{4,}\.md\b")
OF_OTHER_TOOLS = {"AGENTS.md", "CLAUDE.md", "GEMINI.md", "SKILL.md", "MEMORY.md"}
"""Files that stand in the logs of other tools."""


def sources(package: str) -> list[tuple[str, str]]:
    """The package's own files by name, wherever it is installed."""
    folder = Path(str(files(package)))
    return [(path.relative_to(folder.parent).as_posix(), path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))]


def test_what_is_cited_is_in_the_repository() -> None:
    """A reader can open every document that code cites."""
    there = {path.relative_to(ROOT).as_posix() for path in project_files()} | OF_OTHER_TOOLS
    code = [*sources("context_window"), *sources("session")]
    code += [(name, text) for name, text in texts() if name.startswith(("benchmarks/", "examples/", ".ci/"))]
    cited = {(name, document) for name, text in code for document in CITED.findall(text)}
    assert ("session/providers/anthropic/rules.py", "docs/provider-rules.md") in cited
    assert [(name, document) for name, document in sorted(cited) if document not in there] == []


def test_every_rule_of_a_provider_that_is_cited_is_written_down() -> None:
    """The ids A1 to G4 that code cites have a row in docs/provider-rules.md."""
    rules = set(re.findall(r"^\| ([AORG]\d) \|", (ROOT / "docs" / "provider-rules.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert len(rules) > 15
    code = [text for name, text in sources("session") if name.startswith("session/providers/")]
    cited = {rule for text in code for rule in re.findall(r"\b([AORG]\d)\b(?=[:),]| to )", text)}
    assert len(cited) > 10
    assert cited - rules == set()


def test_line_ends_and_encoding() -> None:
    binary = {".tokens", ".png", ".mutant"}
    named = {path.relative_to(ROOT).as_posix() for path in project_files() if path.suffix not in binary}
    read = dict(texts())
    assert named - read.keys() == set(), "not UTF-8"
    assert [name for name in sorted(named) if "\r" in read[name]] == []
