"""Invalid arguments of `run_turn`: an error names the fix before any request is sent. And invalid answers of a model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_window import (
    Answer,
    AnthropicModel,
    ArgumentError,
    ContextWindow,
    FormatError,
    Message,
    ModelArgumentError,
    Session,
    ToolsError,
    Usage,
    run_turn,
)
from tests.support.looping import ScriptedModel, manager, texts_of

MESSAGE = Message("assistant", "Hello.")


def run(session: Any, user_input: Any = "Hi", *, model: Any = None, limits: Any = None, tools: Any = ()) -> Any:
    asked_model = ScriptedModel() if model is None else model
    return asyncio.run(run_turn(session, user_input, model=asked_model, tools=tools, manager=manager() if limits is None else limits))


class Returning:
    """A model that returns any value."""

    def __init__(self, value: object) -> None:
        self._value = value

    async def answer(self, *_: object, **__: object) -> Any:
        return self._value


class ReturningPlainly(Returning):
    """A model whose `answer` is a plain function."""

    def answer(self, *_: object, **__: object) -> Any:
        return self._value


@pytest.mark.parametrize("session", [None, 5, "log", [], Session])
def test_invalid_session_is_an_error(session: Any) -> None:
    with pytest.raises(ArgumentError, match=r"session=.*pass a Session"):
        run(session)


@pytest.mark.parametrize("model", [5, "claude-sonnet-5-5", AnthropicModel, ScriptedModel, object()])
def test_invalid_model_is_an_error(model: Any) -> None:
    session = Session()
    with pytest.raises(ModelArgumentError, match=r"model=.*such as an AnthropicModel"):
        run(session, model=model)
    assert texts_of(session) == []


@pytest.mark.parametrize("limits", [5, "claude-sonnet-5-5", ContextWindow()])
def test_invalid_manager_is_an_error(limits: Any) -> None:
    with pytest.raises(ArgumentError, match=r"manager=.*pass a ContextWindowManager"):
        run(Session(), limits=limits)


@pytest.mark.parametrize("tools", [5, None, "look_up", [5]])
def test_invalid_tools_are_an_error(tools: Any) -> None:
    with pytest.raises(ToolsError):
        run(Session(), tools=tools)


@pytest.mark.parametrize("user_input", [5, b"Hi", [5], {"role": "user"}, MESSAGE])
def test_invalid_user_input_is_an_error(user_input: Any) -> None:
    session = Session()
    with pytest.raises(FormatError):
        run(session, user_input)
    assert texts_of(session) == []


@pytest.mark.parametrize(
    "value",
    [
        5,
        None,
        "Hello.",
        MESSAGE,
        (MESSAGE,),
        Answer(5, "end_turn"),  # type: ignore[arg-type]
        Answer("Hello.", "end_turn"),  # type: ignore[arg-type]
        Answer((MESSAGE, "Hello."), "end_turn"),  # type: ignore[arg-type]
        Answer((MESSAGE,), None),  # type: ignore[arg-type]
        Answer((MESSAGE,), "end_turn", {"input_tokens": 3}),  # type: ignore[arg-type]
        Answer((MESSAGE,), "end_turn", None, 5),  # type: ignore[arg-type]
    ],
    ids=["number", "none", "text", "item", "items", "no items", "text as items", "text as an item", "no stop", "dict as usage", "model"],
)
@pytest.mark.parametrize("kind", [Returning, ReturningPlainly])
def test_an_invalid_answer_is_an_error_and_the_log_can_be_continued(kind: type[Returning], value: object) -> None:
    session = Session()
    with pytest.raises(ModelArgumentError, match=rf"{kind.__name__}.*its answer\(\) returned .*Answer\(items, stop, usage, model\)"):
        run(session, model=kind(value))
    assert texts_of(session) == ["Hi"]
    assert asyncio.run(run_turn(session, None, model=ScriptedModel(), manager=manager())).text == "That is all."


@pytest.mark.parametrize("kind", [Returning, ReturningPlainly])
@pytest.mark.parametrize("items", [(MESSAGE,), [MESSAGE]])
def test_the_answer_method_may_be_a_plain_function(kind: type[Returning], items: Any) -> None:
    result = run(Session(), model=kind(Answer(items, "end_turn", Usage(3), "m")))
    assert (result.text, result.usage) == ("Hello.", Usage(3))
