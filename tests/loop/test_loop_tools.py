"""Functions as tools: definitions, checked arguments, and outputs."""

from __future__ import annotations

import asyncio
import functools
import json
import re
from collections.abc import Callable, Mapping
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from context_window import FunctionCall, FunctionCallOutput, Image, SchemaTool, Session, Text, Toolbox, ToolsError
from context_window.loop.tool_runner import STOPPED, run_calls
from tests.support.looping import ScriptedModel, call, manager, png, turn
from tests.support.stubs import Block, Call, Say


class Class(Enum):
    FIRST = "first"
    SECOND = "second"


class Guest(BaseModel):
    name: str
    age: int = 30


def book(
    hotel: Annotated[str, Field(description="Its name.")], nights: int = 1, *, day: date | None = None, kind: Class = Class.SECOND
) -> dict[str, Any]:
    """Books a room."""
    return {"hotel": hotel, "nights": nights, "day": day, "kind": kind}


def anything(**values: Any) -> str:
    return f"{len(values)} values"


ANYTHING = Toolbox([anything])


def outputs_of(tools: list[Any], *calls: FunctionCall, log: Session | None = None) -> list[FunctionCallOutput]:
    outputs, cancelled = asyncio.run(run_calls(calls, Toolbox(tools), log or Session()))
    assert not cancelled
    return outputs


def output_of_call(tool: Any, arguments: Any, name: str | None = None) -> FunctionCallOutput:
    [output] = outputs_of([tool], call(name or tool.__name__, arguments, "c"))
    return output


def test_a_function_becomes_a_definition_by_its_hints_and_docstring() -> None:
    [definition] = Toolbox([book]).definitions
    assert (definition["name"], definition["description"]) == ("book", "Books a room.")
    assert definition["input_schema"]["required"] == ["hotel"]
    assert definition["input_schema"]["properties"]["hotel"]["description"] == "Its name."


def test_arguments_have_the_types_of_their_hints() -> None:
    output = output_of_call(book, {"hotel": "Fjord", "nights": "2", "day": "2026-06-01", "kind": "first"})
    assert json.loads(output.text) == {"hotel": "Fjord", "nights": 2, "day": "2026-06-01", "kind": "first"}
    assert not output.is_error


def test_the_arguments_of_a_call_may_be_empty() -> None:
    assert output_of_call(lambda_named("now", lambda: "noon"), "").text == "noon"


def lambda_named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    return function


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{}", "hotel: Missing required argument"),
        ('{"hotel": "Fjord", "nights": "many"}', "nights: Input should be a valid integer"),
        ('{"hotel": "Fjord", "stars": 5}', "stars: Unexpected keyword argument"),
        ('{"hotel": ', "Invalid JSON"),
        ('["Fjord"]', "no JSON object"),
        ("null", "no JSON object"),
        ("book the Fjord", "no JSON object"),
        ('{"hotel": NaN}', "hotel: Input should be a valid string"),
        ('{"hotel": "\\ud800"}', "Invalid JSON"),
        ('{"hotel": ' + "[" * 100_000, "Invalid JSON"),
        ('{"hotel": "x", "nights": ' + "9" * 5_000 + "}", "Invalid JSON"),
        (json.dumps({f"guest{number}": 1 for number in range(1_000)}), "Unexpected keyword argument"),
    ],
)
def test_wrong_arguments_get_an_error_output_and_nothing_runs(arguments: str, message: str) -> None:
    ran = []

    @functools.wraps(book)
    def watched(*args: Any, **kwargs: Any) -> Any:
        ran.append(args)
        return book(*args, **kwargs)

    output = output_of_call(watched, arguments)
    assert output.is_error
    assert output.text.startswith("book was not run, its arguments are wrong: ")
    assert message in output.text
    assert len(output.text) < 1_000
    assert ran == []


@given(
    st.text(max_size=60)
    | st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)).map(json.dumps)
)
def test_any_arguments_get_an_output(arguments: str) -> None:
    [output], _ = asyncio.run(run_calls([call("anything", arguments, "c")], ANYTHING, Session()))
    assert output.text.endswith(" values") or output.is_error
    assert output.call_id == "c"


def test_a_pydantic_model_can_be_a_parameter() -> None:
    def invite(guest: Guest) -> str:
        return f"{guest.name}, {guest.age}"

    assert output_of_call(invite, {"guest": {"name": "Ada"}}).text == "Ada, 30"


def _even(number: int) -> int:
    if number % 2:
        raise LookupError("odd")  # not the ValueError that pydantic expects
    return number


def test_an_exception_in_a_users_validator_becomes_the_output() -> None:
    def halve(number: Annotated[int, AfterValidator(_even)]) -> int:
        return number // 2

    assert output_of_call(halve, {"number": 4}).text == "2"
    output = output_of_call(halve, {"number": 5})
    assert output.is_error
    assert output.text == "halve was not run, its arguments could not be checked: LookupError: odd"


def test_methods_partials_and_callable_objects_are_functions_too() -> None:
    class Shop:
        def sell(self, thing: str) -> str:
            return f"sold {thing}"

        def __call__(self, price: int) -> int:
            return price + 1

    assert output_of_call(Shop().sell, {"thing": "tea"}, "sell").text == "sold tea"
    assert output_of_call(Shop(), {"price": "1"}, "Shop").text == "2"

    def rent(car: str, days: int = 1) -> str:
        return f"{car}, {days} days"

    assert output_of_call(functools.partial(rent, days=3), {"car": "a van"}, "rent").text == "a van, 3 days"


class Hotel:
    """This module has `from __future__ import annotations`, so type hints are resolved in the namespace of the function."""

    def __init__(self, name: str = "Grand") -> None:
        self.name = name

    def admit(self, guest: Guest) -> str:
        return f"{guest.name} at the {self.name}"

    @classmethod
    def rate(cls, guest: Guest | None = None) -> int:
        return 1 if guest is None else guest.age

    async def __call__(self, guest: Guest, /, nights: int = 1) -> str:
        return f"{guest.name}, {nights}"


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def welcome(word: str, *args: str, guest: Guest, **options: int) -> str:
    return f"{word}{args} {guest.name} {options}"


@pytest.mark.parametrize(
    ("tool", "name", "arguments", "expected"),
    [
        (Hotel().admit, "admit", {"guest": {"name": "Åsa"}}, "Åsa at the Grand"),
        (Hotel.rate, "rate", {"guest": {"name": "Åsa", "age": 3}}, "3"),
        (Hotel.rate, "rate", {"guest": None}, "1"),
        (Hotel(), "Hotel", {"nights": 2, "guest": {"name": "Åsa"}}, "Åsa, 2"),
        (functools.partial(Hotel(), nights=3), "Hotel", {"guest": {"name": "Åsa"}}, "Åsa, 3"),
        (functools.partial(functools.partial(Hotel.admit, Hotel("Ritz"))), "admit", {"guest": {"name": "Åsa"}}, "Åsa at the Ritz"),
        (functools.partial(welcome, "Hello"), "welcome", {"guest": {"name": "Åsa"}, "room": 4}, "Hello() Åsa {'room': 4}"),
        (logged(Hotel("Plaza").admit), "admit", {"guest": {"name": "Åsa"}}, "Åsa at the Plaza"),
        (functools.lru_cache(welcome), "welcome", {"word": "Hi", "guest": {"name": "Åsa"}}, None),
    ],
    ids=["method", "class method", "null", "object", "partial object", "partial twice", "partial", "decorated", "cached"],
)
def test_quoted_hints_are_resolved_for_any_kind_of_callable(tool: Any, name: str, arguments: dict[str, Any], expected: str | None) -> None:
    output = output_of_call(tool, arguments, name)
    if expected is None:  # validated by its hints, although a `Guest` is not hashable
        assert output.text.startswith("welcome failed: TypeError: unhashable type: 'Guest'")
    else:
        assert (output.text, output.is_error) == (expected, False)


def test_positional_only_parameters_are_passed_by_name_and_star_args_are_left_out() -> None:
    def move(x: int, y: int = 0, /, *args: int, fast: bool = False) -> str:
        return f"{x} {y} {args} {fast}"

    [definition] = Toolbox([move]).definitions
    assert list(definition["input_schema"]["properties"]) == ["x", "y", "fast"]
    assert definition["input_schema"]["required"] == ["x"]
    assert output_of_call(move, {"fast": True, "x": 3}).text == "3 0 () True"
    assert output_of_call(move, {"y": 1, "x": 3}).text == "3 1 () False"
    assert output_of_call(move, {"y": 1}).is_error


def test_plain_and_async_functions_give_the_same_output() -> None:
    async def wait(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "waited"

    def later(seconds: float) -> Any:
        return wait(seconds)

    assert output_of_call(wait, {"seconds": 0}).text == output_of_call(later, {"seconds": 0}).text == "waited"


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("a text", ["a text"]),
        (None, []),
        (Text("a part"), ["a part"]),
        (["a", png()], ["a", png()]),
        ((1, 2), ["[1, 2]"]),
        ([], ["[]"]),
        (
            {"day": date(2026, 6, 1), "at": Path("a/b"), "guest": Guest(name="Åsa")},
            ['{"day": "2026-06-01", "at": "a/b", "guest": {"name": "Åsa", "age": 30}}'],
        ),
        (float("nan"), ["NaN"]),
        (True, ["true"]),
        (["a\ud800", Path("b\udcff"), {"c\ud800": Guest(name="Åsa")}], ['["a\ufffd", "b\ufffd", {"c\ufffd": {"name": "Åsa", "age": 30}}]']),
    ],
)
def test_return_values_are_parts_or_json(value: object, parts: list[str | Image]) -> None:
    output = output_of_call(lambda_named("give", lambda: value), {})
    assert [part.text if isinstance(part, Text) else part for part in output.output] == parts
    assert not output.is_error


def _ring() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize("value", [object(), _ring(), b"\xff\xfe", {1: object()}], ids=["object", "ring", "bytes", "inner"])
def test_a_value_without_a_json_form_is_an_error_output(value: object) -> None:
    output = output_of_call(lambda_named("give", lambda: value), {})
    assert output.is_error
    assert "cannot be written as JSON" in output.text


class UnspeakableError(Exception):
    def __init__(self, why: BaseException) -> None:
        self.why = why

    def __str__(self) -> str:
        raise self.why


class MuteError(UnspeakableError): ...


class OutcomeError(BaseException):
    """Like the control-flow exceptions of frameworks, which derive from BaseException."""


RAISED: list[tuple[BaseException, str]] = [
    (KeyError("x"), "fail failed: KeyError: 'x'"),
    (ValueError("y" * 10_000), "fail failed: ValueError: " + "y" * 500),
    (asyncio.CancelledError(), "fail failed: CancelledError"),
    (UnspeakableError(ValueError()), "fail failed: UnspeakableError"),
    (MuteError(SystemExit()), "fail failed: MuteError"),
    (OutcomeError("skipped"), "fail failed: OutcomeError: skipped"),
    (BaseExceptionGroup("several", [OutcomeError(1)]), "fail failed: BaseExceptionGroup: several (1 sub-exception)"),
    (SystemExit(2), "fail failed: SystemExit: 2"),
    (OSError("no file a\udcff"), "fail failed: OSError: no file a\ufffd"),
    (RecursionError(), "fail failed: RecursionError"),
    (ExceptionGroup("several", [KeyError(1)]), "fail failed: ExceptionGroup: several (1 sub-exception)"),
]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        *RAISED,
        (StopIteration("done"), "fail failed: RuntimeError: StopIteration: done"),
        (GeneratorExit(), "fail failed: RuntimeError: GeneratorExit"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_function_that_raises_gets_an_error_output_without_a_traceback(error: BaseException, message: str) -> None:
    def fail() -> None:
        raise error

    output = output_of_call(fail, {})
    assert output.is_error
    assert output.text == message


@pytest.mark.parametrize(("error", "message"), RAISED, ids=lambda value: type(value).__name__)
def test_an_async_function_that_raises_gets_an_error_output(error: BaseException, message: str) -> None:
    async def fail() -> None:
        raise error

    output = output_of_call(fail, {})
    assert output.is_error
    assert output.text == message


@pytest.mark.parametrize("waits", [False, True], ids=["plain", "async"])
def test_a_tool_that_stops_the_program_leaves_no_call_without_an_output(waits: bool) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    async def astop() -> None:
        raise KeyboardInterrupt

    session, tool = Session(), astop if waits else stop
    model = ScriptedModel([Call("anything", {}), Call(tool.__name__, {}), Call("anything", {})])
    with pytest.raises(KeyboardInterrupt):
        turn(session, "Go.", model, tools=[anything, tool])
    calls = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert [output.call_id for output in outputs] == calls
    assert outputs[1].text == f"{tool.__name__} failed: KeyboardInterrupt"


def test_the_output_for_an_unknown_tool_lists_the_tools() -> None:
    output = output_of_call(book, {}, "look")
    assert output.is_error
    assert output.text == "There is no tool 'look'. Tools there are: book."


def test_calls_run_concurrently_and_outputs_keep_their_order() -> None:
    async def scene() -> list[str]:
        gate = asyncio.Event()

        async def first() -> str:
            await asyncio.wait_for(gate.wait(), 10)
            return "first"

        async def second() -> str:
            gate.set()
            return "second"

        outputs, _ = await run_calls([call("first", {}, "1"), call("second", {}, "2")], Toolbox([first, second]), Session())
        return [output.text for output in outputs]

    assert asyncio.run(scene()) == ["first", "second"]


def test_a_cancel_keeps_finished_outputs_and_marks_the_others_as_stopped() -> None:
    async def scene() -> tuple[list[FunctionCallOutput], bool, bool]:
        cleaned = False
        started = asyncio.Event()

        async def quick() -> str:
            return "done"

        async def slow() -> None:
            nonlocal cleaned
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                cleaned = True

        calls = [call("slow", {}, "1"), call("quick", {}, "2")]
        task = asyncio.create_task(run_calls(calls, Toolbox([slow, quick]), Session()))
        await started.wait()
        await asyncio.sleep(0.3)  # the quick call's thread ends, on a busy machine too
        task.cancel()
        outputs, cancelled = await task
        return outputs, cancelled, cleaned

    outputs, cancelled, cleaned = asyncio.run(scene())
    assert cancelled
    assert cleaned
    assert [(output.call_id, output.text, output.is_error) for output in outputs] == [("1", STOPPED, True), ("2", "done", False)]


def test_a_second_cancel_does_not_wait_for_a_hanging_tool() -> None:
    async def scene() -> tuple[list[FunctionCallOutput], bool, float]:
        started = asyncio.Event()

        async def stubborn() -> None:
            started.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(60)

        task = asyncio.create_task(run_calls([call("stubborn", {}, "1")], Toolbox([stubborn]), Session()))
        await started.wait()
        begun = asyncio.get_running_loop().time()
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
        outputs, cancelled = await task
        return outputs, cancelled, asyncio.get_running_loop().time() - begun

    outputs, cancelled, seconds = asyncio.run(scene())
    assert cancelled
    assert [output.text for output in outputs] == [STOPPED]
    assert seconds < 10


def test_the_recall_tool_answers_from_the_log() -> None:
    log = Session()
    log.add_message("user", "my long question", "q")
    tool = manager().recall_tool("anthropic")
    outputs = outputs_of([tool], call("recall", {"id": "q"}, "1"), call("recall", {"id": "z"}, "2"), log=log)
    assert [(output.text[:16], output.is_error) for output in outputs] == [("my long question", False), ("recall id 'z': n", True)]


@pytest.mark.parametrize("by", ["number", "words"])
def test_a_model_finds_line_10_000_of_an_output(by: str) -> None:
    """Nothing is lost for the model either: of an output of 20,000 lines it reads any line, by its number or by words in it."""

    def build() -> str:
        """Builds all."""
        return "\n".join(f"{number}: compiled module_{number * 7919 % 20_011}" for number in range(1, 20_001))

    line = f"10000: compiled module_{10_000 * 7919 % 20_011}"
    limits = manager(20_000)
    asked: list[Mapping[str, Any]] = []

    async def next_call(view: Session) -> list[Block]:
        outputs = [item for item in view.items if isinstance(item, FunctionCallOutput)]
        assert line not in "\n".join(output.text for output in outputs)
        told = next(output for output in outputs if output.name == "build")
        recall_id = re.search(r"recall id ([\w-]+)", told.text)
        assert recall_id is not None
        by_number = {"id": recall_id[1], "from_line": 10_000, "lines": 5}
        wanted: Mapping[str, Any] = by_number if by == "number" else {"query": "10000: compiled"}
        asked.append(wanted)
        return [Call("recall", wanted)]

    async def found(view: Session) -> list[Block]:
        answer = next(item for item in reversed(view.items) if isinstance(item, FunctionCallOutput))
        assert line in answer.text
        return [Say("Found it.")]

    log = Session()
    model = ScriptedModel([Call("build", {})], next_call, found)
    result = turn(log, "What is in line 10,000?", model, limits=limits, tools=[build, limits.recall_tool("anthropic")])
    assert result.text == "Found it."
    assert len(asked) == 1


def test_recall_tools_and_server_side_tools_are_in_the_definitions() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    toolbox = Toolbox([manager().recall_tool("google"), search])
    assert [definition["name"] for definition in toolbox.definitions] == ["recall", "web_search"]
    assert toolbox.definitions[1] == search


def takes_what_is_nowhere(value: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821 - that is the case
    del value


def takes_no_hint(value: "a hint that is none") -> None:  # type: ignore[valid-type]  # noqa: F722 - that is the case
    del value


@pytest.mark.parametrize(
    "tools",
    [
        "book",
        [3],
        [book, book],
        [functools.partialmethod(book)],
        [takes_what_is_nowhere],
        [takes_no_hint],
        [Guest],
        {"name": "x"},
        7,
        [lambda_named("odd", lambda x: x), lambda_named("odd", lambda y: y)],
    ],
    ids=["text", "number", "twice", "method in parts", "not defined", "no hint", "class", "mapping", "no list", "same name"],
)
def test_an_invalid_tool_is_an_error(tools: Any) -> None:
    with pytest.raises(ToolsError):
        Toolbox(tools)


# Tools given as a definition and a function

SEARCH = {"name": "search", "description": "Searches.", "input_schema": {"type": "object", "required": ["query"]}}


async def search(query: str, **rest: Any) -> list[Any]:
    return [query, rest]


@pytest.mark.parametrize(
    "definition",
    [
        SEARCH,
        {"type": "function", "function": {"name": "search", "parameters": SEARCH["input_schema"]}},
        {"type": "function", "name": "search", "parameters": SEARCH["input_schema"]},
        {"function_declarations": [{"name": "search", "parameters": SEARCH["input_schema"]}]},
    ],
    ids=["anthropic", "chat", "responses", "google"],
)
def test_a_schema_and_a_function_are_a_tool(definition: dict[str, Any]) -> None:
    tool = SchemaTool(definition, search)
    [sent] = Toolbox([tool]).definitions
    assert (sent["name"], sent["input_schema"]) == ("search", SEARCH["input_schema"])
    output = output_of_call(tool, {"query": "fjords", "page-size": 2}, "search")
    assert (json.loads(output.text), output.is_error) == (["fjords", {"page-size": 2}], False)
    assert output_of_call(SchemaTool(definition, lambda query: query.upper()), {"query": "x"}, "search").text == "X"


@pytest.mark.parametrize("arguments", ["{}", "", "[1]", "nonsense", '{"query": ', "[" * 99_999, "null"])
def test_wrong_arguments_of_a_schema_tool_are_told_to_the_model(arguments: str) -> None:
    output = output_of_call(SchemaTool(SEARCH, search), arguments, "search")
    assert output.is_error
    assert output.text.startswith("search was not run, its arguments")


@pytest.mark.parametrize(
    "tool",
    [
        SchemaTool(SEARCH, 5),  # type: ignore[arg-type]
        SchemaTool({"type": "web_search_20250305", "name": "web_search"}, search),
        SchemaTool({"input_schema": {}}, search),
        SchemaTool({"function_declarations": [{"name": "a"}, {"name": "b"}]}, search),
        SchemaTool(5, search),  # type: ignore[arg-type]
    ],
    ids=["no function", "a server's tool", "no name", "two", "no definition"],
)
def test_a_schema_tool_that_makes_no_sense_is_refused(tool: SchemaTool) -> None:
    with pytest.raises(ToolsError):
        Toolbox([tool])


def test_a_schema_tool_and_a_function_of_one_name_are_refused() -> None:
    with pytest.raises(ToolsError, match="two tools have this name"):
        Toolbox([search, SchemaTool(SEARCH, search)])
