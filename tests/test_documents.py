"""The examples of README and docs run as they stand, one after the other, as a reader would try them."""

import re
from pathlib import Path

import pytest

from tests.support.shared import ROOT

DOCUMENTS = ["README.md", "docs/names.md"]


def examples(path: Path) -> list[str]:
    """The Python of a document."""
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_examples_run(name: str) -> None:
    found = examples(ROOT / name)
    assert found
    names: dict[str, object] = {}
    for example in found:
        exec(compile(example, name, "exec"), names)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_files_that_are_linked_are_there(name: str) -> None:
    document = ROOT / name
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_methods_that_the_page_of_names_names_are_there() -> None:
    from context_window import ContextWindowManager, Session

    page = (ROOT / "docs/names.md").read_text(encoding="utf-8")
    ours = re.findall(r"`(?:await )?session\.(\w+)\(", page)
    assert len(ours) > 5
    assert [name for name in ours if not hasattr(Session, name)] == []
    same = [row.split("|") for row in page.splitlines() if row.startswith("| `")]
    named = [
        (name, row[2]) for row in same if row[2].strip().startswith("the same") for name in re.findall(r"`(?:\w+\.)?(\w+)[`(]", row[1])
    ]
    missing = [name for name, _ in named if not (hasattr(Session, name) or hasattr(ContextWindowManager, name) or name[0].isupper())]
    assert missing == []
    assert len(named) > 30
