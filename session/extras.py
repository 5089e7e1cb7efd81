"""`install_line`: how to add one of our extras to this very installation, which need not be from an index."""

from __future__ import annotations

from .printable import printable

NAME = "context-window"


def install_line(extra: str) -> str:
    """Return the command that installs an extra from where this package was installed.

    Args:
        extra: Its name.
    """
    return f"pip install {_source(extra)}"


def _source(extra: str) -> str:
    """Return what pip is to install. How an installation records its origin: https://packaging.python.org/specifications/direct-url."""
    import json  # here, since most runs miss nothing
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    named = shlex.quote(f"{NAME}[{extra}]")
    try:
        origin = json.loads(distribution(NAME).read_text("direct_url.json") or "null")
        url = urlsplit(origin["url"])
        if url.scheme != "file":
            kind = origin.get("vcs_info", {}).get("vcs")
            return shlex.quote(f"{NAME}[{extra}] @ {f'{kind}+' if kind else ''}{printable(origin['url'])}")
        is_editable = origin.get("dir_info", {}).get("editable") is True
        return ("-e " if is_editable else "") + shlex.quote(f"{printable(url2pathname(url.path))}[{extra}]")
    except (PackageNotFoundError, ValueError, TypeError, KeyError, AttributeError):  # from an index, or nobody wrote it down
        return named
