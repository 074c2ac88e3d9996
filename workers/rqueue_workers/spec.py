"""What a pool is made of, and what the supervisor tells each worker process it forks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rqueue.errors import ConfigError
from rqueue.model.labels import ALL
from rqueue.model.shard_table import home
from rqueue.settings import Settings

BODIES = ("none", "failed", "all")
"""Whose envelopes the history records: nobody's, those of attempts that did not succeed, or all."""


HOMES = 2
"""Shards of a queue that a worker process is at home in."""

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")


def check_weights(weights: Mapping[str, int], queues: Collection[str]) -> None:
    """Raises ConfigError if one is of a queue that is not among those which a pool serves."""
    for name in weights:
        if name not in queues:
            served = ", ".join(queues)
            raise ConfigError("weights", f"the pool does not serve {name!r}; it serves {served}")


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One worker process: which tasks, which queues, how many slots, when to go.

    app: modules to import for their tasks. queues: names, in the order that `strict` serves them,
    () = those that the tasks name;
    without `strict` they are served in turn. weights: by queue, its parts of the slots for each one
    of another; 1 for those that are not named. shards: those of the queues that are shards -> the
    queue that is spread over them. threads, async_slots: jobs run at once in threads, and on the
    event loop (both beside the one sync slot of the main thread, which is used when `threads` is
    0). priority: the consumers' priority. prefetch: jobs held at most per queue, 0 = as many as are
    about 50 ms of work. select: an expression over labels, "" = all jobs. max_jobs, max_rss: leave
    after so many jobs, or above so many bytes of memory, when the running job is done; 0 = never.
    max_crashes: how often a job may cost a worker its process, where neither it nor its task says
    so; 0 = as often as the queue says. drain: seconds that running jobs get after the first
    SIGTERM. history_bodies: whose envelopes the history holds, none, failed (attempts that did not
    succeed) or all. history_labels: names of the labels and headers that its rows keep, "*" for all
    labels.
    """

    settings: Settings
    app: tuple[str, ...]
    queues: tuple[str, ...]
    threads: int = 0
    async_slots: int = 100
    strict: bool = False
    weights: Mapping[str, int] = field(default_factory=dict)
    shards: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    prefetch: int = 0
    select: str = ""
    max_jobs: int = 0
    max_rss: int = 0
    max_crashes: int = 0
    drain: float = 30.0
    time_limit: float = 0.0
    soft_time_limit: float = 0.0
    history_bodies: str = "none"
    history_labels: tuple[str, ...] = ALL
    name: str = ""

    def queue_of(self, name: str) -> str:
        """The queue that people know, of one that is served: of a shard the one that is spread."""
        return self.shards.get(name, name)

    def priority_in(self, name: str, worker: str) -> int:
        """The consumer priority of a worker in one of the queues: lower by one in the shards where
        it is not at home, from which it takes jobs only while those who are have no room."""
        queue = self.shards.get(name)
        if queue is None:
            return self.priority
        numbers = {
            int(shard.rpartition("~")[2]) for shard, of in self.shards.items() if of == queue
        }
        at_home = int(name.rpartition("~")[2]) in home(worker, numbers, HOMES)
        return self.priority if at_home else self.priority - 1

    @property
    def slots(self) -> int:
        """Jobs that one process can run at once."""
        return max(1, self.threads) + self.async_slots


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """A pool: a supervisor and `processes` workers like `worker`.

    pidfile: where the supervisor writes its process id. quiet: log warnings only. log_level: the
    least level that rqueue's own loggers say, "" = as `quiet` says. log_format: text or json, ""
    = text. patience: seconds that Redis may be unreachable at the start before the pool gives up
    (later it waits for ever).
    grace: seconds between the end of `drain` and SIGKILL for a worker that is still there.
    respawn_delays: seconds before the place of a worker that died at once is filled again, by how
    often in a row that happened.
    """

    worker: WorkerSpec
    processes: int = 2
    pidfile: str = ""
    quiet: bool = False
    log_level: str = ""
    log_format: str = ""
    patience: float = 5.0
    grace: float = 2.0
    respawn_delays: tuple[float, ...] = field(default=(0.0, 0.1, 0.5, 1.0, 2.0, 5.0))
