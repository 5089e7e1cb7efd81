"""Every class and function that a package exports has a docstring. (The linter asks the same of methods.)"""

import inspect

import pytest

import context_window
import session

EXPORTED = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in (session, context_window)
    for name in getattr(package, "__all__", ())
    if inspect.isclass(getattr(package, name)) or inspect.isroutine(getattr(package, name))
}


@pytest.mark.parametrize("name", EXPORTED)
def test_what_is_exported_has_a_docstring(name: str) -> None:
    documented = inspect.getdoc(EXPORTED[name]) or ""
    assert documented.strip()
    # What `dataclass` and `TypedDict` write by themselves is a signature, not a sentence.
    assert not documented.startswith((f"{name.rpartition('.')[2]}(", "dict() -> new empty dictionary"))
