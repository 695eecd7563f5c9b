"""What an agent has replaced in its process: functions and classes of this package, of NumPy and of Python.

None of it reaches a score, which is computed elsewhere. An agent that does it is named all the same: it means to
change what is measured, or does so unawares. One that hides it can: it is its own process.
"""

import functools
import sys
from collections.abc import Iterator
from typing import Any

#: Modules that are watched, with those below them.
WATCHED = ("theorybench", "numpy")
#: Others that are watched.
ALSO = ("time", "random", "pickle", "json", "os", "builtins", "multiprocessing.connection")
#: What is compared beside what can be called; all else changes as programs run.
KINDS = (property, staticmethod, classmethod, functools.cached_property)


def in_place() -> dict[str, Any]:
    """Return what is watched: modules, their functions and classes, and what is defined in the package's classes."""
    return dict(_named())


def replaced(before: dict[str, Any]) -> list[str]:
    """Return the names of what is no longer what it was, sorted."""
    now = in_place()
    return sorted(name for name, thing in before.items() if now.get(name) is not thing)


def _named() -> Iterator[tuple[str, Any]]:
    for name, module in list(sys.modules.items()):
        if not (name in ALSO or name.partition(".")[0] in WATCHED) or "._" in name:
            continue
        yield name, module
        for attribute, thing in list(vars(module).items()):
            if callable(thing):
                yield f"{name}.{attribute}", thing
            if isinstance(thing, type) and thing.__module__ == name and name.startswith(WATCHED[0]):
                for own, defined in list(vars(thing).items()):
                    if callable(defined) or isinstance(defined, KINDS):
                        yield f"{name}.{attribute}.{own}", defined
