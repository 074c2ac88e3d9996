"""Pages of waiting jobs: where the next one begins, whatever happened to the list meanwhile."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rqueue.client._sync.queue import Queue
from rqueue.protocol import commands
from rqueue.protocol.commands.enqueue import Put
from rqueue.transport.redis_client import execute
from tests.support.redis_server import Servers

JOBS = 40


@pytest.fixture(scope="module")
def queue(servers: Servers) -> Iterator[Queue]:
    with Queue("browsed-by-page", servers.get("newest").url) as queue:
        yield queue


def page(queue: Queue, cursor: str, limit: int) -> commands.read.Page:
    return execute(queue.redis, commands.browse(queue.keys, cursor, limit))


@settings(max_examples=60)
@given(
    before=st.integers(1, JOBS),
    limit=st.integers(1, 20),
    gone=st.sets(st.integers(0, JOBS - 1)),
    hint=st.integers(0, 2 * JOBS),
)
def test_the_index_in_a_cursor_changes_nothing(
    queue: Queue, before: int, limit: int, gone: set[int], hint: int
) -> None:
    keys = queue.keys
    queue.redis.delete(*queue.redis.keys(keys.base + "*"), "none")
    queue.enqueue_puts([Put(f"j{n:02}", b'["t"]', 4 if n % 3 else 9) for n in range(JOBS)])
    order = sorted(range(JOBS), key=lambda n: (bool(n % 3), n))
    first = page(queue, "", min(before, 500))
    assert [job.id for job in first.jobs] == [f"j{n:02}" for n in order[:before]]
    for n in gone:
        # off the list, as a worker takes them
        queue.redis.lrem(keys.ready(4 if n % 3 else 9), 1, f"j{n:02}")
    wanted = [f"j{n:02}" for n in order[before:] if n not in gone][:limit]
    for cursor in (
        first.cursor,
        re.sub(r"@\d+", f"@{hint}", first.cursor),
        re.sub(r"@\d+", "", first.cursor),
    ):
        assert [job.id for job in page(queue, cursor, limit).jobs] == wanted, cursor


def test_a_list_may_be_left_out(queue: Queue) -> None:
    queue.redis.delete(*queue.redis.keys(queue.keys.base + "*"), "none")
    queue.enqueue_puts([Put(f"j{n}", b'["t"]', level) for n, level in enumerate([9, 4, 9, 4])])
    found = page(queue, "9r-", 10)
    assert [job.id for job in found.jobs] == ["j1", "j3"]
    assert "9r-" in found.cursor.split(",")
    assert page(queue, found.cursor, 10).jobs == []
