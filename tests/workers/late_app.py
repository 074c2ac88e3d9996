"""Two tasks, one behind the other, for cancels that come late; and what makes them late. A worker
process gets the events as they are when it is forked."""

import re
import threading
from typing import Any

from rqueue.tasks.decorator import task
from tests.support.patience import PATIENCE
from tests.workers.child_app import echo, say

__all__ = ["ASKED", "DUE", "STRUCK", "LateLock", "echo"]

ASKED = threading.Event()
"""A job is about to be interrupted."""
DUE = threading.Event()
"""That may go on now: it is too late."""
STRUCK = threading.Event()
"""It has gone on."""

SLOT = re.compile(r"rqueue-\d+")


class LateLock:
    """The guard of a slot: its own thread has it at once, the one that interrupts later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not SLOT.fullmatch(threading.current_thread().name):
            ASKED.set()
            DUE.wait(PATIENCE)
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if not SLOT.fullmatch(threading.current_thread().name):
            STRUCK.set()


def late(strike: Any) -> Any:
    """The same call, when it is due."""

    def waits(*args: Any) -> None:
        ASKED.set()
        DUE.wait(PATIENCE)
        strike(*args)
        STRUCK.set()

    return waits


@task(name="late.first")
def first(key: str) -> str:
    """Ends while it is being interrupted."""
    say(key, "in")
    ASKED.wait(PATIENCE)
    return "over"


@task(name="late.second")
def second(key: str) -> None:
    """Runs when the interruption comes, and says whether it is hit."""
    try:
        DUE.set()
        STRUCK.wait(PATIENCE)
        for _ in range(100_000):
            pass
    except BaseException as error:
        say(key, type(error).__name__)
        raise
    say(key, "untouched")
