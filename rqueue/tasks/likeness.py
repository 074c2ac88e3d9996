"""If two functions that were defined in one place do the same: by what they have caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from itertools import zip_longest
from types import CodeType, FunctionType, MethodType
from typing import Any

__all__ = ["alike"]

_VALUES = (str, bytes, int, float, complex, Enum, type(None))


def alike(first: Callable[..., Any], second: Callable[..., Any]) -> bool:
    """True if a second function may take the place of a first one of the same name and place.

    A module that is loaded anew compiles its functions anew: they are another edition. One
    definition that is executed twice makes two functions, which differ if their closures or
    defaults hold other plain values, functions or classes. Objects such as an application count by
    their type, since a factory that runs anew makes new ones.
    """
    one, other = _code(first), _code(second)
    return one is None or one is not other or _same(first, second, 0)


def _code(function: Any) -> CodeType | None:
    while isinstance(function, partial | MethodType):
        function = function.func if isinstance(function, partial) else function.__func__
    return function.__code__ if isinstance(function, FunctionType) else None


def _same(first: Any, second: Any, depth: int) -> bool:
    if first is second or depth > 20:
        return True
    if type(first) is not type(second):
        return _name(type(first)) == _name(type(second)) and not isinstance(first, _VALUES)
    if isinstance(first, _VALUES):
        return bool(first == second)
    if isinstance(first, type):
        return _name(first) == _name(second)
    parts = [
        (one, other) for one, other in zip_longest(_caught(first), _caught(second), fillvalue=_END)
    ]
    if isinstance(first, FunctionType) and first.__code__ != second.__code__:
        return False
    return all(_same(one, other, depth + 1) for one, other in parts)


_END = object()


def _caught(value: Any) -> Iterator[Any]:
    """What makes a function or a tuple another one."""
    if isinstance(value, tuple):
        yield from value
    elif isinstance(value, partial):
        yield from (value.func, *value.args)
        yield from (part for pair in value.keywords.items() for part in pair)
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, FunctionType):
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not bound yet
                yield _END
        yield from value.__defaults__ or ()
        yield from (part for pair in (value.__kwdefaults__ or {}).items() for part in pair)


def _name(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__
