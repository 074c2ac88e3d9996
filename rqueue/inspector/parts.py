"""The queues that one name stands for: of a queue that is spread its shards, on whichever servers;
of any other the queue itself. What is to be said of all of them is never said of some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import redis

from rqueue.errors import (
    ConnectionLost,
    QueueDamaged,
    RedisUnavailable,
    ServerError,
    UnknownQueue,
)
from rqueue.model.shard_table import Shard, ShardTable, shard_of_name
from rqueue.protocol.commands.queue_keys import meta_fields, queue_exists
from rqueue.protocol.commands.shards import read_shards
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import sharded
from rqueue.settings import redact
from rqueue.transport.key_scan import FoundQueues, find_queues
from rqueue.transport.redis_client import execute, execute_all, is_cluster

__all__ = ["Part", "Parts", "Places"]

T = TypeVar("T")


class Part(NamedTuple):
    """One queue, and the client of its server. shard: None where it is not one of several."""

    keys: QueueKeys
    client: redis.Redis
    shard: Shard | None = None

    @property
    def name(self) -> str:
        """The name of its queue."""
        return self.keys.queue

    @property
    def apart(self) -> bool:
        """Whether it may be away while others are there."""
        return self.shard is not None and bool(self.shard.place or is_cluster(self.client))


class Parts:
    """All of them, or some of several queues ("" as their name). `table`: of the shards, None where
    the queue is not spread. Shards that were closed are among them for what they have counted,
    unless they were on other servers, which may be gone."""

    def __init__(self, queue: str, found: list[Part], table: ShardTable | None = None) -> None:
        self.queue = queue
        self.found = found
        self.table = table

    def __iter__(self) -> Iterator[Part]:
        return iter(self.found)

    def each(self, look: Callable[[Part], T]) -> tuple[dict[str, T], dict[str, ServerError]]:
        """What each says, by its name, and why those are missing that cannot be asked. Raises the
        server errors where nothing can be said."""
        answers: dict[str, T] = {}
        missing: dict[str, ServerError] = {}
        for part in self.found:
            try:
                answers[part.name] = look(part)
            except RedisUnavailable as error:
                if not part.apart:
                    raise
                missing[part.name] = error
        return answers, missing

    def all(self, look: Callable[[Part], T]) -> list[T]:
        """What each says. Raises ConnectionLost, which names the shard, where one cannot be
        asked, and the other server errors."""
        answers: list[T] = []
        for part in self.found:
            with self.named(part):
                answers.append(look(part))
        return answers

    @contextmanager
    def named(self, part: Part) -> Iterator[None]:
        """An error inside that says that the server of this part is away names the part."""
        try:
            yield
        except RedisUnavailable as error:
            if not part.apart:
                raise
            raise self.missing_error({part.name: error}) from error

    def missing_error(self, missing: dict[str, ServerError]) -> ConnectionLost:
        """The error of what is to be said of all, where some cannot be asked."""
        name, why = next(iter(missing.items()))
        place = next(p.shard.place for p in self.found if p.name == name and p.shard is not None)
        others = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        what = f"queue '{self.queue}' is" if self.queue else "queues are"
        return ConnectionLost(
            f"shard '{name}'{others} cannot be asked, so that not all of {what} known: {why}",
            url=redact(place),
        )


class Places:
    """Finds parts, and keeps the clients of servers that shards are on."""

    def __init__(
        self, client: redis.Redis, namespace: str, open_place: Callable[[str], redis.Redis]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._open = open_place
        self._elsewhere: dict[str, redis.Redis] = {}

    def over(self, client: redis.Redis) -> Places:
        """The same, with another client of the same server; clients of others are shared."""
        places = Places(client, self._namespace, self._open)
        places._elsewhere = self._elsewhere
        return places

    def client_at(self, place: str) -> redis.Redis:
        """The client of a shard's server."""
        if not place:
            return self._client
        if place not in self._elsewhere:
            self._elsewhere[place] = self._open(place)
        return self._elsewhere[place]

    def found(self) -> FoundQueues:
        """All queues here, and the nodes of a cluster that could not be asked; found by SCAN."""
        return find_queues(self._client, self._namespace)

    def parts(self, queue: str) -> Parts:
        """What a name stands for. Raises UnknownQueue and InvalidName."""
        keys = QueueKeys(queue, self._namespace)
        (stamp,) = execute(self._client, meta_fields(keys, "v"))
        if stamp is None and not execute(self._client, queue_exists(keys)):
            return Parts(queue, [self._apart(keys)])
        return self.whole(self._of(keys, stamp))

    def known(self, names: list[str]) -> dict[str, Parts]:
        """What these names stand for, as far as one look at them all says it: not what is left of a
        queue that was deleted, and no queue whose node of a cluster is away."""
        stamps = self._stamps([QueueKeys(name, self._namespace) for name in names])
        return {its.queue: self._of(its, stamp) for its, stamp in stamps if stamp is not None}

    def whole(self, parts: Parts) -> Parts:
        """These. Raises QueueDamaged where the table that names them is gone."""
        if parts.table is not None and not parts.found:
            key = QueueKeys(parts.queue, self._namespace).shards
            raise QueueDamaged(parts.queue, key, problem="its table of shards is gone")
        return parts

    def spread(self, names: list[str]) -> dict[str, Parts]:
        """Those of some queues here that are spread."""
        known = self.known(names)
        return {name: parts for name, parts in known.items() if parts.table is not None}

    def _of(self, keys: QueueKeys, stamp: bytes | None) -> Parts:
        if _is_spread(stamp):
            return self._spread(keys)
        return Parts(keys.queue, [Part(keys, self._client)])

    def _stamps(self, keys: list[QueueKeys]) -> list[tuple[QueueKeys, bytes | None]]:
        """What kinds these queues are of; of a cluster not known of those whose node is away."""
        try:
            rows = execute_all(self._client, [meta_fields(its, "v") for its in keys])
        except RedisUnavailable:
            if not is_cluster(self._client):
                raise
            if len(keys) == 1:
                return [(keys[0], None)]
            return [one for its in keys for one in self._stamps([its])]
        return [(its, row[0]) for its, row in zip(keys, rows, strict=True)]

    def _spread(self, keys: QueueKeys) -> Parts:
        table = execute(self._client, read_shards(keys), queue=keys.queue)
        found = [
            Part(QueueKeys(table.name(one), keys.namespace), self.client_at(one.place), one)
            for one in table.counted
        ]
        return Parts(keys.queue, found, table)

    def _apart(self, keys: QueueKeys) -> Part:
        """A shard on another server, by its own name."""
        said = shard_of_name(keys.queue)
        if said is not None:
            of, number = said
            table = execute(self._client, read_shards(QueueKeys(of, keys.namespace)), queue=of)
            shard = table.shards.get(number)
            if shard is not None and shard.place:
                part = Part(keys, self.client_at(shard.place), shard)
                if execute(part.client, queue_exists(keys)):
                    return part
        raise UnknownQueue(keys.queue)

    def close(self) -> None:
        """Close the clients of other servers."""
        while self._elsewhere:
            self._elsewhere.popitem()[1].close()


def _is_spread(stamp: bytes | None) -> bool:
    return stamp is not None and sharded.POLICY.word.encode() in stamp.split()
