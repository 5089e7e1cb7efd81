"""Nothing needs a network: the command line and a manager work without one, and without anything cached before."""

import errno
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

# A process that asks for the network is refused, but for its own machine's: Windows' event loops talk to themselves that way.
GUARD = """
import errno, socket

def refuse(*args, **kwargs):
    raise OSError(errno.ENETUNREACH, "no network in this test")

connect = socket.socket.connect

def connect_here(self, address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
        refuse()
    return connect(self, address)

socket.socket.connect = connect_here
socket.socket.connect_ex = refuse
socket.getaddrinfo = socket.gethostbyname = refuse
"""


def _can_unplug() -> bool:
    """True if a process can be started in a network namespace of its own, which has no network at all."""
    unshare = shutil.which("unshare")
    return unshare is not None and subprocess.run([unshare, "-rn", "true"], check=False, capture_output=True).returncode == 0


Runner = Callable[[str], subprocess.CompletedProcess[str]]


WAYS = ("unplugged", pytest.param("guarded", marks=pytest.mark.long)) if _can_unplug() else ("guarded",)


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Runner:
    """Runs Python code without a network, in an empty directory, with nothing cached and no keys."""
    home = tmp_path / "home"
    empty = tmp_path / "empty"
    home.mkdir()
    empty.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY") and "CACHE_DIR" not in name}
    # tiktoken caches its downloads in the directory for temporary files.
    folders = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TMP", "TEMP"), str(home))
    command = ["unshare", "-rn", sys.executable] if request.param == "unplugged" else [sys.executable]
    prelude = "" if request.param == "unplugged" else GUARD

    def run(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "-X", "utf8", "-W", "error", "-c", prelude + code],
            cwd=empty,
            env=kept | folders,
            check=False,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )

    return run


def test_there_is_no_network(run: Runner) -> None:
    """Else the tests below would show nothing."""
    done = run(
        "import socket, sys\n"
        "try:\n"
        "    socket.create_connection(('192.0.2.1', 80), timeout=5)\n"  # an address that is set aside for documentation
        "except OSError as error:\n"
        "    sys.exit(error.errno)"
    )
    assert done.returncode == errno.ENETUNREACH, done.stderr


def test_the_demo_runs(run: Runner) -> None:
    done = run("import sys; sys.argv = ['context-window', 'demo']; from context_window.cli import main; main()")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_the_installed_command_runs() -> None:
    """It is declared in pyproject.toml and made by pip; the tests above go past it."""
    command = shutil.which("context-window", path=sysconfig.get_path("scripts"))
    assert command, "not installed"
    done = subprocess.run([command, "--help"], check=False, capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro", "a-model-nobody-knows"])
def test_a_manager_counts_and_trims(run: Runner, model: str) -> None:
    """With each family's own counter, from its own tables."""
    done = run(
        "from context_window import ContextWindow, ContextWindowManager, Session\n"
        "session = Session()\n"
        "session.add_message('system', 'You are terse.')\n"
        "for turn in range(100):\n"
        "    session.add_message('user', f'What does file {turn} hold, and who wrote it?')\n"
        "    session.add_function_call('read_file', {'path': f'src/{turn}.py'}, f'call_{turn}')\n"
        "    session.add_function_output('read_file', 'def answer() -> int: ... ' * 20, f'call_{turn}')\n"
        "    session.add_message('assistant', f'One function, answer, in file {turn}.')\n"
        f"manager = ContextWindowManager({model!r}, context_window=ContextWindow(max_tokens=2_000))\n"
        "view = manager.process_session(session)\n"
        "usage = manager.get_token_usage()\n"
        "print(usage['total'], usage['budget'], len(view.items), len(session.items))"
    )
    assert (done.returncode, done.stderr) == (0, "")
    total, budget, shown, logged = map(int, done.stdout.split())
    assert 0 < total <= budget == 2_000
    assert 0 < shown < logged == 401
