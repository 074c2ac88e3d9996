"""What happens to processes: to single workers, to supervisors, to whole pools, to clients."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.soak.faults.scene import Fault, NoTarget, Scene
from tests.soak.field import DEPLOYED
from tests.soak.programs import Kind, Program

LONG = 1.6
"""Of a lease: how long something lasts that is to outlive leases."""


def _worker(scene: Scene) -> int:
    found = scene.field.a_worker(scene.draw)
    if found is None:
        raise NoTarget
    return found[1]


def _one(scene: Scene, kind: Kind) -> Program:
    running = [program for program in scene.field.keeper.of(kind) if program.pid]
    if not running:
        raise NoTarget
    return scene.draw.choice(running)


def _all_of(pool: Program) -> list[int]:
    return [pool.pid, *pool.children()]


def _worker_dies(number: signal.Signals) -> Callable[[Scene], None]:
    return lambda scene: scene.kill([_worker(scene)], number)


def _short(scene: Scene) -> float:
    return scene.draw.uniform(0.05, 0.4)


def _long(scene: Scene) -> float:
    return scene.lease * LONG


def _pool_killed(scene: Scene) -> None:
    pool = _one(scene, "pool")
    scene.kill(_all_of(pool))


def _pool_signalled(*numbers: signal.Signals) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        pid = _one(scene, "pool").pid
        for number in numbers:
            scene.tell(pid, number)
            scene.wait(0.2)

    return act


def _deployed(scene: Scene) -> None:
    """Newer code, and a rolling restart."""
    pools = [pool for pool in scene.field.pools() if pool.name == DEPLOYED]
    if not pools:
        raise NoTarget
    scene.field.deploy(DEPLOYED)
    scene.tell(pools[0].pid, signal.SIGHUP)


WORKER_FAULTS = (
    Fault("worker-kill", "workers", _worker_dies(signal.SIGKILL), 3),
    Fault("worker-segv", "workers", _worker_dies(signal.SIGSEGV)),
    Fault("worker-abort", "workers", _worker_dies(signal.SIGABRT)),
    Fault("worker-term", "workers", lambda s: s.tell(_worker(s), signal.SIGTERM), 2),
    Fault("worker-pause", "workers", lambda s: s.freeze([_worker(s)], _short(s)), 3),
    Fault("worker-freeze", "workers", lambda s: s.freeze([_worker(s)], _long(s))),
)

POOL_FAULTS = (
    Fault("supervisor-kill", "pools", lambda s: s.kill([_one(s, "pool").pid])),
    Fault("supervisor-freeze", "pools", lambda s: s.freeze([_one(s, "pool").pid], _long(s))),
    Fault("pool-kill", "pools", _pool_killed),
    Fault("pool-freeze", "pools", lambda s: s.freeze(_all_of(_one(s, "pool")), _long(s))),
    Fault("pool-drain", "pools", _pool_signalled(signal.SIGTERM), 2),
    Fault("pool-stop", "pools", _pool_signalled(signal.SIGQUIT), 2),
    Fault("pool-roll", "pools", _pool_signalled(signal.SIGHUP), 2),
    Fault("pool-resize", "pools", _pool_signalled(signal.SIGTTIN, signal.SIGTTOU), 2),
    Fault("pool-report", "pools", _pool_signalled(signal.SIGUSR1)),
    Fault("pool-deploy", "pools", _deployed, 2),
)

CLIENT_FAULTS = (
    Fault("relay-kill", "clients", lambda s: s.kill([_one(s, "relay").pid])),
    Fault("producer-kill", "clients", lambda s: s.kill([_one(s, "producer").pid])),
    Fault("producer-freeze", "clients", lambda s: s.freeze([_one(s, "producer").pid], _short(s))),
    Fault("consumer-kill", "clients", lambda s: s.kill([_one(s, "consumer").pid])),
    Fault("consumer-pause", "clients", lambda s: s.freeze([_one(s, "consumer").pid], _short(s)), 2),
    Fault("consumer-freeze", "clients", lambda s: s.freeze([_one(s, "consumer").pid], _long(s))),
)
