"""What happens to Redis itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import redis

from tests.soak.evidence import ALL
from tests.soak.faults.scene import Fault, Scene
from tests.soak.servers import wait_for

BRIEF = (0.05, 0.6)
"""Seconds that most faults of the server last."""


@contextmanager
def _setting(scene: Scene, name: str, value: str, back: str) -> Iterator[redis.Redis]:
    with scene.field.server.admin as admin:
        admin.config_set(name, value)
        try:
            yield admin
        finally:
            admin.config_set(name, back)


def _killed(lasting: Callable[[Scene], float], rewriting: bool = False) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        server = scene.field.server.master
        if rewriting:
            with scene.field.server.admin as admin, suppress(redis.ResponseError):
                admin.bgrewriteaof()
        with scene.away(ALL):
            server.kill()
            scene.wait(lasting(scene))
            server.start()

    return act


def _brief(scene: Scene) -> float:
    return scene.draw.uniform(*BRIEF)


def _frozen(lasting: Callable[[Scene], float]) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        with scene.away(ALL):
            scene.freeze([scene.field.server.master.pid], lasting(scene))

    return act


def _sleeps(scene: Scene) -> None:
    with scene.away(ALL), scene.field.server.admin as admin:
        admin.execute_command("DEBUG", "SLEEP", f"{_brief(scene):.2f}")


def _endless_script(scene: Scene) -> None:
    """A stranger's script does not end: Redis answers BUSY to everybody, until it is killed."""

    def run() -> None:
        with scene.field.server.admin as admin, suppress(redis.RedisError):
            admin.eval("while true do end", 0)

    with scene.away(ALL), scene.field.server.admin as admin:
        script = threading.Thread(target=run)
        script.start()
        scene.wait(0.3 + _brief(scene))
        while script.is_alive():
            with suppress(redis.RedisError):
                admin.script_kill()
            script.join(0.02)


def _replica(scene: Scene) -> None:
    """Demoted, without a master that could be reached, and promoted again."""
    with scene.field.server.admin as admin, scene.away(ALL):
        admin.replicaof("127.0.0.1", 1)
        try:
            scene.wait(_brief(scene))
        finally:
            admin.replicaof("NO", "ONE")


def _failover(scene: Scene) -> None:
    """To a real replica, which has everything, and back."""
    server = scene.field.server
    old = server.master
    with server.replica() as replica:
        with scene.away(ALL):
            server.fail_over(replica)
        scene.wait(1 + _brief(scene))
        with scene.away(ALL):
            server.fail_over(old)


def _out_of_memory(scene: Scene) -> None:
    with scene.away("writes"), _setting(scene, "maxmemory", "1mb", "0"):
        scene.wait(_brief(scene))


def _disk_full(scene: Scene) -> None:
    """Snapshots fail, so that Redis refuses writes (MISCONF): their file cannot be written."""
    folder = scene.field.server.master.directory / "full.rdb"
    folder.mkdir(exist_ok=True)
    with scene.away(ALL), _setting(scene, "dbfilename", folder.name, "dump.rdb") as admin:
        with suppress(redis.ResponseError):  # a rewrite is under way: it comes behind it
            admin.bgsave()
        wait_for(lambda: admin.info("persistence")["rdb_last_bgsave_status"] == "err")
        admin.config_set("save", "3600 1")
        try:
            scene.wait(_brief(scene))
        finally:
            admin.config_set("save", "")


def _paused(scene: Scene) -> None:
    seconds = _brief(scene)
    with scene.away(ALL), scene.field.server.admin as admin:
        admin.execute_command("CLIENT", "PAUSE", round(seconds * 1000), "ALL")
        scene.wait(seconds)


def _no_more_clients(scene: Scene) -> None:
    """Those that are connected lose their connection, and no other is taken for a while."""
    with scene.away(ALL), scene.field.server.admin as admin:
        most = str(admin.config_get("maxclients")["maxclients"])
        with _setting(scene, "maxclients", "1", most) as holding:
            holding.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            scene.wait(_brief(scene))


def _forgets_scripts(scene: Scene) -> None:
    with scene.field.server.admin as admin:
        admin.script_flush()


def _hangs_up(share: float) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        with scene.field.server.admin as admin:
            for client in admin.client_list():
                if scene.draw.random() < share:
                    with suppress(redis.RedisError):
                        admin.execute_command("CLIENT", "KILL", "ID", client["id"])

    return act


def _long(scene: Scene) -> float:
    return scene.lease * 1.6


def _at_once(_scene: Scene) -> float:
    return 0.0


SERVER_FAULTS = (
    Fault("redis-kill", "server", _killed(_at_once), 2),
    Fault("redis-kill-brief", "server", _killed(_brief), 2),
    Fault("redis-kill-long", "server", _killed(_long), 0.3),
    Fault("redis-kill-rewrite", "server", _killed(_at_once, rewriting=True)),
    Fault("redis-freeze", "server", _frozen(_brief)),
    Fault("redis-freeze-long", "server", _frozen(_long), 0.2),
    Fault("redis-sleep", "server", _sleeps),
    Fault("redis-script", "server", _endless_script, 2),
    Fault("redis-replica", "server", _replica, 2),
    Fault("redis-failover", "server", _failover, 0.7),
    Fault("redis-memory", "server", _out_of_memory, 2),
    Fault("redis-disk", "server", _disk_full),
    Fault("redis-pause", "server", _paused),
    Fault("redis-full", "server", _no_more_clients),
    Fault("redis-forget", "server", _forgets_scripts, 2),
    Fault("redis-hangup", "server", _hangs_up(1.0), 2),
    Fault("redis-hangup-some", "server", _hangs_up(0.3), 2),
)
