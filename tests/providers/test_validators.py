"""What the four validators have in common. Their payloads, valid and invalid, are in `test_providers_*_rules.py`."""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from session import FormatError
from session.providers import encoded_media, validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from tests.providers import test_providers_anthropic_rules as anthropic
from tests.providers import test_providers_google_rules as google
from tests.providers import test_providers_openai_chat_rules as chat
from tests.providers import test_providers_openai_responses_rules as responses


@dataclass(frozen=True)
class Format:
    """A validator with its payloads.

    Attributes:
        letter: The first letter of its rules.
        package: Its package in `session.providers`.
        payloads: The module of its tests, with `VALID` and `INVALID`.
        validate: The validator.
        wrap: Makes a payload in which a value is nested.
        remedy: What its error says for a value that is no payload.
        no_payloads: Such values.
    """

    letter: str
    package: str
    payloads: ModuleType
    validate: Callable[[Any], list[Any]]
    wrap: Callable[[Any], Any]
    remedy: str
    no_payloads: tuple[object, ...]

    def module(self, name: str) -> ModuleType:
        return import_module(f"session.providers.{self.package}.{name}")


FORMATS = (
    Format(
        "A",
        "anthropic",
        anthropic,
        validate_anthropic,
        lambda value: ([anthropic.user(anthropic.text()), anthropic.assistant(anthropic.use(input=value)), anthropic.user()], None),
        "pass (messages, system)",
        (None, [], "Hi", {"model": "m"}, ([], None, None), 7),
    ),
    Format(
        "G",
        "google",
        google,
        validate_google,
        lambda value: ([google.user(google.text()), google.model({"function_call": {"name": "run", "args": value}})], None),
        "pass (contents, system)",
        (None, [], "Hi", {"model": "m"}, ([], None, None), 7),
    ),
    Format(
        "O",
        "openai_chat",
        chat,
        validate_openai_chat,
        lambda value: [chat.user(name=value)],
        "pass the messages",
        (None, "Hi", {"model": "m"}, 7),
    ),
    Format(
        "R",
        "openai_responses",
        responses,
        validate_openai_responses,
        lambda value: [{**responses.WEB, "action": value}],
        "pass the items",
        (None, "Hi", {"model": "m"}, 7),
    ),
)
formats = pytest.mark.parametrize("of", FORMATS, ids=lambda of: of.package)


def _cases(name: str) -> Iterator[Any]:
    for of in FORMATS:
        for case in getattr(of.payloads, name):
            yield pytest.param(of, case, id=f"{of.letter} {case}" if isinstance(case, str) else f"{case[0]} {case[1]}")


@pytest.mark.parametrize(("of", "name"), [*_cases("VALID")])
def test_valid_payloads_pass(of: Format, name: str) -> None:
    assert of.validate(of.payloads.VALID[name]) == []
    json.dumps(of.payloads.VALID[name])


@pytest.mark.parametrize(("of", "case"), [*_cases("INVALID")])
def test_invalid_payloads_break_their_rule(of: Format, case: tuple[str, str, Any]) -> None:
    rule, _, payload = case
    before = copy.deepcopy(payload)
    violations = of.validate(payload)
    assert rule in {violation.rule for violation in violations}
    assert all(violation.where and violation.message for violation in violations)
    assert repr(payload) == repr(before)


@pytest.mark.parametrize(("of", "rule"), [pytest.param(of, rule, id=rule.__name__) for of in FORMATS for rule in of.module("rules").RULES])
def test_every_rule_is_broken_by_some_payload_and_is_named_by_its_number(of: Format, rule: Callable[[Any], Any]) -> None:
    number = rule.__name__.partition("_")[0].upper()
    outcomes = [list(rule(of.module("schema").read_payload(payload))) for _, _, payload in of.payloads.INVALID]
    assert any(outcomes)
    assert {violation.rule for violations in outcomes for violation in violations} == {number}
    assert (rule.__doc__ or "").startswith(f"{number}: ")


@formats
def test_a_value_that_is_not_a_payload_is_an_error(of: Format) -> None:
    for value in of.no_payloads:
        with pytest.raises(FormatError, match=re.escape(of.remedy)):
            of.validate(value)


@formats
def test_deep_nesting_is_a_violation(of: Format) -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert f"{of.letter}0" in {violation.rule for violation in of.validate(of.wrap(deep))}
    assert f"{of.letter}0" not in {violation.rule for violation in of.validate(of.wrap({} if of.letter != "O" else "Ann"))}
    while deep:  # take it apart by hand: the interpreter would need a stack as deep to free it
        deep = deep.pop("a")


BYTE_CHECKS = {"session.images", "session.image_check", "session.document_check"}
"""The modules that check bytes and import no converter."""
SHARED = {".schema", "session.errors", *(f"session.providers.{name}" for name in ("violations", "encoded_media", "openai_chat.rules"))}


@formats
def test_the_validator_shares_no_code_with_the_converter(of: Format) -> None:
    for name in ("rules", "schema"):
        assert _own_imports(of.module(name)) <= SHARED | BYTE_CHECKS
    assert _own_imports(encoded_media) <= {"session.errors"} | BYTE_CHECKS


def _own_imports(module: ModuleType) -> set[str]:
    imports = set(re.findall(r"^ *from (\S+) import", inspect.getsource(module), re.MULTILINE))
    return {name for name in imports if name.startswith((".", "session"))}
