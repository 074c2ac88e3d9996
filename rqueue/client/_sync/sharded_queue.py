# Generated from rqueue/client/_async/sharded_queue.py (`make generate`): do not edit.
"""One queue that is spread over several: over more than one core, or more than one server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.putter import BackgroundPuts
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.shard_changes import ShardChanges
from rqueue.client._sync.shard_transaction import ShardTransaction
from rqueue.errors import ConfigError
from rqueue.model.cancellation import Cancellation
from rqueue.model.expect import expect
from rqueue.model.ids import check_id
from rqueue.model.job import Delivery
from rqueue.model.job_count import JobCount
from rqueue.model.job_filter import ANY, JobFilter
from rqueue.model.shard_table import check_spread
from rqueue.protocol import commands
from rqueue.protocol.job_packer import Call
from rqueue.protocol.shard_sums import sum_of, turn_of
from rqueue.settings import Settings
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import NO_OPTIONS, Options
from rqueue.tasks.request import JobRequest

if TYPE_CHECKING:
    import redis

__all__ = ["ShardedQueue"]

P = ParamSpec("P")
R = TypeVar("R")


class ShardedQueue(ShardChanges):
    """A queue that is spread over shards: `orders~0`, `orders~1`, ..., each an ordinary queue, in a
    slot of a cluster or on a server of its own.

    shards: how many it begins with, where it has none yet. The others as for `Queue`; `redis`,
    `url` say where the table of shards is.

    A job goes where its `key` says, else its group, its unique key, or the id that was given to it;
    where there is none of these, into the shorter one of two shards. What has one key keeps its
    order, also while shards come and go. `Queue("orders")` and tasks with queue="orders"
    enqueue in the same way; what is of one queue (priorities, a pause, a limit, the order of jobs
    without keys) holds in each shard for itself.
    """

    def __init__(
        self,
        name: str,
        url: str | None = None,
        *,
        shards: int | None = None,
        redis: redis.Redis | None = None,
        namespace: str | None = None,
        signing_keys: dict[str, str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        queue = Queue(
            check_spread(name),
            url,
            redis=redis,
            namespace=namespace,
            signing_keys=signing_keys,
            settings=settings,
        )
        super().__init__(queue, shards)
        self.name = name

    # -- enqueue -----------------------------------------------------------------------------------

    @overload
    def enqueue(
        self, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[R]: ...
    @overload
    def enqueue(self, task: str, /, *args: Any, **kwargs: Any) -> JobHandle[Any]: ...
    def enqueue(
        self, task: BoundTask[..., Any] | str, /, *args: Any, **kwargs: Any
    ) -> JobHandle[Any]:
        """Enqueue one call of a task; see `Queue.enqueue`."""
        self._known()
        return self._queue.enqueue(task, *args, **kwargs)

    def send(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        options: Options = NO_OPTIONS,
    ) -> JobHandle[Any]:
        """Enqueue one call of a task by name, with options."""
        self._known()
        return self._queue.send(task, args, kwargs, options)

    def enqueue_many(
        self, calls: Iterable[Call], *, max_wait: float | None = None
    ) -> list[JobHandle[Any]]:
        """Enqueue many calls: of some hundred those of a shard in one step. On an error the steps
        before it are done; see `Queue.enqueue_many`."""
        self._known()
        return self._queue.enqueue_many(calls, max_wait=max_wait)

    @property
    def target(self) -> str:
        """The queue's name: where a task's jobs go with `task.options(sender=...)`."""
        return self.name

    def enqueue_request(self, request: JobRequest) -> JobHandle[Any]:
        """Enqueue what a task asks for (`rqueue.tasks.enqueuer.Enqueuer`)."""
        self._known()
        return self._queue.enqueue_request(request)

    def transaction(self, key: str, consumer: Consumer | None = None) -> ShardTransaction:
        """Several enqueues of jobs with this key, and with a consumer of its shard what became of
        jobs there, as one step; see `ShardTransaction`."""
        expect("key", key, str, "a text")
        if not key:
            raise ConfigError("key", "it says in which shard the step is made")
        return ShardTransaction(self._queue, self, key, consumer)

    def putter(self, **options: Any) -> BackgroundPuts:
        """Background puts: enqueue without waiting; see `Queue.putter`."""
        self._known()
        return self._queue.putter(**options)

    # -- jobs --------------------------------------------------------------------------------------

    def job(self, id: str) -> JobHandle[Any]:
        """The handle of a job enqueued before; looks for it in all shards. A job that none of them
        knows is in the shard that its id says."""
        return JobHandle(self._shards.holder(check_id(id)), id)

    def cancel(self, id: str, **how: Any) -> Cancellation:
        """Cancel a job, in whichever shard it is; see `Queue.cancel`."""
        return (self._shards.holder(id)).cancel(id, **how)

    def browse(self, which: JobFilter = ANY) -> Iterator[Delivery]:
        """The jobs that wait, those of all shards in one sequence: by priority, then by when they
        were enqueued. Each shard is read in its order, while its jobs come and go."""
        pages = [queue._listed(which) for queue in self.queues()]
        heads = []
        for index, page in enumerate(pages):
            for first in page:
                heads.append((turn_of(first.job), index, first.job))
                break
        while heads:
            heads.sort()
            _, index, job = heads.pop(0)
            yield job
            for following in pages[index]:
                heads.append((turn_of(following.job), index, following.job))
                break

    # -- all shards --------------------------------------------------------------------------------

    def queues(self) -> list[Queue]:
        """The queues of the shards that may have jobs: to consume from, and to look at."""
        return [self._shards.at(shard) for shard in (self.table()).served]

    def counts(self) -> commands.Counts:
        """All shards in numbers: sums, looked at one after the other. What closed ones have counted
        is among them, unless they were on other servers, which may be gone."""
        there = (self.table()).counted
        return sum_of([self._shards.at(shard).counts() for shard in there])

    def pause(self) -> bool:
        """Deliver nothing from now on, in any shard; True if that is a change in one."""
        return any([queue.pause() for queue in self.queues()])

    def resume(self) -> bool:
        """Deliver again, in all shards; True if that is a change in one."""
        return any([queue.resume() for queue in self.queues()])

    def cancel_all(self, which: JobFilter = ANY) -> JobCount:
        """Cancel all jobs that wait and fit, in all shards."""
        done = JobCount()
        for queue in self.queues():
            done += queue.cancel_all(which)
        return done

    def configure(self, **options: Any) -> None:
        """Set options of each shard, as `Queue.configure` does: numbers hold for one shard. A
        shard that opens later gets them where this is called again."""
        for queue in self.queues():
            queue.configure(**options)

    def close(self) -> None:
        """Close the connections that this queue opened."""
        self._queue.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ShardedQueue {self.name!r} over {self._queue!r}>"
