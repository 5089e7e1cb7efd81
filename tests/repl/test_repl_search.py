"""The search ends in bounded time and memory for any pattern and text. Errors say what to write instead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.repl import search as searching
from context_window.repl.search import MAX_LINE_SHOWN, MAX_MATCHES, MAX_PATTERN, PatternError, Search
from context_window.repl.workspace import MAX_FILE, Workspace
from context_window.tools import tool_texts
from tests.support.shared import ROOT
from tests.support.shell import POSIX

EXPLODING = (
    "(?:(?:(?:a{1000}){1000}){1000})",
    "(?:x{65535}){65535}",
    "(?R)",
    "((a{0,100}){0,10})b",
    "(?:a?){1000}b",
    "(a|aa)+$",
    "(x+x+)+y",
    "(?i)" + "\\pL" * 400,
    "(?i)(?:\\pL{100}|\\pN{100}|[^\\x00-\\x{10ffff}]){9}",
    "(" * 500 + ")" * 500,
    "(?:" * 300 + "a" + ")*" * 300,
    "|".join("abcdefghij" * 9) * 5,
    "[" + "".join(chr(0x100 + 2 * number) for number in range(900)) + "]*x",
    ".{0,1000}" * 100,
    "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x",
    "\\C*" * 300,
)

CHILD = """
import json, random, resource, sys, time
from context_window.repl.search import PatternError, Search

import re2
megabytes, seed, number = map(int, sys.argv[1:])
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20,) * 2)
chance = random.Random(seed)
PIECES = ["a", "x", ".", "\\\\pL", "\\\\w", "[^a]", "(?i)", "(?:", "(", ")", "|", "*", "+", "?", "{1000}", "{0,1000}", "{65535}", "{,9}"]
PIECES += ["^", "$", "\\\\b", "\\\\1", "(?=", "(?R)", "\\0", "\\n", "\\ud800", "é", "😀", "[", "]", "\\\\", "{", "}", "\\\\x{10ffff}"]
PIECES += ["(?s)", "(?U)", "\\\\C", "\\\\p{Greek}", "[[:alpha:]]"]
texts = [b"a" * 60_000, b"\\xff\\x00" * 20_000, ("aé😀x " * 5_000).encode(), b"ax\\n" * 20_000, b""]
patterns = json.load(sys.stdin) + ["".join(chance.choices(PIECES, k=chance.randint(1, 60))) for _ in range(number)]
worst = 0.0
for pattern in patterns:
    begun = time.process_time()
    try:
        search = Search(pattern, seconds=0.02, clock=time.monotonic)
        for text in texts:
            search.add_text("name", text)
    except PatternError:
        pass
    worst = max(worst, time.process_time() - begun)
print(worst)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process, which Linux alone enforces")
@pytest.mark.parametrize("seed", range(3))
def test_thousands_of_hostile_patterns_take_bounded_time_and_memory(seed: int) -> None:
    """No pattern makes the search use more than 100 MB, or run on much longer than its deadline."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", CHILD, "100", str(seed), "1500"],
        input=json.dumps(EXPLODING),
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stderr == "", "the engine must not write to the terminal"
    assert float(done.stdout) < 3.0  # of the processor, so that a busy machine makes no difference


@pytest.mark.parametrize("pattern", EXPLODING)
def test_a_search_of_a_large_text_stops_at_its_time_limit(tmp_path: Path, pattern: str) -> None:
    """A search of 4 MiB in one line ends soon after its deadline, whatever the pattern."""
    (tmp_path / "line").write_bytes(b"a" * MAX_FILE)
    begun = time.process_time()
    with suppress(PatternError):
        Workspace(tmp_path, seconds=0.5).search(pattern, "line")
    assert time.process_time() - begun < 3.5


REFUSED = {
    "foo(?=bar)": "Look-around is not supported",
    "(?<!x)foo": "Look-around is not supported",
    "(a)\\1": "write the repeated text out",
    "(?P<n>a)(?P=n)": "write the repeated text out",
    "(?R)": "use (x), (?:x), or (?i)",
    "(?:x{65535}){65535}": "smaller repetitions",
    "(?i)\\pL{900}": "smaller repetitions",
    "a++": "one of *, +, ? or {n,m}",
    "end\\Z": "Write \\z",
    "\\u1234": "\\x{1F600}",
    "(": "backslash",
    "\ud800": "lone surrogate",
    "x" * (MAX_PATTERN + 1): "1 to 1,000 characters",
    "": "1 to 1,000 characters",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_the_error_for_a_refused_pattern_says_what_to_write(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(PatternError, match=re.escape(REFUSED[pattern])) as caught:
        Workspace(tmp_path).search(pattern)
    if "characters" not in REFUSED[pattern] and "surrogate" not in REFUSED[pattern]:
        assert "The syntax is RE2" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_tool_description_names_the_syntax(tmp_path: Path) -> None:
    described = next(text for text in tool_texts(Workspace(tmp_path).tools) if "Find lines" in text)
    assert "RE2: no look-around, no back-references" in described


def found(pattern: str, data: bytes) -> list[tuple[int, str]]:
    search = Search(pattern, seconds=20.0, clock=time.monotonic)
    search.add_text("file", data)
    return [(match.line, match.text) for match in search.matches]


def test_unusual_texts_are_searched() -> None:
    assert found("b", b"a\xff\xfeb\n") == [(1, "a\ufffd\ufffdb")]
    assert found("x\0y", b"1\nx\0y") == [(2, "x\0y")]
    assert found("(?i)É", "é".encode()) == [(1, "é")]
    assert found("^\\pL+$", "été\n12\n".encode()) == [(1, "été")]
    assert found("^$", b"a\n\nb\n") == [(2, "")]
    assert found("x*", b"ab\ncd\n") == [(1, "ab"), (2, "cd")]
    assert found("a\\s+b", b"a\nb\na b\n") == [(3, "a b")]
    assert found("b", b"ab\r\n") == [(1, "ab")]
    assert found("a", b"a" * 10_000) == [(1, "a" * MAX_LINE_SHOWN + " …")]
    assert len(found("a", b"a\n" * 10_000)) == MAX_MATCHES


LINES = st.lists(st.text("ab\r é\0", max_size=12), max_size=8).map(lambda lines: "\n".join(lines).encode())


@given(st.sampled_from(["a", "^a", "a$", "ab?", "^$", "b+a", "(?i)A", "é", "[^a]b", "a|b", "^.{3}$", "a.?b"]), LINES, st.integers(1, 40))
def test_windows_change_no_result(pattern: str, data: bytes, window: int) -> None:
    """As long as no match exceeds half a window, the result is that of searching each line separately."""
    search = Search(pattern, seconds=20.0, clock=time.monotonic)
    search._window = max(window, 16)
    search.add_text("file", data)
    lines = data.decode().split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    expected = [number for number, line in enumerate(lines, 1) if re.search(pattern, line, re.ASCII)]
    assert [match.line for match in search.matches] == expected[:MAX_MATCHES]


def test_a_match_across_windows_of_a_long_line_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "WINDOW_STEPS", 4_000)
    for place in range(0, 3_000, 7):
        assert found("needle", b"x" * place + b"needle" + b"x" * 500) != []


@POSIX
def test_compiled_patterns_are_not_cached(tmp_path: Path) -> None:
    """RE2's own cache would hold 128 patterns, with their memory, for as long as the chat runs."""
    import re2

    for number in range(10):
        Search(f"pattern {number}", seconds=1.0, clock=time.monotonic)
    assert re2._Regexp._make.cache_info().currsize == 0
