"""The rules for the Responses API: every rule refuses something, none refuses what is right."""

from __future__ import annotations

import base64
import copy
import inspect
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from session import FormatError, Session
from session.items import Item, Reasoning
from session.providers import validate_openai_responses
from session.providers.openai_responses import rules, shape, to_openai_responses
from tests.support.pictures import pdf, png
from tests.support.strategies import sessions

Json = dict[str, Any]
PNG = png()
PDF = base64.b64encode(pdf()).decode()


def said(role: str = "user", content: Any = "a", **more: Any) -> Json:
    return {"type": "message", "role": role, "content": content, **more}


def call(call_id: str = "c1", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "run", "arguments": "{}", **more}


def output(call_id: str = "c1", content: Any = "done", **more: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": content, **more}


def thought(**more: Any) -> Json:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed", **more}


def text(words: str = "x", **more: Any) -> Json:
    return {"type": "input_text", "text": words, **more}


def spoken(words: str = "x", **more: Any) -> Json:
    return {"type": "output_text", "text": words, "annotations": [], **more}


def image(url: Any = None, **more: Any) -> Json:
    return {"type": "input_image", "image_url": IMAGE if url is None else url, **more}


def custom(call_id: str = "c1", **more: Any) -> Json:
    return {"type": "custom_tool_call", "call_id": call_id, "name": "patch", "input": "ls", **more}


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
    "blank texts": [said(content=""), said("assistant", ""), said("system", [text("")])],
    "an answer as it came": [
        said("assistant", [spoken(), {"type": "refusal", "refusal": ""}], id="msg_1", status="completed", phase="commentary")
    ],
    "parallel calls": [call("c1"), call("c2"), output("c2"), said("assistant"), output("c1")],
    "reasoning before everything": [
        *(thought(), said("assistant"), thought(id="rs_2"), thought(id="rs_3"), call(id="fc_1"), output(), thought(id="rs_4"), WEB)
    ],
    "reasoning of either kind": [thought(encrypted_content=None), said("assistant"), thought(id=None), said("assistant")],
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
        said(
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
    "the longest string": [said(content="x" * rules.STRING)],
}

INVALID: list[tuple[str, str, Any]] = [
    ("R1", "a call at the end", [said(), call()]),
    ("R1", "one of two calls", [call("c1"), call("c2"), output("c1")]),
    ("R1", "an output before its call", [output(), call()]),
    ("R1", "an output of no call", [call("c1"), output("c1"), output("c2")]),
    ("R1", "two outputs of a call", [call(), output(), output()]),
    ("R1", "an output of another type", [call(), {"type": "custom_tool_call_output", "call_id": "c1", "output": "x"}]),
    ("R1", "a custom tool without its output", [custom()]),
    ("R1", "a shell without its output", [SHELL, said()]),
    ("R1", "a local shell without its output", [LOCAL, {"type": "local_shell_call_output", "id": "c2", "output": "{}"}]),
    ("R1", "a search of the client's without its output", [SEARCH]),
    ("R1", "two calls of one id", [call(), output(), call(), output()]),
    ("R1", "an empty id", [call(""), output("")]),
    ("R1", "an id too long", [call("c" * 65), output("c" * 65)]),
    ("R2", "reasoning at the end", [said(), thought()]),
    ("R2", "reasoning before a user", [thought(), said(), said("assistant")]),
    ("R2", "reasoning before an output", [call(), thought(), output()]),
    ("R2", "two reasonings before a user", [thought(), thought(id="rs_2"), said()]),
    ("R2", "reasoning before something for the provider", [thought(), {"type": "item_reference", "id": "x"}]),
    ("R0", "a request of nothing", {"model": "m", "input": []}),
    ("R0", "input that is no list", {"input": 7}),
    ("R0", "an item that is none", ["Hi"]),
    ("R0", "an item of no type", [{"content": "Hi"}]),
    ("R0", "an item of another type", [{"type": "dream"}]),
    ("R0", "a type that is none", [{"type": ["message"]}]),
    ("R0", "another role", [said("model")]),
    ("R0", "no content", [{"type": "message", "role": "user"}]),
    ("R0", "content that is none", [said(content=7)]),
    ("R0", "a field too many", [said(name="Ann")]),
    ("R0", "another phase", [said("assistant", phase="end")]),
    ("R0", "a call without its id", [{"type": "function_call", "name": "run", "arguments": "{}"}]),
    ("R0", "arguments that are an object", [call(arguments={}), output()]),
    ("R0", "an output that is an object", [call(), output(content={})]),
    ("R0", "an output without its text", [call(), output(content=None)]),
    ("R0", "a part that is none", [said(content=["Hi"])]),
    ("R0", "a part of another type", [said(content=[{"type": "text", "text": "Hi"}])]),
    ("R0", "what a user says in an answer", [said("assistant", [text()])]),
    ("R0", "what the assistant says in a user's message", [said(content=[spoken()])]),
    ("R0", "an image in a system message", [said("system", [image()])]),
    ("R0", "an image without its source", [said(content=[{"type": "input_image", "detail": "auto"}])]),
    ("R0", "an image from nowhere", [said(content=[image("a.png")])]),
    ("R0", "an image in an output from nowhere", [call(), output(content=[image("data:image/bmp;base64,Qk0=")])]),
    ("R0", "another file's bytes", [said(content=[image("data:image/png;base64,PGh0bWw+NDA0")])]),
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
        [said(content=[{"type": "input_file", "file_data": f"data:application/pdf;base64,{PDF[:-40]}", "filename": "a.pdf"}])],
    ),
    ("R0", "another detail", [said(content=[image(detail="max")])]),
    ("R0", "a file without its source", [said(content=[{"type": "input_file", "filename": "a.pdf"}])]),
    ("R0", "a name with a dot", [call(name="fs.read"), output()]),
    ("R0", "a name without end", [call(name="n" * 129), output()]),
    ("R0", "a text too long", [said(content=LONG)]),
    ("R0", "arguments too long", [call(arguments=LONG), output()]),
    ("R0", "an output too long", [call(), output(content=[text(LONG)])]),
    ("R0", "an id of another kind", [said("assistant", id="item_1")]),
    ("R0", "an id of another kind, of a call", [call(id="item_1"), output()]),
    ("R0", "an id twice", [thought(), said("assistant"), thought(), said("assistant")]),
    ("R0", "an empty id of reasoning", [thought(id=""), said("assistant")]),
    ("R0", "an id without end", [thought(id="rs_" + "x" * 62), said("assistant")]),
    ("R0", "reasoning of nothing", [thought(id=None, encrypted_content=None), said("assistant")]),
    ("R0", "reasoning without a summary", [{"type": "reasoning", "id": "rs_1"}, said("assistant")]),
    ("R0", "a summary that is none", [thought(summary=["x"]), said("assistant")]),
    ("R0", "a seal that is none", [thought(encrypted_content=7), said("assistant")]),
    ("R0", "NaN", [{**WEB, "action": float("nan")}]),
    ("R0", "a lone surrogate", [said(content="\ud800")]),
    ("R0", "bytes", [said(content=b"x")]),
]


@pytest.mark.parametrize("name", VALID)
def test_what_is_right_passes(name: str) -> None:
    assert validate_openai_responses(VALID[name]) == []


@pytest.mark.parametrize(("rule", "payload"), [pytest.param(rule, payload, id=f"{rule} {name}") for rule, name, payload in INVALID])
def test_what_is_wrong_is_refused_by_its_rule(rule: str, payload: Any) -> None:
    before = copy.deepcopy(payload)
    violations = validate_openai_responses(payload)
    assert rule in {violation.rule for violation in violations}
    assert all(violation.where and violation.message for violation in violations)
    assert repr(payload) == repr(before)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_every_rule_refuses_something_and_is_named_by_its_number(rule: Callable[[shape.Payload], Any]) -> None:
    number = rule.__name__.partition("_")[0].upper()
    found = [list(rule(shape.read_payload(payload))) for _, _, payload in INVALID]
    assert any(found)
    assert {violation.rule for violations in found for violation in violations} == {number}
    assert (rule.__doc__ or "").startswith(f"{number}: ")


def test_where_is_a_path_into_the_payload() -> None:
    payload = [said(content=[text(), image("a.png")]), call(), thought()]
    assert [(violation.rule, violation.where) for violation in validate_openai_responses(payload)] == [
        ("R0", "input[0].content[1]"),
        ("R1", "input[1]"),
        ("R2", "input[2]"),
    ]


@pytest.mark.parametrize("payload", [None, "Hi", {"model": "m"}, 7])
def test_what_is_no_payload_is_an_error(payload: object) -> None:
    with pytest.raises(FormatError, match="pass the items"):
        validate_openai_responses(payload)


def test_a_payload_of_any_json_is_judged_and_not_tripped_over() -> None:
    junk: list[Any] = [None, True, 7, "x", [], {}, [[]], {"type": []}, text(), image([]), thought(), call(), output()]
    fields = {name for wanted in shape.REQUIRED.values() for name in wanted} | {"id", "content", "detail"}
    for value in junk:
        for kind in (value, *shape.REQUIRED):
            for other in junk:
                item = {"type": kind, **dict.fromkeys(fields, other)}
                validate_openai_responses(
                    [item, value, {**item, "output": [value], "role": "user", "content": [other], "summary": [value]}]
                )
        validate_openai_responses({"input": value, "previous_response_id": value})


def test_deep_nesting_is_a_violation_and_no_crash() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert {violation.rule for violation in validate_openai_responses([{**WEB, "action": deep}])} == {"R0"}
    while deep:  # taken apart by hand: the interpreter's own way down would need as deep a stack
        deep = deep.pop("a")


def is_obviously_right(items: list[Json]) -> bool:
    """Whether calls, outputs and reasoning stand as R1 and R2 want it, told by counting ids and looking one item ahead."""
    kinds = [item["type"] for item in items]
    asked = [item["call_id"] for item in items if item["type"] == "function_call"]
    told = [item["call_id"] for item in items if item["type"] == "function_call_output"]
    ids = [item["id"] for item in items if "id" in item]
    if Counter(asked) != Counter(told) or len(set(asked)) < len(asked) or len(set(ids)) < len(ids):
        return False
    first = {(item["type"], item["call_id"]): place for place, item in reversed(list(enumerate(items))) if "call_id" in item}
    if any(first["function_call", one] > first["function_call_output", one] for one in asked):
        return False
    made = [item["type"] in ("reasoning", "function_call") or item.get("role") == "assistant" for item in items]
    return all(after for kind, after in zip(kinds, [*made[1:], False], strict=False) if kind == "reasoning")


def as_ours(items: list[Item]) -> list[Item]:
    return [
        Reasoning(item.text, data="sealed", id=item.id, agent_id=item.agent_id, extra={"provider": "openai", "openai_id": f"rs_{item.id}"})
        if isinstance(item, Reasoning)
        else item
        for item in items
    ]


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(sessions(), st.data())
def test_a_broken_payload_is_refused_or_truly_valid(session: Session, data: st.DataObject) -> None:
    view = Session.showing(session, as_ours(list(session.items)), breaks=session.response_breaks, settled=0)
    items = to_openai_responses(view)
    if not items:
        return
    assert is_obviously_right(items)
    first, second = (data.draw(st.integers(0, len(items) - 1)) for _ in range(2))
    mutant = list(items)
    how = data.draw(st.sampled_from(["remove", "swap", "duplicate"]))
    if how == "remove":
        del mutant[first]
    elif how == "swap":
        mutant[first], mutant[second] = mutant[second], mutant[first]
    else:
        mutant.insert(second, mutant[first])
    violations = validate_openai_responses(mutant)
    event(f"refused: {bool(violations)}")
    assert (not violations) == is_obviously_right(mutant)


def test_the_validator_shares_no_code_with_the_converter() -> None:
    for module in (rules, shape):
        imports = set(re.findall(r"^ *from (\S+) import", inspect.getsource(module), re.MULTILINE))
        own = {name for name in imports if name.startswith((".", "session"))}
        assert own <= {"session.providers.violations", ".shape", "session.errors", "session.providers.openai_chat.rules"}
