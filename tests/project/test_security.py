"""SECURITY.md: each of its sentences names the tests that hold it."""

from __future__ import annotations

import ast
import re

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


def test_every_promise_names_a_test() -> None:
    promises = PAGE.split("## What we never do")[1].split("## How to report")[0]
    for item in re.split(r"\n- ", promises)[1:]:
        if "what-leaves-the-machine" not in item:
            assert LINK.search(item), f"no test holds: {item[:80]}"
