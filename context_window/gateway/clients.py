"""How clients that the gateway starts find it: variables for most, and what some need besides.

A client is a function of this module, named in `CLIENTS`. It changes nothing that the user has: what it needs is passed in arguments, in
variables, or in a file of a folder that is deleted when the client ends.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

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
    """Codex takes a provider from its arguments. Where the user is logged in to ChatGPT, requests go to the server of these logins."""
    key, name = 'env_key="OPENAI_API_KEY"', "openai/v1"
    if not plain.variables.get("OPENAI_API_KEY"):
        key, name = "requires_openai_auth=true", "chatgpt" if _is_chatgpt_login(plain.variables) else "openai/v1"
    provider = f'{{name="gateway",base_url="{address}/{name}",wire_api="responses",{key}}}'
    program, *arguments = plain.command
    return plain._replace(command=[program, "-c", 'model_provider="gateway"', "-c", f"model_providers.gateway={provider}", *arguments])


def _is_chatgpt_login(variables: Mapping[str, str]) -> bool:
    """True if Codex's last login was with a ChatGPT account, not with a key."""
    home = variables.get("CODEX_HOME") or os.path.join(variables.get("HOME", ""), ".codex")  # noqa: PTH118 - any text may be in it
    login = _object_in(_text_of(Path(home, "auth.json"))) or {}
    return isinstance(login.get("tokens"), dict) and not login.get("OPENAI_API_KEY")


def _opencode(plain: Start, address: str, folder: Path) -> Start:  # noqa: ARG001
    """Opencode takes a configuration from a variable, above that of its files. What the user has there stays."""
    name = "OPENCODE_CONFIG_CONTENT"
    config = _object_in(plain.variables.get(name, "{}"))
    if config is None:
        return plain
    providers = {provider: {"options": {"baseURL": f"{address}/{path}"}} for provider, path in SDK_PATHS.items()}
    own = config.get("provider")
    return plain._replace(variables={**plain.variables, name: json.dumps({**config, "provider": {**providers, **(own or {})}})})


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
    settings = _object_in(_text_of(Path(plain.variables.get("HOME", ""), ".gemini", "settings.json"))) or {}
    security = settings.get("security")
    auth = security.get("auth") if isinstance(security, dict) else None
    if not isinstance(auth, dict) or not auth.get("selectedType"):
        _LOGGER.warning("Gemini CLI reaches no gateway before its settings name the kind of its key: run context-window setup gemini once")
    return plain


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""


def _object_in(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


SDK_PATHS = {"anthropic": "anthropic/v1", "openai": "openai/v1", "google": "google/v1beta"}
"""By provider, where the Vercel SDK's requests begin."""
PI_PATHS = {"anthropic": "anthropic", "openai": "openai/v1", "google": "google/v1beta"}
CLIENTS: Mapping[str, Callable[[Start, str, Path], Start]] = {"codex": _codex, "gemini": _gemini, "opencode": _opencode, "pi": _pi}
"""By the program's name, what it needs besides the variables."""
