"""What `run_turn` is given that is none of what it takes: told before anything is asked, as an error of ours that says what to pass."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_window import Answer, AnthropicModel, BudgetError, ContextWindow, FormatError, Message, Session, Usage, run_turn
from tests.support.looping import ScriptedModel, manager, told

SAID = Message("assistant", "Hello.")


def run(session: Any, said: Any = "Hi", *, model: Any = None, limits: Any = None, tools: Any = ()) -> Any:
    asked = ScriptedModel() if model is None else model
    return asyncio.run(run_turn(session, said, model=asked, tools=tools, manager=manager() if limits is None else limits))


class Saying:
    """A model that gives this, whatever it is."""

    def __init__(self, said: object) -> None:
        self._said = said

    async def answer(self, *_: object, **__: object) -> Any:
        return self._said


class Plain(Saying):
    """One that does not await anything."""

    def answer(self, *_: object, **__: object) -> Any:
        return self._said


@pytest.mark.parametrize("session", [None, 5, "log", [], Session])
def test_a_session_that_is_none_is_told(session: Any) -> None:
    with pytest.raises(BudgetError, match=r"session=.*pass a Session"):
        run(session)


@pytest.mark.parametrize("model", [5, "claude-sonnet-5-5", AnthropicModel, ScriptedModel, object()])
def test_a_model_that_cannot_be_asked_is_told(model: Any) -> None:
    session = Session()
    with pytest.raises(BudgetError, match=r"model=.*such as an AnthropicModel"):
        run(session, model=model)
    assert told(session) == []


@pytest.mark.parametrize("limits", [5, "claude-sonnet-5-5", ContextWindow()])
def test_a_manager_that_is_none_is_told(limits: Any) -> None:
    with pytest.raises(BudgetError, match=r"manager=.*pass a ContextWindowManager"):
        run(Session(), limits=limits)


@pytest.mark.parametrize("tools", [5, None, "look_up", [5]])
def test_tools_that_are_none_are_told(tools: Any) -> None:
    with pytest.raises(BudgetError):
        run(Session(), tools=tools)


@pytest.mark.parametrize("said", [5, b"Hi", [5], {"role": "user"}, SAID])
def test_what_the_user_cannot_say_is_told(said: Any) -> None:
    session = Session()
    with pytest.raises(FormatError):
        run(session, said)
    assert told(session) == []


@pytest.mark.parametrize(
    "said",
    [
        5,
        None,
        "Hello.",
        SAID,
        (SAID,),
        Answer(5, "end_turn"),  # type: ignore[arg-type]
        Answer("Hello.", "end_turn"),  # type: ignore[arg-type]
        Answer((SAID, "Hello."), "end_turn"),  # type: ignore[arg-type]
        Answer((SAID,), None),  # type: ignore[arg-type]
        Answer((SAID,), "end_turn", {"input_tokens": 3}),  # type: ignore[arg-type]
        Answer((SAID,), "end_turn", None, 5),  # type: ignore[arg-type]
    ],
    ids=["number", "none", "text", "item", "items", "no items", "text as items", "text as an item", "no stop", "dict as usage", "model"],
)
@pytest.mark.parametrize("kind", [Saying, Plain])
def test_an_answer_that_is_none_is_told_and_the_log_goes_on(kind: type[Saying], said: object) -> None:
    session = Session()
    with pytest.raises(BudgetError, match=rf"{kind.__name__}.*its answer\(\) gave .*Answer\(items, stop, usage, model\)"):
        run(session, model=kind(said))
    assert told(session) == ["Hi"]
    assert asyncio.run(run_turn(session, None, model=ScriptedModel(), manager=manager())).text == "That is all."


@pytest.mark.parametrize("kind", [Saying, Plain])
@pytest.mark.parametrize("items", [(SAID,), [SAID]])
def test_an_answer_is_taken_from_a_model_that_does_not_await_too(kind: type[Saying], items: Any) -> None:
    result = run(Session(), model=kind(Answer(items, "end_turn", Usage(3), "m")))
    assert (result.text, result.usage) == ("Hello.", Usage(3))
