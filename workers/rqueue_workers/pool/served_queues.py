"""The queues that a pool serves: their keys, and what the supervisor does in each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rqueue.errors import ConfigError, RedisUnavailable, RQueueError
from rqueue.logs import logger
from rqueue.model.shard_table import ShardTable
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.shards import read_shards
from rqueue.protocol.course import Course
from rqueue.protocol.forwarding import TargetAway
from rqueue.protocol.keys import QueueKeys, queue_of
from rqueue.protocol.sharding import advancing
from rqueue.transport.redis_client import is_cluster, open_client
from rqueue.transport.routed_connection import connection_for
from rqueue_workers.pool.lease_keeper import Renewal, RunningNotes
from rqueue_workers.pool.pending_lists import PendingLists
from rqueue_workers.pool.processes import WorkerProcesses
from rqueue_workers.spec import WorkerSpec

__all__ = ["ServedQueues", "spread", "with_shards"]

log = logger("rqueue.pool")

APART_S = 0.5
"""Seconds that a supervisor waits for a shard on another server."""


def spread(spec: WorkerSpec, tables: Iterable[ShardTable]) -> WorkerSpec:
    """What serves the shards of queues that have some, as far as they are on the pool's server, in
    place of those queues. Those that are served already keep their places in the order."""
    shards, weights = dict(spec.shards), dict(spec.weights)
    queues = list(spec.queues)
    for table in tables:
        if not table.version:
            continue
        if table.queue in queues:
            at = queues.index(table.queue)
            queues[at : at + 1] = []
        else:
            at = len(queues)
        for shard in table.served:
            name = table.name(shard)
            if shard.place not in ("", spec.settings.url) or name in shards:
                continue
            shards[name] = table.queue
            weights[name] = weights.get(table.queue, 1)
            queues.insert(at, name)
            at += 1
    return replace(spec, queues=tuple(queues), shards=shards, weights=weights)


def with_shards(spec: WorkerSpec) -> WorkerSpec:
    """`spread`, by the tables as they are now. A queue whose node of a cluster is away is taken to
    have no shards: it is served when the node is back. Raises the server errors, and ConfigError
    where no shard is on the pool's server."""
    settings = spec.settings
    client = open_client(settings.url or "", socket_connect_timeout=settings.connect_timeout)
    tables = []
    served = [QueueKeys(queue, settings.namespace) for queue in spec.queues]
    connection = connection_for(client, served[0], timeout=settings.command_timeout)
    try:
        for keys in served:
            try:
                tables.append(connection.run(read_shards(keys), queue=keys.queue))
            except (RedisUnavailable, TargetAway) as error:
                if not is_cluster(client):
                    raise
                log.info("cannot ask whether queue %s has shards: %s", keys.queue, error)
    finally:
        connection.close()
        client.close()
    found = spread(spec, tables)
    if not found.queues:
        raise ConfigError("queues", "none of their shards is on the server of this pool")
    return found


class ServedQueues:
    """In the order of the status pages, to which queues are added and from which none goes."""

    def __init__(
        self,
        spec: WorkerSpec,
        pending: PendingLists,
        processes: WorkerProcesses,
        lost: Callable[[str, Sequence[str]], None],
    ) -> None:
        self.spec = spec
        self.names: list[str] = []
        self.keys: list[QueueKeys] = []
        self.renewals: list[Renewal] = []
        self.notes: list[RunningNotes] = []
        self._pending = pending
        self._processes = processes
        self._lost = lost
        self._heard = 0
        self._changed = False
        self._serve()

    def _serve(self) -> None:
        settings = self.spec.settings
        for name in self.spec.queues[len(self.names) :]:
            index, keys = len(self.names), QueueKeys(name, settings.namespace)
            self.names.append(name)
            self.keys.append(keys)
            clock = self._pending.clock(name)
            renewal = Renewal(
                keys,
                settings.lease_ms,
                partial(self._processes.consumers, index),
                self._lost,
                clock,
                self._pending.add,
                settings.signer,
            )
            self.renewals.append(renewal)
            self.notes.append(RunningNotes(index, keys, self._processes.running, clock))

    def add(self, found: WorkerSpec) -> None:
        """Serve the queues of other options too, by the workers that are forked from now on."""
        spec = self.spec
        fresh = tuple(queue for queue in found.queues if queue not in spec.queues)
        if not fresh:
            return
        shards, weights = {**spec.shards, **found.shards}, {**found.weights, **spec.weights}
        self._extend(replace(spec, queues=spec.queues + fresh, shards=shards, weights=weights))
        log.info("the code names more queues: serving %s", ", ".join(self.spec.queues))

    def look(self) -> bool:
        """Where a shard had a word for one of our workers, see what its table asks for; whether
        there are other shards to be served than before."""
        heard = sum(process.page.shard_words for process in self._processes)
        if heard > self._heard:
            self.advance()
        self._heard = heard
        changed, self._changed = self._changed, False
        return changed

    def advance(self) -> None:
        """See to what the tables of our queues ask for."""
        for queue in dict.fromkeys(self.spec.shards.values()):
            keys = QueueKeys(queue, self.spec.settings.namespace)
            url = self.spec.settings.url or ""
            self._pending.add(PendingAdvance(keys, url, self._seen, self._pending.add))

    def _seen(self, table: ShardTable) -> None:
        spec = spread(self.spec, [table])
        if spec.queues == self.spec.queues:
            return
        self._extend(spec)
        self._changed = True
        log.info("queue %s has other shards: serving %s", table.queue, ", ".join(spec.queues))

    def _extend(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self._serve()
        self._processes.serve(spec)


def run_apart(place: str, call: ScriptCall[Any]) -> Any:
    """The answer of a shard on the server of this URL, which is not the pool's. Leases are to be
    renewed meanwhile, so a server that is away costs `APART_S`; and nothing stays open that a
    worker would inherit. Raises the server errors."""
    client = open_client(place, socket_connect_timeout=APART_S)
    queue = queue_of(call.key)
    connection = connection_for(client, QueueKeys(queue), timeout=APART_S)
    try:
        return connection.run(call, queue=queue)
    finally:
        connection.close()
        client.close()


class PendingAdvance:
    """What the table of a queue asks for, in the supervisor's list of what is to be done. `seen` is
    called with the table; shards on another server than `url` are asked there and then."""

    def __init__(
        self,
        keys: QueueKeys,
        url: str,
        seen: Callable[[ShardTable], None],
        again: Callable[[Any], None],
    ) -> None:
        self._of = keys.queue
        self._url = url
        self._seen = seen
        self._again = again
        self._course = Course(advancing(keys))
        self._see_to_others()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PendingAdvance) and other._of == self._of

    def __hash__(self) -> int:
        return hash(self._of)

    @property
    def queue(self) -> str:
        """The one that the next call goes to."""
        call = self.call()
        return self._of if call is None else queue_of(call.key)

    def call(self) -> ScriptCall[Any] | None:
        """What to send now."""
        return None if self._course.call is None else self._course.call[1]

    def answered(self, reply: Any) -> bool:
        """Go on, where the next call belongs."""
        if isinstance(reply, ShardTable):
            self._seen(reply)
        try:
            self._course.answered(reply)
        except RQueueError as error:
            self.refused(error)
        self._see_to_others()
        if self._course.call is not None:
            self._again(self)
        return False

    def refused(self, error: RQueueError) -> None:
        """Leave it to the next time."""
        log.warning("cannot see to the shards of queue %s: %s", self._of, error)
        self._course.call = None

    def _see_to_others(self) -> None:
        """Send the calls to other servers, up to the next one to the pool's own."""
        course = self._course
        try:
            while course.call is not None:
                shard, call = course.call
                if shard is None or shard.place in ("", self._url):
                    return
                try:
                    reply = run_apart(shard.place, call)
                except RQueueError as error:
                    course.refused(error)
                else:
                    course.answered(reply)
        except RQueueError as error:
            self.refused(error)
