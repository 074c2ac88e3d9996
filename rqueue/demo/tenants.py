"""The work of `rqueue demo --spark`: two tenants have files of Python's library looked at.

The files lie on a storage that now and then needs two tries, and that is away for a while: as long
as a file named by `VARIABLE` exists. Some files are no Python; no retry helps them.
"""

from __future__ import annotations

import ast
import lzma
import os
import warnings
import zlib
from pathlib import Path

from rqueue.tasks.context import current_job
from rqueue.tasks.decorator import task
from rqueue.tasks.retry import RetryPolicy

PARSE, SQUEEZE = "demo-parse", "demo-squeeze"
QUEUES = (PARSE, SQUEEZE)
TENANTS = ("alpha", "beta")
VARIABLE = "RQUEUE_DEMO_OUTAGE"

_PATIENCE = RetryPolicy(max_deliveries=3, delay=0.5, give_up_on=[SyntaxError])


class StorageSlow(TimeoutError):
    """The storage did not answer in time; it will."""


class StorageAway(ConnectionError):
    """The storage is away."""


def fetch(path: str) -> bytes:
    """Read a file from the storage: one in 12 comes at the second try, one in 3 not at all while it
    is away. Raises StorageSlow and StorageAway."""
    lot = zlib.crc32(path.encode())
    outage = os.environ.get(VARIABLE)
    if outage is not None and lot % 3 == 0 and os.path.exists(outage):
        raise StorageAway("connection refused")
    job = current_job()
    if lot % 12 == 1 and job is not None and job.attempts == 0:
        raise StorageSlow("no answer within 100 ms")
    return Path(path).read_bytes()


@task(name="demo.parse", queue=PARSE, retry=_PATIENCE)
def parse(path: str) -> int:
    """How many nodes the syntax tree has. Raises SyntaxError, and what `fetch` raises."""
    source = fetch(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escapes in old modules are not our subject
        try:
            return sum(1 for _ in ast.walk(ast.parse(source, path)))
        except ValueError as error:  # bytes that are no text
            raise SyntaxError(str(error)) from None


@task(name="demo.squeeze", queue=SQUEEZE, retry=_PATIENCE)
def squeeze(path: str) -> int:
    """How small it gets, in bytes. Raises what `fetch` raises."""
    return len(lzma.compress(fetch(path), preset=2))
