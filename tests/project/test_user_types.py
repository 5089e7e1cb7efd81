"""Code that passes our results to the providers' clients passes `mypy --strict`, without casts."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path
from sysconfig import get_path

import pytest

import context_window
from tests.support.shared import ROOT

USERS = Path(__file__).parent / "typed_users"
CLIENTS = frozenset({"anthropic", "openai", "google"})
OURS = frozenset({"context_window", "session"})

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need rights there")


def report(user: str, environment: Path, cache: Path) -> str:
    """Return mypy's complaints about a file of a user who has installed the packages of an environment."""
    # Our packages are a link to the checkout, where mypy would also report errors that it ignores in installed packages.
    options = ["--strict", "--config-file=", "--no-error-summary", "--follow-imports=silent", f"--cache-dir={cache}"]
    options.append(f"--python-executable={environment}/bin/python")
    command = [sys.executable, "-m", "mypy", *options, str(USERS / f"{user}.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=environment, timeout=300, check=False)
    return done.stdout + done.stderr


def installed(environment: Path, left_out: frozenset[str]) -> Path:
    """Return a new environment with our packages and those that are installed here, but for those left out."""
    venv.create(environment, symlinks=True)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.run([environment / "bin/python", "-c", code], capture_output=True, text=True, check=True).stdout.strip())
    for package in Path(get_path("purelib")).iterdir():
        if package.name not in left_out | OURS and package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    for name in OURS:
        (packages / name).symlink_to(Path(context_window.__file__).parents[1] / name)
    return environment


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("environment"), frozenset())


@pytest.mark.long
@pytest.mark.parametrize("user", ["uses_no_client", "uses_anthropic", "uses_google", "uses_openai"])
def test_what_we_return_fits_the_clients_types(user: str, environment: Path, cache: Path) -> None:
    assert report(user, environment, cache) == ""


@pytest.mark.long
def test_the_loop_of_the_guide_passes(environment: Path, cache: Path, tmp_path: Path) -> None:
    guide = (ROOT / "docs/guides/own-loop.md").read_text(encoding="utf-8")
    (loop,) = (example for example in re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL) if "def ask(" in example)
    before = """from context_window import ContextWindowManager, Session

manager = ContextWindowManager("claude-sonnet-5-5")


def read_file(path: str) -> str:
    return path


"""
    user = tmp_path / "guide.py"
    user.write_text(before + loop, encoding="utf-8")
    assert report(str(user.with_suffix("")), environment, cache) == ""


@pytest.mark.long
def test_our_packages_check_without_the_clients(tmp_path: Path) -> None:
    environment = installed(tmp_path / "environment", CLIENTS)
    assert 'Cannot find implementation or library stub for module named "openai"' in report("uses_openai", environment, tmp_path / "cache")
    assert report("uses_no_client", environment, tmp_path / "cache") == ""
