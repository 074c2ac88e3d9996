"""Credit that adapts: how many jobs of an executor to hold, so that it is about 50 ms of work."""

from __future__ import annotations

IN_HAND_S = 0.05
"""Seconds of work that one slot holds."""

MOST = 256
FIRST = 8

ENOUGH, ENOUGH_S = 8, 0.005
"""Jobs, or seconds of work, that teach something: one quick job by itself says little."""


class PrefetchWindow:
    """Learns how long jobs take. `mean`: seconds a job, 0.0 before the first."""

    __slots__ = ("fixed", "jobs", "mean", "seconds", "slots", "window")

    def __init__(self, slots: int = 1, fixed: int = 0) -> None:
        self.slots = slots
        self.fixed = fixed
        self.mean = 0.0
        self.window = fixed or FIRST
        """Jobs to hold unstarted, or for the main thread: to hold at all."""
        self.jobs = 0
        self.seconds = 0.0
        """Jobs, and what they took, that it has still to learn from: the main thread adds to them,
        until it is `ENOUGH`."""

    def learn(self) -> None:
        """Learn from what was added."""
        jobs, seconds = self.jobs, self.seconds
        self.jobs, self.seconds = 0, 0.0
        self.sample(jobs, seconds)

    def sample(self, jobs: int, seconds: float) -> None:
        """Learn from `jobs` that took `seconds` of slots' time together."""
        if not jobs:
            return
        took = seconds / jobs
        mean = self.mean
        if not mean:
            mean = took
        else:
            # one rare long job must not undo what hundreds have taught
            took = min(took, max(8 * mean, 0.002))
            mean += 0.3 * (took - mean)
        self.mean = mean
        if not self.fixed:
            wanted = (
                MOST if mean * MOST <= IN_HAND_S * self.slots else IN_HAND_S * self.slots / mean
            )
            self.window = max(1, min(int(wanted), MOST, 4 * self.window))

    @property
    def patience(self) -> float:
        """Seconds that a job may run before those behind it are released."""
        return max(0.005, min(3 * self.mean, 5.0))
