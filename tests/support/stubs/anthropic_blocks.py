"""Anthropic's content blocks, each by itself: the fields it has, and what may be in them. The texts are the documented ones."""

from __future__ import annotations

import re

from .pictures import decoded, is_pdf
from .server import Body, Refusal

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MARK = "cache_control"

FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "text": ({"text"}, {MARK, "citations"}),
    "image": ({"source"}, {MARK, "transformations"}),
    "document": ({"source"}, {MARK, "title", "context", "citations"}),
    "search_result": ({"content", "source", "title"}, {MARK, "citations"}),
    "container_upload": ({"file_id"}, {MARK}),
    "thinking": ({"thinking", "signature"}, set()),
    "redacted_thinking": ({"data"}, set()),
    "tool_use": ({"id", "name", "input"}, {MARK, "caller", "toolset_name"}),
    "tool_result": ({"tool_use_id"}, {MARK, "content", "is_error", "toolset_name"}),
    "server_tool_use": ({"id", "name", "input"}, {MARK, "caller"}),
    "mcp_tool_use": ({"id", "name", "input", "server_name"}, {MARK}),
    "mcp_tool_result": ({"tool_use_id"}, {MARK, "content", "is_error"}),
    "compaction": ({"content"}, {MARK, "encrypted_content", "signature", "tool_changes"}),
}
"""By type of a block: the fields it must have, and those it may have."""
SERVER_RESULT = ({"tool_use_id", "content"}, {MARK, "caller"})

OF_USER = {"text", "image", "document", "search_result", "tool_result", "container_upload"}
OF_ASSISTANT = {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "compaction"}
IN_RESULT = {"text", "image", "document", "search_result"}


def blocks_of(message: Body) -> list[Body]:
    """A message's content as blocks: a text alone is one."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def is_server_result(kind: object) -> bool:
    """True for a block that holds the answer of one of the provider's tools."""
    return isinstance(kind, str) and kind.endswith("_tool_result") and kind != "mcp_tool_result"


def kind_of(block: object, where: str) -> str:
    """The type of a block that has the fields of its type, and no others."""
    if not isinstance(block, dict):
        raise Refusal(f"{where}: Input should be a valid dictionary")
    kind = block.get("type")
    required, optional = SERVER_RESULT if is_server_result(kind) and kind != "tool_result" else FIELDS.get(str(kind), (None, None))
    if required is None or optional is None:
        raise Refusal(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    for name in sorted(required - set(block)):
        raise Refusal(f"{where}.{kind}.{name}: Field required")
    for name in sorted(set(block) - required - optional - {"type"}):
        raise Refusal(f"{where}.{kind}.{name}: Extra inputs are not permitted")
    return str(kind)


def check_block(block: Body, where: str, role: str) -> None:
    kind = kind_of(block, where)
    if kind == "tool_result" or not is_server_result(kind):
        allowed = OF_USER if role == "user" else OF_ASSISTANT
        if kind not in allowed:
            other = "assistant" if role == "user" else "user"
            raise Refusal(f"{where}: `{kind}` blocks can only be in `{other}` messages")
    elif role != "assistant":
        raise Refusal(f"{where}: `{kind}` blocks can only be in `assistant` messages")
    if kind == "text":
        check_text(block, "messages: ")
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        _check_call(block, f"{where}.{kind}")
    elif kind == "tool_result":
        _check_result(block, f"{where}.tool_result")
    elif kind == "image":
        _check_source(block["source"], f"{where}.image.source", {"base64": {"media_type", "data"}, "url": {"url"}, "file": {"file_id"}})
    elif kind == "document":
        sources = {"base64": {"media_type", "data"}, "text": {"media_type", "data"}, "url": {"url"}, "file": {"file_id"}}
        _check_source(block["source"], f"{where}.document.source", {**sources, "content": {"content"}})
        title = block.get("title")
        if title is not None and not (isinstance(title, str) and 1 <= len(title) <= 500):
            raise Refusal(f"{where}.document.title: String should have 1 to 500 characters")
    elif kind in ("thinking", "redacted_thinking"):
        for name in FIELDS[kind][0]:
            if not isinstance(block[name], str):
                raise Refusal(f"{where}.{kind}.{name}: Input should be a valid string")
    elif kind == "compaction" and not (block["content"] is None or (isinstance(block["content"], str) and block["content"])):
        raise Refusal(f"{where}.compaction.content: String should have at least 1 character")


def check_text(block: Body, where: str) -> None:
    text = block["text"]
    if not isinstance(text, str):
        raise Refusal(f"{where}text: Input should be a valid string")
    if not text:
        raise Refusal(f"{where}text content blocks must be non-empty")
    if not text.strip():
        raise Refusal(f"{where}text content blocks must contain non-whitespace text")


def _check_call(block: Body, where: str) -> None:
    if not isinstance(block["id"], str) or not ID.fullmatch(block["id"]):
        raise Refusal(f"{where}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    if not isinstance(block["name"], str) or not NAME.fullmatch(block["name"]):
        raise Refusal(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if not isinstance(block["input"], dict):
        raise Refusal(f"{where}.input: Input should be a valid dictionary")


def _check_result(block: Body, where: str) -> None:
    content = block.get("content")
    if not isinstance(block.get("is_error", False), bool):
        raise Refusal(f"{where}.is_error: Input should be a valid boolean")
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Refusal(f"{where}.content: Input should be a valid list")
    for number, part in enumerate(content):
        kind = kind_of(part, f"{where}.content.{number}")
        if kind not in IN_RESULT:
            raise Refusal(f"{where}.content.{number}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
        check_block(part, f"{where}.content.{number}", "user")
        if kind != "text" and block.get("is_error"):
            raise Refusal(f'{where}: all content must be type "text" if "is_error" is true')


def _check_source(source: object, where: str, allowed: dict[str, set[str]]) -> None:
    kind = source.get("type") if isinstance(source, dict) else None
    if not isinstance(source, dict) or kind not in allowed or set(source) != {"type", *allowed[kind]}:
        raise Refusal(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    if kind == "url" and not re.match(r"https?://[^\s/]+", str(source["url"])):
        raise Refusal(f"{where}.url: Only HTTP and HTTPS URLs are supported.")
    if kind == "text" and (source["media_type"] != "text/plain" or not str(source["data"]).strip()):
        raise Refusal(f"{where}: document text must be of text/plain, and not empty")
    if kind == "base64" and not source["data"]:
        raise Refusal(f"{where}.base64.data: String should have at least 1 character")
    if kind == "base64" and decoded(source["data"]) is None:
        raise Refusal(f"{where}.base64.data: Invalid base64 data")
    if kind == "base64" and where.endswith("document.source") and source["media_type"] != "application/pdf":
        raise Refusal(f"{where}.base64.media_type: Input should be 'application/pdf'")
    if kind == "base64" and where.endswith("document.source") and not is_pdf(decoded(source["data"]) or b""):
        raise Refusal(f"{where.removesuffix('document.source')}pdf.source.base64.data: The PDF specified was not valid.")
