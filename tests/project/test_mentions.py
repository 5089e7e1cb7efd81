"""Files and names that docstrings, comments and documents mention exist: a renamed file or function takes its mentions along."""

import io
import re
import tokenize
from functools import cache

from tests.project.test_project import sources
from tests.support.project import texts

FILE = re.compile(r"(?<![\w/.*-])(?:\w+/)*\w+\.py\b")
MEMBER = re.compile(r"`(_\w+|[A-Z]\w*(?:\.\w+)+)(?:\([^`]*\))?`")

OF_EXAMPLES = {
    "mytools.py",
    "main.py",
    "window.py",
    "util.py",
    "secrets.py",
    "src/ledger/rows.py",
    "tests/test_report.py",
    "tests/test_rows.py",
    "tests/test_totals.py",
}
"""Files of conversations and working directories in examples."""


@cache
def _programs() -> dict[str, str]:
    programs = {name: text for name, text in texts() if name.endswith(".py")}
    return programs | dict(sources("session")) | dict(sources("context_window"))


@cache
def _parts() -> list[tuple[str, str, bool]]:
    """Return the texts in all programs, each with its file, and True if it is a docstring or a comment."""
    parts = []
    for name, text in _programs().items():
        begins_statement = True
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            parts.append((name, token.string, token.type == tokenize.COMMENT or (token.type == tokenize.STRING and begins_statement)))
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                begins_statement = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    return parts


def test_mentioned_files_exist() -> None:
    files = {name[start:] for name in _programs() for start in (0, *(match.end() for match in re.finditer("/", name)))}
    prose = [(name, part) for name, part, is_prose in _parts() if is_prose]
    prose += [(name, text) for name, text in texts() if name.endswith(".md") and name != "CHANGELOG.md"]
    mentions = {(name, file) for name, part in prose for file in FILE.findall(part)}
    assert len(mentions) > 100
    assert sorted((name, file) for name, file in mentions if file not in files | OF_EXAMPLES) == []


def test_mentioned_members_exist() -> None:
    """`View.append` and `_shown_before` in a docstring or comment: if the class is ours, or the name private, code uses the name."""
    words = {word for _, part, is_prose in _parts() if not is_prose for word in re.findall(r"\w+", part)}
    classes = {name for text in _programs().values() for name in re.findall(r"^class (\w+)", text, re.MULTILINE)}
    mentions = {(name, mention) for name, part, is_prose in _parts() if is_prose for mention in MEMBER.findall(part)}
    mentions = {(name, mention) for name, mention in mentions if mention.startswith("_") or mention.partition(".")[0] in classes}
    assert len(mentions) > 10
    assert sorted((name, mention) for name, mention in mentions if not words.issuperset(mention.split("."))) == []
