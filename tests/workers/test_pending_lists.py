"""The supervisor's calls to several servers: what one of them does not answer delays no other."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RQueueError
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.read import Counts
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.slots import slot_of
from rqueue.settings import Settings
from rqueue.transport.cluster import cluster_of
from rqueue.transport.connection import Connection
from rqueue.transport.knock import SILENT_S
from rqueue.transport.lease_renewer import RenewalPace
from rqueue.transport.redis_client import open_client
from rqueue.transport.routed_connection import connection_for
from rqueue_workers.pool.pending_commands import PendingCommands
from rqueue_workers.pool.pending_lists import PendingLists, open_lists
from rqueue_workers.spec import WorkerSpec
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.redis_cluster import SmallCluster


class Question:
    """Asks for a queue's counts, again and again."""

    def __init__(self, queue: str, times: int) -> None:
        self.queue = queue
        self.left = times

    def call(self) -> ScriptCall[Counts]:
        return commands.counts(QueueKeys(self.queue))

    def answered(self, _reply: Counts) -> bool:
        self.left -= 1
        return self.left > 0

    def refused(self, error: RQueueError) -> None:
        raise AssertionError(error)


def _until(lists: PendingLists, over: Callable[[], bool]) -> float:
    """What a supervisor's loop does; the longest that a step of it took."""
    end = time.monotonic() + PATIENCE
    readable: list[object] = []
    longest = 0.0
    while True:
        now = time.monotonic()
        lists.step(now, readable)
        longest = max(longest, time.monotonic() - now)
        if over():
            return longest
        assert now < end
        wake_at = lists.wake_at
        pause = 0.1 if wake_at is None else max(0.0, min(0.1, wake_at - now))
        readable, _, _ = select.select(lists.sockets, (), (), pause)


def test_a_server_that_is_silent_delays_no_other(
    server: EmbeddedRedis, client: redis.Redis, queue_name: str
) -> None:
    near, far = f"{queue_name}-near", f"{queue_name}-far"
    found: list[str] = []
    with Proxy(server.url.removeprefix("unix://")) as proxy, open_client(proxy.url) as other:
        lists = PendingLists(
            {
                near: PendingCommands(Connection(client), RenewalPace(3000), 15, near),
                far: PendingCommands(Connection(other, 0.3), RenewalPace(3000), 15, far),
            },
            lambda queue: (_ for _ in ()).throw(AssertionError(queue)),
            found.append,
        )
        first = Question(far, 1)
        lists.add(first)
        _until(lists, lambda: not first.left)
        proxy.hold()
        silent, busy = Question(far, 1), Question(near, 100)
        lists.add(silent)
        lists.add(busy)
        _until(lists, lambda: not busy.left)
        assert lists.gone == [], "it has not been waited for"
        _until(lists, lambda: lists.gone == [far])
        assert not lists.holds(Question), "it is to be done where Redis cannot be used"
        assert silent.left and not lists.idle
        proxy.release()
        _until(lists, lambda: not silent.left)
        assert lists.idle and lists.gone == [] and found == [far]
        lists.close()


def test_a_node_that_hangs_is_not_waited_for_before_there_is_a_connection_to_it(
    make_cluster: Callable[..., SmallCluster], queue_name: str
) -> None:
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    far, near, _ = cluster.queues_everywhere(queue_name)
    hung = cluster.home(far).server.pid
    url = f"redis+cluster://127.0.0.1:{cluster.home(near).port}"
    found: list[str] = []
    lists = open_lists(WorkerSpec(Settings(url=url), (), (far, near)), found.append)
    os.kill(hung, signal.SIGSTOP)
    try:
        silent, busy = Question(far, 1), Question(near, 100)
        for one in (silent, busy):
            lists.add(one)
        steps = _until(lists, lambda: not busy.left)
        steps = max(steps, _until(lists, lambda: lists.gone == [far]))
        assert steps < SILENT_S / 2
    finally:
        os.kill(hung, signal.SIGCONT)
    _until(lists, lambda: not silent.left)
    assert lists.idle and lists.gone == [] and found == [far]
    lists.close()


def test_a_call_that_a_node_sends_to_one_that_hangs_is_not_waited_for(
    make_cluster: Callable[..., SmallCluster], queue_name: str
) -> None:
    """The slot has moved there; it goes on later, and gets the call."""
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    moved, near, _ = cluster.queues_everywhere(queue_name)
    hung = cluster.home(moved).server.pid
    settings = Settings(url=cluster.cluster_url)
    with open_client(cluster.cluster_url) as client:
        known = cluster_of(client)
        known.owner(0)
        known.slots.learn(
            slot_of(QueueKeys(moved).meta), known.place(slot_of(QueueKeys(near).meta))
        )
        found: list[str] = []
        lists = PendingLists(
            {
                queue: PendingCommands(
                    connection_for(client, QueueKeys(queue), 2.0, slot_wait=0.0),
                    RenewalPace(settings.lease_ms),
                    2.0,
                    queue,
                    replaceable=True,
                )
                for queue in (moved, near)
            },
            lambda queue: (_ for _ in ()).throw(AssertionError(queue)),
            found.append,
        )
        silent, busy = Question(moved, 1), Question(near, 100)
        for one in (silent, busy):
            lists.add(one)
        os.kill(hung, signal.SIGSTOP)
        try:
            steps = _until(lists, lambda: lists.gone == [moved] and not busy.left)
            assert steps < SILENT_S / 2
        finally:
            os.kill(hung, signal.SIGCONT)
        _until(lists, lambda: not silent.left)
        assert lists.idle and found == [moved]
        lists.close()


def test_a_node_that_hangs_is_noticed_while_there_is_nothing_to_say(
    make_cluster: Callable[..., SmallCluster], queue_name: str
) -> None:
    """And for as long as it answers nothing is."""
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    far, near, _ = cluster.queues_everywhere(queue_name)
    hung = cluster.home(far).server.pid
    settings = Settings(url=cluster.cluster_url, lease_ms=10_000)
    found: list[str] = []
    lists = open_lists(WorkerSpec(settings, (), (far, near)), found.append)
    questions = Question(far, 1), Question(near, 1)
    for question in questions:
        lists.add(question)
    _until(lists, lambda: not any(question.left for question in questions))
    every = RenewalPace(settings.lease_ms).probe_every
    begun = time.monotonic()
    _until(lists, lambda: time.monotonic() > begun + 3 * every)
    assert lists.idle and lists.gone == [], "it answers"
    os.kill(hung, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        _until(lists, lambda: lists.gone == [far])
        assert time.monotonic() - begun < PATIENCE / 2
    finally:
        os.kill(hung, signal.SIGCONT)
    _until(lists, lambda: not lists.gone)
    assert lists.idle and found == [far]
    lists.close()
