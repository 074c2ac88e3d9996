"""Which server and namespace a command works on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rqueue.cli.exit_codes import OK, SERVER, USAGE, Failure

if TYPE_CHECKING:
    from rqueue.client._sync.queue import Queue
    from rqueue.inspector import Inspector
    from rqueue.settings import Settings

NO_URL = (
    "no server: set RQUEUE_URL or pass --url redis://host:6379/0"
    " (or start one for development here: rqueue dev)"
)

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Target:
    """The server and namespace, as far as the command line names them."""

    url: str | None = None
    namespace: str | None = None

    def settings(self, *, dev: bool = True) -> Settings:
        """Settings with a URL: the one given, RQUEUE_URL, or, with `dev`, that of the development
        server of this folder. Raises Failure when there is none, and ConfigError."""
        from rqueue.settings import Settings

        settings = Settings.load(url=self.url, namespace=self.namespace)
        if settings.url is None and dev:
            from rqueue.transport.discovery import DEV_DIRECTORY, running

            settings = Settings.load(url=running(DEV_DIRECTORY), namespace=self.namespace)
        if settings.url is None:
            raise Failure(NO_URL, USAGE)
        return settings

    @contextlib.contextmanager
    def inspector(self, *, replica: bool = False) -> Iterator[Inspector]:
        """An inspector on a server that is new enough, and, unless `replica`, the primary. Raises
        WrongServer and RedisReadOnly."""
        from rqueue.errors import WrongServer
        from rqueue.inspector import Inspector
        from rqueue.transport.server_check import server_facts

        with Inspector(settings=self.settings()) as inspector:
            facts = server_facts(inspector.redis)
            if isinstance(facts.problem, WrongServer):
                raise facts.problem
            if facts.replica is not None and not replica:
                raise facts.replica
            yield inspector

    def shards(self, queue: Queue) -> list[Queue]:
        """The queues of the shards of one that is spread, in which it is to be done what is said of
        it; of all others the queue itself."""
        from rqueue.protocol.commands.shards import read_shards

        if not queue._run(read_shards(queue.keys)).version:
            return [queue]
        return [queue._spread().at(shard) for shard in queue._spread().table().served]

    @contextlib.contextmanager
    def queue(self, name: str) -> Iterator[tuple[Queue, Inspector]]:
        """A queue's client and an inspector, over one connection."""
        from rqueue.client._sync.queue import Queue

        with self.inspector() as inspector:
            inspector.keys(name)  # says what is wrong with the name, if so
            yield (
                Queue(name, redis=inspector.redis, settings=inspector.settings),
                inspector,
            )


def say_missing(missing: Mapping[str, Exception]) -> int:
    """Name nodes of a cluster that could not be asked, on stderr; the exit code of a command that
    has shown what the others said."""
    from rqueue.cli.output import echo

    for address, error in missing.items():
        echo(f"node {address} is missing, and with it its queues: {error}", err=True)
    return SERVER if missing else OK


def _note(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None and param.name is not None:
        setattr(ctx.ensure_object(Target), param.name, value)


def connection_options(command: F) -> F:
    """Add --url and --namespace. They may stand before the command or behind it."""
    for decorate in (
        click.option(
            "--namespace",
            metavar="NAME",
            expose_value=False,
            callback=_note,
            help="What all keys begin with; default RQUEUE_NAMESPACE, or 'rqueue'.",
        ),
        click.option(
            "--url",
            metavar="URL",
            expose_value=False,
            callback=_note,
            help="The Redis server, as redis://host:6379/0, or a cluster, as redis+cluster://a,b,c;"
            " default RQUEUE_URL, or REDIS_URL.",
        ),
    ):
        command = decorate(command)
    return command


pass_target = click.make_pass_decorator(Target, ensure=True)
