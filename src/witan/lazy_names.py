"""Names of a package that are imported on first use."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]], modules: Sequence[str] = ()
) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``, which imports names on first use.

    `homes`: module to the names that it defines.
    `modules`: names of the package's own modules.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in home_of:
            value = getattr(import_module(home_of[name]), name)
        elif name in modules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return get
