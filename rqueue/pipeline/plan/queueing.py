"""How long jobs wait before so many workers: the queueing model of `plan`.

The queue is a GI/G/c: arrivals of rate λ whose times between have the squared coefficient of
variation ca² (1 = Poisson, more = bursts), c workers that each run one job at a time, runs of mean
E[S] and squared coefficient of variation cs², first come first served. Load a = λ·E[S] workers,
ρ = a/c.

- Who would wait if all were memoryless: Erlang's C(c, a).
- Mean wait, Allen-Cunneen (Kingman's bound made exact for M/M/c and M/G/1):
  E[W] ≈ (ca² + cs²)/2 · C(c, a) / (c/E[S] − λ)
- The share π of jobs that wait: Whitt (1993, "Approximations for the GI/G/m queue"), which bends
  Erlang's C by the burstiness; with γ = (1−ρ)·√c and Q(x) = 1 − Φ(x) of the normal distribution:
  π = ρ²·π4 + (1−ρ²)·π5, each of them at most 1,
  π4 = C·Q((1+cs²)·γ / (ca²+cs²)) / Q(γ),  π5 = C·Q(2γ / (1+ca²)) / Q(γ)
- Waits of those who wait are taken as exponential, as they are in M/M/c and in heavy traffic:
  P(W > t) ≈ π·exp(−t/τ),  τ = (ca² + cs²)/2 / (c/E[S] − λ)
  hence the quantile q of the wait: τ·ln(π/(1−q)), and 0 where π ≤ 1−q.

Exact for M/M/c; the mean is exact for M/G/1. Elsewhere it is an approximation, and `simulate` says
how good a one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rqueue.errors import ConfigError

__all__ = [
    "MAX_WORKERS",
    "Load",
    "delay_probability",
    "erlang_c",
    "mean_wait",
    "wait_quantile",
    "workers_for",
]

MAX_WORKERS = 20_000
"""Beyond this no single queue is planned."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load: `rate` jobs per second, `run` seconds each on average, and the squared
    coefficients of variation of the times between arrivals and of the runs. Raises ConfigError."""

    rate: float
    run: float
    arrivals_cv2: float = 1.0
    runs_cv2: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rate", "run"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(name, f"{getattr(self, name)!r} is not a positive number")
        for name in ("arrivals_cv2", "runs_cv2"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(name, f"{getattr(self, name)!r} is not 0 or a positive number")

    @property
    def erlangs(self) -> float:
        """Workers that are busy on average: below as many the queue grows without end."""
        return self.rate * self.run

    def times(self, factor: float) -> Load:
        """The same jobs, `factor` times as many of them."""
        return Load(self.rate * factor, self.run, self.arrivals_cv2, self.runs_cv2)

    @property
    def spread(self) -> float:
        """How much longer waits are than where everything were memoryless: (ca² + cs²)/2."""
        return (self.arrivals_cv2 + self.runs_cv2) / 2


def erlang_c(workers: int, erlangs: float) -> float:
    """The share of jobs that wait in M/M/c; 1 where the load is `workers` or more."""
    if erlangs >= workers:
        return 1.0
    blocked = 1.0  # Erlang's B, by its recursion, which neither overflows nor cancels
    for count in range(1, workers + 1):
        blocked = erlangs * blocked / (count + erlangs * blocked)
    return blocked / (1 - erlangs / workers * (1 - blocked))


def delay_probability(load: Load, workers: int) -> float:
    """The share of jobs that wait at all."""
    base = erlang_c(workers, load.erlangs)
    if base == 1.0 or not base:
        return base
    busy = load.erlangs / workers
    slack = (1 - busy) * math.sqrt(workers)
    below = _tail(slack)
    if below < 1e-300:  # so many idle workers that the ratios below are 0/0, and no job waits
        return base
    both = load.arrivals_cv2 + load.runs_cv2
    heavy = _tail((1 + load.runs_cv2) * slack / both) / below if both else 0.0
    light = _tail(2 * slack / (1 + load.arrivals_cv2)) / below
    return busy**2 * min(1.0, base * heavy) + (1 - busy**2) * min(1.0, base * light)


def mean_wait(load: Load, workers: int) -> float:
    """Seconds a job waits on average; infinite where the load is `workers` or more."""
    return erlang_c(workers, load.erlangs) * _tau(load, workers)


def wait_quantile(load: Load, workers: int, quantile: float) -> float:
    """Seconds that the share `quantile` of jobs waits at the most; infinite as in `mean_wait`."""
    tau = _tau(load, workers)
    if math.isinf(tau):
        return tau
    waiting = delay_probability(load, workers)
    return tau * math.log(waiting / (1 - quantile)) if waiting > 1 - quantile else 0.0


def workers_for(load: Load, target: float, quantile: float) -> int:
    """The fewest workers with which `wait_quantile` is at most `target` seconds.

    Raises ConfigError beyond `MAX_WORKERS`.
    """
    fewest = math.floor(load.erlangs) + 1
    if fewest > MAX_WORKERS:
        raise ConfigError(
            "load", f"{load.erlangs:,.0f} workers would be busy all the time: split the queue"
        )
    low, high = fewest, min(fewest * 2 + 8, MAX_WORKERS)
    while wait_quantile(load, high, quantile) > target:
        if high == MAX_WORKERS:
            raise ConfigError("target", f"{MAX_WORKERS:,} workers would not hold it")
        low, high = high, min(high * 2, MAX_WORKERS)
    while low < high:
        middle = (low + high) // 2
        if wait_quantile(load, middle, quantile) > target:
            low = middle + 1
        else:
            high = middle
    return low


def _tau(load: Load, workers: int) -> float:
    spare = workers / load.run - load.rate
    return load.spread / spare if spare > 0 else math.inf


def _tail(x: float) -> float:
    """1 − Φ(x), also far out."""
    return math.erfc(x / math.sqrt(2)) / 2
