"""Exit codes: of a pool, and of each of its worker processes. `docs/workers.md` explains them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """How a pool, or one worker process, ended."""

    OK = 0
    """Drained: every job that was started was finished (or the worker was recycled)."""
    APP = 1
    """The application is at fault: a module cannot be imported, ..."""
    USAGE = 2
    """The command line, an option, the pool file or a variable is wrong."""
    UNFINISHED = 3
    """Drained, but jobs that were running had to be released, to be run again elsewhere."""
    REDIS = 4
    """Redis cannot be used: not reachable at start, too old, evicts keys, refuses the login; or a
    queue takes no further consumer."""
    BROKEN = 71
    """Of a worker: a job closed file descriptors that are not its own."""
    INTERNAL = 70
    """A bug in rqueue; the log has the traceback."""
