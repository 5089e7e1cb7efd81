"""Tools of an MCP server, through the official client: definitions for a `Toolbox`, calls, and results as texts, images and documents.

The caller starts the server and holds the connection; nothing here opens or closes one. Needs the extra `mcp`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from session.errors import FormatError
from session.parts import Document, Image, Part, Text
from session.providers.conversation import WireIds

from ..errors import ClientError
from ..loop.toolbox import SchemaTool
from ..recall import Recalled

if TYPE_CHECKING:
    from mcp import ClientSession

__all__ = ["mcp_tools"]

NAME_LENGTH = 64
"""Maximum characters of a tool's name that all providers take (docs/provider-rules.md, O2)."""
UNSAFE = r"[^a-zA-Z0-9_-]"
"""Characters of a name that not all providers take. MCP allows dots and slashes."""


async def mcp_tools(client: ClientSession, *, prefix: str = "") -> list[SchemaTool]:
    """Return the tools of an MCP server for `run_turn` or a `Toolbox`.

        server = StdioServerParameters(command="uvx", args=["mcp-server-git"])
        async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as client:
            await client.initialize()
            tools = [read_file, *await mcp_tools(client, prefix="git_")]
            await run_turn(session, "What changed today?", model=model, tools=tools, manager=manager)

    A tool that fails, or a server that is gone, gives its call an error output. The server checks the arguments.

    Args:
        client: An initialized `mcp.ClientSession`, or the `mcp.Client` of later versions. Use the tools in its event loop.
        prefix: Text before each tool's name, if several servers have tools of the same name.

    Raises:
        ClientError: This is not a client of MCP.
    """
    if isinstance(client, type) or not all(callable(getattr(client, name, None)) for name in ("list_tools", "call_tool")):
        raise ClientError("client", type(client), "pass an initialized mcp.ClientSession")
    names = WireIds(UNSAFE, NAME_LENGTH)
    return [_tool(client, tool, names.take(f"{prefix}{tool['name']}")) for tool in await _listed_tools(client)]


async def _listed_tools(client: Any) -> list[Mapping[str, Any]]:
    """Return the descriptions of all tools, from all pages of the list."""
    tools: list[Mapping[str, Any]] = []
    cursor: str | None = None
    while True:
        page = _fields(await client.list_tools(**({} if cursor is None else _page_argument(client, cursor))))
        tools.extend(page.get("tools", ()))
        cursor = page.get("nextCursor")
        if cursor is None:
            return tools


def _page_argument(client: Any, cursor: str) -> dict[str, Any]:
    """Return the argument for the next page, which has another form in each version of the client."""
    if "params" not in signature(client.list_tools).parameters:
        return {"cursor": cursor}
    from mcp.types import PaginatedRequestParams

    return {"params": PaginatedRequestParams(cursor=cursor)}


def _tool(client: Any, tool: Mapping[str, Any], name: str) -> SchemaTool:
    async def call(**arguments: Any) -> Recalled:
        return _result(_fields(await client.call_tool(tool["name"], arguments)))

    description = {"description": tool["description"]} if tool.get("description") else {}
    return SchemaTool({"name": name, **description, "input_schema": tool["inputSchema"]}, call)


def _result(result: Mapping[str, Any]) -> Recalled:
    """Return the result of a call. Structured content is used if there is no other."""
    parts = tuple(_part(content) for content in result.get("content", ()))
    structured = result.get("structuredContent")
    if not parts and structured is not None:
        parts = (Text(json.dumps(structured, ensure_ascii=False)),)
    return Recalled(parts, is_error=result.get("isError") is True)


def _part(content: Mapping[str, Any]) -> Part:
    """Return one piece of a result: a text, an image, a sound, a resource, or a link to one. Others are shown as JSON."""
    kind, media_type = content.get("type"), content.get("mimeType")
    if kind == "text":
        return Text(content["text"])
    if kind in ("image", "audio"):
        return _medium(content["data"], media_type)
    if kind == "resource_link":
        return Text(f"{content.get('title') or content.get('name')}: {content['uri']}")
    resource = content.get("resource")
    if kind == "resource" and isinstance(resource, Mapping):
        if "text" in resource:
            return Document(text=resource["text"], media_type=resource.get("mimeType"), title=resource.get("uri"))
        return _medium(resource.get("blob", ""), resource.get("mimeType"), resource.get("uri"))
    return Text(json.dumps(content, ensure_ascii=False))


def _medium(encoded: str, media_type: str | None, title: str | None = None) -> Part:
    try:
        data = base64.b64decode(encoded, validate=True)
        is_image = (media_type or "").startswith("image/")
        return Image(data=data, media_type=media_type) if is_image else Document(data=data, media_type=media_type, title=title)
    except (binascii.Error, FormatError):
        return Text(f"[{media_type or 'content'} that cannot be read]")


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a result under their names in the protocol. Those of the client's objects differ from version to version."""
    fields: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return fields
