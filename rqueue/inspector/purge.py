"""End many jobs: those that wait, and those that consumers hold."""

from __future__ import annotations

from collections.abc import Callable

import redis

from rqueue.inspector.consumers import held_by_consumer
from rqueue.inspector.queues import queue_info
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import CANCELLED_FROM, SLICE
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute

Progress = Callable[[int], None]


def purge_waiting(
    client: redis.Redis, keys: QueueKeys, *, scheduled: bool, progress: Progress
) -> int:
    """End the jobs that are ready or blocked now, and the scheduled ones too if asked; returns how
    many. What is enqueued meanwhile is not pursued."""
    info = queue_info(client, keys)
    left = info.ready + info.blocked + (info.scheduled if scheduled else 0)
    done, more = 0, True
    while more and left > 0:
        call = commands.purge(keys, min(left, SLICE), scheduled=scheduled)
        ended, more = execute(client, call, queue=keys.queue)
        left -= ended
        done += ended
        progress(done)
    return done


def purge_held(client: redis.Redis, keys: QueueKeys, *, progress: Progress) -> int:
    """End the jobs that consumers hold now (X-04), also those that are released before it is
    their turn; returns how many."""
    done = 0
    # all of them first: jobs that a consumer acquires later are not pursued
    for name, ids in held_by_consumer(client, keys).items():
        for start in range(0, len(ids), SLICE):
            call = commands.purge_held(keys, name, ids[start : start + SLICE])
            ended, elsewhere = execute(client, call, queue=keys.queue)
            done += ended
            for id in elsewhere:
                was = execute(client, commands.cancel(keys, id, purge=True), queue=keys.queue)
                done += was in CANCELLED_FROM
            progress(done)
    return done
