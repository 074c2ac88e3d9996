"""A pool's options: from its TOML file, from the environment, from the command line.

`docs/workers.md` lists them for users; `OPTIONS` is where they are defined. What the command line
says wins over `RQUEUE_*` variables, and these over the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rqueue.errors import ConfigError, InvalidName
from rqueue.model.names import check_queue
from rqueue.model.selector import selector
from rqueue.model.times import parse_duration, parse_size
from rqueue.settings import Settings
from rqueue_workers.spec import (
    BODIES,
    LOG_FORMATS,
    LOG_LEVELS,
    PoolSpec,
    WorkerSpec,
    check_weights,
)

CLIENT_OPTIONS = {
    "url": "RQUEUE_URL",
    "namespace": "RQUEUE_NAMESPACE",
    "signing_keys": "RQUEUE_SIGNING_KEYS",
    "lease": "RQUEUE_LEASE",
    "connect_timeout": "RQUEUE_CONNECT_TIMEOUT",
    "command_timeout": "RQUEUE_COMMAND_TIMEOUT",
    "max_body": "RQUEUE_MAX_BODY",
}
"""Options that are settings of the client too, and the variables they may come from."""


def _names(value: Any, option: str) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise ConfigError(option, f"a name or a list of names, not {value!r}")
    if len(set(given)) < len(given):
        raise ConfigError(option, f"a name is there twice: {', '.join(given)}")
    return tuple(given)


def _queues(value: Any, option: str) -> tuple[str, ...]:
    try:
        names = tuple(check_queue(name) for name in _names(value, option))
    except InvalidName as error:
        raise ConfigError(option, str(error)) from None
    if not names:
        raise ConfigError(option, "names no queue; leave it out to serve those of the tasks")
    return names


def _whole(low: int, high: int) -> Callable[[Any, str], int]:
    def read(value: Any, option: str) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ConfigError(option, f"a whole number from {low} to {high}, not {value!r}")
        return value

    return read


def _weights(value: Any, option: str) -> dict[str, int]:
    """From a table of the file, or from NAME=N of the command line."""
    if not isinstance(value, Mapping):
        pairs = [text.rpartition("=") for text in _names(value, option)]
        value = {name: int(n) if n.isdecimal() else n for name, _, n in pairs}
    weight = _whole(1, 1000)
    return {name: weight(n, f"{option} of {name or n!r}") for name, n in value.items()}


def _flag(value: Any, option: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(option, f"true or false, not {value!r}")
    return value


def _text(value: Any, option: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(option, f"text, not {value!r}")
    return value


def _name(value: Any, option: str) -> str:
    text = _text(value, option)
    if len(text) > 64 or not text.isprintable() or any(c in " :." for c in text):
        raise ConfigError(option, f"{text!r}: at most 64 characters, no blanks, colons or dots")
    return text


def _select(value: Any, option: str) -> str:
    text = _text(value, option)
    return selector(text).text if text else text


def _seconds(value: Any, option: str) -> float:
    return parse_duration(value, option)


def _bytes(value: Any, option: str) -> int:
    return parse_size(value, option)


def _names_or_none(value: Any, option: str) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    names = _names(value, option)
    return () if names == ("none",) else names


def _one_of(*words: str) -> Callable[[Any, str], str]:
    def read(value: Any, option: str) -> str:
        if value not in words:
            raise ConfigError(option, f"{value!r} is not one of {', '.join(words)}")
        return str(value)

    return read


OPTIONS: Mapping[str, Callable[[Any, str], Any]] = {
    "app": _names,
    "queues": _queues,
    "processes": _whole(1, 1000),
    "threads": _whole(0, 1000),
    "async_slots": _whole(0, 10_000),
    "strict": _flag,
    "weights": _weights,
    "priority": _whole(-10_000, 10_000),
    "prefetch": _whole(0, 10_000),
    "select": _select,
    "max_jobs": _whole(0, 2**53),
    "max_memory": _bytes,
    "max_crashes": _whole(0, 1_000_000),
    "drain": _seconds,
    "grace": _seconds,
    "time_limit": _seconds,
    "soft_time_limit": _seconds,
    "history_bodies": _one_of(*BODIES),
    "history_labels": _names_or_none,
    "name": _name,
    "pidfile": _text,
    "quiet": _flag,
    "log_level": _one_of(*LOG_LEVELS),
    "log_format": _one_of(*LOG_FORMATS),
    "patience": _seconds,
}
"""Every option of a pool that is not one of the client's settings, and how it is read."""

_OF_POOL = ("processes", "pidfile", "quiet", "log_level", "log_format", "patience", "grace")


def load_pool_file(
    path: str | os.PathLike[str] | None,
    overrides: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
) -> PoolSpec:
    """The pool that a TOML file describes, `overrides` (the command line) applied to it.

    path: None when there is no file. overrides: options by the names they have in the file; a None
    counts as not given. Raises ConfigError, which names the option (and the file) at fault.
    """
    environ = os.environ if environ is None else environ
    written = {} if path is None else _read(Path(path))
    try:
        values = {name: _convert(name, value) for name, value in written.items()}
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.setting}", error.problem) from None
    given = {name: _convert(name, v) for name, v in overrides.items() if v is not None}
    for name, variable in CLIENT_OPTIONS.items():
        if environ.get(variable):
            values.pop(name, None)
    try:
        return _build(values | given, environ)
    except ConfigError as error:
        if error.setting not in values or error.setting in given:
            raise
        raise ConfigError(f"{path}: {error.setting}", error.problem) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"is not TOML: {error}") from None


def _convert(name: str, value: Any) -> Any:
    if name in CLIENT_OPTIONS:
        return value  # Settings checks them
    read = OPTIONS.get(name)
    if read is None and isinstance(value, list) and value and isinstance(value[0], Mapping):
        raise ConfigError(
            name, f"one pool per file: write its options at the top, without [[{name}]]"
        )
    if read is None and isinstance(value, Mapping):
        raise ConfigError(name, _no_table(name, value))
    if read is None:
        near = get_close_matches(name, [*OPTIONS, *CLIENT_OPTIONS], 1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else f"there are {', '.join([*OPTIONS, *CLIENT_OPTIONS])}"
        )
        raise ConfigError(name, f"there is no such option; {hint}")
    return read(value, name)


def _no_table(name: str, table: Mapping[str, Any]) -> str:
    """What to write instead of this table."""
    known = [f"{option} = ..." for option in table if option in OPTIONS or option in CLIENT_OPTIONS]
    shown = ", ".join(known) or 'url = "redis://host:6379/0"'
    return f"a pool file has no tables; write its options at the top, without [{name}]: {shown}"


def _build(values: dict[str, Any], environ: Mapping[str, str]) -> PoolSpec:
    client = {name: values.pop(name) for name in CLIENT_OPTIONS if name in values}
    if "lease" in client:
        # a plain number is seconds here, as everywhere in the file
        client["lease_ms"] = round(parse_duration(client.pop("lease"), "lease") * 1000)
    try:
        settings = Settings.load(environ, **client)
    except ConfigError as error:
        if error.setting != "lease_ms":
            raise
        raise ConfigError("lease", error.problem) from None
    if settings.url is None:
        raise ConfigError("url", "say where Redis is: --url, RQUEUE_URL, or url in the pool file")
    if not values.get("app"):
        raise ConfigError("app", "name the module (or modules) that define the tasks")
    pool = {name: values.pop(name) for name in _OF_POOL if name in values}
    if "max_memory" in values:
        values["max_rss"] = values.pop("max_memory")
    values.setdefault("queues", ())
    _check_order(values)
    worker = WorkerSpec(settings=settings, **values)
    if worker.time_limit and worker.soft_time_limit >= worker.time_limit:
        raise ConfigError(
            "soft_time_limit", "must be shorter than time_limit, which ends the process"
        )
    return PoolSpec(worker=worker, **pool)


def _check_order(values: Mapping[str, Any]) -> None:
    weights, queues = values.get("weights", {}), values["queues"]
    if values.get("strict") and not queues:
        raise ConfigError("strict", "name the queues: they are served in the order given")
    if weights and values.get("strict"):
        raise ConfigError("weights", "mean nothing with strict, which serves one queue at a time")
    if queues:
        check_weights(weights, queues)
