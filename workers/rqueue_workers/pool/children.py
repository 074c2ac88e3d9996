"""Forking a child of the supervisor: a worker, or what imports the application for its queues."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from rqueue_workers.exit_codes import Exit
from rqueue_workers.pool.signals import Inbox, Lifeline

__all__ = ["forked"]


def forked(
    inbox: Inbox,
    lifeline: Lifeline,
    close: Callable[[], None],
    body: Callable[[], int],
    failed: Callable[[], None] = lambda: None,
) -> int:
    """Fork a child that ends with the code that `body` returns; its process id.

    close: called in it first, to drop the supervisor's connections. failed: called in it if
    anything raises.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # what is here now is shared with the child, as long as nobody touches it
    with inbox.held_back():
        pid = os.fork()
        if pid == 0:
            _live(inbox, lifeline, close, body, failed)
    with suppress(OSError):  # the child does it too; either may come first
        os.setpgid(pid, pid)
    return pid


def _live(
    inbox: Inbox,
    lifeline: Lifeline,
    close: Callable[[], None],
    body: Callable[[], int],
    failed: Callable[[], None],
) -> None:
    code = int(Exit.INTERNAL)
    try:
        # its own group: a hard limit ends what its jobs started too, and Ctrl-C is for the
        # supervisor alone
        os.setpgid(0, 0)
        close()
        inbox.forget_in_child()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        lifeline.follow()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        code = body()
    except BaseException:  # nothing may get past here into the supervisor's own code
        failed()
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
