"""A real MCP server over stdio, made with the official library: run as a process by the tests of `integrations/mcp.py`."""

from __future__ import annotations

import base64
from typing import Any

from context_window.cli.mcp import server_class

mcp = server_class()("tests")


@mcp.tool()  # type: ignore[misc,untyped-decorator,unused-ignore]
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@mcp.tool(name="files.read")  # type: ignore[misc,untyped-decorator,unused-ignore]
def read(path: str) -> str:
    """Reads a file."""
    return f"text of {path}: ü"


@mcp.tool()  # type: ignore[misc,untyped-decorator,unused-ignore]
def fail(reason: str) -> str:
    """Fails."""
    raise RuntimeError(reason)


@mcp.tool(structured_output=False)  # type: ignore[misc,untyped-decorator,unused-ignore]
def draw() -> Any:
    """Draws a picture."""
    from mcp.types import EmbeddedResource, ImageContent, ResourceLink, TextContent

    from tests.support.pictures import pdf, png

    image, paper = base64.b64encode(png(2, 2)).decode(), base64.b64encode(pdf()).decode()
    contents: list[dict[str, Any]] = [
        {"type": "text", "text": "Here:"},
        {"type": "image", "data": image, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a.md", "mimeType": "text/markdown", "text": "# A"}},
        {"type": "resource", "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": paper}},
        {"type": "resource_link", "name": "the log", "uri": "file:///log"},
    ]
    kinds: list[Any] = [TextContent, ImageContent, EmbeddedResource, EmbeddedResource, ResourceLink]
    return [kind.model_validate(content) for kind, content in zip(kinds, contents, strict=True)]


if __name__ == "__main__":
    mcp.run()
