"""Settings: every wrong value is a `BudgetError` that names the setting and says what to pass."""

import dataclasses
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import BudgetError, ContextWindow, ContextWindowError, PriorityTrim, Shares, TokenBudget
from context_window.decision.limits import portion
from context_window.validation import check_amount
from session.items import MessageCategory
from tests.support.numpy_like import Array, Whole


def window(**settings: Any) -> ContextWindow:
    """Values of any type, including those that mypy would reject."""
    return ContextWindow(**settings)


def shares(**parts: Any) -> Shares:
    return Shares(**parts)


NAN, INFINITE = float("nan"), float("inf")


NO_AMOUNTS: list[Any] = [-1, 1.0, 0.5, 1e5, NAN, INFINITE, True, False, "4000", [], Array(), Fraction(1), Decimal(1), b"1"]


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("max_tokens", 1),
        ("max_context_items", 1),
        ("images_max", 0),
        ("output_reserve", 0),
        ("images_kept", 0),
        ("keep_recent_turns", 0),
        ("max_tool_calls_per_turn", 0),
    ],
)
def test_amounts(name: str, least: int) -> None:
    for wrong in [least - 1, *NO_AMOUNTS]:
        with pytest.raises(BudgetError, match=f"^{name}=.*: pass a whole number of {least} or more$") as error:
            window(**{name: wrong})
        assert error.value.field == name
        assert error.value.value is wrong
    beside = {"images_kept": 0} if name == "images_max" else {}
    for right in (least, 10**30):
        assert getattr(window(**{name: right, **beside}), name) == right


@pytest.mark.parametrize("name", ["images_kept", "keep_recent_turns", "max_tool_calls_per_turn"])
def test_required_amounts(name: str) -> None:
    with pytest.raises(BudgetError, match="pass a whole number of 0 or more"):
        window(**{name: None})


def test_numpys_integers_become_pythons() -> None:
    """Otherwise sums would overflow silently, and figures could not be saved as JSON."""
    built = window(max_tokens=Whole(4000), images_kept=Whole(4000))
    assert (type(built.max_tokens), built.max_tokens, type(built.images_kept)) == (int, 4000, int)
    assert type(check_amount("tokens", Whole(4000), least=0)) is int


NO_RATIOS: list[Any] = [-0.1, 1.01, 65, NAN, INFINITE, -INFINITE, True, None, "0.5", "", [], 1j, Decimal("0.5")]


@pytest.mark.parametrize("name", ["trigger_ratio", "target_ratio"])
def test_ratios(name: str) -> None:
    for wrong in [0, 0.0, *NO_RATIOS]:
        with pytest.raises(BudgetError, match=f"^{name}=.*: pass a number above 0, up to 1; 1 is the whole$"):
            window(**{name: wrong})


@pytest.mark.parametrize("name", ["system", "context", "dialog", "system_output"])
def test_shares_one_by_one(name: str) -> None:
    zeros = dict.fromkeys(("system", "context", "dialog", "system_output"), 0.0)
    for wrong in NO_RATIOS:
        with pytest.raises(BudgetError, match=rf"^shares\.{name}=.*: pass a number from 0 to 1; 1 is the whole$"):
            shares(**{**zeros, name: wrong})
    for right in (0, 1, 0.29, Fraction(1, 3)):
        assert getattr(shares(**{**zeros, name: right}), name) == right


@pytest.mark.parametrize("parts", [(0.5, 0.5, 0.5, 0), (0.26, 0.25, 0.25, 0.25), (1, 0, 0, 0.001), (1, 1, 1, 1)])
def test_shares_that_sum_to_more_than_one(parts: tuple[float, float, float, float]) -> None:
    with pytest.raises(BudgetError, match="the shares sum to more than 1; lower some of them") as error:
        Shares(*parts)
    assert error.value.field == "shares"
    assert error.value.value == pytest.approx(sum(parts))


@given(st.tuples(*[st.integers(0, 50)] * 4).filter(any), st.integers(1, 10**7))
def test_weights_made_to_sum_to_one_are_shares(weights: tuple[int, ...], budget: int) -> None:
    """Regardless of rounding; and together they give at most the whole budget."""
    built = Shares(*(weight / sum(weights) for weight in weights))
    assert sum(portion(share, budget) for share in built.exact) <= budget


def test_shares_that_only_rounding_sums_to_more_than_one() -> None:
    assert sum(Shares(1 / 6, 5 / 6, 0, 0).exact) > 1


def test_shares_are_the_decimals_that_were_written() -> None:
    """0.29 x 100 is 28.999999999999996 in floats."""
    exact = Shares(0.29, 0.1, 0.2, 0.07).exact
    assert [portion(share, 100) for share in exact] == [29, 10, 20, 7]
    assert ContextWindow(trigger_ratio=0.29, target_ratio=0.07).ratios == (Fraction(29, 100), Fraction(7, 100))


def test_the_default_target_follows_a_lower_trigger() -> None:
    """The default follows a trigger that is not above it: with `trigger_ratio=0.5` it is 65 % of that, 0.325."""
    targets = [ContextWindow(trigger_ratio=trigger).target_ratio for trigger in (1, 0.8, 0.66, 0.65, 0.5, 0.1)]
    assert targets == [0.65, 0.65, 0.65, 0.4225, 0.325, 0.065]
    assert ContextWindow(trigger_ratio=0.29).ratios == (Fraction(29, 100), Fraction("0.1885"))
    assert ContextWindow(trigger_ratio=0.5, target_ratio=0.5).target_ratio == 0.5
    assert dataclasses.replace(ContextWindow(), trigger_ratio=0.5).target_ratio == 0.325


def test_default_shares() -> None:
    assert Shares().exact == (Fraction("0.1"), Fraction("0.35"), Fraction("0.5"), Fraction("0.05"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target_ratio": 0.9, "trigger_ratio": 0.8}, r"target_ratio=0\.9: .*pass trigger_ratio=0\.8 or less"),
        ({"trigger_ratio": 0.5, "target_ratio": 0.6}, r"target_ratio=0\.6: .*pass trigger_ratio=0\.5 or less"),
        ({"images_max": 0}, "images_max=0: pass images_kept=1 or more, or lower images_kept"),
        ({"images_max": 3, "images_kept": 4}, "pass images_kept=4 or more"),
        ({"shares": {"system": 1}}, r"pass a Shares\(system=…, context=…, dialog=…, system_output=…\)"),
        ({"shares": None}, r"pass a Shares\("),
        ({"shares": Shares}, r"pass a Shares\("),
        ({"strategy": "sliding window"}, r"pass a PriorityTrim\(\)"),
        ({"strategy": PriorityTrim}, r"pass a PriorityTrim\(\)"),
        ({"summary_llm": "claude"}, "pass an async function that takes a prompt"),
        ({"strict": "no"}, "strict='no': pass True or False"),
        ({"below_price_cliff": 1}, "below_price_cliff=1: pass True or False"),
        ({"warn_at": 0.8}, r"pass several numbers, such as \(0\.5, 0\.9\), or \(\) for none"),
        ({"warn_at": None}, "pass several numbers"),
        ({"warn_at": "0.8"}, "pass several numbers"),
        ({"warn_at": (0.5, 90)}, "warn_at=90: pass a number above 0, up to 1"),
        ({"warn_at": (0,)}, "warn_at=0: pass a number above 0, up to 1"),
        ({"warn_at": [NAN]}, "warn_at=nan: pass a number above 0, up to 1"),
    ],
)
def test_other_settings(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        window(**arguments)


def test_an_unknown_setting_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="max_token"):
        window(max_token=5)


def test_wrong_values_are_value_errors_of_ours() -> None:
    with pytest.raises(ValueError, match="max_tokens=0") as error:
        ContextWindow(max_tokens=0)
    assert isinstance(error.value, ContextWindowError)


def test_a_window_is_frozen_hashable_and_equal_by_value() -> None:
    one, same, other = window(max_tokens=9, warn_at=[0.5]), window(max_tokens=9, warn_at=(0.5,)), window(max_tokens=8)
    assert one == same != other
    assert hash(one) == hash(same)
    assert len({one, same, other}) == 2
    for name in ("max_tokens", "shares", "strict"):
        with pytest.raises(AttributeError):
            setattr(one, name, None)
    with pytest.raises(AttributeError):
        one.shares.system = 1  # type: ignore[misc]


@given(share=st.floats(0, 1), tokens=st.integers(0, 10**6), used=st.integers(0, 10**6))
def test_a_token_budget_has_its_available_tokens(share: float, tokens: int, used: int) -> None:
    assert TokenBudget(MessageCategory.DIALOG, share, tokens, used).available == tokens - used
