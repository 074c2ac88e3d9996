"""Connections to databases around jobs: Django closes old ones around requests, and a worker has
none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from asgiref.sync import sync_to_async
from django.db import connections

__all__ = ["around_async_job", "around_job", "close_old_connections"]


def close_old_connections() -> None:
    """Close this thread's connections that have outlived CONN_MAX_AGE or cannot be used any more,
    and forget the queries that DEBUG has logged.

    One with a transaction under way is left alone, which Django's own function does not do: inside
    of a TestCase nothing is closed, and jobs of one event loop, whose database work is done by one
    thread, do not end each other's transactions.
    """
    for connection in connections.all(initialized_only=True):
        connection.queries_log.clear()
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


@contextmanager
def around_job() -> Iterator[None]:
    """Around a job of a sync task, in its own thread."""
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()


@asynccontextmanager
async def around_async_job() -> AsyncIterator[None]:
    """Around a job of an async task: its database work is done in the thread of `sync_to_async`."""
    close = sync_to_async(close_old_connections, thread_sensitive=True)
    await close()
    try:
        yield
    finally:
        await close()
