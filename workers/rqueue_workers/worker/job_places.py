"""Where the jobs of a worker process are; what has not begun is taken back from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rqueue_workers.worker.attempt import Attempts
from rqueue_workers.worker.current_job import CurrentJob
from rqueue_workers.worker.executors.base import Executor, Job
from rqueue_workers.worker.flight import Held
from rqueue_workers.worker.isolation import Isolation
from rqueue_workers.worker.subscription import Subscription, Unstarted
from rqueue_workers.worker.task_plans import THREAD


class JobPlaces:
    """Where a worker's jobs are: in a subscription, in an executor, or alone. Used under the
    dispatcher's lock."""

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        executors: dict[int, Executor],
        attempts: Attempts,
        slot: CurrentJob,
    ) -> None:
        self.subscriptions = list(subscriptions)
        self.executors = executors
        self.closing = False
        """No more jobs are pulled."""
        self.slot = slot
        self.isolation = Isolation(subscriptions, executors, slot)
        self._attempts = attempts
        self._threaded = THREAD in executors

    def release_unstarted(self) -> None:
        """What has not begun is to go back, wherever it waits. With the lock held."""
        for executor in self.executors.values():
            executor.release_unstarted()
        for subscription in self.subscriptions:
            subscription.release_unstarted()
            taken = self.isolation.take(subscription)
            subscription.back.extend((id_, value) for id_, value, _ in taken)

    def _take_unstarted(self, subscription: Subscription) -> list[Unstarted]:
        jobs = subscription.take_unstarted()
        for executor in self.executors.values():
            waiting = executor.take_unstarted()
            jobs += [
                (job.id, job.value, job.acquired)
                for job in waiting
                if job.subscription is subscription
            ]
            executor.submit([job for job in waiting if job.subscription is not subscription])
        return jobs + self.isolation.take(subscription)

    def _revoke(self, subscription: Subscription, id: bytes, force: str = "") -> None:
        """A job was cancelled: it does not begin any more. force: what is to become of its code
        where it runs, "stop" or "kill"; what was wanted before is raised by it, never lowered."""
        if self._escalated(subscription, id, force):
            return
        if id not in subscription.unsettled and not subscription.reporting(id):
            if subscription.flight is not None:  # it may be in the reply
                subscription.stops.late.append((id, force))
            elif force:
                subscription.stops.ended(id)
            return
        # first: a slot that takes it on meanwhile looks here when others can see what it runs
        subscription.cancelled.add(id)
        if force:
            subscription.stops.wanted[id] = force
        subscription.drop(id)
        if self._withdrawn(subscription, id):
            subscription.cancelled.discard(id)
            subscription.stops.refused(id)
            return
        subscription.reports.settled([id])
        self._pass_on(subscription, id, force)

    def _taken_away(self, subscription: Subscription, id: bytes) -> None:
        """A job is not held any more: where its code runs, it is that of a job that was
        cancelled."""
        if self._runs_here(subscription, id):
            subscription.cancelled.add(id)
            subscription.reports.settled([id])
            self._pass_on(subscription, id, "")

    def _runs_here(self, subscription: Subscription, id: bytes) -> bool:
        """Whether a job runs, in an executor or the main thread."""
        return any(id == one for one, _ in self.running_in(subscription))

    def _escalated(self, subscription: Subscription, id: bytes, force: str) -> bool:
        """Whether a job that was cancelled before is still here: more is to become of its code."""
        stops = subscription.stops
        # before the look at what runs: a slot that takes it on meanwhile takes it from here
        known = id in subscription.cancelled
        for executor, job in self._runs_in(subscription, id):
            if known or job.cancelled:
                if stops.raises(id, force, job.force):
                    executor.revoke(job)
                return True
        if known and stops.raises(id, force):
            self._pass_on(subscription, id, force)
        return known

    def _pass_on(self, subscription: Subscription, id: bytes, force: str) -> None:
        """Tell where a job that was cancelled runs what is to become of its code."""
        for executor, job in self._runs_in(subscription, id):
            executor.revoke(job)
            return
        if force == "kill":
            subscription.condemn(id)
        self.slot.revoke(subscription, id)

    def _runs_in(self, subscription: Subscription, id: bytes) -> Iterator[tuple[Executor, Job]]:
        """The executor that runs a job, and what it has of it; nothing for the main thread."""
        for executor in self.executors.values():
            for job in list(executor.running.values()):
                if job.subscription is subscription and job.id == id:
                    yield executor, job

    def _withdrawn(self, subscription: Subscription, id: bytes) -> bool:
        """Whether a job that was cancelled had not begun, and never does."""
        if self.isolation.take(subscription, id):
            return True
        for entry in list(subscription.todo):
            if entry[0] == id:
                try:
                    subscription.todo.remove(entry)
                    return True
                except ValueError:
                    break  # it has just begun
        for executor in self.executors.values():
            for job in list(executor.todo):
                if job.subscription is subscription and job.id == id:
                    job.cancelled = True
                    try:
                        executor.todo.remove(job)
                        return True
                    except ValueError:
                        break
        return False

    def running_in(self, subscription: Subscription) -> set[Held]:
        """A subscription's jobs that run, as they were delivered."""
        jobs = set()
        running = self.slot.job
        if running is not None and running[0] is subscription:
            jobs.add(running[1:3])
        for executor in self.executors.values():
            jobs |= {
                (job.id, job.value)
                for job in list(executor.running.values())
                if job.subscription is subscription
            }
        return jobs

    @property
    def idle(self) -> bool:
        """Whether nothing waits, begins or runs in executors: a job that has a slot there may not
        be seen to run yet."""
        return all(executor.idle for executor in self.executors.values())

    @property
    def running(self) -> int:
        """Jobs that run in executors."""
        return sum(len(executor.running) for executor in self.executors.values())
