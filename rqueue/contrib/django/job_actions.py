"""What may be done on the admin page with jobs, and with a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rqueue.client._sync.queue import Queue
from rqueue.client.default_queues import queue as default_queue
from rqueue.contrib.django.conf import conf
from rqueue.inspector import DeadFilter, Inspector
from rqueue.logs import logger
from rqueue.text.numbers import many

__all__ = ["ACTIONS", "Action", "inspector", "of_state"]

log = logger("rqueue.django")

LIVE = ("ready", "blocked", "scheduled", "parked", "deferred", "held")


@contextmanager
def inspector() -> Iterator[Inspector]:
    """An inspector over the process's own connections. Raises ConfigError."""
    conf()
    root = default_queue()
    with Inspector(redis=root.redis, settings=root.settings) as found:
        yield found


class Action(NamedTuple):
    """One of them. states: of the jobs that it is for; none for one of queues. do: returns how many
    jobs it changed, or whether the queue. past: what the jobs, or the queue, are then."""

    label: str
    states: tuple[str, ...]
    do: Callable[[Inspector, Queue, Sequence[str]], int]
    past: str

    @property
    def of_queue(self) -> bool:
        """Whether it is done to a queue."""
        return not self.states

    def run(self, inspector: Inspector, queue: str, ids: Sequence[str], user: str) -> int:
        """Do it; who did it is logged."""
        each = []
        for part in inspector.parts(queue):
            client = Queue(part.name, redis=part.client, settings=inspector.settings)
            each.append(self.do(inspector, client, ids))
        done = any(each) if self.of_queue else sum(each)
        log.info("%s: %s in queue %s: %d of %s", user, self.label, queue, done, list(ids) or "it")
        return done

    def said(self, queue: str, done: int, wanted: int) -> str:
        """What became of it, for who pressed the button: jobs may have gone on meanwhile."""
        if self.of_queue:
            return f"Queue {queue} {'is' if done else 'was already'} {self.past}."
        if done == wanted:
            return f"{many(done, 'job')} {self.past}."
        return (
            f"{done} of {many(wanted, 'job')} {self.past}: a job that went on or ended meanwhile is"
            " left alone."
        )


def _requeue(inspector: Inspector, queue: Queue, ids: Sequence[str]) -> int:
    return inspector.requeue_dead(queue.name, DeadFilter(ids=tuple(ids)))


def _promote(inspector: Inspector, queue: Queue, ids: Sequence[str]) -> int:
    return queue.promote(*ids)


def _cancel(inspector: Inspector, queue: Queue, ids: Sequence[str]) -> int:
    return sum(bool(queue.cancel(id)) for id in ids)


ACTIONS = {
    "requeue": Action("Requeue", ("dead",), _requeue, "requeued"),
    "promote": Action("Run now", ("scheduled", "parked"), _promote, "made ready"),
    "cancel": Action("Cancel", LIVE, _cancel, "cancelled"),
    "pause": Action("Pause", (), lambda inspector, queue, ids: queue.pause(), "paused"),
    "resume": Action("Resume", (), lambda inspector, queue, ids: queue.resume(), "running"),
}
"""By the names that a form sends."""


def of_state(state: str) -> list[tuple[str, str]]:
    """Names and labels of what may be done with jobs in a state."""
    return [(name, action.label) for name, action in ACTIONS.items() if state in action.states]
