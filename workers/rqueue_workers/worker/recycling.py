"""When a worker process makes room for a fresh one: after so many jobs, or grown too large."""

from __future__ import annotations

import os
import resource
from time import monotonic

from rqueue.model.locks import new_lock
from rqueue.text.numbers import many

LOOK_S = 0.1


class Recycling:
    """max_jobs, max_rss (bytes): 0 = never. `active`: whether there is anything to watch. `reason`
    says which it was. Jobs count when they begin: what follows the last one is left to others."""

    def __init__(self, max_jobs: int, max_rss: int) -> None:
        self.active = max_jobs > 0 or max_rss > 0
        self.reason = ""
        self._max_jobs = max_jobs
        self._max_rss = max_rss
        self._look_at = 0.0
        self._begun = 0
        self._lock = new_lock()

    def room(self, most: int) -> int:
        """How many of `most` jobs may begin."""
        return min(most, max(0, self._max_jobs - self._begun)) if self._max_jobs else most

    def began(self, count: int) -> None:
        """So many jobs began, within what `room` said."""
        if self._max_jobs:
            with self._lock:
                self._begun += count

    def admits(self) -> bool:
        """Whether one more job may begin; then it has. From any thread."""
        if not self._max_jobs:
            return True
        with self._lock:
            if self._begun >= self._max_jobs:
                return False
            self._begun += 1
            return True

    def due(self) -> bool:
        """Whether to go."""
        if self._max_jobs and self._begun >= self._max_jobs:
            self.reason = f"it has begun {many(self._begun, 'job')}"
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
