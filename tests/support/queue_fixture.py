"""Short words for tests of the queue's behaviour through the public API."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Call, Queue
from rqueue.model.job import Delivery
from rqueue.protocol import commands
from rqueue.tasks.options import Options
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.drivers import CLUSTER, MEMORY, REAL, make_driver
from tests.support.snapshot import Snapshot, take_snapshot

one_kind = pytest.mark.parametrize("q", ["consumer"], indirect=True)
"""For tests in which it does not matter what kind of consumer there is."""

every_place = pytest.mark.parametrize("q", ["consumer", MEMORY, CLUSTER], indirect=True)
"""For tests without a consumer, or with consumers of their own: once on a server, in memory and on
a cluster, and not again for each kind of consumer."""

on_real_servers = pytest.mark.parametrize("q", REAL, indirect=True)
"""For tests that look at the server itself, or at its speed with very many jobs."""


KINDS: dict[str, tuple[dict[str, Any], Callable[[str], dict[str, Any]]]] = {
    "plain": ({}, lambda _id: {}),
    "ttl": ({}, lambda _id: {"ttl": 3600}),
    "groups": ({}, lambda id: {"group": f"of {id}"}),
    "shares": ({}, lambda _id: {"share": "one"}),
    "last value": ({}, lambda id: {"key": f"of {id}"}),
    "selectors": ({"kind": "selectors"}, lambda id: {"labels": {"x": len(id)}}),
}
"""Kinds of queues that are alike in what a test says: how each is configured, and what a job of it
says, by its id."""

_REAL = [(q, "plain") for q in REAL] + [("consumer", kind) for kind in KINDS if kind != "plain"]
_IN_MEMORY = [pytest.param(MEMORY, kind, marks=pytest.mark.long) for kind in KINDS]

every_kind = pytest.mark.parametrize(("q", "kind"), [*_REAL, *_IN_MEMORY], indirect=True)
"""For what holds in a queue of any kind: with each kind of consumer, and in each kind of queue."""

every_kind_in_a_pool = pytest.mark.parametrize(("q", "kind"), _REAL, indirect=True)
"""The same, for tests whose jobs run in processes of their own."""


class QueueFixture:
    """One queue, its consumers, and short words for what tests do with them."""

    def __init__(self, queue: Queue, kind: str = "consumer", url: str = "") -> None:
        self.queue = queue
        self._kind = kind
        self._url = url
        self._consumers: list[Consumer] = []
        self._terms: Callable[[str], dict[str, Any]] = KINDS["plain"][1]

    def become(self, kind: str) -> None:
        """Make the queue one of a kind, with jobs of that kind from now on."""
        configured, self._terms = KINDS[kind]
        if configured:
            self.queue.configure(**configured)

    def put(self, *ids: str, padding: int = 0, **options: Any) -> JobHandle[Any]:
        """Enqueue one job for each id, one after the other; returns the last one's handle."""
        for id in ids:
            terms = {**self._terms(id), **options}
            handle = self.queue.send("t", ["x" * padding], None, Options(id=id, **terms))
        return handle

    def put_all(self, jobs: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Enqueue jobs in one call, each with its options: for what was there before a test
        begins."""
        terms = [(id, {**self._terms(id), **options}) for id, options in jobs]
        self.queue.enqueue_many(
            Call("t", ("",), None, Options(id=id, **options)) for id, options in terms
        )

    def join(self, jobs: int = 100, **options: Any) -> Consumer:
        """A registered consumer, whose lease nobody renews."""
        return self.consumer(jobs=jobs, **options).register()

    def own(self, jobs: int) -> Consumer:
        """As `join`, for steps that no worker makes: with rows of the caller's, or so many jobs."""
        consumer = self.queue.consumer(jobs=jobs, renew=False).register()
        self._consumers.append(consumer)
        return consumer

    def consumer(self, **options: Any) -> Consumer:
        """One that is not registered, of the kind that this test plays with."""
        options = {"renew": False, **options}
        consumer: Consumer = make_driver(self._kind, self.queue, self._url, **options)
        self._consumers.append(consumer)
        return consumer

    def look(self) -> Snapshot:
        return take_snapshot(self.queue.redis, self.queue.keys)

    def listed(self) -> list[str]:
        """The ids of the jobs that wait, as a new browser sees them."""
        browser = self.join(1000, mode="browse")
        seen: list[str] = []
        while page := browser.pull():
            seen += ids(page)
        browser.close()
        return seen

    def state(self, consumer: Consumer) -> str:
        """The list that a consumer is in, whatever it knows itself."""
        return self.look().consumers[consumer.name]["state"]

    def unread(self, consumer: Consumer) -> list[bytes]:
        """The words in a consumer's wake list, which it has not read."""
        return self.look().wakes.get(consumer.name, [])

    def renew(self, *consumers: Consumer, lease_ms: int = 30_000) -> list[str]:
        """What a supervisor does now and then; returns whose lease had ended."""
        names = [consumer.name for consumer in consumers]
        return execute(self.queue.redis, commands.renew(self.queue.keys, lease_ms, names)).gone

    def purge(self) -> int:
        return execute(self.queue.redis, commands.purge(self.queue.keys, 500, scheduled=True))[0]

    def purge_held(self, consumer: Consumer, *ids: str) -> tuple[int, list[str]]:
        return execute(self.queue.redis, commands.purge_held(self.queue.keys, consumer.name, ids))

    def requeue(self, *ids: str) -> int:
        return execute(self.queue.redis, commands.requeue(self.queue.keys, ids))

    def purge_dead(self, *ids: str) -> int:
        return execute(self.queue.redis, commands.purge_dead(self.queue.keys, ids))

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()
        assert not (wrong := invariants.of_state(self.look())), wrong


def ids(jobs: Sequence[Delivery]) -> list[str]:
    return [job.id for job in jobs]
