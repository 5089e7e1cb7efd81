"""The rules for Anthropic's Messages API: every rule is broken by some payload, and valid payloads pass."""

import base64
from typing import Any

from session.providers import Violation, validate_anthropic
from tests.support import pictures

Json = dict[str, Any]


def png(width: int, height: int, *, padding: int = 0) -> str:
    """Return the base64 of an image of this size."""
    return base64.b64encode(pictures.png(width, height, padding=padding)).decode()


PDF = base64.b64encode(pictures.pdf()).decode()


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def pdf_block(data: bytes) -> Json:
    return {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": coded(data)}}


def text(content: str = "x", **fields: Any) -> Json:
    return {"type": "text", "text": content, **fields}


def use(tool_use_id: str = "c1", **fields: Any) -> Json:
    return {"type": "tool_use", "id": tool_use_id, "name": "run", "input": {}, **fields}


def result(tool_use_id: str = "c1", **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": "done", **fields}


def thinking(**fields: Any) -> Json:
    return {"type": "thinking", "thinking": "hm", "signature": "sealed", **fields}


def image(data: str | None = None, media_type: str = "image/png") -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": png(2, 2) if data is None else data}}


def document() -> Json:
    return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}, "title": "t"}


MARK: Json = {"cache_control": {"type": "ephemeral"}}
LONG_MARK: Json = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def user(*content: Any) -> Json:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> Json:
    return {"role": "assistant", "content": list(content)}


def request(*messages: Any, **fields: Any) -> Json:
    return {"model": "m", "max_tokens": 1, "messages": list(messages), **fields}


def results(*messages: Any, system: Any = None) -> list[str]:
    """Return the rules that these messages break, each once."""
    return sorted({violation.rule for violation in validate_anthropic((list(messages), system))})


ENABLED: Json = {"thinking": {"type": "enabled", "budget_tokens": 1024}}

VALID: dict[str, Any] = {
    "nothing yet": ([], None),
    "one text": ([{"role": "user", "content": "Hi"}], "Be terse."),
    "an answer at the end": ([user(text()), assistant(text())], [text()]),
    "a request": request(user(text()), system=[text(), text(**MARK)]),
    "parallel calls": ([user(text()), assistant(thinking(), text(), use("c1"), use("c2")), user(result("c2"), result("c1"), text())], None),
    "two steps": ([user(text()), assistant(use("c1")), user(result("c1")), assistant(use("c2")), user(result("c2"))], None),
    "results of every kind": (
        [
            user(text()),
            assistant(use("c1"), use("c2"), use("c3"), use("c4")),
            user(
                {"type": "tool_result", "tool_use_id": "c1"},
                result("c2", content=""),
                result("c3", content=[text(), image(), document()]),
                result("c4", is_error=True),
            ),
        ],
        None,
    ),
    "thinking that was omitted but signed": ([user(text()), assistant(thinking(thinking=""), text())], None),
    "redacted thinking": ([user(text()), assistant({"type": "redacted_thinking", "data": "x"}, text())], None),
    "enabled thinking in the turn that goes on": request(user(text()), assistant(thinking(), use()), user(result()), **ENABLED),
    "enabled thinking, once a turn": request(
        user(text()), assistant(thinking(), use("c1")), user(result("c1")), assistant(use("c2")), user(result("c2")), **ENABLED
    ),
    "enabled thinking, not in earlier turns": request(user(text()), assistant(use()), user(result(), text()), **ENABLED),
    "enabled thinking, no call": request(user(text()), assistant(text()), user(text()), **ENABLED),
    "adaptive thinking": request(user(text()), assistant(use()), user(result()), thinking={"type": "adaptive"}),
    "a server's call": (
        [
            user(text()),
            assistant(
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                text(),
            ),
        ],
        None,
    ),
    "four marks": request(
        user(text(**LONG_MARK)), assistant(text(**MARK)), user(text(**MARK)), system=[text()], tools=[{"name": "run", **LONG_MARK}]
    ),
    "images of every source": (
        [
            user(
                image(),
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                {"type": "image", "source": {"type": "file", "file_id": "f"}},
                image(png(8000, 8)),
                document(),
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
                {"type": "document", "source": {"type": "content", "content": [text()]}},
            )
        ],
        None,
    ),
    "a hundred images": ([user(*[image()] * 100)], None),
}

INVALID: list[tuple[str, str, Any]] = [
    ("A4", "a text before thinking", request(user(text()), assistant(text(), thinking(), text()), user(text()), **ENABLED)),
    ("A1", "no message", request()),
    ("A1", "an answer first", ([assistant(text())], None)),
    ("A1", "two of the user's", ([user(text()), user(text())], None)),
    ("A1", "two answers", ([user(text()), assistant(text()), assistant(text())], None)),
    ("A1", "prefill", request(user(text()), assistant(text()))),
    ("A2", "a call at the end", ([user(text()), assistant(use())], None)),
    ("A2", "a call and then a text", ([user(text()), assistant(use()), user(text())], None)),
    ("A2", "one of two calls", ([user(text()), assistant(use("c1"), use("c2")), user(result("c1"))], None)),
    ("A2", "a server's call", ([user(text()), assistant({"type": "server_tool_use", "id": "s1"}, text())], None)),
    (
        "A2",
        "the same id twice",
        ([user(text()), assistant(use()), user(result()), assistant(use()), user(result())], None),
    ),
    ("A2", "an id with a dot", ([user(text()), assistant(use("c.1")), user(result("c.1"))], None)),
    ("A2", "an id with a line end", ([user(text()), assistant(use("c1\n")), user(result("c1\n"))], None)),
    ("A3", "a result first of all", ([user(result())], None)),
    ("A3", "a result of no call", ([user(text()), assistant(use("c1")), user(result("c1"), result("c2"))], None)),
    ("A3", "two results of a call", ([user(text()), assistant(use()), user(result(), result())], None)),
    (
        "A3",
        "a result too late",
        ([user(text()), assistant(use()), user(result()), assistant(text()), user(result())], None),
    ),
    ("A3", "a text before a result", ([user(text()), assistant(use()), user(text(), result())], None)),
    ("A3", "a text between results", ([user(text()), assistant(use("c1"), use("c2")), user(result("c1"), text(), result("c2"))], None)),
    ("A3", "an empty error", ([user(text()), assistant(use()), user(result(content=[], is_error=True))], None)),
    ("A3", "an error with an image", ([user(text()), assistant(use()), user(result(content=[text(), image()], is_error=True))], None)),
    ("A4", "thinking without its seal", ([user(text()), assistant(thinking(signature=""), text())], None)),
    ("A4", "thinking with no seal at all", ([user(text()), assistant(thinking(signature=None), text())], None)),
    ("A4", "redacted thinking without data", ([user(text()), assistant({"type": "redacted_thinking", "data": ""}, text())], None)),
    ("A4", "thinking alone", ([user(text()), assistant(thinking()), user(text())], None)),
    ("A4", "thinking last", ([user(text()), assistant(text(), {"type": "redacted_thinking", "data": "x"})], None)),
    ("A4", "no thinking where it is enabled", request(user(text()), assistant(text(), use()), user(result()), **ENABLED)),
    ("A6", "an empty text", ([user(text(), text(""))], None)),
    ("A6", "a blank text", ([user(text()), assistant(text(" \n")), user(text())], None)),
    ("A6", "a blank content", ([{"role": "user", "content": ""}], None)),
    ("A6", "a blank text in a result", ([user(text()), assistant(use()), user(result(content=[text(" ")]))], None)),
    ("A6", "a blank text in system", ([user(text())], [text(" ")])),
    ("A6", "a blank system", ([user(text())], "")),
    ("A6", "an empty message", ([user(), assistant(text())], None)),
    ("A6", "trailing whitespace", ([user(text()), assistant(text("x "))], None)),
    ("A7", "five marks", ([user(*[text(**MARK)] * 4)], [text(**MARK)])),
    (
        "A7",
        "five marks, one in a result",
        ([user(text(**MARK)), assistant(use(**MARK)), user(result(content=[text(**MARK)], **MARK))], [text(**MARK)]),
    ),
    ("A7", "five marks, one on a tool", request(user(*[text(**MARK)] * 4), tools=[{"name": "run", **MARK}])),
    ("A7", "a mark on thinking", ([user(text()), assistant(thinking(**MARK), text())], None)),
    ("A7", "an hour after five minutes", ([user(text(**LONG_MARK))], [text(**MARK)])),
    ("A7", "a mark of another kind", ([user(text(cache_control={"type": "forever"}))], None)),
    ("A7", "a mark of another length", ([user(text(cache_control={"type": "ephemeral", "ttl": "2h"}))], None)),
    ("A8", "too many images", ([user(*[image()] * 101)], None)),
    ("A8", "too many images, some in results", ([user(*[image()] * 100), assistant(use()), user(result(content=[image()]))], None)),
    ("A8", "an image too wide", ([user(image(png(8001, 2)))], None)),
    ("A8", "an image too high among many", ([user(image(png(2, 2001)), *[document()] * 20)], None)),
    ("A8", "an image too heavy", ([user(image(png(2, 2, padding=8_000_000)))], None)),
    ("A8", "a label that is wrong", ([user(image(media_type="image/jpeg"))], None)),
    ("A8", "a label that is none", ([user(image(media_type="image/bmp"))], None)),
    ("A8", "no base64", ([user(image("§"))], None)),
    ("A8", "another file's bytes", ([user(image(coded(b"<html>404</html>")))], None)),
    ("A8", "a header alone", ([user(image(coded(pictures.png()[:33])))], None)),
    ("A8", "half an image", ([user(image(coded(pictures.encoded("JPEG")[:500]), media_type="image/jpeg"))], None)),
    ("A8", "an image that was scrubbed", ([user(image(png(2, 2)[:60] + "REDACTED" + png(2, 2)[60:]))], None)),
    ("A8", "more pixels than are checked", ([user(image(coded(pictures.claiming_png(60_000, 60_000))))], None)),
    ("A8", "half a document", ([user(pdf_block(pictures.pdf()[:200]))], None)),
    ("A8", "a document of another type", ([user(pdf_block(b"<html>404</html>"))], None)),
    ("A8", "a document in a result", ([user(text()), assistant(use()), user(result(content=[pdf_block(b"%PDF-1.4 no")]))], None)),
    ("A8", "a document that is no base64", ([user({**pdf_block(b""), "source": {**pdf_block(b"")["source"], "data": "§"}})], None)),
    ("A8", "a request too heavy", ([user(text("x" * 33 * 1024 * 1024))], None)),
    ("A9", "a list as input", ([user(text()), assistant(use(input=[])), user(result())], None)),
    ("A9", "a text as input", ([user(text()), assistant(use(input="")), user(result())], None)),
    ("A9", "a name with a dot", ([user(text()), assistant(use(name="fs.read")), user(result())], None)),
    ("A9", "a name without end", ([user(text()), assistant(use(name="n" * 129)), user(result())], None)),
    ("A0", "messages that are no list", ("Hi", None)),
    ("A0", "a message that is none", (["Hi"], None)),
    ("A0", "another role", ([{"role": "system", "content": "Hi"}], None)),
    ("A0", "another field", ([{"role": "user", "content": "Hi", "name": "Ann"}], None)),
    ("A0", "no content", ([{"role": "user"}], None)),
    ("A0", "content that is none", ([{"role": "user", "content": 7}], None)),
    ("A0", "a block that is none", ([user("Hi")], None)),
    ("A0", "a block of no type", ([user({"type": "txt", "text": "Hi"})], None)),
    ("A0", "a block without its field", ([user({"type": "text"})], None)),
    ("A0", "a field of another type", ([user(text(), {"type": "text", "text": 7})], None)),
    ("A0", "a field too many", ([user(text(id="x"))], None)),
    ("A0", "is_error that is none", ([user(text()), assistant(use()), user(result(is_error="no"))], None)),
    ("A0", "an image in an answer", ([user(text()), assistant(image())], None)),
    ("A0", "an image in system", ([user(text())], [image()])),
    ("A0", "a call of the user's", ([user(use())], None)),
    ("A0", "thinking of the user's", ([user(thinking(), text())], None)),
    ("A0", "a result of the assistant's", ([user(text()), assistant(use()), user(result()), assistant(result())], None)),
    ("A0", "a call in a result", ([user(text()), assistant(use()), user(result(content=[use("c2")]))], None)),
    ("A0", "an image without a source", ([user({"type": "image"})], None)),
    ("A0", "an image from nowhere", ([user({"type": "image", "source": {"type": "path", "path": "a.png"}})], None)),
    ("A0", "an image of text", ([user({"type": "image", "source": {"type": "text", "media_type": "text/plain", "data": "x"}})], None)),
    ("A0", "an image of no bytes", ([user(image(""))], None)),
    ("A0", "NaN", ([user(text()), assistant(use(input={"a": float("nan")})), user(result())], None)),
    ("A0", "a lone surrogate", ([user(text("\ud800"))], None)),
    ("A0", "bytes", ([user(text()), assistant(use(input={"a": b"x"})), user(result())], None)),
]


def test_where_is_a_path_into_the_payload() -> None:
    messages = [user(text()), assistant(use("c1"), use("c2")), user(result("c2", content=[text(), text(" ")]))]
    assert [(violation.rule, violation.where) for violation in validate_anthropic((messages, [text(""), text()]))] == [
        ("A2", "messages[1].content[0]"),
        ("A6", "system[0]"),
        ("A6", "messages[2].content[0].content[1]"),
    ]


def test_a_violation_shows_as_one_line() -> None:
    assert str(Violation("A1", "messages", "none")) == "A1 messages: none"


def test_messages_may_end_with_a_response_but_a_request_may_not() -> None:
    messages = [user(text()), assistant(text())]
    assert validate_anthropic((messages, None)) == []
    assert [violation.rule for violation in validate_anthropic({"messages": messages})] == ["A1"]
