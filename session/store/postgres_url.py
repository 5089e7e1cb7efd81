"""Reads the URL of a PostgreSQL server. No error quotes any part of it: a password with an unescaped character may be in every part."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from session.errors import FormatError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ADVICE = "use postgresql://user@host:port/database, with special characters in a name or password percent-encoded (@ is %40)"


def is_url(address: object) -> bool:
    """True if the address of a store is a URL and not a path."""
    return isinstance(address, str) and _URL.match(address) is not None


def parsed_url(url: str) -> dict[str, Any]:
    """Return the parameters of a URL, by libpq's names.

    Raises:
        FormatError: It is not the URL of a PostgreSQL server, or it can be read in two ways.
        ModuleNotFoundError: psycopg is not installed.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    scheme, _, rest = url.partition("://")
    if scheme not in {"postgresql", "postgres"}:
        raise FormatError("SessionStore.path", "a URL of something else; pass a path or postgresql://user@host:port/database")
    # An @ that is not the end of the user's name and password was in the password, and libpq would take its rest for the host.
    if "@" in rest.partition("@")[2] or "@" in rest.partition("/")[2]:
        raise FormatError("SessionStore.path", f"this URL can be read in two ways; {_ADVICE}")
    try:
        parameters = conninfo_to_dict(url)
    except ProgrammingError:
        parameters = {}
    if (not parameters and rest) or re.fullmatch(r"[\d,]*", str(parameters.get("port", ""))) is None:
        raise FormatError("SessionStore.path", f"this URL cannot be read; {_ADVICE}")
    return parameters


def shown_url(parameters: dict[str, Any]) -> str:
    """Return the URL of user, hosts, ports and database, without a password or options."""
    user, hosts, ports, database = (str(parameters.get(name, "")) for name in ("user", "host", "port", "dbname"))
    all_ports = ports.split(",")
    if len(all_ports) == 1:
        all_ports *= hosts.count(",") + 1
    addresses = [f"{_host(host)}{port and ':'}{port}" for host, port in zip(hosts.split(","), all_ports, strict=False)]
    return f"postgresql://{quote(user, safe='')}{user and '@'}{','.join(addresses)}/{quote(database, safe='')}"


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else quote(host, safe="")
