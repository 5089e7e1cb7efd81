"""The rules for Google's Gemini API: every rule is broken by some payload, and valid payloads pass."""

from __future__ import annotations

import base64
from typing import Any

from session.providers import validate_google
from tests.support.pictures import encoded, pdf, png

Json = dict[str, Any]
PNG = base64.b64encode(png()).decode()
SEALED: Json = {"thought_signature": "QUJD"}


def text(content: str = "x", **fields: Any) -> Json:
    return {"text": content, **fields}


def call(call_id: str | None = "c1", name: str = "run", **fields: Any) -> Json:
    return {"function_call": {"name": name, "args": {}, **({"id": call_id} if call_id else {})}, **fields}


def answer(call_id: str | None = "c1", name: str = "run", **fields: Any) -> Json:
    return {"function_response": {"name": name, "response": {"output": "x"}, **({"id": call_id} if call_id else {}), **fields}}


def inline(mime_type: str = "image/png", data: str = PNG) -> Json:
    return {"inline_data": {"mime_type": mime_type, "data": data}}


def user(*parts: Any) -> Json:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> Json:
    return {"role": "model", "parts": list(parts)}


def request(*contents: Any, **fields: Any) -> Json:
    return {"contents": list(contents), **fields}


SIGNED = call(**SEALED)

VALID: dict[str, Any] = {
    "nothing yet": ([], None),
    "a text": ([user(text())], "Be terse."),
    "an answer at the end": ([user(text()), model(text())], {"parts": [text()]}),
    "a request": request(user(text()), system_instruction={"parts": [text()]}, model="gemini-3-pro"),
    "a request of the SDK": request(user(text()), config={"systemInstruction": [text(), "more"]}),
    "parallel calls": ([user(text()), model(text(), SIGNED, call("c2")), user(answer("c1"), answer("c2"), text())], None),
    "two steps": ([user(text()), model(SIGNED), user(answer()), model(SIGNED), user(answer())], None),
    "no ids": ([user(text()), model(call(None, **SEALED), call(None)), user(answer(None), answer(None))], None),
    "an id on one side": ([user(text()), model(SIGNED), user(answer(None))], None),
    "camel case": (
        [
            user({"inlineData": {"mimeType": "image/png", "data": base64.urlsafe_b64encode(png() + b"\xfb\xff").decode().rstrip("=")}}),
            model({"functionCall": {"name": "f"}, "thoughtSignature": "QUI="}),
            user({"functionResponse": {"name": "f", "response": {}}}),
        ],
        None,
    ),
    "unsigned calls of an earlier turn": ([user(text()), model(call()), user(answer()), model(text()), user(text())], None),
    "unsigned calls before a text beside the responses": ([user(text()), model(call()), user(answer(), text())], None),
    "unsigned calls of an older model": request(user(text()), model(call()), user(answer()), model="models/gemini-2.5-pro"),
    "two of the user's in a row": ([user(text()), user(text()), model(text()), model(text())], None),
    "media": ([user(inline(), inline("audio/mp3"), inline("text/plain"), {"file_data": {"file_uri": "gs://a"}})], None),
    "media in a response": ([user(text()), model(SIGNED), user(answer(parts=[inline()]))], None),
    "thoughts and code": (
        [user(text()), model(text(thought=True), {"executable_code": {}}, {"code_execution_result": {}}, text("", **SEALED))],
        None,
    ),
}

INVALID: list[tuple[str, str, Any]] = [
    ("G1", "a call first", ([model(SIGNED), user(answer())], None)),
    ("G1", "a call after an answer", ([user(text()), model(text()), model(SIGNED), user(answer())], None)),
    ("G1", "a response first", ([user(answer())], None)),
    ("G1", "a response to a text", ([user(text()), model(text()), user(answer())], None)),
    ("G1", "a response too late", ([user(text()), model(SIGNED), user(text()), user(answer())], None)),
    ("G1", "a response again", ([user(text()), model(SIGNED), user(answer()), user(answer())], None)),
    ("G2", "a call at the end", ([user(text()), model(SIGNED)], None)),
    ("G2", "a call and then a text", ([user(text()), model(SIGNED), user(text())], None)),
    ("G2", "one of two", ([user(text()), model(SIGNED, call("c2")), user(answer())], None)),
    ("G2", "one too many", ([user(text()), model(SIGNED), user(answer(), answer())], None)),
    ("G2", "another order", ([user(text()), model(SIGNED, call("c2")), user(answer("c2"), answer("c1"))], None)),
    ("G2", "another order of names", ([user(text()), model(SIGNED, call(None, "b")), user(answer(None, "b"), answer(None, "a"))], None)),
    ("G2", "the same id twice", ([user(text()), model(SIGNED, call()), user(answer(), answer())], None)),
    ("G2", "a text before a response", ([user(text()), model(SIGNED), user(text(), answer())], None)),
    ("G3", "no content", request()),
    ("G3", "an answer at the end of a request", request(user(text()), model(text()))),
    ("G3", "an answer first", ([model(text())], None)),
    ("G3", "another role", ([{"role": "system", "parts": [text()]}], None)),
    ("G3", "no role", ([{"parts": [text()]}], None)),
    ("G4", "no signature", ([user(text()), model(call()), user(answer())], None)),
    ("G4", "no signature, for a model that asks", request(user(text()), model(call()), user(answer()), model="gemini-3.1-flash")),
    ("G4", "no signature in a later step", ([user(text()), model(SIGNED), user(answer()), model(call()), user(answer())], None)),
    (
        "G4",
        "a signature on the second call only",
        ([user(text()), model(call(), call("c2", **SEALED)), user(answer(), answer("c2"))], None),
    ),
    ("G0", "contents that are no list", ("Hi", None)),
    ("G0", "a content that is none", (["Hi"], None)),
    ("G0", "no parts", ([user()], None)),
    ("G0", "parts that are no list", ([{"role": "user", "parts": "Hi"}], None)),
    ("G0", "another field", ([{"role": "user", "parts": [text()], "name": "x"}], None)),
    ("G0", "a part that is none", ([user("Hi")], None)),
    ("G0", "a part of nothing", ([user({})], None)),
    ("G0", "a part of two kinds", ([user({**text(), **inline()})], None)),
    ("G0", "another field of a part", ([user(text(type="text"))], None)),
    ("G0", "a text that is a number", ([user(text(7))], None)),  # type: ignore[arg-type]
    ("G0", "an empty text", ([user(text(""))], None)),
    ("G0", "a thought that is none", ([user(text()), model(text(thought="yes"))], None)),
    ("G0", "a signature that is no base64", ([user(text()), model(text(thought_signature="a b"))], None)),
    ("G0", "a signature of both alphabets", ([user(text()), model(text(thought_signature="+-++"))], None)),
    ("G0", "a call of the user's", ([user(SIGNED)], None)),
    ("G0", "a response of the model's", ([user(text()), model(answer())], None)),
    ("G0", "a call that is none", ([user(text()), model({"function_call": "run"})], None)),
    ("G0", "a call without a name", ([user(text()), model({"function_call": {"args": {}}})], None)),
    ("G0", "a name with a space", ([user(text()), model(call(name="a b"))], None)),
    ("G0", "a name that begins with a digit", ([user(text()), model(call(name="7z"))], None)),
    ("G0", "a name without end", ([user(text()), model(call(name="n" * 129))], None)),
    ("G0", "a list as arguments", ([user(text()), model({"function_call": {"name": "f", "args": []}})], None)),
    ("G0", "an id that is none", ([user(text()), model({"function_call": {"name": "f", "id": 7}})], None)),
    (
        "G0",
        "a response that is no object",
        ([user(text()), model(SIGNED), user({"function_response": {"name": "f", "response": "x"}})], None),
    ),
    ("G0", "a text in a response", ([user(text()), model(SIGNED), user(answer(parts=[text()]))], None)),
    ("G0", "parts of a response that are no list", ([user(text()), model(SIGNED), user(answer(parts=7))], None)),
    ("G0", "a media type that is none", ([user(inline("image/gif"))], None)),
    ("G0", "no bytes", ([user(inline(data=""))], None)),
    ("G0", "no base64", ([user(inline(data="§"))], None)),
    ("G0", "another file's bytes", ([user(inline(data="PGh0bWw+NDA0"))], None)),
    ("G0", "half an image", ([user(inline("image/webp", base64.b64encode(encoded("WEBP")[:300]).decode()))], None)),
    ("G0", "half an image in a response", ([user(text()), model(SIGNED), user(answer(parts=[inline(data=PNG[:60])]))], None)),
    ("G0", "half a document", ([user(inline("application/pdf", base64.b64encode(pdf()[:200]).decode()))], None)),
    ("G0", "no address", ([user({"file_data": {"file_uri": ""}})], None)),
    ("G0", "an image in system", ([user(text())], {"parts": [inline()]})),
    ("G0", "an empty text in system", ([user(text())], {"parts": [text("")]})),
    ("G0", "no parts in system", ([user(text())], {"parts": []})),
    ("G0", "a lone surrogate", ([user(text("\ud800"))], None)),
    ("G0", "bytes", ([user({"inline_data": {"mime_type": "image/png", "data": b"x"}})], None)),
    ("G0", "NaN", ([user(text()), model({"function_call": {"name": "f", "args": {"a": float("nan")}}})], None)),
]


def test_where_is_a_path_into_the_payload() -> None:
    contents = [user(text()), model(call(), text("")), user(answer("c2"))]
    assert [(violation.rule, violation.where) for violation in validate_google((contents, {"parts": [text("")]}))] == [
        ("G0", "system.parts[0]"),
        ("G0", "contents[1].parts[1].text"),
        ("G2", "contents[2].parts[0].id"),
        ("G4", "contents[1].parts[0]"),
    ]
