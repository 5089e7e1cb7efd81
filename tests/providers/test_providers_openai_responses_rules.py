"""The rules for the Responses API: every rule is broken by some payload, and valid payloads pass."""

from __future__ import annotations

import base64
from typing import Any

from session.providers import validate_openai_responses
from session.providers.openai_responses import rules
from tests.support.pictures import pdf, png

Json = dict[str, Any]
PNG = png()
PDF = base64.b64encode(pdf()).decode()


def message_item(role: str = "user", content: Any = "a", **fields: Any) -> Json:
    return {"type": "message", "role": role, "content": content, **fields}


def call(call_id: str = "c1", **fields: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "run", "arguments": "{}", **fields}


def output(call_id: str = "c1", content: Any = "done", **fields: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": content, **fields}


def thought(**fields: Any) -> Json:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed", **fields}


def text(words: str = "x", **fields: Any) -> Json:
    return {"type": "input_text", "text": words, **fields}


def spoken(words: str = "x", **fields: Any) -> Json:
    return {"type": "output_text", "text": words, "annotations": [], **fields}


def image(url: Any = None, **fields: Any) -> Json:
    return {"type": "input_image", "image_url": IMAGE if url is None else url, **fields}


def custom(call_id: str = "c1", **fields: Any) -> Json:
    return {"type": "custom_tool_call", "call_id": call_id, "name": "patch", "input": "ls", **fields}


IMAGE = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
LONG = "x" * (rules.STRING + 1)
SHELL = {"type": "shell_call", "call_id": "c1", "action": {"commands": []}}
LOCAL = {"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "action": {}, "status": "completed"}
SEARCH = {"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {}}
WEB = {"type": "web_search_call", "id": "ws_1", "action": {}, "status": "completed"}

VALID: dict[str, Any] = {
    "nothing yet": [],
    "one text": {"model": "m", "input": "a"},
    "messages without a type": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    "blank texts": [message_item(content=""), message_item("assistant", ""), message_item("system", [text("")])],
    "an answer as it came": [
        message_item("assistant", [spoken(), {"type": "refusal", "refusal": ""}], id="msg_1", status="completed", phase="commentary")
    ],
    "parallel calls": [call("c1"), call("c2"), output("c2"), message_item("assistant"), output("c1")],
    "reasoning before everything": [
        *(thought(), message_item("assistant"), thought(id="rs_2"), thought(id="rs_3"), call(id="fc_1"), output(), thought(id="rs_4"), WEB)
    ],
    "reasoning of either kind": [thought(encrypted_content=None), message_item("assistant"), thought(id=None), message_item("assistant")],
    "custom tools": [custom(id="ctc_1"), {"type": "custom_tool_call_output", "call_id": "c1", "output": [text(), image()]}],
    "what a client does": [
        *(SHELL, {"type": "shell_call_output", "call_id": "c1", "output": []}),
        *({**LOCAL, "call_id": "c2"}, {"type": "local_shell_call_output", "id": "c2", "output": "{}"}),
        *({**SEARCH, "call_id": "c3"}, {"type": "tool_search_output", "call_id": "c3", "execution": "client", "tools": []}),
    ],
    "what the provider does": [
        *(WEB, {**SEARCH, "execution": "server"}, {"type": "tool_search_output", "execution": "server", "call_id": None, "tools": []}),
        *({"type": "mcp_call", "id": "mcp_1", "name": "n", "arguments": "{}"}, {"type": "compaction", "encrypted_content": "x"}),
    ],
    "everything a user can show": [
        message_item(
            content=[
                *(
                    text(),
                    image(),
                    image("https://example.org/a.png", detail="low"),
                    {"type": "input_image", "file_id": "f", "detail": "auto"},
                ),
                *({"type": "input_file", "file_id": "f"}, {"type": "input_file", "file_url": "https://example.org/a.pdf"}),
                {"type": "input_file", "file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"},
            ]
        )
    ],
    "the answer to a call that is stored": {"model": "m", "input": [output()], "previous_response_id": "resp_1"},
    "the longest string": [message_item(content="x" * rules.STRING)],
}

INVALID: list[tuple[str, str, Any]] = [
    ("R1", "a call at the end", [message_item(), call()]),
    ("R1", "one of two calls", [call("c1"), call("c2"), output("c1")]),
    ("R1", "an output before its call", [output(), call()]),
    ("R1", "an output of no call", [call("c1"), output("c1"), output("c2")]),
    ("R1", "two outputs of a call", [call(), output(), output()]),
    ("R1", "an output of another type", [call(), {"type": "custom_tool_call_output", "call_id": "c1", "output": "x"}]),
    ("R1", "a custom tool without its output", [custom()]),
    ("R1", "a shell without its output", [SHELL, message_item()]),
    ("R1", "a local shell without its output", [LOCAL, {"type": "local_shell_call_output", "id": "c2", "output": "{}"}]),
    ("R1", "a search of the client's without its output", [SEARCH]),
    ("R1", "two calls of one id", [call(), output(), call(), output()]),
    ("R1", "an empty id", [call(""), output("")]),
    ("R1", "an id too long", [call("c" * 65), output("c" * 65)]),
    ("R2", "reasoning at the end", [message_item(), thought()]),
    ("R2", "reasoning before a user", [thought(), message_item(), message_item("assistant")]),
    ("R2", "reasoning before an output", [call(), thought(), output()]),
    ("R2", "two reasonings before a user", [thought(), thought(id="rs_2"), message_item()]),
    ("R2", "reasoning before something for the provider", [thought(), {"type": "item_reference", "id": "x"}]),
    ("R0", "a request of nothing", {"model": "m", "input": []}),
    ("R0", "input that is no list", {"input": 7}),
    ("R0", "an item that is none", ["Hi"]),
    ("R0", "an item of no type", [{"content": "Hi"}]),
    ("R0", "an item of another type", [{"type": "dream"}]),
    ("R0", "a type that is none", [{"type": ["message"]}]),
    ("R0", "another role", [message_item("model")]),
    ("R0", "no content", [{"type": "message", "role": "user"}]),
    ("R0", "content that is none", [message_item(content=7)]),
    ("R0", "a field too many", [message_item(name="Ann")]),
    ("R0", "another phase", [message_item("assistant", phase="end")]),
    ("R0", "a call without its id", [{"type": "function_call", "name": "run", "arguments": "{}"}]),
    ("R0", "arguments that are an object", [call(arguments={}), output()]),
    ("R0", "an output that is an object", [call(), output(content={})]),
    ("R0", "an output without its text", [call(), output(content=None)]),
    ("R0", "a part that is none", [message_item(content=["Hi"])]),
    ("R0", "a part of another type", [message_item(content=[{"type": "text", "text": "Hi"}])]),
    ("R0", "what a user says in an answer", [message_item("assistant", [text()])]),
    ("R0", "what the assistant says in a user's message", [message_item(content=[spoken()])]),
    ("R0", "an image in a system message", [message_item("system", [image()])]),
    ("R0", "an image without its source", [message_item(content=[{"type": "input_image", "detail": "auto"}])]),
    ("R0", "an image from nowhere", [message_item(content=[image("a.png")])]),
    ("R0", "an image in an output from nowhere", [call(), output(content=[image("data:image/bmp;base64,Qk0=")])]),
    ("R0", "another file's bytes", [message_item(content=[image("data:image/png;base64,PGh0bWw+NDA0")])]),
    ("R0", "half an image in an output", [call(), output(content=[image(IMAGE[:-20])])]),
    (
        "R0",
        "half a screenshot",
        [
            {"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {}, "pending_safety_checks": [], "status": "completed"},
            {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot", "image_url": IMAGE[:-20]}},
        ],
    ),
    (
        "R0",
        "half a document",
        [message_item(content=[{"type": "input_file", "file_data": f"data:application/pdf;base64,{PDF[:-40]}", "filename": "a.pdf"}])],
    ),
    ("R0", "another detail", [message_item(content=[image(detail="max")])]),
    ("R0", "a file without its source", [message_item(content=[{"type": "input_file", "filename": "a.pdf"}])]),
    ("R0", "a name with a dot", [call(name="fs.read"), output()]),
    ("R0", "a name without end", [call(name="n" * 129), output()]),
    ("R0", "a text too long", [message_item(content=LONG)]),
    ("R0", "arguments too long", [call(arguments=LONG), output()]),
    ("R0", "an output too long", [call(), output(content=[text(LONG)])]),
    ("R0", "an id of another kind", [message_item("assistant", id="item_1")]),
    ("R0", "an id of another kind, of a call", [call(id="item_1"), output()]),
    ("R0", "an id twice", [thought(), message_item("assistant"), thought(), message_item("assistant")]),
    ("R0", "an empty id of reasoning", [thought(id=""), message_item("assistant")]),
    ("R0", "an id without end", [thought(id="rs_" + "x" * 62), message_item("assistant")]),
    ("R0", "reasoning of nothing", [thought(id=None, encrypted_content=None), message_item("assistant")]),
    ("R0", "reasoning without a summary", [{"type": "reasoning", "id": "rs_1"}, message_item("assistant")]),
    ("R0", "a summary that is none", [thought(summary=["x"]), message_item("assistant")]),
    ("R0", "a seal that is none", [thought(encrypted_content=7), message_item("assistant")]),
    ("R0", "NaN", [{**WEB, "action": float("nan")}]),
    ("R0", "a lone surrogate", [message_item(content="\ud800")]),
    ("R0", "bytes", [message_item(content=b"x")]),
]


def test_where_is_a_path_into_the_payload() -> None:
    payload = [message_item(content=[text(), image("a.png")]), call(), thought()]
    assert [(violation.rule, violation.where) for violation in validate_openai_responses(payload)] == [
        ("R0", "input[0].content[1]"),
        ("R1", "input[1]"),
        ("R2", "input[2]"),
    ]
