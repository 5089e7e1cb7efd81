"""SECURITY.md: each of its sentences names the tests that hold it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.shared import ROOT

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
LINK = re.compile(r"\[`(tests/[\w/]+\.py)::(\w+)`\]\((tests/[\w/]+\.py)\)")


def test_every_test_that_the_page_names_exists() -> None:
    """A sentence on this page is as good as the test beside it."""
    links = LINK.findall(PAGE)
    assert len(links) == PAGE.count("::test_")
    for path, name, target in links:
        assert path == target
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in names, f"{path} has no test {name}"


def test_only_files_of_the_packages_are_read_without_a_look_at_what_they_are() -> None:
    """Any other path may lead to a pipe, which is waited for, or to a device without an end: `session/opening.py` opens it."""
    import context_window
    import session

    reading = {
        path.relative_to(package.parent).as_posix()
        for package in (Path(str(module.__file__)).parent for module in (context_window, session))
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"read_text", "read_bytes"}
    }
    assert reading == OF_THE_PACKAGES


OF_THE_PACKAGES = {
    "context_window/counting/vocabulary.py",
    "context_window/gateway/page.py",
    "context_window/models/second_prices.py",
    "context_window/pages/document.py",
    "context_window/usage/unlogged.py",
    "session/extras.py",
}


def test_every_promise_names_a_test() -> None:
    promises = PAGE.split("## What we never do")[1].split("## How to report")[0]
    for item in re.split(r"\n- ", promises)[1:]:
        if "what-leaves-the-machine" not in item:
            assert LINK.search(item), f"no test holds: {item[:80]}"
