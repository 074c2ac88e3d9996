"""What jobs and operators do: poison, forks, unknown tasks, cancel, purge, pause, damage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count

import redis

from rqueue.client._sync.queue import Queue
from rqueue.errors import RQueueError
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.options import Options
from tests.soak.faults.scene import Fault, NoTarget, Scene

PUBLISHER = "soak"
_numbers = count(1)
_lock = threading.Lock()

HEADERS = (b"abc,def;", b"", b"1;", b"-1,2,x;", b"\xff\xfe,\x00;", b"1,2,3,4,5,6,7,8;")
BODIES = (b'["x",[],{"a":"b"}]', b"", b"{", b"\x00\xff")
"""What a damaged value begins with (no header has eight numbers), and ends with."""


def _enqueue(
    scene: Scene, queue: str, task: str, args: tuple[object, ...], options: dict[str, object]
) -> str:
    """Enqueue a job of the soak's own; its id."""
    with _lock:
        number = next(_numbers)
    id_ = f"{PUBLISHER}-{number}"
    facts = {"publisher": PUBLISHER, "number": number, "id": id_, "queue": queue, "way": "soak"}
    scene.field.recorder.write("sent", task=task, delay=0, how=args[-1] if args else "", **facts)
    with scene.field.queue(queue) as box:
        try:
            box.send(task, (PUBLISHER, number, *args), options=Options(id=id_, **options))
        except RQueueError as error:
            scene.field.recorder.write("unknown", error=type(error).__name__, **facts)
            raise NoTarget from error
    scene.field.recorder.write("accepted", **facts)
    return id_


def _job(how: str, queue: str = "main") -> Callable[[Scene], None]:
    options: dict[str, object] = {"max_deliveries": 3} if how.startswith("die") else {}
    return lambda scene: _enqueue(scene, queue, "soak.step", (0.01, how), options) and None


def _unknown(scene: Scene) -> None:
    _enqueue(scene, "side", "soak.late", (), {})


def _cancelled(scene: Scene) -> None:
    """A job that waits or is held."""
    queue = scene.draw.choice(("main", "side", "own"))
    delay = scene.draw.choice((0, 0, 500))
    options: dict[str, object] = {"delay_ms": delay} if delay else {}
    id_ = _enqueue(scene, queue, "soak.step", (0.05, ""), options)
    scene.wait(scene.draw.uniform(0, 0.05))
    # a client that asks and gets no answer has asked all the same
    scene.field.recorder.write("cancelling", queue=queue, id=id_)
    with scene.field.queue(queue) as box:
        try:
            box.cancel(id_)
        except RQueueError as error:
            raise NoTarget from error


def _purged(scene: Scene) -> None:
    scene.field.recorder.write("purging", queue="side")
    try:
        with scene.field.inspector() as inspector:
            inspector.purge("side", scheduled=scene.draw.random() < 0.5)
    except RQueueError as error:
        raise NoTarget from error


def _paused(scene: Scene) -> None:
    queue = scene.field.queue(scene.draw.choice(("main", "order", "own", "side")))
    try:
        queue.pause()
        scene.wait(scene.draw.uniform(0.1, 0.6))
    except RQueueError as error:
        raise NoTarget from error
    finally:
        resume(scene, queue)


def resume(scene: Scene, queue: Queue) -> None:
    """Resume a queue, if Redis can be asked; the end resumes all of them."""
    try:
        queue.resume()
    except RQueueError as error:
        scene.field.recorder.write("not resumed", queue=queue.name, said=str(error))
    queue.close()


def _damaged(scene: Scene) -> None:
    """A value that no script of ours wrote, at the tail of a list."""
    with _lock:
        id_ = f"damaged-{next(_numbers)}"
    queue = scene.draw.choice(("main", "side", "order", "own"))
    value = scene.draw.choice(HEADERS) + scene.draw.choice(BODIES)
    with scene.field.server.admin as admin:
        keys = QueueKeys(queue)
        pipe = admin.pipeline(transaction=True)
        pipe.hset(keys.jobs, id_, value)
        pipe.rpush(keys.ready(4), id_)
        try:
            pipe.execute()
        except redis.RedisError as error:
            raise NoTarget from error
    scene.field.recorder.write("damaged", queue=queue, id=id_)


JOB_FAULTS = (
    Fault("job-exit", "jobs", _job("die-exit"), 0.3),
    Fault("job-segv", "jobs", _job("die-segv"), 0.3),
    Fault("job-oom", "jobs", _job("die-kill"), 0.3),
    Fault("job-fork-exit", "jobs", _job("fork-exit"), 2),
    Fault("job-fork-return", "jobs", _job("fork-return"), 2),
    Fault("job-unknown", "jobs", _unknown, 1),
    Fault("queue-cancel", "jobs", _cancelled, 5),
    Fault("queue-purge", "jobs", _purged, 1),
    Fault("queue-pause", "jobs", _paused, 2),
    Fault("queue-damage", "jobs", _damaged, 1),
)
