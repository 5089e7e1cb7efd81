"""What every test run shares: the Hypothesis profiles, what coverage counts, and how the run keeps out of its own way.

Helpers live in `tests.support`."""

import gc
import os
import secrets
import sys
import threading
from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from tests.support.shell import Shell

# Asserts in helpers must explain themselves as those in tests do. Before anything imports them.
pytest.register_assert_rewrite("tests.support")

# The same examples on every run and on every machine, and no database: who sees a red test sees it again, and so does everybody else.
# No deadline in any profile: how long an example takes says more about the machine than about the code.
settings.register_profile("default", max_examples=20, deadline=None, derandomize=True, database=None, print_blob=True)
# For a mutation run (CONTRIBUTING.md), where a suite must fail or pass in seconds, a few hundred times over.
settings.register_profile(
    "mutation", settings.get_profile("default"), max_examples=60, phases=[Phase.explicit, Phase.generate], print_blob=False
)
# For faults that one of these must find (tests/trimming/test_bites.py): it ends with the first example that does.
settings.register_profile("bites", settings.get_profile("mutation"), max_examples=1_000)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
settings.load_profile(PROFILE)

HUNT_EXAMPLES = 20_000


def _leave_out_local_constants() -> None:
    """Have Hypothesis draw no constants from the modules that happen to be loaded.

    Which ones are depends on the tests that ran before in the same process, and with them the examples: a property passed or failed by
    the order of the tests. Newer versions of Hypothesis do so, and have no setting for it.
    """
    with suppress(ImportError, AttributeError):
        from hypothesis.internal.conjecture import providers

        constants = providers._local_constants
        providers._get_local_constants = lambda: constants


_leave_out_local_constants()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects with the garbage collector at rest, and puts the collected tests out of its sight.

    Modules and tests stay until the end; to walk through them again and again took a third of the collection and a seventh of the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--long`, `--hunt` and `--examples`."""
    parser.addoption("--long", action="store_true", help="run the tests marked `long` too, and 100 random examples instead of 20")
    parser.addoption("--hunt", nargs="?", type=int, const=-1, metavar="SEED", help="draw new examples, from this seed or a new one")
    parser.addoption("--examples", type=int, metavar="N", help=f"random examples of each property; {HUNT_EXAMPLES:,} with --hunt")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Sets how many examples are drawn, and from which seed. Before any test is imported, since each takes the profile of that moment."""
    examples = config.option.examples
    if config.option.hunt is not None:
        if config.option.hunt < 0:
            config.option.hunt = secrets.randbelow(10**9)  # here in the controller of `-n`: its workers are passed the options
        config.option.hypothesis_seed = str(config.option.hunt)
        # Without the phase that climbs towards targets: it takes longer than all the examples.
        settings.register_profile(
            "hunt",
            settings.get_profile(PROFILE),
            max_examples=examples or HUNT_EXAMPLES,
            derandomize=False,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        settings.load_profile("hunt")
    elif examples or (config.option.long and PROFILE == "default"):
        settings.register_profile("long", settings.get_profile(PROFILE), max_examples=examples or 100)
        settings.load_profile("long")


def _hunt(config: pytest.Config) -> str | None:
    """Return a line that says how to draw the examples of this run again; None if they are the fixed ones."""
    seed, examples = config.option.hunt, settings().max_examples
    return None if seed is None else f"hunt: {examples:,} examples of each property; the same again: --hunt {seed} --examples {examples}"


def pytest_report_header(config: pytest.Config) -> str | None:
    return _hunt(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Repeats the seed at the end, where it is not scrolled away."""
    if line := _hunt(config):
        terminalreporter.write_line(line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out long tests unless `--long` asks for them, and has coverage count only code that runs in the same way everywhere.

    Drawn examples and recordings are not counted. They run all the same, in half the time.
    """
    from tests.support.shared import needs_transcripts

    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    for item in items:
        drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if drawn or any(mark == needs_transcripts.mark for mark in item.iter_markers("skipif")):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Runs tests marked `no_cover` without coverage's tracer, in the workers of `-n` too.

    There pytest-cov starts coverage twice, and its own pause of the one, which is around this, lets the other go on.
    """
    tracer, of_threads = sys.gettrace(), threading.gettrace()
    if not type(tracer).__module__.startswith("coverage") or item.get_closest_marker("no_cover") is None:  # a debugger stays
        return (yield)
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)
        threading.settrace(of_threads)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> "Shell":
    """Return the command line, run in this process. Rooms whose commands need more have one of their own."""
    from tests.support.shell import Shell

    return Shell(capsys, monkeypatch)
