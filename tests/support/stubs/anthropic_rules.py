"""What Anthropic's Messages API refuses in a conversation: order, pairs, marks, pictures. Signatures are in `anthropic.py`.

The texts are the documented ones, or what users report. Written from the documentation, without a look at our validator.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from .anthropic_blocks import MARK, NAME, blocks_of, check_block, check_text, kind_of
from .pictures import decoded, is_readable, look
from .server import Body, Refusal

PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MEGABYTE = 1024 * 1024
MANY, SIDE, SIDE_OF_MANY, PICTURES_MAX, BYTES_MAX = 20, 8000, 2000, 100, 10 * MEGABYTE
"""The limits of image blocks: the number from which there are many, pixels, pixels if there are many, blocks, characters of base64."""


def check_request(body: Body, *, prefill: bool) -> None:
    """Nothing: the request is one that the API takes, signatures aside.

    Raises:
        Refusal: It is not.
    """
    _check_parameters(body)
    _check_system(body.get("system"))
    _check_tools(body.get("tools"))
    messages = body["messages"]
    for number, message in enumerate(messages):
        _check_message(message, f"messages.{number}", last=number == len(messages) - 1)
    _check_roles(messages, prefill=prefill)
    _check_calls(messages)
    _check_marks(body)
    _check_pictures(messages)


def _check_parameters(body: Body) -> None:
    candidates = {"model", "messages", "max_tokens", "system", "tools", "tool_choice", "thinking", "metadata", "stop_sequences", "stream"}
    candidates |= {"temperature", "top_k", "top_p", "service_tier", "output_config", "context_management", "mcp_servers", "container"}
    for name in body:
        if name not in candidates:
            raise Refusal(f"{name}: Extra inputs are not permitted")
    for name, kind in (("model", str), ("messages", list)):
        if not isinstance(body.get(name), kind):
            raise Refusal(f"{name}: Field required")
    if not body["messages"]:
        raise Refusal("messages: at least one message is required")


def _check_system(system: object) -> None:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise Refusal("system: Input should be a valid list")
    for number, block in enumerate(system):
        where = f"system.{number}"
        if kind_of(block, where) != "text":
            raise Refusal(f"{where}.type: Input should be 'text'")
        check_text(block, "system: ")


def _check_tools(tools: object) -> None:
    if tools is None:
        return
    if not isinstance(tools, list):
        raise Refusal("tools: Input should be a valid list")
    names: set[str] = set()
    for number, tool in enumerate(tools):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise Refusal(f"tools.{number}.custom.name: Field required")
        if not NAME.fullmatch(tool["name"]):
            raise Refusal(f"tools.{number}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tool["name"] in names:
            raise Refusal("tools: Tool names must be unique.")
        names.add(tool["name"])
        schema = tool.get("input_schema")
        if "type" not in tool and not (isinstance(schema, dict) and schema.get("type") == "object"):
            raise Refusal(f"tools.{number}.custom.input_schema.type: Field required")


def _check_message(message: object, where: str, *, last: bool) -> None:
    if not isinstance(message, dict) or set(message) != {"role", "content"}:
        raise Refusal(f"{where}: Input should have a role and a content, and nothing else")
    role, content = message["role"], message["content"]
    if role not in ("user", "assistant"):
        raise Refusal(f"{where}.role: Input should be 'user' or 'assistant'")
    if not isinstance(content, str | list):
        raise Refusal(f"{where}.content: Input should be a valid list")
    if not content and not (last and role == "assistant"):
        raise Refusal(f"{where}: all messages must have non-empty content except for the optional final assistant message")
    blocks = blocks_of(message)
    for number, block in enumerate(blocks):
        check_block(block, f"{where}.content.{number}", role)
    if role == "assistant" and blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        raise Refusal(f"{where}: The final block in an assistant message cannot be `thinking`.")


def _check_roles(messages: Sequence[Body], *, prefill: bool) -> None:
    """A1 and A6: who speaks first, in turns, and last."""
    if messages[0]["role"] != "user":
        raise Refusal('messages: first message must use the "user" role')
    for number, (one, next_one) in enumerate(itertools.pairwise(messages)):
        if one["role"] == next_one["role"]:
            raise Refusal(
                f'messages: roles must alternate between "user" and "assistant", but found multiple "{one["role"]}" '
                f"roles in a row (messages.{number + 1})"
            )
    if messages[-1]["role"] == "assistant":
        if not prefill and not _is_paused(messages[-1]) and blocks_of(messages[-1])[-1]["type"] != "compaction":
            raise Refusal("This model does not support assistant message prefill. The conversation must end with a user message.")
        final = blocks_of(messages[-1])
        if final and final[-1]["type"] == "text" and final[-1]["text"] != final[-1]["text"].rstrip():
            raise Refusal("messages: final assistant content cannot end with trailing whitespace")


def _check_calls(messages: Sequence[Body]) -> None:
    """A2 and A3: each call answered in the next message, before anything else, and nothing answered that was not called."""
    earlier: set[str] = set()
    for number, message in enumerate(messages):
        blocks = blocks_of(message)
        if number < len(messages) - 1 or not _is_paused(message):
            _check_server_calls(blocks, f"messages.{number}")
        asked = _calls(messages[number - 1]) if number else []
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        for at, block in enumerate(blocks):
            if block["type"] == "tool_result" and block["tool_use_id"] not in asked:
                raise Refusal(
                    f"messages.{number}.content.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {block['tool_use_id']}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
        if len(set(results)) != len(results):
            raise Refusal(f"messages.{number}: each tool_use must have a single result. Found multiple `tool_result` blocks with one id")
        missing = [name for name in asked if name not in results]
        if missing:
            _refuse_unanswered(number - 1, missing)
        if asked and any(block["type"] != "tool_result" for block in blocks[: len(asked)]):
            raise Refusal(
                f"messages.{number}: Did not find {len(asked)} `tool_result` block(s) at the beginning of this message. "
                "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks."
            )
        for name in _calls(message):
            if name in earlier:
                raise Refusal(f"messages.{number}: `tool_use` ids must be unique")
            earlier.add(name)
    if _calls(messages[-1]):
        _refuse_unanswered(len(messages) - 1, _calls(messages[-1]))


def _calls(message: Body) -> list[str]:
    return [block["id"] for block in blocks_of(message) if block["type"] == "tool_use"]


def _refuse_unanswered(number: int, missing: Sequence[str]) -> None:
    raise Refusal(
        f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _is_paused(message: Body) -> bool:
    """True if the model paused here for one of the provider's tools: a request that ends so is continued."""
    blocks = blocks_of(message)
    return message["role"] == "assistant" and bool(blocks) and blocks[-1]["type"] in ("server_tool_use", "mcp_tool_use")


def _check_server_calls(blocks: Sequence[Body], where: str) -> None:
    for position, block in enumerate(blocks):
        if block["type"] in ("server_tool_use", "mcp_tool_use"):
            answers = [later.get("tool_use_id") for later in blocks[position + 1 :] if later["type"].endswith("_tool_result")]
            if block["id"] not in answers:
                raise Refusal(
                    f"{where}.content.{position}: `{block['name']}` tool use with id `{block['id']}` was found without a corresponding "
                    f"`{block['name']}_tool_result` block"
                )


def marks_of(blocks: Sequence[object]) -> Iterator[tuple[str, Any]]:
    """Every `cache_control` in some blocks and in their contents, each with its position after a dot."""
    for number, block in enumerate(blocks):
        if isinstance(block, dict):
            if isinstance(block.get("content"), list):
                yield from ((f".{number}.content{where}", mark) for where, mark in marks_of(block["content"]))
            if block.get(MARK) is not None:
                yield f".{number}", block[MARK]


def _check_marks(body: Body) -> None:
    """A7: four marks at most, the long ones first."""
    marks = [(f"tools{where}", mark) for where, mark in marks_of(body.get("tools") or [])]
    if isinstance(body.get("system"), list):
        marks += [(f"system{where}", mark) for where, mark in marks_of(body["system"])]
    for number, message in enumerate(body["messages"]):
        marks += [(f"messages.{number}.content{where}", mark) for where, mark in marks_of(blocks_of(message))]
    if len(marks) > 4:
        raise Refusal(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    short = False
    for where, mark in marks:
        if not isinstance(mark, dict) or mark.get("type") != "ephemeral" or mark.get("ttl", "5m") not in ("5m", "1h"):
            raise Refusal(f"{where}.cache_control: Input should be of type 'ephemeral', for '5m' or '1h'")
        if mark.get("ttl") == "1h" and short:
            raise Refusal(
                f"{where}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
                "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            )
        short = short or mark.get("ttl") != "1h"


def _check_pictures(messages: Sequence[Body]) -> None:
    """A8: how many pictures, and how large."""
    result = [entry for number, message in enumerate(messages) for entry in media(blocks_of(message), f"messages.{number}.content")]
    pictures = [(where, block["source"]) for where, block in result if block["type"] == "image"]
    if len(pictures) > PICTURES_MAX:
        raise Refusal(f"messages: Too much media: 0 document pages + {len(pictures)} images > {PICTURES_MAX}")
    many = len(result) > MANY
    for where, source in pictures:
        if source["type"] == "base64":
            _check_picture(source, f"{where}.image.source.base64", SIDE_OF_MANY if many else SIDE, many=many)


def media(blocks: Sequence[Body], where: str) -> Iterator[tuple[str, Body]]:
    """The images and documents among blocks, each with its place as error messages write it."""
    for number, block in enumerate(blocks):
        if block["type"] in ("image", "document"):
            yield f"{where}.{number}", block
        elif block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from media(block["content"], f"{where}.{number}.tool_result.content")


def _check_picture(source: Body, where: str, side: int, *, many: bool) -> None:
    if source["media_type"] not in PICTURES:
        raise Refusal(f"{where}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'")
    if len(source["data"]) > BYTES_MAX:
        raise Refusal(f"{where}: image exceeds 10 MB maximum: {len(source['data'])} bytes > {BYTES_MAX} bytes")
    data = decoded(source["data"]) or b""
    picture = look(data)
    if picture is None or not is_readable(data):
        raise Refusal(f"{where}.data: Could not process image")
    if picture.media_type != source["media_type"]:
        raise Refusal(
            f"{where}: The image was specified using the {source['media_type']} media type, but the image appears to be a "
            f"{picture.media_type} image"
        )
    if max(picture.width, picture.height) > side:
        kind = f"for many-image requests: {side}" if many else f": {side}"
        raise Refusal(f"{where}.data: At least one of the image dimensions exceed max allowed size{' ' if many else ''}{kind} pixels")
