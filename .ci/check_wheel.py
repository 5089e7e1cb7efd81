"""Checks that a wheel holds what it must and nothing else: `check_wheel.py WHEEL`."""

import re
import sys
from email import message_from_bytes
from zipfile import ZipFile

NEEDED = (
    "context_window/data/o200k_base.tokens",  # else counting needs a network
    "context_window/data/sample_session.jsonl",  # else there is nothing to show in the demo
    "context_window/gateway/conversations.html",  # else the gateway has no page
    "context_window/pages/chart.html",  # else pages cannot be made
    "context_window/pages/style.css",
    "context_window/reports/session.html",
    "context_window/reports/spend.html",
    "context_window/py.typed",  # else users' type checkers ignore our annotations
    "session/py.typed",
    "context_window/__init__.pyi",  # the names that type checkers see
    "session/__init__.pyi",
)
TOP_LEVEL = {"context_window", "session"}


def main() -> None:
    """Exits with what is wrong, if anything is."""
    with ZipFile(sys.argv[1]) as wheel:
        names = wheel.namelist()
        metadata = message_from_bytes(wheel.read(next(name for name in names if name.endswith(".dist-info/METADATA"))))
    page = str(metadata.get_payload())
    faults = [f"{name} is missing" for name in NEEDED if name not in names]
    licences = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name}
    faults += [f"{name} is missing from its licences" for name in ("LICENSE", "NOTICE") if name not in licences]
    faults += [
        f"{name} has no business there"
        for name in names
        if "__pycache__" in name or (name.split("/")[0] not in TOP_LEVEL and ".dist-info/" not in name)
    ]
    faults += [f"an index would show a link that leads nowhere: {link}" for link in re.findall(r"\]\((?!https?://)[^)]*\)", page)]
    faults += [
        f"{part} is missing from the page of an index" for part in ("pip install context-window", "## In your program") if part not in page
    ]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(names)} files, all that is needed among them")


main()
