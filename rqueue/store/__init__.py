"""The only door to Redis: one function per script. Each builds a `Call` and knows how to read the
reply; nothing here does I/O, so the sync and the asyncio client share all of it."""

from rqueue.store.admin import (
    cancel,
    configure,
    pause,
    promote,
    purge,
    purge_dead,
    requeue,
    resume,
    unpark,
)
from rqueue.store.call import Call
from rqueue.store.consumers import interest, reclaim, register, renew, unregister
from rqueue.store.enqueue import (
    Accepted,
    Note,
    Put,
    commit_write,
    enqueue,
    enqueue_alike,
    enqueue_flat,
)
from rqueue.store.read import (
    Awaited,
    Counts,
    await_result,
    browse,
    browse_set,
    counts,
    show,
)
from rqueue.store.repair import (
    check_job,
    check_page,
    check_scan,
    repair_consumer,
    repair_job,
    repair_leftovers,
    repair_meta,
)
from rqueue.store.settle import Pulled, Retried, Window, pull, settle

__all__ = [
    "Accepted",
    "Awaited",
    "Call",
    "Counts",
    "Note",
    "Pulled",
    "Put",
    "Retried",
    "Window",
    "await_result",
    "browse",
    "browse_set",
    "cancel",
    "check_job",
    "check_page",
    "check_scan",
    "commit_write",
    "configure",
    "counts",
    "enqueue",
    "enqueue_alike",
    "enqueue_flat",
    "interest",
    "pause",
    "promote",
    "pull",
    "purge",
    "purge_dead",
    "reclaim",
    "register",
    "renew",
    "repair_consumer",
    "repair_job",
    "repair_leftovers",
    "repair_meta",
    "requeue",
    "resume",
    "settle",
    "show",
    "unpark",
    "unregister",
]
