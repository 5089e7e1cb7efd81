"""How Codex and opencode are told of the gateway, on their command line or in their settings. It imports none of the gateway's packages."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from session.opening import read_regular


def codex_provider(address: str, variables: Mapping[str, str]) -> dict[str, str | bool]:
    """Return the fields of a provider in Codex's configuration. Requests of a login to ChatGPT go to the server of these logins.

    Args:
        address: The gateway's URL.
        variables: The user's environment.
    """
    name: str = "openai/v1"
    key: dict[str, str | bool] = {"env_key": "OPENAI_API_KEY"}
    if not variables.get("OPENAI_API_KEY"):
        key = {"requires_openai_auth": True}
        name = "chatgpt" if _is_chatgpt_login(variables) else name
    return {"name": "gateway", "base_url": f"{address}/{name}", "wire_api": "responses", **key}


def opencode_providers(address: str) -> dict[str, Any]:
    """Return the providers in opencode's configuration. Its requests begin where those of the Vercel SDK do.

    Args:
        address: The gateway's URL.
    """
    paths = {"anthropic": "anthropic/v1", "openai": "openai/v1", "google": "google/v1beta"}
    return {name: {"options": {"baseURL": f"{address}/{path}"}} for name, path in paths.items()}


def toml_fields(fields: Mapping[str, str | bool]) -> list[str]:
    """Return fields as TOML has them."""
    return [f"{name} = {json.dumps(value)}" for name, value in fields.items()]


def text_of(path: Path) -> str:
    """Return the text of a file; nothing if it cannot be read."""
    try:
        return read_regular(path).decode()
    except (OSError, ValueError):
        return ""


def object_in(text: str) -> dict[str, object]:
    """Return the JSON object in a text; an empty one if it has none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_chatgpt_login(variables: Mapping[str, str]) -> bool:
    """True if Codex's last login was with a ChatGPT account, not with a key."""
    home = variables.get("CODEX_HOME") or os.path.join(variables.get("HOME", ""), ".codex")  # noqa: PTH118 - any text may be in it
    login = object_in(text_of(Path(home, "auth.json")))
    return isinstance(login.get("tokens"), dict) and not login.get("OPENAI_API_KEY")
