"""The time that a fresh interpreter takes to import the packages, print the help and count a first text, as multiples of `python -c pass`.

    python benchmarks/startup.py              # ten rounds of every command, about a minute
    python benchmarks/startup.py --rounds 3

Each round runs every command once, so a busy machine slows all of them alike. A row has the fastest run of each. A run before the first
round compiles all modules, as an installation does.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

IMPORT = "from context_window import ContextWindowManager, Session"
CODE = {
    "python -c pass": "pass",
    "import session": "import session",
    "import context_window": "import context_window",
    IMPORT: IMPORT,
    "ContextWindowManager('gpt-5')": f"{IMPORT}; ContextWindowManager('gpt-5')",
    "ContextWindowManager('claude-sonnet-5-5')": f"{IMPORT}; ContextWindowManager('claude-sonnet-5-5')",
    "the first count of a short text": f"{IMPORT}; s = Session(); s.add_message('user', 'Hello');"
    " ContextWindowManager('gpt-5').process_session(s)",
    "context-window statusline": "import io, sys; sys.argv = ['', 'statusline']; sys.stdin = io.TextIOWrapper(io.BytesIO(b'{}'));"
    " from context_window.__main__ import main; main()",
    "context-window --help": "from context_window.cli import main; main(['--help'])",
}


def seconds(code: str, bytecode: str) -> float:
    """Return the time in seconds in which a fresh interpreter runs the code. Compiled modules are kept in the folder `bytecode`."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="runs of each command (default: 10)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as bytecode:
        for code in CODE.values():
            seconds(code, bytecode)
        runs = [{name: seconds(code, bytecode) for name, code in CODE.items()} for _ in range(rounds)]
    fastest = {name: min(run[name] for run in runs) for name in CODE}
    base = fastest["python -c pass"]
    print(f"Python {sys.version.split()[0]}, the fastest of {rounds} runs of each\n")
    print(f"{'':67}{'ms':>6}  multiple")
    for name, duration in fastest.items():
        print(f"{name:67}{duration * 1000:6.0f}  {duration / base:8.1f}")


if __name__ == "__main__":
    main()
