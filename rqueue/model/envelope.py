"""What a job carries, as bytes, and what is kept of its end: JSON, never pickle.

It carries `["task", args, kwargs, opts]`, empty trailing parts left out (a later version would
begin with its number); packed once by the client and never rewritten. With signing keys a signature
stands before it, see `rqueue.model.signing`.

Encodable are None, bool, int up to 64 bits, finite float, str, list, tuple, dict, and what has one
obvious JSON form: Enum (its value), datetime, date, time, timedelta, UUID, Decimal, Path (text, see
`rqueue.model.json_forms`), sets (a sorted list), named tuples, dataclasses, pydantic's models and
msgspec's Structs (an object of all their fields). Keys of dicts are str, or have text as their
form. The task receives that JSON form, unless it is annotated (`rqueue.tasks.arguments`): lists for
tuples, text for a datetime, a dict for a dataclass. Everything else is refused when the job is
enqueued, with the argument's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from orjson import (
    JSONDecodeError,
    dumps,
    loads,
)

from rqueue.errors import NotEncodable, Undecodable
from rqueue.model.job import Delivery, JobState
from rqueue.model.json_values import OURS, as_json, dumped, problem_of
from rqueue.model.parents import given_to
from rqueue.model.signing import split_signature

__all__ = [
    "Envelope",
    "Record",
    "decode_result",
    "encode_result",
    "pack",
    "parse_record",
    "too_large",
    "unpack",
]


class Envelope(NamedTuple):
    """One job's task, arguments and options."""

    task: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}
    opts: Mapping[str, Any] = {}

    def of(self, job: Delivery) -> Envelope:
        """With what this job's parents left before its own arguments. Raises Undecodable."""
        given = given_to(job)
        return self._replace(args=[*given, *self.args]) if given else self

    def encode(self) -> bytes:
        """The envelope's bytes. Raises NotEncodable."""
        return pack(self.task, self.args, dict(self.kwargs), dict(self.opts))

    @classmethod
    def decode(cls, body: bytes) -> Envelope:
        """The envelope in `body`, signed (not verified here) or not. Raises Undecodable."""
        return cls(*unpack(body))


_PLAIN = frozenset({type(None), bool, int, str})  # nothing in these can become a null unseen


def pack(
    task: str,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    opts: dict[str, Any] | None = None,
    parameters: Sequence[str] = (),
) -> bytes:
    """Encode one job. `parameters` names the positional ones, for the error message.

    Raises NotEncodable, which names the argument and the path inside it.
    """
    if opts:
        parts = [task, args, kwargs or {}, opts]
    elif kwargs:
        parts = [task, args, kwargs]
    elif args:
        parts = [task, args]
    else:
        parts = [task]
    try:
        body = dumps(parts, as_json, OURS)
    except TypeError as error:
        try:
            body = dumped(parts)
        except TypeError:
            raise _explain(task, args, kwargs, opts, parameters, str(error)) from None
    # orjson writes NaN and infinity as null: where the text has no null there was none. (partition
    # searches in a third of the time that `in` takes.)
    if body.partition(b"null")[1] and not (
        _PLAIN.issuperset(map(type, args))
        and not opts
        and (not kwargs or _PLAIN.issuperset(map(type, kwargs.values())))
    ):
        for name, value in _named(args, kwargs, opts, parameters):
            if problem := problem_of(value, name):
                raise NotEncodable(problem[0], task, problem[1])
    return body


def unpack(body: bytes) -> tuple[str, list[Any], dict[str, Any], dict[str, Any]]:
    """Task, args, kwargs and opts of an envelope; a signature is skipped, not verified.

    Raises Undecodable.
    """
    try:
        parts = loads(body)
    except JSONDecodeError as error:
        if body[:1] == b"S":
            return unpack(split_signature(body).json)
        raise Undecodable(f"not an envelope ({error})", body) from None
    if type(parts) is list:
        size = len(parts)
        if size and type(parts[0]) is int:
            raise Undecodable("an envelope of a later version than this rqueue reads", body)
        if 1 <= size <= 4 and type(parts[0]) is str:
            args = parts[1] if size > 1 else []
            kwargs = parts[2] if size > 2 else {}
            opts = parts[3] if size > 3 else {}
            if type(args) is list and type(kwargs) is dict and type(opts) is dict:
                return parts[0], args, kwargs, opts
    raise Undecodable("not an envelope", body)


def too_large(size: int, most: int, verb: str = "pass") -> str:
    """The complaint about arguments or a result of so many bytes; `verb`: what is to be done with
    a reference instead."""
    return (
        f"{size:,} bytes, at most {most:,} fit: store the data elsewhere and {verb} a "
        "reference, or raise RQUEUE_MAX_BODY (setting max_body)"
    )


# -- what is kept of its end -----------------------------------------------------------------------


class Record(NamedTuple):
    """What is kept of an ended job. `payload`: result JSON (done), cause JSON (dead), or empty."""

    state: JobState
    ended_ms: int
    payload: bytes


_STATE_OF_LETTER = {
    b"D": JobState.DONE,
    b"F": JobState.DEAD,
    b"C": JobState.CANCELLED,
    b"P": JobState.PURGED,
    b"E": JobState.EXPIRED,
    b"R": JobState.DISPLACED,
    b"M": JobState.MOVED,
}


def parse_record(record: bytes) -> Record:
    """Parse `<letter><ended_ms>:<payload>`, as it is kept of a job. Raises Undecodable."""
    head, colon, payload = record.partition(b":")
    state = _STATE_OF_LETTER.get(head[:1])
    digits = head[1:]
    if state is None or not colon or not digits.isdigit():
        raise Undecodable("not the record of an ended job", record)
    return Record(state, int(digits), payload)


def encode_result(value: Any, task: str = "", most: int | None = None) -> bytes:
    """A task's return value as kept in its record: JSON, or nothing at all for None. most: bytes
    that it may have, None = any number.

    Raises NotEncodable.
    """
    if value is None:
        return b""
    try:
        payload = dumps(value, as_json, OURS)
    except TypeError:
        try:
            payload = dumped(value)
        except TypeError as error:
            path, problem = problem_of(value, "") or ("", str(error))
            raise NotEncodable("", task, f"{path}: {problem}" if path else problem) from None
    if payload.partition(b"null")[1]:
        if found := problem_of(value, ""):
            path, problem = found
            raise NotEncodable("", task, f"{path}: {problem}" if path else problem)
        if payload == b"null":  # an Enum whose value is None
            return b""
    if most is not None and len(payload) > most:
        raise NotEncodable("", task, too_large(len(payload), most, "return"))
    return payload


def decode_result(payload: bytes) -> Any:
    """What `encode_result` was given, in its JSON form. Raises Undecodable."""
    if not payload:
        return None
    try:
        return loads(payload)
    except JSONDecodeError as error:
        raise Undecodable(f"not a result ({error})", payload) from None


# -- what is wrong with a value --------------------------------------------------------------------


def _named(
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    opts: Mapping[str, Any] | None,
    parameters: Sequence[str],
) -> list[tuple[str, Any]]:
    """Every value of a job with the name that its user knows it by."""
    named: list[tuple[str, Any]] = []
    for index, value in enumerate(args):
        if index < len(parameters) and not parameters[index].startswith("*"):
            named.append((parameters[index], value))
        elif parameters and parameters[-1].startswith("*"):
            named.append((f"{parameters[-1][1:]}[{index - len(parameters) + 1}]", value))
        else:
            named.append((f"#{index + 1}", value))
    named.extend((str(key), value) for key, value in (kwargs or {}).items())
    named.extend((f"option {key}", value) for key, value in (opts or {}).items())
    return named


def _explain(
    task: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    opts: Mapping[str, Any] | None,
    parameters: Sequence[str],
    reason: str,
) -> NotEncodable:
    """The error for a job that orjson refused, naming the first culprit."""
    if type(args) not in (list, tuple):
        return NotEncodable("args", task, f"a list or tuple, not {type(args).__name__}")
    keys: list[Any] = [*(kwargs or {}), *(opts or {})]
    for key in keys:
        if not isinstance(key, str):
            return NotEncodable(repr(key), task, "the name of an argument is a str")
    named = _named(args, kwargs, opts, parameters)
    for name, value in named:
        if problem := problem_of(value, name):
            return NotEncodable(problem[0], task, problem[1])
    for name, value in named:  # orjson knows a reason that we do not: find the argument at least
        try:
            dumped(value)
        except TypeError as error:
            return NotEncodable(name, task, str(error))
    return NotEncodable("task", task, reason)
