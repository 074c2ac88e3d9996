"""Settings: from arguments, then from `RQUEUE_*` variables, then defaults; checked once, frozen.

| variable | setting | default | meaning |
| --- | --- | --- | --- |
| `RQUEUE_URL`, else `REDIS_URL` | `url` | none | address, see `rqueue.model.server_url` |
| `RQUEUE_NAMESPACE` | `namespace` | `rqueue` | what every key begins with |
| `RQUEUE_SIGNING_KEYS` | `signing_keys` | none | `id:secret,...`: the first signs, all verify |
| `RQUEUE_LEASE` | `lease_ms` | `30s` | how long a silent worker keeps its jobs |
| `RQUEUE_CONNECT_TIMEOUT` | `connect_timeout` | `5s` | limit for opening a connection |
| `RQUEUE_COMMAND_TIMEOUT` | `command_timeout` | `15s` | limit for the answer to one command |
| `RQUEUE_MAX_WAIT` | `max_wait` | `60s` | limit of a producer's wait for room in a bounded queue |
| `RQUEUE_REPLICAS` | `replicas` | `0` | replicas that confirm each enqueue |
| `RQUEUE_FSYNC` | `fsync` | `false` | whether each enqueue waits until it is on disk |
| `RQUEUE_CONFIRM` | `confirm_ms` | `1s` | limit of an enqueue's wait for these two |
| `RQUEUE_MAX_BODY` | `max_body` | `16MB` | largest envelope or result that is accepted |

Durations and sizes are read by `rqueue.model.times`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

from rqueue.errors import ConfigError, InvalidName
from rqueue.logs import logger
from rqueue.model.confirmation import CONFIRM_MS, check_confirmation
from rqueue.model.expect import expect, expect_number
from rqueue.model.names import check_namespace
from rqueue.model.server_url import problem_of
from rqueue.model.signing import Signer
from rqueue.model.times import parse_duration, parse_size

__all__ = [
    "Settings",
    "parse_signing_keys",
    "redact",
]


def parse_signing_keys(text: str, setting: str = "RQUEUE_SIGNING_KEYS") -> dict[str, str]:
    """Keys of `id:secret,id:secret`, in order. Raises ConfigError, without showing a secret."""
    keys: dict[str, str] = {}
    for number, part in enumerate(text.split(","), 1):
        key_id, colon, secret = part.strip().partition(":")
        if not colon or not key_id or not secret:
            raise ConfigError(setting, f"part {number} is not of the form id:secret")
        if key_id in keys:
            raise ConfigError(setting, f"key '{key_id}' is given twice")
        keys[key_id] = secret
    return keys


def redact(url: str) -> str:
    """`url` with user, password and every query value hidden, fit for logs and errors."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return "***" if "@" in url else url
    rest, question, query = rest.partition("?")
    # The last "@": a password may hold one, and even a "/", although it should not.
    if "@" in rest:
        rest = "***@" + rest.rpartition("@")[2]
    if question:
        query = "&".join(f"{part.partition('=')[0]}=***" for part in query.split("&"))
    return f"{scheme}://{rest}{question}{query}"


def _check_url(url: str, setting: str) -> str:
    expect(setting, url, str, "a URL, such as redis://localhost:6379/0")
    if problem := problem_of(url):
        raise ConfigError(setting, f"{redact(url)!r} {problem}")
    return url


_VARIABLES = {
    "url": "RQUEUE_URL",
    "namespace": "RQUEUE_NAMESPACE",
    "signing_keys": "RQUEUE_SIGNING_KEYS",
    "lease_ms": "RQUEUE_LEASE",
    "connect_timeout": "RQUEUE_CONNECT_TIMEOUT",
    "command_timeout": "RQUEUE_COMMAND_TIMEOUT",
    "max_wait": "RQUEUE_MAX_WAIT",
    "replicas": "RQUEUE_REPLICAS",
    "fsync": "RQUEUE_FSYNC",
    "confirm_ms": "RQUEUE_CONFIRM",
    "max_body": "RQUEUE_MAX_BODY",
}

log = logger("rqueue")

HOSTED_URL = "REDIS_URL"
"""Where hosts of applications say where their Redis is."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to reach the server and what to expect of it; see the module for each one.

    `lease_ms` and `confirm_ms` are ms, the timeouts are seconds, `max_body` bytes. Raises
    ConfigError.
    """

    url: str | None = None
    namespace: str = "rqueue"
    signing_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    lease_ms: int = 30_000
    connect_timeout: float = 5.0
    command_timeout: float = 15.0
    max_wait: float = 60.0
    replicas: int = 0
    fsync: bool = False
    confirm_ms: int = CONFIRM_MS
    max_body: int = 16 * 1024**2

    def __post_init__(self) -> None:
        if self.url is not None:
            _check_url(self.url, "url")
        try:
            check_namespace(self.namespace)
        except InvalidName as error:
            raise ConfigError("namespace", str(error)) from None
        if self.signing_keys:
            expect("signing_keys", self.signing_keys, Mapping, "a dict of secrets by key id")
            Signer(self.signing_keys)
        if type(self.lease_ms) is not int or not 1000 <= self.lease_ms <= 86_400_000:
            raise ConfigError("lease", f"{self.lease_ms!r} ms is not from 1 s to 1 day")
        for name in ("connect_timeout", "command_timeout"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(name, f"{value!r} is not a number of seconds")
            if not 0.001 <= value <= 3600:
                raise ConfigError(name, f"{value!r} s is not from 1 ms to 1 hour")
        expect_number("max_wait", self.max_wait, "a number of seconds")
        check_confirmation(self.replicas, self.fsync, self.confirm_ms)
        if type(self.max_body) is not int or not 1024 <= self.max_body <= 512 * 1024**2:
            raise ConfigError("max_body", f"{self.max_body!r} bytes is not from 1 KB to 512 MB")

    def __repr__(self) -> str:
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}
        if self.url:
            shown["url"] = redact(self.url)
        shown["signing_keys"] = list(self.signing_keys)
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def signer(self) -> Signer | None:
        """Signs and verifies with `signing_keys`; None when there are none."""
        return Signer(self.signing_keys, self.namespace) if self.signing_keys else None

    @classmethod
    def of(cls, settings: Settings | None, **given: Any) -> Settings:
        """The settings that are given as a whole, or else what `load` makes of the single ones."""
        if settings is None:
            return cls.load(**given)
        expect("settings", settings, Settings, "a Settings")
        return settings

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **given: Any) -> Settings:
        """Settings from `given` (a None counts as not given), then the environment.

        Text is parsed as in the environment: `load(lease_ms="30s")`; a plain number for
        `lease_ms` is ms. Raises ConfigError, naming the variable or argument at fault.
        """
        environ = os.environ if environ is None else environ
        _warn_of_typos(environ)
        unknown = given.keys() - _VARIABLES.keys()
        if unknown:
            raise ConfigError(min(unknown), f"there is no such setting; {', '.join(_VARIABLES)}")
        values: dict[str, Any] = {}
        for name, variable in _VARIABLES.items():
            if given.get(name) is not None:
                source, value = name, given[name]
            elif environ.get(variable):
                source, value = variable, environ[variable]
            elif name == "url" and environ.get(HOSTED_URL):
                source, value = HOSTED_URL, environ[HOSTED_URL]
            else:
                continue
            values[name] = _convert(name, value, source)
            try:  # alone, so that an error names where the value came from
                cls(**{name: values[name]})
            except ConfigError as error:
                raise ConfigError(source, error.problem) from None
        return cls(**values)


_told: set[str] = set()


def _warn_of_typos(environ: Mapping[str, str]) -> None:
    """Warn in the log, once per process, of variables that are probably misspelt."""
    known = _VARIABLES.values()
    for name in environ:
        if name.startswith("RQUEUE_") and name not in known and name not in _told:
            from difflib import get_close_matches

            _told.add(name)
            if near := get_close_matches(name, known, 1, cutoff=0.85):
                log.warning("%s is no setting of rqueue and says nothing: %s?", name, near[0])


def _convert(name: str, value: Any, source: str) -> Any:
    if name in ("lease_ms", "confirm_ms"):
        if isinstance(value, str | timedelta):
            return round(parse_duration(value, source) * 1000)
    elif name in ("connect_timeout", "command_timeout", "max_wait"):
        return parse_duration(value, source)
    elif name == "replicas" and isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    elif name == "fsync" and isinstance(value, str):
        return _flag(value, source)
    elif name == "max_body":
        return parse_size(value, source)
    elif name == "signing_keys" and isinstance(value, str):
        return parse_signing_keys(value, source)
    return value


_FLAGS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def _flag(text: str, source: str) -> bool:
    found = _FLAGS.get(text.strip().lower())
    if found is None:
        raise ConfigError(source, f"{text!r} is neither true nor false")
    return found
