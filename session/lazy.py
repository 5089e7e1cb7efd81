"""Names of a package that are imported when they are first used.

A package has its names twice: by module in `lazy_names`, and as imports for type checkers, which never run: in `__init__.pyi`, or under
`TYPE_CHECKING` where there are few. `tests/project/test_public_names.py` compares the two.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules


def lazy_names(
    package: str, names: Mapping[str, str], renamed: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions `__getattr__` and `__dir__` for a package whose names are imported at their first use.

    Args:
        package: The package's full name.
        names: By module, the names that the package takes from it, separated by spaces. `.errors` is a module of the package itself.
        renamed: By a name of another library, the name to use here. Its import fails with that advice.
    """
    module_of = {name: module for module, group in names.items() for name in group.split()}
    namespace = vars(modules[package])

    def get_name(name: str) -> object:
        if renamed and name in renamed:
            raise ImportError(f"{package} has no {name}: {renamed[name]}; docs/names.md lists the names of other libraries", name=name)
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value = getattr(import_module(module_of[name], package), name)
        return value

    def list_names() -> list[str]:
        return sorted({*namespace, *module_of})

    return get_name, list_names
