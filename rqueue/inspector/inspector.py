"""The door to everything an operator wants to know of a namespace, or do to its queues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

import redis

from rqueue.errors import UnknownJob, UnknownQueue
from rqueue.inspector import dead_letters as dead_
from rqueue.inspector import history as history_
from rqueue.inspector import jobs as jobs_
from rqueue.inspector import queues as queues_
from rqueue.inspector import stats as stats_
from rqueue.inspector.consumers import ConsumerInfo, list_consumers
from rqueue.inspector.doctor.doctor import Doctor
from rqueue.inspector.groups import GroupOwners, group_owners
from rqueue.inspector.purge import purge_held, purge_waiting
from rqueue.model.alert import Alert
from rqueue.model.job_info import JobInfo
from rqueue.model.log_line import LogLine
from rqueue.protocol.commands.alert_notes import kept_alerts
from rqueue.protocol.commands.reports import log_lines
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.transport.discovery import with_url
from rqueue.transport.key_scan import FoundQueues, find_queues, queue_names
from rqueue.transport.nodes import missing_error, node_of
from rqueue.transport.redis_client import execute, open_client, require_bytes


class Inspector:
    """All queues of one namespace. Making one costs nothing: it connects at its first command.

    url: where Redis is; default RQUEUE_URL, else the development server of this folder. redis: an
    open redis-py client instead. Raises ConfigError without any, and the server errors of
    `rqueue.errors` from every method.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        redis: redis.Redis | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        given = Settings.of(settings, url=url, namespace=namespace)
        self._owns = redis is None
        if redis is not None:
            require_bytes(redis)
            self.redis = redis
        else:
            given = with_url(given)
            assert given.url
            self.redis = open_client(
                given.url,
                socket_connect_timeout=given.connect_timeout,
                # followers wait for some seconds inside one command
                socket_timeout=given.command_timeout + history_.BLOCK_MS / 1000,
            )
        self.settings = given

    def keys(self, queue: str) -> QueueKeys:
        """The keys of a queue of this namespace. Raises InvalidName."""
        return QueueKeys(queue, self.settings.namespace)

    # -- queues ------------------------------------------------------------------------------------

    def queue_names(self) -> list[str]:
        """Names of all queues, sorted; found by SCAN, so it costs with the keys on the server.
        Raises ConnectionLost where a node of a cluster cannot be asked: some are not all."""
        return queue_names(self.redis, self.settings.namespace)

    def find_queues(self) -> FoundQueues:
        """Names of all queues and the nodes of a cluster that they are on, and those nodes that
        could not be asked for theirs."""
        return find_queues(self.redis, self.settings.namespace)

    def node_of(self, queue: str) -> str:
        """The node of a cluster that a queue is on, as host and port; "" where there is one server
        alone."""
        return node_of(self.redis, self.keys(queue))

    def queues(self) -> list[queues_.QueueInfo]:
        """All queues in numbers, by name."""
        found = []
        for name in self.queue_names():
            # what is left of a deleted one is none
            with suppress(UnknownQueue):
                found.append(queues_.queue_info(self.redis, self.keys(name)))
        return found

    def queue(self, name: str) -> queues_.QueueInfo:
        """One queue in numbers. Raises UnknownQueue."""
        return queues_.queue_info(self.redis, self.keys(name))

    def require_queue(self, name: str) -> QueueKeys:
        """The keys of a queue that exists. Raises UnknownQueue."""
        keys = self.keys(name)
        queues_.require_queue(self.redis, keys)
        return keys

    def purge(
        self,
        queue: str,
        *,
        ready: bool = True,
        scheduled: bool = False,
        held: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """End jobs that wait: each leaves a record and a row in history. Returns how many.

        ready: those that wait now (what is enqueued meanwhile may be spared, and is not pursued).
        scheduled: the scheduled ones too. held: also those that consumers hold: their workers
        learn of it, and their later settling changes nothing (X-04). Raises UnknownQueue.
        """
        keys = self.require_queue(queue)
        say = progress or (lambda _done: None)
        done = 0
        if ready or scheduled:
            done = purge_waiting(self.redis, keys, scheduled=scheduled, progress=say)
        if held:
            before = done
            done += purge_held(self.redis, keys, progress=lambda more: say(before + more))
        return done

    # -- jobs --------------------------------------------------------------------------------------

    def jobs(
        self, queue: str, state: str = "ready", after: str = "", limit: int = 100
    ) -> jobs_.Page:
        """A page of the jobs in one state; see `rqueue.inspector.jobs.jobs_page`. Raises
        UnknownQueue and ConfigError."""
        return jobs_.jobs_page(self.redis, self.require_queue(queue), state, after, limit)

    def all_jobs(self, queue: str, state: str = "ready") -> Iterator[JobInfo]:
        """All jobs in one state, page by page. Raises UnknownQueue and ConfigError."""
        return jobs_.all_jobs(self.redis, self.require_queue(queue), state)

    def job(self, id: str, queue: str | None = None) -> jobs_.Look:
        """One job by its id; without a queue it is looked for in all of them. Raises UnknownJob,
        UnknownQueue, and ConfigError where several queues have a job of this id."""
        if queue is not None:
            return jobs_.look_at_job(self.redis, self.require_queue(queue), id)
        found = self.find_queues()
        try:
            return jobs_.find_job(self.redis, [self.keys(name) for name in found.nodes], id)
        except UnknownJob:
            if found.missing:  # it may be there
                raise missing_error(self.redis, found.missing) from None
            raise

    def alerts(self, queue: str) -> list[Alert]:
        """The last hundred alerts of a queue, the earliest first (Q-72). Raises UnknownQueue."""
        return execute(self.redis, kept_alerts(self.require_queue(queue)))

    def log(self, id: str, queue: str | None = None) -> list[LogLine]:
        """The lines that a job has logged, oldest first, as far as they are kept. Raises as
        `job`."""
        found = self.job(id, queue).job
        return execute(self.redis, log_lines(self.keys(found.queue), id))

    # -- consumers ---------------------------------------------------------------------------------

    def consumers(self, queue: str) -> list[ConsumerInfo]:
        """All consumers of a queue, by name. Raises UnknownQueue."""
        return list_consumers(self.redis, self.require_queue(queue))

    def group_owners(self, queue: str) -> GroupOwners:
        """Which consumers own the groups of a queue, where these are sticky. Raises
        UnknownQueue."""
        return group_owners(self.redis, self.require_queue(queue))

    # -- dead letters ------------------------------------------------------------------------------

    def dead(self, queue: str, which: dead_.DeadFilter = dead_.ANY) -> Iterator[JobInfo]:
        """The dead letters that fit, oldest first. Raises UnknownQueue."""
        return dead_.dead_letters(self.redis, self.require_queue(queue), which)

    def requeue_dead(
        self,
        queue: str,
        which: dead_.DeadFilter = dead_.ANY,
        progress: dead_.Progress | None = None,
    ) -> int:
        """Give the dead letters that fit another life at the tail of their levels, their attempts
        counted from nothing; returns how many. Raises UnknownQueue."""
        return dead_.requeue_dead(self.redis, self.require_queue(queue), which, progress)

    def purge_dead(
        self,
        queue: str,
        which: dead_.DeadFilter = dead_.ANY,
        progress: dead_.Progress | None = None,
    ) -> int:
        """Drop the dead letters that fit for good; returns how many. Raises UnknownQueue."""
        return dead_.purge_dead(self.redis, self.require_queue(queue), which, progress)

    # -- history and numbers -----------------------------------------------------------------------

    def history(self, queue: str, since: str = "-", until: str = "+") -> Iterator[history_.Row]:
        """Rows of history from oldest to newest; see `rqueue.inspector.history`. Raises
        UnknownQueue."""
        return history_.read_history(self.redis, self.require_queue(queue), since, until)

    def last_rows(self, queue: str, count: int) -> tuple[list[history_.Row], str]:
        """The last rows of history, and where a follower goes on. Raises UnknownQueue."""
        return history_.last_rows(self.redis, self.require_queue(queue), count)

    def follow_history(self, queue: str, after: str = "$") -> Iterator[list[history_.Row]]:
        """Rows of history as they are written, for ever. Raises UnknownQueue."""
        return history_.follow_history(self.redis, self.require_queue(queue), after)

    def stats(
        self,
        queue: str,
        interval: float = 1.0,
        wait: Callable[[float], None] = time.sleep,
        first: queues_.QueueInfo | None = None,
    ) -> stats_.Stats:
        """Rates and latencies between two looks, `interval` seconds apart. Raises UnknownQueue."""
        return stats_.measure(self.redis, self.keys(queue), interval, wait, first)

    def doctor(self, *, wait: Callable[[float], None] = time.sleep) -> Doctor:
        """Checks the server and its queues, and repairs them when asked."""
        return Doctor(self.redis, self.settings.namespace, wait=wait)

    # -- life --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections that this inspector opened."""
        if self._owns:
            self.redis.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
