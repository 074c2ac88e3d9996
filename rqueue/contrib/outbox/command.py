"""What the command lines of outboxes do: SQLAlchemy's, and Django's `manage.py rqueue_outbox`."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Sequence

from rqueue.cli.output import echo
from rqueue.contrib.outbox.relay import Relay
from rqueue.contrib.outbox.store import OutboxStore
from rqueue.text.numbers import many

__all__ = ["print_status", "retry", "run_relay"]


def run_relay(relay: Relay, *, once: bool) -> None:
    """Move jobs until a signal says to stop; `once`: what is there now. Raises ConfigError where
    nothing says where the queues are."""
    relay.queue("default")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    if once:
        echo(f"{many(relay.move_all(), 'job')} moved")
        return
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    relay.run(stop)


def print_status(store: OutboxStore) -> int:
    """Say what is in the outbox; the exit code, 1 where jobs are refused."""
    counts = store.counts()
    for queue, count in counts.waiting:
        echo(f"{queue}: {many(count, 'job')} to be sent")
    for job in counts.refused:
        echo(f"{job.queue}: job {job.id} is refused: {job.problem}")
    if not counts.waiting and not counts.refused:
        echo("the outbox is empty")
    return 1 if counts.refused else 0


def retry(store: OutboxStore, ids: Sequence[str], *, drop: bool) -> int:
    """Let refused jobs be sent again, or delete them; the exit code, 1 where there is none."""
    count = store.retry(ids, drop=drop)
    echo(f"{many(count, 'job')} {'dropped' if drop else 'to be sent again'}")
    return 0 if count else 1
