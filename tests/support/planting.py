"""Faults in Python sources, planted for a test of a test."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable
from typing import Any


def planted(owner: type, name: str, right: str, wrong: str) -> Callable[..., Any]:
    """A method of a class with a piece of its source replaced; it must be there once."""
    function = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(right) == 1, f"{owner.__name__}.{name} has changed: not there once: {right}"
    flag = __future__.annotations.compiler_flag
    code = compile(source.replace(right, wrong), inspect.getfile(function), "exec", flag)
    found: dict[str, Any] = {}
    exec(code, function.__globals__, found)
    made: Callable[..., Any] = found[name]
    return made
