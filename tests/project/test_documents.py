"""The examples of README and docs run as they stand, one after the other, as a reader would try them."""

import re
from pathlib import Path

import pytest

from tests.support.shared import ROOT

GUIDES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "guides").glob("*.md"))
DOCUMENTS = ["README.md", "docs/names.md", *GUIDES]


def examples(path: Path) -> list[str]:
    """The Python of a document."""
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    result = examples(ROOT / name)
    assert result
    names: dict[str, object] = {}
    for example in result:
        exec(compile(example, name, "exec"), names)


def test_the_guide_shows_an_extract_as_the_model_sees_it() -> None:
    guide = ROOT / "docs/guides/strategies.md"
    names: dict[str, object] = {}
    (example,) = (example for example in examples(guide) if "after = " in example)
    exec(compile(example, str(guide), "exec"), names)
    assert f"```text\n{names['after']}\n```\n" in guide.read_text(encoding="utf-8"), "replace the block below the example by this text"
    assert str(names["after"]).splitlines()[3] in str(names["before"]).splitlines()


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_begins_with_an_example_or_figures(name: str) -> None:
    assert re.match(r"# .+\n\n(```python\n|\|)", (ROOT / name).read_text(encoding="utf-8"))


def test_the_readme_has_at_most_700_words() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700


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


def test_every_public_name_is_in_the_reference() -> None:
    import context_window
    import session

    reference = ROOT / "docs" / "reference"
    pages = {name: (reference / f"{name}.md").read_text(encoding="utf-8") for name in ("context_window", "session")}
    exported = {package.__name__: set(vars(package)["__all__"]) for package in (session, context_window)}
    for name in exported["session"]:
        assert f"::: session.{name}\n" in pages["session"]
    for name in exported["context_window"] - exported["session"] - {"__version__"}:
        assert f"::: context_window.{name}\n" in pages["context_window"]


def test_the_picture_of_the_first_page_is_current_and_fetches_nothing() -> None:
    from benchmarks.picture import PICTURE, timeline_svg

    picture = PICTURE.read_text(encoding="utf-8")
    assert picture == timeline_svg()
    assert "url(http" not in picture


def test_the_messages_that_the_guide_to_troubles_quotes_are_ours() -> None:
    import context_window
    import session

    guide = (ROOT / "docs/guides/troubleshooting.md").read_text(encoding="utf-8")
    rooms = [Path(str(module.__file__)).parent for module in (session, context_window)]
    source = " ".join(path.read_text(encoding="utf-8") for room in rooms for path in room.rglob("*.py"))
    quoted = [text for text in re.findall(r"^\| [^`|]*`([^`]+)` \|", guide, re.MULTILINE) if " " in text]
    assert len(quoted) > 10
    fragments = {text: max(re.split(r"\d[\d,]*|'[^']*'|--json", text), key=len).strip() for text in quoted}
    assert [text for text, fragment in fragments.items() if fragment not in source] == []
    errors = re.findall(r"^\| `(\w+Error)` \|", guide, re.MULTILINE)
    assert [name for name in errors if f"class {name}(" not in source] == []
