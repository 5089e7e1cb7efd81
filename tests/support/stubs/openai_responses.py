"""OpenAI's Responses on the loopback: it remembers the items it gave, and which of them belong together."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .answers import Block, Call, Raw, Say, Script
from .caching import PrefixCache, Spent, tokens
from .openai_events import response_events
from .openai_rules import (
    check_choice,
    check_fields,
    check_file,
    check_headers,
    check_list,
    check_name,
    check_parameters,
    check_picture,
    check_text,
    envelope,
    wrong_type,
)
from .server import Body, Refusal, Stub, canonical

PARAMETERS = {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens", "temperature", "top_p"}
PARAMETERS |= {"prompt_cache_key", "client_metadata"}  # as Codex sends them
PARAMETERS |= {
    "context_management",
    "include",
    "reasoning",
    "store",
    "stream",
    "metadata",
    "truncation",
    "previous_response_id",
    "text",
    "user",
    "service_tier",
}
PARAMETERS |= {"stream_options"}
CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""By type of a call that the caller answers: that of its output."""
HOSTED = {"web_search_call", "file_search_call", "computer_call", "image_generation_call", "code_interpreter_call", "mcp_call"}
HOSTED |= {"mcp_list_tools", "mcp_approval_request", "local_shell_call", "shell_call", "apply_patch_call", "tool_search_call"}
"""Calls of tools that run at the provider, taken as they come."""
OTHERS = {"compaction", "item_reference", "computer_call_output", "mcp_approval_response", "local_shell_call_output", "shell_call_output"}
OTHERS |= {"apply_patch_call_output", "tool_search_output"}
LOGINS = "/responses"
"""The path at the server of logins to ChatGPT."""
FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "message": ({"role", "content"}, {"type", "id", "status", "phase"}),
    "function_call": ({"type", "call_id", "name", "arguments"}, {"id", "status", "namespace", "caller"}),
    "function_call_output": ({"type", "call_id", "output"}, {"id", "status", "caller"}),
    "custom_tool_call": ({"type", "call_id", "name", "input"}, {"id", "status", "namespace", "caller"}),
    "custom_tool_call_output": ({"type", "call_id", "output"}, {"id", "status", "caller"}),
    "reasoning": ({"type", "summary"}, {"id", "encrypted_content", "content", "status"}),
}
"""By type of an item: the fields it must have, and those it may have."""
STARTS = {"message": "msg", "function_call": "fc", "function_call_output": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
PARTS = {"input_text": "text", "input_image": None, "input_file": None, "output_text": "text", "refusal": "refusal"}


@dataclass(frozen=True, slots=True)
class _Given:
    """An item that was answered with: the reasoning items before it in its answer, and what came next."""

    reasoning: tuple[str, ...]
    following: str | None


class OpenAIResponsesStub(Stub):
    """`POST /v1/responses`; the client's base URL is `stub.url + "/v1"`. The server of logins to ChatGPT has the path `LOGINS`."""

    largest = 512 * 1024 * 1024
    incomplete: str | None = None
    """Why every answer is incomplete; None for whole answers."""

    def __init__(self, script: Script | None = None, *, cache_minimum: int = 1024, path: str = "/v1/responses") -> None:
        super().__init__(script)
        self._path = path
        self._cache = PrefixCache(cache_minimum)
        self._given: dict[str, _Given] = {}

    def envelope(self, refusal: Refusal) -> Body:
        """Their error."""
        return envelope(refusal)

    def written(self, raw: bytes, status: int, body: Body) -> tuple[str, bytes]:
        """An answer as a stream of events, where the request asks for one."""
        if status != 200 or not json.loads(raw).get("stream"):
            return super().written(raw, status, body)
        return "text/event-stream", response_events(body)

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        """A response."""
        if path != self._path:
            raise Refusal(f"Invalid URL (POST {path})", status=404)
        check_headers(headers)
        check_parameters(body, PARAMETERS, ("model", "input"))
        items = body["input"]
        if isinstance(items, str):
            items = [{"role": "user", "content": check_text(items, "input", least=1)}]
        for number, item in enumerate(check_list(items, "input")):
            if self._path == LOGINS and isinstance(item, dict):
                item.pop("internal_chat_message_metadata_passthrough", None)  # Codex sends it to this server only
            _check_item(item, f"input[{number}]")
        _check_ids(items)
        _check_calls(items)
        self._check_reasoning(items, stored=body.get("store") is not False)
        spent = self._cache.whole([body.get("instructions"), body.get("tools") or [], *items])
        return self._answer(body, self.script(body), spent)

    def encrypt(self, id: str, summary: Sequence[str]) -> str:
        """The encrypted content of a reasoning item, which knows its item's id."""
        return "gAAAAA" + base64.urlsafe_b64encode(self.mac("reasoning", id, *summary) + id.encode()).decode()

    def _is_ours(self, sealed: str, id: str | None, summary: Sequence[str]) -> bool:
        try:
            inner = base64.urlsafe_b64decode(sealed.removeprefix("gAAAAA"))[16:].decode()
        except ValueError:
            return False
        return id in (None, inner) and sealed == self.encrypt(inner, summary)

    # R2

    def _check_reasoning(self, items: Sequence[Body], *, stored: bool) -> None:
        before: set[str] = set()
        for number, item in enumerate(items):
            if item.get("type") == "reasoning":
                self._check_thought(item, stored=stored)
                self._check_following(item.get("id"), items[number + 1 :][:1])
                before.add(item.get("id") or "")
            given = self._given.get(item.get("id") or "")
            for thought in given.reasoning if given else ():
                if thought not in before:
                    kind = item.get("type", "message")
                    raise Refusal(
                        f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item: '{thought}'.",
                        param="input",
                    )

    def _check_thought(self, item: Body, *, stored: bool) -> None:
        sealed = item.get("encrypted_content")
        if sealed is not None:
            if not self._is_ours(sealed, item.get("id"), [entry["text"] for entry in item["summary"]]):
                raise Refusal(
                    f"The encrypted content {sealed[:4]}...{sealed[-4:]} could not be verified.", code="invalid_encrypted_content"
                )
        elif not stored or item.get("id") not in self._given:
            hint = "" if stored else " Items are not persisted when `store` is set to false."
            raise Refusal(f"Item with id '{item.get('id')}' not found.{hint}", param="input")

    def _check_following(self, id: str | None, later: Sequence[Body]) -> None:
        given = self._given.get(id or "")
        follower = later[0] if later else {}
        of_model = follower.get("type") in {"reasoning", *CALLS, *HOSTED} or follower.get("role") == "assistant"
        named = follower.get("id")
        if not of_model or (given is not None and named is not None and named != given.following):
            raise Refusal(f"Item '{id}' of type 'reasoning' was provided without its required following item.", param="input")

    # The answer

    def _answer(self, body: Body, said: Sequence[Block], spent: Spent) -> Body:
        output = [self._item(block) for block in said]
        for number, item in enumerate(output):
            thoughts = tuple(entry["id"] for entry in output[:number] if entry["type"] == "reasoning")
            self._given[item["id"]] = _Given(thoughts, output[number + 1]["id"] if number + 1 < len(output) else None)
        written = max(1, tokens(output))
        return {
            "id": self.new_id("resp_"),
            "object": "response",
            "created_at": 1_700_000_000,
            "status": "completed" if self.incomplete is None else "incomplete",
            "error": None,
            "incomplete_details": None if self.incomplete is None else {"reason": self.incomplete},
            "instructions": body.get("instructions"),
            "model": body["model"],
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": body.get("tools") or [],
            "usage": {
                "input_tokens": spent.total,
                "input_tokens_details": {"cached_tokens": spent.read, "cache_write_tokens": 0},
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": tokens([item for item in output if item["type"] == "reasoning"])},
                "total_tokens": spent.total + written,
            },
        }

    def _item(self, block: Block) -> Body:
        if isinstance(block, Say):
            part = {"type": "output_text", "text": block.text, "annotations": []}
            return {"type": "message", "id": self.new_id("msg_"), "role": "assistant", "status": "completed", "content": [part]}
        if isinstance(block, Call):
            return {
                "type": "function_call",
                "id": self.new_id("fc_"),
                "call_id": self.new_id("call_"),
                "name": block.name,
                "arguments": canonical(dict(block.arguments)),
                "status": "completed",
            }
        if isinstance(block, Raw):
            return {"id": self.new_id("raw_"), **block.fields}
        id = self.new_id("rs_")
        summary = [] if block.hidden else [{"type": "summary_text", "text": block.text}]
        sealed = self.encrypt(id, [entry["text"] for entry in summary])
        return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": sealed}


def _check_item(item: object, where: str) -> None:
    if not isinstance(item, dict):
        wrong_type(where, "an object", item)
    kind = check_choice(item.get("type", "message"), f"{where}.type", FIELDS.keys() | HOSTED | OTHERS)
    if kind not in FIELDS:
        return
    check_fields(item, where, *FIELDS[kind])
    if item.get("id") is not None and not re.fullmatch(STARTS.get(kind, "") + r"[\w-]*", check_text(item["id"], f"{where}.id", most=64)):
        start = STARTS[kind]
        raise Refusal(
            f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with '{start}'.", param=f"{where}.id", code="invalid_value"
        )
    if kind == "message":
        _check_message(item, where)
    elif kind == "reasoning":
        if item.get("encrypted_content") is None:  # else it is known by that
            check_text(item.get("id"), f"{where}.id", least=1)
        else:
            check_text(item["encrypted_content"], f"{where}.encrypted_content")
        for number, part in enumerate(item["summary"] if isinstance(item["summary"], list) else wrong_type(where, "an array", None)):
            check_fields(part, f"{where}.summary[{number}]", {"type", "text"})
            check_text(part["text"], f"{where}.summary[{number}].text")
    else:
        check_text(item["call_id"], f"{where}.call_id", most=64, least=1)
        for name in ("arguments", "input"):
            if name in item:
                check_name(item["name"], f"{where}.name", most=128)
                check_text(item[name], f"{where}.{name}")
        if "output" in item and not isinstance(item["output"], str):
            _check_parts(item["output"], f"{where}.output", {"input_text", "input_image", "input_file"})
        elif "output" in item:
            check_text(item["output"], f"{where}.output")


def _check_message(item: Body, where: str) -> None:
    role = check_choice(item["role"], f"{where}.role", {"user", "assistant", "system", "developer"})
    if isinstance(item["content"], str):
        check_text(item["content"], f"{where}.content")
    else:
        says = {"output_text", "refusal"}
        allowed = {"assistant": says, "user": PARTS.keys() - says}.get(role, {"input_text"})
        _check_parts(item["content"], f"{where}.content", allowed)


def _check_parts(parts: object, where: str, allowed: set[str]) -> None:
    for number, part in enumerate(check_list(parts, where)):
        spot = f"{where}[{number}]"
        kind = check_choice(part.get("type") if isinstance(part, dict) else None, f"{spot}.type", allowed)
        if (name := PARTS[kind]) is not None:
            check_fields(part, spot, {"type", name}, {"annotations", "logprobs"} if kind == "output_text" else ())
            check_text(part[name], f"{spot}.{name}")
        elif kind == "input_image":
            check_fields(part, spot, {"type"}, {"image_url", "file_id", "detail"})
            if (part.get("image_url") is None) == (part.get("file_id") is None):
                raise Refusal(f"Invalid '{spot}': pass exactly one of image_url and file_id.", param=spot, code="invalid_value")
            if part.get("image_url") is not None:
                check_picture(part["image_url"], f"{spot}.image_url")
            check_choice(part.get("detail", "auto"), f"{spot}.detail", {"low", "high", "auto", "original"})
        else:
            check_fields(part, spot, {"type"}, {"file_data", "file_id", "file_url", "filename", "detail"})
            check_file(part, spot)


def _check_ids(items: Sequence[Body]) -> None:
    earlier: set[str] = set()
    for item in items:
        id = item.get("id")
        if id is not None and id in earlier:
            raise Refusal(f"Duplicate item found with id {id}. Remove duplicate items from your input and try again.", param="input")
        earlier.add(id or "")


def _check_calls(items: Sequence[Body]) -> None:
    """R1: an output for every call, after it, and a call for every output."""
    open_calls: dict[tuple[str, str], int] = {}
    for item in items:
        kind = item.get("type", "message")
        if kind in CALLS:
            key = (CALLS[kind], item["call_id"])
            open_calls[key] = open_calls.get(key, 0) + 1
        elif kind in CALLS.values():
            key = (kind, item["call_id"])
            if not open_calls.get(key):
                what = "function call" if kind == "function_call_output" else "custom tool call"
                raise Refusal(f"No tool call found for {what} output with call_id {item['call_id']}.", param="input")
            open_calls[key] -= 1
    for (kind, call_id), count in open_calls.items():
        if count:
            what = "function call" if kind == "function_call_output" else "custom tool call"
            raise Refusal(f"No tool output found for {what} {call_id}.", param="input")
