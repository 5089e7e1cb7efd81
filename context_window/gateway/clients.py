"""How clients that the gateway starts find it: variables for most, and what some need besides.

A client is a function of this module, named in `CLIENTS`. It changes nothing that the user has: what it needs is passed in arguments, in
variables, or in a file of a folder that is deleted when the client ends.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from .client_settings import codex_provider, object_in, opencode_providers, text_of, toml_fields
from .upstreams import WIRE_FORMATS

_LOGGER = logging.getLogger(__name__)
SETTINGS = {"ENABLE_TOOL_SEARCH": "true"}
"""Variables that clients get unless the user has set them. With an address that is not Anthropic's, Claude Code sends the definitions of
all tools of MCP servers in every request; this lets it search for tools as it does otherwise."""


class Start(NamedTuple):
    """How a client is started.

    Attributes:
        command: The program and its arguments.
        variables: All of its environment.
    """

    command: Sequence[str]
    variables: Mapping[str, str]


def started(command: Sequence[str], address: str, variables: Mapping[str, str], folder: Path) -> Start:
    """Return how a client is started so that its requests go to the gateway.

    Args:
        command: The program and its arguments, as the user wrote them.
        address: The gateway's URL.
        variables: The user's environment.
        folder: An empty folder for files that the client reads.
    """
    plain = Start(command, {**SETTINGS, **variables, **addresses(address)})
    adapt = CLIENTS.get(PurePath(command[0]).stem.lower())
    return plain if adapt is None else adapt(plain, address, folder)


def addresses(address: str) -> dict[str, str]:
    """Return the variables by which most clients find their provider.

    Args:
        address: The gateway's URL.
    """
    return {variable: f"{address}/{wire.name}{rest}" for wire in WIRE_FORMATS for variable, rest in wire.variables.items()}


def _codex(plain: Start, address: str, folder: Path) -> Start:  # noqa: ARG001 - the interface of all clients
    """Codex takes a provider from its arguments."""
    fields = ", ".join(toml_fields(codex_provider(address, plain.variables)))
    program, *arguments = plain.command
    options = ["-c", 'model_provider="gateway"', "-c", f"model_providers.gateway={{{fields}}}"]
    return plain._replace(command=[program, *options, *arguments])


def _opencode(plain: Start, address: str, folder: Path) -> Start:  # noqa: ARG001
    """Opencode takes a configuration from a variable, above that of its files. What the user has there stays."""
    name = "OPENCODE_CONFIG_CONTENT"
    given = plain.variables.get(name, "{}")
    config: dict[str, Any] = object_in(given)
    if not config and given.strip() != "{}":
        return plain
    providers = {**opencode_providers(address), **(config.get("provider") or {})}
    return plain._replace(variables={**plain.variables, name: json.dumps({**config, "provider": providers})})


def _pi(plain: Start, address: str, folder: Path) -> Start:
    """Pi takes addresses from an extension."""
    file = folder / "gateway.js"
    calls = [
        f"  pi.registerProvider({json.dumps(name)}, {{ baseUrl: {json.dumps(f'{address}/{path}')} }});" for name, path in PI_PATHS.items()
    ]
    file.write_text("\n".join(["export default function (pi) {", *calls, "}", ""]), "utf-8")
    program, *arguments = plain.command
    return plain._replace(command=[program, "--extension", str(file), *arguments])


def _gemini(plain: Start, address: str, folder: Path) -> Start:  # noqa: ARG001
    """Gemini CLI takes an address from the environment only if its settings name the kind of its key, and settings of root or the user."""
    settings = object_in(text_of(Path(plain.variables.get("HOME", ""), ".gemini", "settings.json")))
    security = settings.get("security")
    auth = security.get("auth") if isinstance(security, dict) else None
    if not isinstance(auth, dict) or not auth.get("selectedType"):
        _LOGGER.warning("Gemini CLI reaches no gateway before its settings name the kind of its key: run context-window setup gemini once")
    return plain


PI_PATHS = {"anthropic": "anthropic", "openai": "openai/v1", "google": "google/v1beta"}
CLIENTS: Mapping[str, Callable[[Start, str, Path], Start]] = {"codex": _codex, "gemini": _gemini, "opencode": _opencode, "pi": _pi}
"""By the program's name, what it needs besides the variables."""
