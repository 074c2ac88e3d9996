"""The door to everything an operator wants to know of a namespace, or do to its queues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import merge
from types import TracebackType
from typing import Any, Self, cast

import redis

from rqueue.errors import QueueSharded, UnknownJob, UnknownQueue
from rqueue.inspector import dead_letters as dead_
from rqueue.inspector import ended_jobs as ended_
from rqueue.inspector import history as history_
from rqueue.inspector import jobs as jobs_
from rqueue.inspector import queues as queues_
from rqueue.inspector import stats as stats_
from rqueue.inspector.cancelling import CancelAnswer, cancel_jobs, with_workflows
from rqueue.inspector.consumers import ConsumerInfo, list_consumers
from rqueue.inspector.doctor.doctor import Doctor
from rqueue.inspector.following import BLOCK_MS, follow
from rqueue.inspector.groups import GroupOwners, group_owners
from rqueue.inspector.parked import parked_among
from rqueue.inspector.parts import Part, Parts, Places
from rqueue.inspector.purge import purge_held, purge_waiting
from rqueue.model.alert import Alert
from rqueue.model.expect import expect
from rqueue.model.job_info import JobInfo
from rqueue.model.log_line import LogLine
from rqueue.protocol.commands.alert_notes import kept_alerts
from rqueue.protocol.commands.reports import log_lines
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.transport.asked_ahead import AskedAhead
from rqueue.transport.discovery import with_url
from rqueue.transport.key_scan import FoundQueues, find_queues, queue_names
from rqueue.transport.nodes import missing_error, node_of
from rqueue.transport.redis_client import execute, open_client, require_bytes
from rqueue.transport.silent_servers import SilentServers


class Inspector:
    """All queues of one namespace. Making one costs nothing: it connects at its first command.

    What is asked of a queue that is spread is asked of all its shards, on whichever servers, and
    raises ConnectionLost, which names the shard, where one cannot be asked. A shard may be named
    too.

    url: where Redis is; default RQUEUE_URL, else the development server of this folder. redis: an
    open redis-py client instead. silent: where the servers are noted that gave no answer, which are
    not asked again then; of a program that looks once and ends. Raises ConfigError without a
    server, and the server errors of `rqueue.errors` from every method.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        redis: redis.Redis | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
        silent: SilentServers | None = None,
    ) -> None:
        if silent is not None:
            expect("silent", silent, SilentServers, "a SilentServers of rqueue.transport")
        self.silent = silent
        given = Settings.of(settings, url=url, namespace=namespace)
        self._owns = redis is None
        if redis is not None:
            require_bytes(redis)
            self.redis = redis
        else:
            given = with_url(given)
            assert given.url
            self.redis = self._open(given.url, given)
        self.settings = given
        self._places = Places(self.redis, given.namespace, lambda url: self._open(url, given))
        self._ahead = AskedAhead(self.redis)
        self._ahead_places = self._places.over(cast(Any, self._ahead))

    def _open(self, url: str, settings: Settings) -> redis.Redis:
        client = open_client(
            url,
            socket_connect_timeout=settings.connect_timeout,
            # followers wait for some seconds inside one command
            socket_timeout=settings.command_timeout + BLOCK_MS / 1000,
        )
        return client if self.silent is None else self.silent.watch(client)

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
        """All queues in numbers, by name; one that is spread is one of them, its shards are not."""
        names = self.queue_names()
        known = self._ahead_places.known(names)
        shards = {part.name for parts in known.values() if parts.table for part in parts}
        found = []
        for name in self.each(names):
            # what is left of a deleted one is none
            with suppress(UnknownQueue):
                if name not in shards:
                    its = known.get(name)
                    parts = self._places.whole(its) if its else self.parts(name)
                    found.append(queues_.info_of_all(parts))
        return found

    def each(self, names: Iterable[str]) -> Iterator[str]:
        """These names, for a caller that asks of each queue the same: it is asked ahead, in one
        round trip. Only for questions: nothing is to be written before the next name."""
        return (keys.queue for keys in self._ahead.each(map(self.keys, names)))

    def queue(self, name: str) -> queues_.QueueInfo:
        """One queue in numbers; of one that is spread the sums of its shards. Raises
        UnknownQueue."""
        return queues_.info_of_all(self.parts(name))

    def survey(self, name: str) -> queues_.Survey:
        """One queue in numbers, each of its shards too, and those that could not be asked. Raises
        UnknownQueue, and ConnectionLost where none could."""
        return queues_.survey(self.parts(name))

    def parts(self, name: str) -> Parts:
        """The queues that a name stands for: the shards of one that is spread, else itself. Raises
        UnknownQueue."""
        return (self._ahead_places if self._ahead.looks else self._places).parts(name)

    def spread(self, names: list[str]) -> dict[str, Parts]:
        """The shards of those of these queues that are spread."""
        return self._places.spread(names)

    def part(self, name: str) -> Part:
        """One queue, wherever it is. Raises UnknownQueue, and QueueSharded where it is spread: then
        its shards are to be named."""
        parts = self.parts(name)
        if parts.table is not None:
            raise QueueSharded(name)
        return parts.found[0]

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
        say = progress or (lambda _done: None)
        total = 0

        def one(part: Part) -> None:
            nonlocal total
            client, keys, before = part.client, part.keys, total

            def so_far(more: int) -> None:
                say(before + more)

            if ready or scheduled:
                total += purge_waiting(client, keys, scheduled=scheduled, progress=so_far)
            if held:
                before = total
                total += purge_held(client, keys, progress=so_far)

        self.parts(queue).all(one)
        return total

    # -- jobs --------------------------------------------------------------------------------------

    def jobs(
        self, queue: str, state: str = "ready", after: str = "", limit: int = 100
    ) -> jobs_.Page:
        """A page of the jobs in one state; see `rqueue.inspector.jobs.jobs_page`. Of a queue that
        is spread shard after shard. Raises UnknownQueue and ConfigError."""
        parts = self.parts(queue)
        if parts.table is None:
            part = parts.found[0]
            return jobs_.jobs_page(part.client, part.keys, state, after, limit)
        return jobs_.page_of_shards(parts, state, after, limit)

    def all_jobs(self, queue: str, state: str = "ready") -> Iterator[JobInfo]:
        """All jobs in one state, page by page; of a queue that is spread shard after shard. Raises
        UnknownQueue and ConfigError."""
        parts = self.parts(queue)

        def found() -> Iterator[JobInfo]:
            for part in parts:
                with parts.named(part):
                    yield from jobs_.all_jobs(part.client, part.keys, state)

        return found()

    def job(self, id: str, queue: str | None = None) -> jobs_.Look:
        """One job by its id; without a queue it is looked for in all of them. Raises UnknownJob,
        UnknownQueue, and ConfigError where several queues have a job of this id."""
        if queue is not None:
            parts = self.parts(queue)
        else:
            found = self.find_queues()
            parts = self._everything(list(found.nodes))
        unknown = UnknownJob(id, queue=queue or "")
        look, missing = jobs_.find_job(parts, id, unknown)
        if look is not None:
            return look
        if missing:  # it may be there
            raise parts.missing_error(missing)
        if queue is None and found.missing:
            raise missing_error(self.redis, found.missing)
        raise unknown

    def cancel(
        self,
        id: str,
        queue: str | None = None,
        *,
        workflow: bool = False,
        held: bool = True,
        running: bool = False,
        kill: bool = False,
        timeout: float = 10.0,
    ) -> list[CancelAnswer]:
        """Cancel a job by its id; what became of it, and of the others that were cancelled.

        - queue: its queue; None: it is searched for in all.
        - workflow: all jobs that it waits for too. With the id of the last call that is the whole
          workflow, through all its queues.
        - held, running, kill: as of `Queue.cancel`. timeout: seconds to wait, for all of them,
          until the code that is to be stopped runs no more.

        Raises UnknownJob.
        """
        found = [self.job(id, queue).job]
        return cancel_jobs(
            self,
            with_workflows(self, found) if workflow else found,
            found if workflow else (),
            held=held,
            running=running,
            kill=kill,
            timeout=timeout,
        )

    def _everything(self, names: list[str]) -> Parts:
        """These queues here, and the shards of those that are spread."""
        places = {name: Part(self.keys(name), self.redis) for name in names}
        for parts in self.spread(names).values():
            places |= {part.name: part for part in parts if part.apart}
        return Parts("", [*places.values()])

    def client_of(self, queue: str) -> redis.Redis:
        """The client of the server that a queue is on, or a shard. Raises UnknownQueue,
        QueueSharded."""
        return self.part(queue).client

    def alerts(self, queue: str) -> list[Alert]:
        """The last hundred alerts of a queue, the earliest first (Q-72); of one that is spread the
        last hundred of each shard. Raises UnknownQueue."""
        found = self.alerts_by_queue(queue).values()
        return sorted((one for some in found for one in some), key=lambda alert: alert.at_ms)

    def alerts_by_queue(self, queue: str) -> dict[str, list[Alert]]:
        """As `alerts`, by the name of the queue, or of the shard."""
        parts = self.parts(queue)
        found = parts.all(lambda part: execute(part.client, kept_alerts(part.keys)))
        return {part.name: some for part, some in zip(parts, found, strict=True)}

    def parked(self, queue: str, ids: Sequence[str]) -> frozenset[str]:
        """Which of these jobs wait for a worker that knows their task. Raises UnknownQueue."""
        found = self.parts(queue).all(lambda part: parked_among(part.client, part.keys, ids))
        return frozenset().union(*found)

    def log(self, id: str, queue: str | None = None) -> list[LogLine]:
        """The lines that a job has logged, oldest first, as far as they are kept. Raises as
        `job`."""
        found = self.part(self.job(id, queue).job.queue)
        return execute(found.client, log_lines(found.keys, id))

    # -- consumers ---------------------------------------------------------------------------------

    def consumers(self, queue: str) -> list[ConsumerInfo]:
        """All consumers of a queue, by name; of one that is spread shard by shard. Raises
        UnknownQueue."""
        found = self.parts(queue).all(lambda part: list_consumers(part.client, part.keys))
        return [one for some in found for one in some]

    def group_owners(self, queue: str) -> GroupOwners:
        """Which consumers own the groups of a queue, where these are sticky. Raises UnknownQueue,
        QueueSharded."""
        part = self.part(queue)
        return group_owners(part.client, part.keys)

    # -- dead letters ------------------------------------------------------------------------------

    def dead(self, queue: str, which: dead_.DeadFilter = dead_.ANY) -> Iterator[JobInfo]:
        """The dead letters that fit, oldest first. Raises UnknownQueue."""
        parts = self.parts(queue)

        def found(part: Part) -> Iterator[JobInfo]:
            with parts.named(part):
                yield from dead_.dead_letters(part.client, part.keys, which)

        return merge(*map(found, parts), key=lambda job: job.ended_ms)

    def requeue_dead(
        self,
        queue: str,
        which: dead_.DeadFilter = dead_.ANY,
        progress: dead_.Progress | None = None,
    ) -> int:
        """Give the dead letters that fit another life at the tail of their levels, their attempts
        counted from nothing; returns how many. Of a queue that is spread each stays in its shard.
        Raises UnknownQueue."""
        return dead_.in_all(dead_.requeue_dead, self.parts(queue), which, progress)

    def purge_dead(
        self,
        queue: str,
        which: dead_.DeadFilter = dead_.ANY,
        progress: dead_.Progress | None = None,
    ) -> int:
        """Drop the dead letters that fit for good; returns how many. Raises UnknownQueue."""
        return dead_.in_all(dead_.purge_dead, self.parts(queue), which, progress)

    # -- history and numbers -----------------------------------------------------------------------

    def history(self, queue: str, since: str = "-", until: str = "+") -> Iterator[history_.Row]:
        """Rows of history from oldest to newest; see `rqueue.inspector.history`. Raises
        UnknownQueue."""
        return history_.all_history(self.parts(queue), since, until)

    def last_rows(self, queue: str, count: int) -> tuple[list[history_.Row], dict[str, str]]:
        """The last rows of history, and where a follower goes on. Raises UnknownQueue."""
        return history_.last_rows(self.parts(queue), count)

    def follow_history(
        self, queue: str, after: Mapping[str, str] | None = None
    ) -> Iterator[list[history_.Row]]:
        """Rows of history as they are written, for ever; see `rqueue.inspector.following`. after:
        from `last_rows`, or of each queue the last entry seen; None: from now. Raises
        UnknownQueue."""
        return follow(self.parts(queue), after, lambda: self.parts(queue))

    def ended_jobs(
        self, queue: str, after: Mapping[str, str] | None = None
    ) -> Iterator[ended_.EndedJobs]:
        """The ends of jobs since a place, in batches, up to now: acks, and every other end,
        whatever its cause. after: of the last batch that was read; None: all that the history has.
        Raises UnknownQueue."""
        return ended_.ended_jobs(self.parts(queue), after)

    def stats(
        self,
        queue: str,
        interval: float = 1.0,
        wait: Callable[[float], None] = time.sleep,
        first: queues_.Survey | None = None,
    ) -> stats_.Stats:
        """Rates and latencies between two looks, `interval` seconds apart. Raises UnknownQueue."""
        parts = self.parts(queue)
        found, second = stats_.measure(parts, interval, wait, first)
        if second.missing:
            raise parts.missing_error(second.missing)
        return found

    def measure(self, queue: str, first: queues_.Survey) -> tuple[stats_.Stats, queues_.Survey]:
        """Rates and latencies since an earlier look, and what is seen now; without the shards that
        cannot be asked, which that names. Raises UnknownQueue."""
        return stats_.measure(self.parts(queue), 0, lambda _seconds: None, first)

    def doctor(self, *, wait: Callable[[float], None] = time.sleep) -> Doctor:
        """Checks the server and its queues, and repairs them when asked."""
        return Doctor(self.redis, self.settings.namespace, wait=wait, places=self._places)

    # -- life --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connections that this inspector opened."""
        self._places.close()
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
