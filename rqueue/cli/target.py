"""Which server and namespace a command works on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rqueue.cli.exit_codes import OK, SERVER, USAGE, Failure

if TYPE_CHECKING:
    import redis

    from rqueue.client._sync.queue import Queue
    from rqueue.inspector import Inspector, QueueInfo
    from rqueue.inspector.parts import Parts
    from rqueue.model.job_count import JobCount
    from rqueue.settings import Settings

NO_URL = (
    "no server: set RQUEUE_URL or pass --url redis://host:6379/0"
    " (or start one for development here: rqueue dev)"
)

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


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
        """An inspector on a server that is new enough, and, unless `replica`, the primary. A server
        that gives no answer is waited for once, and named meanwhile. Raises WrongServer and
        RedisReadOnly."""
        from rqueue.errors import WrongServer
        from rqueue.inspector import Inspector
        from rqueue.model.server_url import is_sentinel
        from rqueue.transport.server_check import server_facts
        from rqueue.transport.silent_servers import SilentServers

        silent = SilentServers(say_waiting)
        with Inspector(settings=self.settings(), silent=silent) as inspector:
            if replica and is_sentinel(inspector.settings.url or ""):
                yield inspector  # its Sentinels are asked first
                return
            facts = server_facts(inspector.redis)
            if isinstance(facts.problem, WrongServer):
                raise facts.problem
            if facts.replica is not None and not replica:
                raise facts.replica
            yield inspector

    @contextlib.contextmanager
    def queue(self, name: str) -> Iterator[tuple[Queue, Inspector]]:
        """A queue's client and an inspector. Raises QueueSharded where it is spread over shards:
        what is done with one queue alone is done with one of them."""
        from rqueue.errors import QueueSharded, UnknownQueue

        with self.inspector() as inspector:
            inspector.keys(name)  # says what is wrong with the name, if so
            try:
                parts = inspector.parts(name)
            except UnknownQueue:
                client = inspector.redis
            else:
                if parts.table is not None:
                    raise QueueSharded(name)
                client = parts.found[0].client
            yield client_of(name, client, inspector), inspector

    @contextlib.contextmanager
    def by_name(self, name: str) -> Iterator[tuple[Queue, Inspector]]:
        """A queue's client and an inspector; jobs that are enqueued into one that is spread find
        their shards."""
        with self.inspector() as inspector:
            inspector.keys(name)
            with client_of(name, inspector.redis, inspector) as queue:
                yield queue, inspector

    @contextlib.contextmanager
    def queues(self, name: str, *, new: bool = False) -> Iterator[tuple[Clients, Inspector]]:
        """The clients of all queues that a name stands for, and an inspector. Raises UnknownQueue,
        unless the queue may be a new one."""
        from rqueue.errors import UnknownQueue
        from rqueue.inspector.parts import Part, Parts

        with self.inspector() as inspector:
            try:
                parts = inspector.parts(name)
            except UnknownQueue:
                if not new:
                    raise
                parts = Parts(name, [Part(inspector.keys(name), inspector.redis)])
            clients = [client_of(part.name, part.client, inspector) for part in parts]
            yield Clients(parts, clients), inspector


class Clients:
    """The clients of the queues that a name stands for: of one, or of the shards of one that is
    spread."""

    def __init__(self, parts: Parts, clients: list[Queue]) -> None:
        self._parts = parts
        self.clients = clients

    def each(self, work: Callable[[Queue], T]) -> list[T]:
        """Do it with each. Where the server of a shard is away it is done with all others, and
        ConnectionLost says so."""
        from rqueue.errors import ConnectionLost

        by_name = {client.name: client for client in self.clients}
        done, missing = self._parts.each(lambda part: work(by_name[part.name]))
        if missing:
            others = f"; it was done with the other {len(done)}" if done else ""
            error = self._parts.missing_error(missing)
            raise ConnectionLost(f"{error}{others}", url=error.url)
        return list(done.values())

    def named(self, ids: Sequence[str], work: Callable[[Queue], JobCount]) -> JobCount:
        """Do it with jobs that are named, of which each queue has some."""
        from rqueue.model.job_count import JobCount

        counts = self.each(work)
        return counts[0] if len(counts) == 1 else JobCount.of_shards(ids, counts)

    def delete(self, inspector: Inspector, *, jobs: bool, consumers: bool, jobs_to: str) -> int:
        """Delete them, and the table of a queue that is spread; returns how many jobs ended. Raises
        as `Queue.delete`, of a queue that is spread before anything is done."""
        from rqueue.errors import UnknownQueue

        def delete(queue: Queue) -> int:
            return queue.delete(jobs=jobs, consumers=consumers, jobs_to=jobs_to)

        parts = self._parts
        if parts.table is None:
            return delete(self.clients[0])
        require_unused(
            inspector.queue(parts.queue), jobs=jobs or bool(jobs_to), consumers=consumers
        )

        def shard(queue: Queue) -> int:
            with contextlib.suppress(UnknownQueue):  # an earlier call came as far
                return delete(queue)
            return 0

        done = sum(self.each(shard))
        with client_of(parts.queue, inspector.redis, inspector) as queue:
            queue.delete()
        return done

    def fitting(self, limit: int | None, work: Callable[[Queue, int | None], JobCount]) -> JobCount:
        """Do it with all jobs that fit, the first `limit` of them."""
        from rqueue.model.job_count import JobCount

        total = JobCount()

        def one(queue: Queue) -> None:
            nonlocal total
            left = None if limit is None else limit - total
            if left is None or left > 0 or not total:
                total = total + work(queue, left)

        self.each(one)
        return total


def require_unused(info: QueueInfo, *, jobs: bool, consumers: bool) -> None:
    """Raise QueueInUse where a queue has what is not to go with it."""
    from rqueue.errors import QueueInUse
    from rqueue.text.numbers import many

    has = info.waiting + info.held + info.dead + info.outgoing
    if has and not jobs:
        raise QueueInUse(info.name, many(has, "job"))
    if (there := sum(info.consumers.values())) and not consumers:
        raise QueueInUse(info.name, many(there, "consumer"))


def client_of(name: str, client: redis.Redis, inspector: Inspector) -> Queue:
    """A queue's client over an open client of redis-py."""
    from rqueue.client._sync.queue import Queue

    return Queue(name, redis=client, settings=inspector.settings)


def keep_asking(inspector: Inspector) -> None:
    """From now on a server that gave no answer is asked again: a command that follows waits for
    it, as long as it takes."""
    if inspector.silent is not None:
        inspector.silent.forget()


def say_waiting(address: str) -> None:
    """Say on stderr which server is waited for."""
    from rqueue.cli.output import echo

    echo(f"rqueue: waiting for {address}, which gives no answer yet", err=True)


def say_missing(missing: Mapping[str, Exception]) -> int:
    """Name nodes of a cluster that could not be asked, on stderr; the exit code of a command that
    has shown what the others said."""
    from rqueue.cli.output import echo

    for address, error in missing.items():
        echo(f"node {address} is missing, and with it its queues: {error}", err=True)
    return SERVER if missing else OK


def say_held_up(queues: Mapping[str, Exception]) -> int:
    """The same of queues that cannot be asked, though their nodes can."""
    from rqueue.cli.output import echo
    from rqueue.protocol.advice import describe

    for queue, error in queues.items():
        echo(f"queue '{queue}' cannot be asked: {describe(error)}", err=True)
    return SERVER if queues else OK


def say_without(missing: Mapping[str, Exception]) -> int:
    """The same of shards, without which the numbers of their queue are."""
    from rqueue.cli.output import echo

    for shard, error in missing.items():
        echo(
            f"shard '{shard}' is missing, and its numbers from those of the queue: {error}",
            err=True,
        )
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
