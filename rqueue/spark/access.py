"""Where Redis is and how to get in: found on the driver, carried to the executors, never shown.

Options of a Spark source stand in plans, logs and checkpoints, so that none of them may hold a
password. An `Access` travels inside the pickled reader or writer alone, and its text hides what
must not be seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import redis
from redis import exceptions as rx

from rqueue.errors import ConfigError, WrongServer
from rqueue.model.server_url import as_cluster_url, is_cluster_url
from rqueue.model.signing import Signer
from rqueue.protocol.commands.queue_keys import meta_fields
from rqueue.protocol.commands.shards import read_shards
from rqueue.protocol.error_mapping import translate
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import sharded
from rqueue.settings import HOSTED_URL, Settings
from rqueue.spark.options import Place
from rqueue.spark.patience import Reader
from rqueue.transport.discovery import DEV_DIRECTORY, running
from rqueue.transport.redis_client import open_client

__all__ = ["Access"]

_SECRET = ("username", "password")
_AT_SENTINELS = ("sentinel_username", "sentinel_password")
_VARIABLES = ("RQUEUE_URL", "RQUEUE_USERNAME", "RQUEUE_PASSWORD", "RQUEUE_SIGNING_KEYS")
_INSTEAD = (
    "holds a user or password, which would be seen in plans and logs; set RQUEUE_USERNAME and "
    "RQUEUE_PASSWORD (or the whole RQUEUE_URL) in the driver's environment, or the option "
    "credentialsFile"
)


@dataclass(frozen=True, slots=True)
class Access:
    """The address of Redis, the namespace, and the credentials. Times are seconds. `cluster`: it
    is a Redis Cluster, and the address that of one."""

    url: str
    namespace: str = "rqueue"
    cluster: bool = False
    connect_timeout: float = 5.0
    command_timeout: float = 30.0
    patience: float = 0.0
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    signing_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    at_sentinels: str = field(default="", repr=False)
    """The login at the Sentinels, as options of a URL."""

    @classmethod
    def of(cls, place: Place, environ: Mapping[str, str] | None = None) -> Access:
        """Find it from a source's options and the driver's environment; else it is the development
        server of the driver's folder. Raises ConfigError."""
        environ = os.environ if environ is None else environ
        variables = {name: environ[name] for name in _VARIABLES if environ.get(name)}
        if place.credentials_file is not None:
            variables |= _variables_of(place.credentials_file)
        user, password = variables.get("RQUEUE_USERNAME"), variables.get("RQUEUE_PASSWORD")
        found = variables.get("RQUEUE_URL") or environ.get(HOSTED_URL) or None
        there = _Split(None) if found is None else _split(found)
        url = place.url if place.url is not None else there.bare
        if url is None and (url := running(DEV_DIRECTORY)) is None:
            raise ConfigError(
                "url",
                "where is Redis? Set this option, or RQUEUE_URL for the driver, or start one for"
                " development in its folder: rqueue dev",
            )
        given = _split(url)
        checked = given.bare or ""
        if given != _Split(checked):
            raise ConfigError("url", _INSTEAD)
        # The login of one server is not for another one.
        at_sentinels = ""
        if checked == there.bare:
            at_sentinels = there.at_sentinels
            if user is None and password is None:
                user, password = there.user, there.password
        settings = Settings.load(
            {
                "RQUEUE_NAMESPACE": environ.get("RQUEUE_NAMESPACE", ""),
                "RQUEUE_SIGNING_KEYS": variables.get("RQUEUE_SIGNING_KEYS", ""),
            },
            url=checked,
            namespace=place.namespace,
        )
        cluster = place.cluster or is_cluster_url(checked)
        if cluster:
            try:
                checked = as_cluster_url(checked)
            except ValueError as error:
                raise ConfigError("cluster", str(error)) from None
        return cls(
            checked,
            settings.namespace,
            cluster,
            place.connect_timeout,
            place.command_timeout,
            place.patience,
            user,
            password,
            settings.signing_keys,
            at_sentinels,
        )

    @property
    def options(self) -> dict[str, str]:
        """The same server as options of rqueue's sources, without credentials."""
        return {
            "url": self.url,
            "namespace": self.namespace,
            "cluster": str(self.cluster).lower(),
            "patience": f"{self.patience}s",
        }

    def keys(self, queue: str) -> QueueKeys:
        """Keys of a queue of this namespace."""
        return QueueKeys(queue, self.namespace)

    @property
    def signer(self) -> Signer | None:
        """Signs and verifies with the credentials' keys; None when there are none."""
        return Signer(self.signing_keys, self.namespace) if self.signing_keys else None

    def whole_url(self) -> str:
        """The address with the credentials in it, for what takes a URL. Never to be shown."""
        url = self._reached
        if self.username is None and self.password is None:
            return url
        login = f"{quote(self.username or '', safe='')}:{quote(self.password or '', safe='')}"
        scheme, _, rest = url.partition("://")
        return f"{scheme}://{login}@{rest}"

    @property
    def _reached(self) -> str:
        """The address with what the Sentinels want to know."""
        if not self.at_sentinels:
            return self.url
        return f"{self.url}{'&' if '?' in self.url else '?'}{self.at_sentinels}"

    @contextmanager
    def client(self) -> Iterator[redis.Redis]:
        """A client for a while; with `cluster`, one of the whole cluster with the same methods.

        What it raises comes out as the tree of `rqueue.errors`, without credentials.
        """
        options: dict[str, Any] = {
            "username": self.username,
            "password": self.password,
            "socket_timeout": self.command_timeout,
            "socket_connect_timeout": self.connect_timeout,
        }
        options = {name: value for name, value in options.items() if value is not None}
        with self.translated(), open_client(self._reached, **options) as client:
            yield client

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """A client for a while whose calls wait for a Redis that is away."""
        with self.client() as client:
            yield Reader(client, self.patience)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Let what redis-py raises inside come out as the tree of `rqueue.errors`."""
        try:
            yield
        except WrongServer as error:
            if isinstance(moved := error.__cause__, rx.MovedError):
                instead = as_cluster_url(self.url)
                said = (
                    f"{self.url} is a node of a cluster ({moved}); set cluster=true, or write "
                    f"{instead}"
                )
                raise ConfigError("cluster", said) from None
            raise
        except (rx.RedisError, rx.RedisClusterException) as error:
            better = translate(error, url=self.url)
            if better is error:
                raise
            raise better from None

    def names(self, reader: Reader, queues: Sequence[str]) -> list[str]:
        """The queues that are read: these, or, where none is named, all of the namespace on this
        server; in place of one that is spread its shards. Raises ConfigError where shards of one
        that is named are on other servers: they are to be read there."""
        names = list(dict.fromkeys(queues)) or reader.queue_names(self.namespace)
        kinds = reader.run_all([meta_fields(self.keys(name), "v") for name in names])
        found: list[str] = []
        for name, (stamp,) in zip(names, kinds, strict=True):
            if stamp is not None and sharded.POLICY.word.encode() in stamp.split():
                found += self._shards(reader, name, required=bool(queues))
            else:
                found.append(name)
        return list(dict.fromkeys(found))

    def _shards(self, reader: Reader, queue: str, *, required: bool) -> list[str]:
        """The shards of a queue that are here, or may have been."""
        table = reader.run(read_shards(self.keys(queue)), queue=queue)
        here, apart = [], []
        for shard in table.shards.values():
            if shard.state == "gone":
                continue
            near = not shard.place or _split(shard.place).bare == self.url
            if near:
                here.append(table.name(shard))
            elif shard.state != "closed":
                apart.append(str(shard.number))
        if apart and required:
            raise ConfigError(
                "queues",
                f"shards {', '.join(apart)} of queue {queue!r} are on other servers: read them"
                f" there, by the option url, as {queue}~{apart[0]}, and those here by their names",
            )
        return here


class _Split(NamedTuple):
    """A URL without its credentials, and these."""

    bare: str | None
    user: str | None = None
    password: str | None = None
    at_sentinels: str = ""


def _split(url: str) -> _Split:
    """Take the credentials out of a URL. Raises ConfigError."""
    Settings(url=url)  # checks it; what it says hides them
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    query = parse_qsl(parts.query, keep_blank_values=True)
    asked = dict(query)
    at_sentinels = urlencode([one for one in query if one[0] in _AT_SENTINELS])
    rest = urlencode([one for one in query if one[0] not in (*_SECRET, *_AT_SENTINELS)])
    bare = f"{parts.scheme}://{host}{parts.path}" + (f"?{rest}" if rest else "")
    return _Split(
        bare,
        (unquote(user) if at else "") or asked.get("username") or None,
        (unquote(password) if at else "") or asked.get("password") or None,
        at_sentinels,
    )


def _variables_of(path: str) -> dict[str, str]:
    """The variables in a file of `NAME=value` lines. Raises ConfigError, without its text."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise ConfigError("credentialsFile", f"cannot read {path}: {said}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip().removeprefix("export ").strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals or name.strip() not in _VARIABLES:
            raise ConfigError(
                "credentialsFile",
                f"line {number} of {path} is not NAME=value with one of {', '.join(_VARIABLES)}",
            )
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[name.strip()] = value
    return found
