"""The rules for Chat Completions: every rule is broken by some payload, and valid payloads pass."""

from __future__ import annotations

import base64
from typing import Any

from session.providers import validate_openai_chat
from session.providers.openai_chat import rules
from tests.support.pictures import docx, encoded, pdf, png

Json = dict[str, Any]
PNG = png()
PDF = base64.b64encode(pdf()).decode()


def user(content: Any = "a", **fields: Any) -> Json:
    return {"role": "user", "content": content, **fields}


def calls(*ids: str, **fields: Any) -> Json:
    listed = [{"id": entry, "type": "function", "function": {"name": "run", "arguments": "{}"}} for entry in ids]
    return {"role": "assistant", "content": None, "tool_calls": listed, **fields}


def result(call_id: str = "c1", content: Any = "done", **fields: Any) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **fields}


def one_call(**fields: Any) -> Json:
    return calls(tool_calls=[{"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}, **fields}])


def text(content: str = "x", **fields: Any) -> Json:
    return {"type": "text", "text": content, **fields}


def image(data: bytes = PNG, media_type: str = "image/png", **fields: Any) -> Json:
    return picture(f"data:{media_type};base64,{base64.b64encode(data).decode()}", **fields)


def picture(url: Any, **fields: Any) -> Json:
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def file(data: bytes, media_type: str = "application/pdf") -> Json:
    return {"type": "file", "file": {"file_data": f"data:{media_type};base64,{base64.b64encode(data).decode()}", "filename": "a"}}


def request(*messages: Any, **fields: Any) -> Json:
    return {"model": "m", "messages": list(messages), **fields}


OFFICE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
LONG = "x" * (rules.STRING + 1)

VALID: dict[str, Any] = {
    "nothing yet": [],
    "one text": [user()],
    "an answer first": [{"role": "assistant", "content": "a"}],
    "blank texts": [{"role": "system", "content": ""}, user(""), {"role": "assistant", "content": " "}],
    "system messages anywhere": [user(), {"role": "system", "content": "a"}, {"role": "developer", "content": [text()]}],
    "two of each in a row": [user(), user(), {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
    "parallel calls": [user(), calls("c1", "c2", content="on it"), result("c2"), result("c1", [text(), text()]), user()],
    "an id used again": [calls("c1"), result("c1"), calls("c1"), result("c1")],
    "a call without content": [{key: value for key, value in calls("c1").items() if key != "content"}, result()],
    "a custom tool": [calls(tool_calls=[{"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "ls"}}]), result()],
    "a function of old": [
        {"role": "assistant", "function_call": {"name": "run", "arguments": "{}"}},
        {"role": "function", "name": "run", "content": "x"},
    ],
    "a refusal": [
        user(),
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "assistant", "refusal": "No."},
    ],
    "everything a user can show": [
        user(
            [
                text(),
                image(),
                picture("https://example.org/a.png", detail="low"),
                {"type": "file", "file": {"file_id": "f"}},
                {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"}},
                {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
            ],
            name="Ann",
        )
    ],
    "128 calls": [calls(*map(str, range(128))), *(result(str(n)) for n in range(128))],
    "the longest string": [user("x" * rules.STRING)],
    "an image longer than a string": [user([image(png(padding=9_000_000))])],
    "a whole request": request({"role": "system", "content": "a"}, user()),
    "a reasoning model": request({"role": "developer", "content": "a"}, user(), model="o3-mini"),
    "a model that only sounds like one": request({"role": "system", "content": "a"}, user(), model="gpt-5-chat-latest"),
}

INVALID: list[tuple[str, str, Any]] = [
    ("O1", "a call at the end", [user(), calls("c1")]),
    ("O1", "a call and then a text", [calls("c1"), user(), result("c1")]),
    ("O1", "one of two calls", [calls("c1", "c2"), result("c1"), user()]),
    ("O1", "a result first of all", [result()]),
    ("O1", "a result of no call", [calls("c1"), result("c1"), result("c2")]),
    ("O1", "two results of a call", [calls("c1"), result("c1"), result("c1")]),
    ("O1", "a result behind a text", [calls("c1"), result("c1"), user(), result("c1")]),
    ("O1", "two calls of one id", [calls("c1", "c1"), result("c1"), result("c1")]),
    ("O1", "an empty id", [calls(""), result("")]),
    ("O1", "an id too long", [calls("c" * 41), result("c" * 41)]),
    ("O2", "too many calls", [calls(*map(str, range(129))), *(result(str(n)) for n in range(129))]),
    ("O2", "a text too long", [user(LONG)]),
    ("O2", "a part too long", [user([text(LONG)])]),
    ("O2", "a result too long", [calls("c1"), result("c1", LONG)]),
    ("O2", "arguments too long", [one_call(function={"name": "run", "arguments": LONG}), result()]),
    ("O2", "a name with a dot", [one_call(function={"name": "fs.read", "arguments": "{}"}), result()]),
    ("O2", "a name without end", [one_call(function={"name": "n" * 65, "arguments": "{}"}), result()]),
    ("O2", "an image in a result", [calls("c1"), result("c1", [image()])]),
    ("O2", "an image in an answer", [{"role": "assistant", "content": [image()]}]),
    ("O2", "an image in a system message", [{"role": "system", "content": [text(), image()]}]),
    ("O2", "a file in a developer's message", [{"role": "developer", "content": [{"type": "file", "file": {"file_id": "f"}}]}]),
    ("O2", "a refusal of the user's", [user([{"type": "refusal", "refusal": "No."}])]),
    ("O2", "an image from nowhere", [user([picture("a.png")])]),
    ("O2", "an image from a disk", [user([picture("file:///a.png")])]),
    ("O2", "an image of another format", [user([image(b"BM", "image/bmp")])]),
    ("O2", "an image with another's label", [user([image(media_type="image/jpeg")])]),
    ("O2", "an image of no bytes", [user([picture("data:image/png;base64,")])]),
    ("O2", "an image that is no base64", [user([picture("data:image/png;base64,§")])]),
    ("O2", "another file's bytes", [user([image(b"<html>404</html>")])]),
    ("O2", "a header alone", [user([image(PNG[:33])])]),
    ("O2", "half an image", [user([image(encoded("WEBP")[:300], "image/webp")])]),
    ("O2", "half a document", [user([file(pdf()[:200])])]),
    ("O2", "a document of another type", [user([file(b"<html>404</html>")])]),
    ("O2", "half an Office document", [user([file(docx()[:200], OFFICE)])]),
    ("O2", "a file that is no base64", [user([{"type": "file", "file": {"file_data": "data:application/pdf;base64,§"}}])]),
    ("O2", "an image too heavy", [user([image(png(padding=16_000_000))])]),
    ("O2", "an address too long", [user([picture(f"https://{LONG}")])]),
    ("O3", "a system message for a model that thinks", request({"role": "system", "content": "a"}, user(), model="o1")),
    ("O3", "the same behind a vendor's name", request({"role": "system", "content": "a"}, user(), model="openai/gpt-5-mini")),
    ("O3", "a system message where effort is set", request(user(), {"role": "system", "content": "a"}, reasoning_effort="high")),
    ("O0", "a request of nothing", request()),
    ("O0", "messages that are no list", {"messages": "Hi"}),
    ("O0", "a message that is none", ["Hi"]),
    ("O0", "another role", [{"role": "model", "content": "Hi"}]),
    ("O0", "a role that is none", [{"role": ["user"], "content": "Hi"}]),
    ("O0", "another field", [user(id="x")]),
    ("O0", "calls of the user's", [user(tool_calls=[])]),
    ("O0", "no content", [{"role": "user"}]),
    ("O0", "null as content", [user(None)]),
    ("O0", "an answer of nothing", [{"role": "assistant", "content": None}]),
    ("O0", "content that is none", [user(7)]),
    ("O0", "an empty list as content", [user([])]),
    ("O0", "an empty list of calls", [calls(content="a")]),
    ("O0", "calls that are no list", [calls(tool_calls="run", content="a")]),
    ("O0", "a part that is none", [user(["Hi"])]),
    ("O0", "a part of no type", [user([{"text": "Hi"}])]),
    ("O0", "a part of another type", [user([{"type": "input_text", "text": "Hi"}])]),
    ("O0", "a part without its field", [user([{"type": "text"}])]),
    ("O0", "a part with a field too many", [user([text(id="x")])]),
    ("O0", "an image without its address", [user([{"type": "image_url", "image_url": {}}])]),
    ("O0", "another detail", [user([image(detail="max")])]),
    ("O0", "a file without its source", [user([{"type": "file", "file": {"filename": "a"}}])]),
    ("O0", "a result without its call", [{"role": "tool", "content": "x"}]),
    ("O0", "a name that is none", [user(name=7)]),
    ("O0", "a function without a name", [{"role": "function", "content": "x"}]),
    ("O0", "a call of another type", [one_call(type="web"), result()]),
    ("O0", "a call that is none", [calls(tool_calls=["run"])]),
    ("O0", "arguments that are an object", [one_call(function={"name": "run", "arguments": {}}), result()]),
    ("O0", "a call without its function", [one_call(function=None), result()]),
    ("O0", "NaN", [user(name=float("nan"))]),
    ("O0", "a lone surrogate", [user("\ud800")]),
    ("O0", "bytes", [user(b"x")]),
]


def test_where_is_a_path_into_the_payload() -> None:
    payload = [user([text(), picture("a.png")]), calls("c1", "c2"), result("c2", [image()])]
    assert [(violation.rule, violation.where) for violation in validate_openai_chat(payload)] == [
        ("O1", "messages[1].tool_calls[0]"),
        ("O2", "messages[2].content[0]"),
        ("O2", "messages[0].content[1]"),
    ]
