"""Values as JSON: what stands for one that JSON lacks, and what is wrong with other values."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any
from uuid import UUID

from orjson import OPT_PASSTHROUGH_DATACLASS, OPT_PASSTHROUGH_DATETIME, dumps

from rqueue.model.json_forms import FORMS

__all__ = ["OURS", "as_json", "dumped", "problem_of"]

MAX_DEPTH = 250  # orjson's own limit is 254, of which the envelope and the argument list use two

_HINTS = {
    "range": "pass a list",
    "generator": "pass a list",
    "async_generator": "pass a list",
    "deque": "pass a list",
    "ndarray": "pass a list (.tolist())",
    "bytes": "pass text, for instance base64",
    "bytearray": "pass text, for instance base64",
    "memoryview": "pass text, for instance base64",
    "Fraction": "pass text (str(value))",
    "complex": "pass a list of two floats",
    "type": "pass its name",
    "function": "pass its name",
    "coroutine": "await it first",
}

OURS = OPT_PASSTHROUGH_DATACLASS | OPT_PASSTHROUGH_DATETIME
"""orjson leaves to `as_json` what it would write with a loss: fields that begin with an
underscore, seconds of a time zone."""


def as_json(value: Any) -> Any:
    """What stands for a value that orjson does not know. Raises TypeError where nothing does."""
    kind = type(value)
    for form in FORMS:
        if isinstance(value, form.type):
            return form.write(value)
    if isinstance(value, set | frozenset):
        # in one order, whatever the process: unique keys are made of it
        return sorted(value, key=lambda one: dumps(one, as_json, OURS))
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return dict(zip(kind._fields, value, strict=True))
    if hasattr(kind, "__pydantic_serializer__") and hasattr(kind, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    elif hasattr(kind, "__struct_fields__"):
        from msgspec import to_builtins  # it is loaded, since the value is its

        return to_builtins(value, str_keys=True)
    elif is_dataclass(kind):
        return {f.name: getattr(value, f.name) for f in fields(kind)}
    raise TypeError


def problem_of(value: Any, path: str, depth: int = 0) -> tuple[str, str] | None:
    """Path and reason of the first thing in `value` that has no JSON form; None = all is well."""
    if value is None or value is True or value is False:
        return None
    kind = type(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return path, "text with a lone surrogate is not UTF-8"
        return None
    if isinstance(value, int):
        if -(2**63) <= value < 2**64:
            return None
        return path, "an int beyond 64 bits is not portable JSON; pass it as text"
    if kind is float:
        return None if isfinite(value) else (path, f"{value} is not JSON; pass None or text")
    if isinstance(value, Enum):
        return problem_of(value.value, path, depth)
    if depth >= MAX_DEPTH:
        return path[:60] + "...", f"nested deeper than {MAX_DEPTH} levels, or contains itself"
    if isinstance(value, dict):
        names: set[str] = set()
        for key, item in value.items():
            name = _key(key)
            if name is None:
                return path, f"dict key {key!r} is {_a(key)}; JSON has str keys only"
            if name in names:
                return path, f"two keys have the JSON form {name!r}"
            names.add(name)
            if found := problem_of(name, path) or problem_of(item, _join(path, name), depth + 1):
                return found
        return None
    if isinstance(value, list) or kind is tuple:
        for index, item in enumerate(value):
            if found := problem_of(item, f"{path}[{index}]", depth + 1):
                return found
        return None
    try:
        plain = as_json(value)
    except TypeError:
        return path, f"{_named_kind(kind)} is not JSON; {_hint(value)}"
    except ValueError as error:  # of a form: a Decimal that is no number
        return path, f"{error} is not JSON; pass None or text"
    except Exception as error:  # of a model's own serializers
        return path, f"{kind.__name__} has no JSON form: {error}"
    return problem_of(plain, path, depth)


def _join(path: str, key: str) -> str:
    if key.isidentifier():
        return f"{path}.{key}" if path else key
    return f"{path}[{key!r}]"


def _key(key: object) -> str | None:
    """A dict's key by the rule of values: text, or what has text as its JSON form. None for all
    else."""
    if isinstance(key, Enum):
        return _key(key.value)
    if isinstance(key, str):
        return str.__str__(key)
    try:
        written = as_json(key) if not isinstance(key, UUID) else str(key)
    except (TypeError, ValueError):
        return None
    return written if type(written) is str else None


def _plain(value: Any) -> Any:
    """The same value with each key as its text: what orjson refuses otherwise."""
    if isinstance(value, dict):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list) or type(value) is tuple:
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | Enum | UUID):
        return value
    return _plain(as_json(value))


def dumped(value: Any) -> bytes:
    """JSON of a value that orjson refuses, perhaps for its keys alone. Raises TypeError."""
    if found := problem_of(value, ""):
        raise TypeError(found[1])
    return dumps(_plain(value), as_json, OURS)


def _named_kind(kind: type) -> str:
    """The name of a type, as its user would import it."""
    if kind.__module__ == "builtins":
        return kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"


def _a(value: object) -> str:
    name = _named_kind(type(value))
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _hint(value: object) -> str:
    if isinstance(value, float):
        return "pass value.item()" if hasattr(value, "item") else "pass float(value)"
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return "pass value.item()"
    if isinstance(value, tuple):
        return "pass a list or a dict"
    return _HINTS.get(type(value).__name__, "pass its id, or a dict of what the task needs")
