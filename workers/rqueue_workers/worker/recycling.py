"""When a worker process makes room for a fresh one: after so many jobs, or grown too large."""

from __future__ import annotations

import os
import resource
from time import monotonic

from rqueue.text.numbers import many

LOOK_S = 0.1


class Recycling:
    """max_jobs, max_rss (bytes): 0 = never. `active`: whether there is anything to watch. `reason`
    says which it was."""

    def __init__(self, max_jobs: int, max_rss: int) -> None:
        self.active = max_jobs > 0 or max_rss > 0
        self.reason = ""
        self._max_jobs = max_jobs
        self._max_rss = max_rss
        self._look_at = 0.0

    def due(self, done: int) -> bool:
        """Whether to go, after `done` jobs."""
        if self._max_jobs and done >= self._max_jobs:
            self.reason = f"it has run {many(done, 'job')}"
            return True
        if self._max_rss:
            now = monotonic()
            if now >= self._look_at:
                self._look_at = now + LOOK_S
                if (rss := resident()) > self._max_rss:
                    self.reason = f"it uses {rss / 1024**2:.0f} MB of memory"
                    return True
        return False


def resident() -> int:
    """Bytes of memory that this process uses now (its peak, where the system tells no more)."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # no Linux
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if os.uname().sysname == "Darwin" else peak * 1024
