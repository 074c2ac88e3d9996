"""Periodic jobs that the application's code declares: said to the queue by each worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from rqueue.errors import ConfigError
from rqueue.logs import logger
from rqueue.model.envelope import pack
from rqueue.model.ids import shortened
from rqueue.model.schedule import Timing
from rqueue.model.schedule_info import ScheduleInfo
from rqueue.model.signing import Signer
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.schedules import declare_none, declare_schedule, read_schedules
from rqueue.protocol.course import Calls, run_course
from rqueue.protocol.exchange import KNOWN
from rqueue.protocol.job_packer import terms_of
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN, schedules
from rqueue.protocol.scheduling import stored
from rqueue.tasks.task import Task

__all__ = ["Declaration", "declarations_of", "declare", "declaring"]


log = logger("rqueue.worker")


class Declaration(NamedTuple):
    """A schedule that the decorator of a task declares."""

    name: str
    task: str
    queue: str
    timing: Timing
    terms: str
    job: str


def declarations_of(task: Task[Any, Any]) -> Iterator[Declaration]:
    """What a task declares; nothing if it is not periodic."""
    for one in task.schedules:
        if one.timing is None:
            continue
        # with the unique key that a call of it has
        request = task.request(task.defaults, one.args, one.kwargs)
        job = pack(task.name, one.args, one.kwargs, request.options.to_opts()).decode()
        name, terms = one.name or task.name, terms_of(request.options)
        yield Declaration(name, task.name, task.queue, one.timing, terms, job)


def declaring(
    keys: QueueKeys,
    consumer: str,
    term: str,
    app: str,
    declarations: Iterable[Declaration],
    signer: Signer | None,
) -> Calls[None]:
    """Say to a queue what code declares for it, for as long as this consumer lives (A-46)."""
    mine = [one for one in declarations if one.queue == keys.queue]
    if not mine:
        if schedules.POLICY.name in KNOWN.get(keys.meta, PLAIN).policies:
            yield declare_none(keys, consumer, term, app)
        return
    now = (yield read_schedules(keys)).now
    for name, task, queue, timing, terms, job in mine:
        info = ScheduleInfo(name, queue, task, timing, terms=terms, job=job)
        said = stored(signer, info, timing, now, "active", anew=True)
        hash = shortened(blake2b(info.body, digest_size=12).digest())
        try:
            yield declare_schedule(keys, consumer, term, app, name, hash, said)
        except ConfigError as error:
            log.error("queue %s takes no schedule '%s' of task %s: %s", queue, name, task, error)


def declare(
    run: Callable[[ScriptCall[Any]], Any],
    keys: QueueKeys,
    consumer: str,
    term: str,
    app: str,
    declarations: Iterable[Declaration],
    signer: Signer | None,
) -> None:
    """`declaring`, in one go. Raises the server errors."""
    run_course(declaring(keys, consumer, term, app, declarations, signer), run)
