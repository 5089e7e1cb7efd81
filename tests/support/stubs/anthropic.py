"""Anthropic's Messages API on the loopback: it answers, signs its thinking, and checks its own signatures.

A signature has two halves: one is made of the thought (A4), one of the thought and of the conversation before it (A5).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from .answers import Block, Call, Raw, Say, Script
from .anthropic_blocks import MARK, blocks_of
from .anthropic_events import events_of
from .anthropic_rules import check_request, marks_of, media
from .caching import PrefixCache, Spent, tokens
from .pictures import decoded
from .server import Body, Refusal, Stub, canonical

BINDING_BETA = "thinking-binding-controls-2026-08-01"
THOUGHTS = ("thinking", "redacted_thinking")
NONCE = 8
"""Bytes by which two hidden thoughts differ."""


class AnthropicStub(Stub):
    """`POST /v1/messages` and `/v1/messages/count_tokens`.

    Args:
        script: The model.
        binds_thinking: Whether a thought is refused after an edit of what came before it, as the newest models do.
        prefill: Whether a request may end in what the assistant has begun to say, as older models take it.
        cache_minimum: Tokens below which nothing is cached.

    Attributes:
        piece: Characters of a text, or of a call's arguments, that one event of a stream brings.
        unusable: By the bytes, URL or file id of an image or document, the words with which a request that holds it is refused.
        names_place: Whether those refusals name the place of the image or document in the request.
    """

    piece = 40
    names_place = True

    def __init__(
        self, script: Script | None = None, *, binds_thinking: bool = False, prefill: bool = False, cache_minimum: int = 1024
    ) -> None:
        super().__init__(script)
        self.binds_thinking, self.prefill = binds_thinking, prefill
        self._cache = PrefixCache(cache_minimum)
        self._redacted = 0
        self.unusable: dict[bytes | str, str] = {}
        self._thoughts: dict[str, list[list[Body]]] = {}  # by the id of a call of an answer, what may stand as thought before it

    def envelope(self, refusal: Refusal) -> Body:
        """Their error, with an id of the request."""
        return {"type": "error", "error": {"type": refusal.kind, "message": refusal.message}, "request_id": self.new_id("req_")}

    def written(self, raw: bytes, status: int, body: Body) -> tuple[str, bytes]:
        """An answer as a stream of events, where the request asks for one."""
        if status == 200 and body.get("type") == "message" and json.loads(raw).get("stream"):
            return "text/event-stream", events_of(body, self.piece)
        return super().written(raw, status, body)

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        """A message, or a count."""
        where = path.partition("?")[0]
        if where not in ("/v1/messages", "/v1/messages/count_tokens"):
            raise Refusal("Not found", status=404, kind="not_found_error")
        if not (headers.get("x-api-key") or headers.get("authorization")):
            raise Refusal("x-api-key header is required", status=401, kind="authentication_error")
        if "anthropic-version" not in headers:
            raise Refusal("anthropic-version: header is required")
        counting = where.endswith("count_tokens")
        self._check_settings(headers, body, counting=counting)
        check_request(body, prefill=self.prefill)
        self._check_usable(body)
        earlier, dropped = self._checked_thoughts(body)
        blocks, marks = _segments(body)
        if counting:
            return {"input_tokens": sum(map(tokens, blocks))}
        spent = self._cache.marked(blocks, marks)
        return self._answer(body, self.script(body), earlier, spent, dropped)

    def sign(self, thought: str, before: bytes = b"") -> str:
        """The signature of a thought, as if it had been had after `before` (a digest that this class makes)."""
        mac = self.mac("thought", thought)
        return base64.b64encode(mac + self.mac(b"bound", mac, before)).decode()

    def redact(self, serial: int, before: bytes = b"") -> str:
        """The data of a hidden thought."""
        nonce = serial.to_bytes(NONCE, "big")
        mac = self.mac("redacted", nonce)
        return base64.b64encode(nonce + mac + self.mac(b"bound", mac, before)).decode()

    def _check_settings(self, headers: Mapping[str, str], body: Body, *, counting: bool) -> None:
        most = body.get("max_tokens")
        if not counting and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise Refusal("max_tokens: Field required" if most is None else "max_tokens: Input should be greater than or equal to 1")
        thinking = body.get("thinking")
        if thinking is None:
            return
        kind = thinking.get("type") if isinstance(thinking, dict) else None
        if kind not in ("enabled", "disabled", "adaptive"):
            raise Refusal(f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags")
        if "block_binding" in thinking and BINDING_BETA not in headers.get("anthropic-beta", ""):
            raise Refusal(f"thinking.{kind}.block_binding: Extra inputs are not permitted")
        if kind == "enabled" and not counting:
            room = thinking.get("budget_tokens")
            if not isinstance(room, int) or room < 1024:
                raise Refusal("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
            if isinstance(most, int) and room >= most:
                raise Refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")

    def _check_usable(self, body: Body) -> None:
        """Refuse a request that holds an image or document which the server cannot read, as it could once it had decoded or fetched it."""
        for number, message in enumerate(body["messages"]):
            for where, block in media(blocks_of(message), f"messages.{number}.content"):
                source = block["source"]
                content = decoded(source["data"]) if source["type"] == "base64" else source.get("url") or source.get("file_id")
                words = None if content is None else self.unusable.get(content)
                if words is not None:
                    kind = "image" if block["type"] == "image" else "pdf"  # the API calls a document of base64 so
                    field = f"{source['type']}.data" if source["type"] == "base64" else str(source["type"])
                    raise Refusal(f"{where}.{kind}.source.{field}: {words}" if self.names_place else words)

    # A4 and A5

    def _checked_thoughts(self, body: Body) -> tuple[bytes, list[Body]]:
        """A hash of the conversation as the model sees it, and the parts that it does not see."""
        thinking = body.get("thinking") or {}
        binding = thinking.get("block_binding") or {}
        drops = binding.get("prefix_mismatch_behavior") == "drop_block"
        messages = body["messages"]
        latest = max((number for number, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
        if latest >= 0:
            self._check_latest(messages[latest], f"messages.{latest}", required=thinking.get("type") == "enabled")
        if thinking.get("type") == "enabled":
            self._check_turn(messages)
        earlier = _start(body)
        dropped: list[Body] = []
        for number, message in enumerate(messages):
            dropping = False
            for position, block in enumerate(blocks_of(message)):
                if block["type"] in THOUGHTS:
                    where = f"messages.{number}.content.{position}"
                    mac, bound = self._verified(block, where, latest=number == latest)
                    fits = not dropping and bound == self.mac(b"bound", mac, earlier)
                    if self.binds_thinking and not fits:
                        if not drops:
                            raise Refusal(_unbound(where, block["type"]))
                        dropping = True
                        dropped.append({"type": "thinking_dropped", "path": where, "reason": "prefix_binding_mismatch"})
                        continue
                else:
                    dropping = False
                earlier = _after(earlier, message["role"], block)
        return earlier, dropped

    def _check_latest(self, message: Body, where: str, *, required: bool) -> None:
        """Of the last assistant message: no thought is missing, moved or new."""
        blocks = blocks_of(message)
        thoughts = [block for block in blocks if block["type"] in THOUGHTS]
        for position, block in enumerate(blocks):
            issued = self._thoughts.get(block["id"]) if block["type"] == "tool_use" else None
            if issued is not None and thoughts and thoughts not in issued:
                raise Refusal(_modified(f"{where}.content.{position}"))
        if required and thoughts and blocks[0]["type"] not in THOUGHTS:
            raise Refusal(
                f"{where}.content.0: If an assistant message contains any thinking blocks, the first block must be `thinking` or "
                f"`redacted_thinking`. Found `{blocks[0]['type']}`."
            )

    @staticmethod
    def _check_turn(messages: Sequence[Body]) -> None:
        """With thinking by budget: an unfinished turn that calls tools begins with a thought."""
        texts = [position for position, message in enumerate(messages) if message["role"] == "user" and _has_text(message)]
        position, turn = next(
            (
                (position, messages[position:])
                for position in range(max(texts, default=-1) + 1, len(messages))
                if messages[position]["role"] == "assistant"
            ),
            (0, []),
        )
        calls = any(block["type"] == "tool_use" for message in turn for block in blocks_of(message))
        where, blocks = f"messages.{position}", blocks_of(turn[0]) if turn else []
        if calls and blocks[0]["type"] not in THOUGHTS:
            raise Refusal(
                f"{where}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{blocks[0]['type']}`. When `thinking` is "
                "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and "
                "`tool_result` blocks). We recommend you include thinking blocks from previous turns."
            )

    def _verified(self, block: Body, where: str, *, latest: bool) -> tuple[bytes, bytes]:
        """The halves of a block's seal; the first one is ours."""
        redacted = block["type"] == "redacted_thinking"
        try:
            raw = base64.b64decode(block["data"] if redacted else block["signature"], validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        nonce, halves = (raw[:NONCE], raw[NONCE:]) if redacted else (b"", raw)
        mac, bound = halves[:16], halves[16:]
        if mac != (self.mac("redacted", nonce) if redacted else self.mac("thought", block["thinking"])):
            if latest and len(halves) == 32:
                raise Refusal(_modified(where))
            field = "data" if redacted else "signature"
            raise Refusal(f"{where}: Invalid `{field}` in `{block['type']}` block")
        return mac, bound

    # The answer

    def _answer(self, body: Body, said: Sequence[Block], seen: bytes, spent: Spent, dropped: list[Body]) -> Body:
        content: list[Body] = []
        for block in said:
            content.append(self._block(block, seen))
            seen = _after(seen, "assistant", content[-1])
        thoughts = [block for block in content if block["type"] in THOUGHTS]
        self._thoughts.update({block["id"]: [thoughts, *_before_recalls(body)] for block in content if block["type"] == "tool_use"})
        calls = any(isinstance(block, Call) for block in said)
        answer: Body = {
            "id": self.new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": spent.rest,
                "cache_read_input_tokens": spent.read,
                "cache_creation_input_tokens": spent.written,
                "output_tokens": max(1, tokens(content)),
            },
        }
        answer["usage"] |= _iterations(content, answer["usage"])
        if content and content[-1]["type"] == "compaction":
            answer["stop_reason"] = "compaction"
        if dropped:
            answer["input_transformations"] = dropped
        return answer

    def _block(self, block: Block, before: bytes) -> Body:
        if isinstance(block, Say):
            return {"type": "text", "text": block.text}
        if isinstance(block, Call):
            return {"type": "tool_use", "id": self.new_id("toolu_"), "name": block.name, "input": dict(block.arguments)}
        if isinstance(block, Raw):
            return dict(block.fields)
        if block.hidden:
            self._redacted += 1
            return {"type": "redacted_thinking", "data": self.redact(self._redacted, before)}
        return {"type": "thinking", "thinking": block.text, "signature": self.sign(block.text, before)}


def _before_recalls(body: Body) -> list[list[Body]]:
    """The thinking before the recalls that the request ends with: their exchange may be left out, with all that was thought in it."""
    thoughts: list[list[Body]] = []
    for message in reversed([message for message in body["messages"] if message["role"] == "assistant"]):
        blocks = blocks_of(message)
        if {block.get("name") for block in blocks if block["type"] == "tool_use"} != {"recall"}:
            break
        thoughts = [[block for block in blocks if block["type"] in THOUGHTS]]
    return thoughts


def _iterations(content: Sequence[Body], usage: Body) -> Body:
    """The usage of each step, where a compaction is one: it is not in the totals."""
    spent = {"type": "compaction", **usage, "input_tokens": 9_000, "output_tokens": 300}
    compactions = [spent for block in content if block["type"] == "compaction"]
    return {"iterations": [*compactions, {"type": "message", **usage}]} if compactions else {}


def _modified(where: str) -> str:
    return (
        f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
        "These blocks must remain as they were in the original response."
    )


def _unbound(where: str, kind: str) -> str:
    field = "data" if kind == "redacted_thinking" else "signature"
    return (
        f"{where}: Invalid `{field}` in `{kind}` block. The block is bound to a different conversation. Remove the block, or set "
        f'`thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the `{BINDING_BETA}` value in the '
        "`anthropic-beta` header."
    )


def _bare(value: Any) -> Any:
    """The value without cache marks: they bind nothing."""
    if isinstance(value, dict):
        return {name: _bare(member) for name, member in value.items() if name != MARK}
    return [_bare(member) for member in value] if isinstance(value, list) else value


def _system(body: Body) -> list[Body]:
    system = body.get("system") or []
    return [{"type": "text", "text": system}] if isinstance(system, str) else system


def _start(body: Body) -> bytes:
    """A digest of what stands before the messages."""
    return hashlib.sha256(canonical([_bare(body.get("tools") or []), _bare(_system(body))]).encode()).digest()


def _after(seen: bytes, role: str, block: Body) -> bytes:
    """The digest of a conversation that one block was added to."""
    return hashlib.sha256(seen + canonical([role, _bare(block)]).encode()).digest()


def _segments(body: Body) -> tuple[list[object], list[int]]:
    """The request as one row of blocks, in the order in which they are cached, and which of them are marked."""
    tools, system = body.get("tools") or [], _system(body)
    pairs = [("tools", block) for block in tools] + [("system", block) for block in system]
    pairs += [(message["role"], block) for message in body["messages"] for block in blocks_of(message)]
    marked = [number for number, (_, block) in enumerate(pairs) if any(True for _ in marks_of([block]))]
    return [_bare(list(pair)) for pair in pairs], marked


def _has_text(message: Body) -> bool:
    return any(block["type"] != "tool_result" for block in blocks_of(message))
