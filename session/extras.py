"""How to add one of our extras, or a package beside us, to this very installation: whoever made it, and wherever it is from."""

from __future__ import annotations

from .printable import printable

NAME = "context-window"


def install_line(extra: str) -> str:
    """Return the command that installs an extra from where this package was installed."""
    return _command(_source(extra))


def package_line(package: str) -> str:
    """Return the command that installs another package beside this one."""
    return _command(package, is_ours=False)


def _command(source: str, *, is_ours: bool = True) -> str:
    """Return the command of the program that made this environment. Of tools with an environment of their own, each leaves a mark there."""
    import shlex  # these here, since most runs miss nothing
    import shutil
    import sys
    from pathlib import Path

    prefix, python = Path(sys.prefix), Path(sys.executable)
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {source}" if is_ours else f"pipx inject {NAME} {source}"
    ours = source if is_ours else f"--with {source} {_source('')}"
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install --force {ours}"
    if _installer() == "uv":
        if any((folder / "CACHEDIR.TAG").exists() for folder in prefix.parents):  # an environment of `uvx`, which keeps none
            return f"uvx --from {ours} {NAME}" if is_ours else f"uvx --with {source} --from {_source('')} {NAME}"
        return f"uv pip install --python {shlex.quote(str(python))} {source}"
    pip = shutil.which("pip")
    is_on_path = pip is not None and Path(pip).parent == python.parent
    return f"{'pip' if is_on_path else f'{shlex.quote(str(python))} -m pip'} install {source}"


def _installer() -> str:
    """Return the name of the program that installed this package; empty if nobody wrote it down."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return (distribution(NAME).read_text("INSTALLER") or "").strip()
    except PackageNotFoundError:
        return ""


def _source(extra: str) -> str:
    """Return what is to be installed. How an installation records its origin: https://packaging.python.org/specifications/direct-url."""
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    marked = f"[{extra}]" if extra else ""
    try:
        origin = json.loads(distribution(NAME).read_text("direct_url.json") or "null")
        url = urlsplit(origin["url"])
        if url.scheme != "file":
            kind = origin.get("vcs_info", {}).get("vcs")
            return shlex.quote(f"{NAME}{marked} @ {f'{kind}+' if kind else ''}{printable(origin['url'])}")
        is_editable = origin.get("dir_info", {}).get("editable") is True
        return ("-e " if is_editable else "") + shlex.quote(f"{printable(url2pathname(url.path))}{marked}")
    except (PackageNotFoundError, ValueError, TypeError, KeyError, AttributeError):  # from an index, or nobody wrote it down
        return shlex.quote(f"{NAME}{marked}")
