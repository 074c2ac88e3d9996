"""A primary with one replica, whose process a test may stop."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import redis

from tests.support.redis_server import Servers
from tests.support.sentinels import port_of, until


class WithReplica:
    """`url` is the primary's, `primary` and `replica` are clients of both."""

    def __init__(self, servers: Servers, name: str, **config: object) -> None:
        config["repl-diskless-sync-delay"] = 0
        self.servers = [servers.make(name, port=0, config=config).start() for _ in range(2)]
        self.primary, self.replica = (redis.Redis.from_url(one.url) for one in self.servers)
        self.attach()

    @property
    def url(self) -> str:
        return self.servers[0].tcp_url

    def attach(self) -> None:
        """Make the second server a replica of the first, and wait until it is up to date."""
        self.primary.execute_command("REPLICAOF", "NO", "ONE")
        self.replica.execute_command("REPLICAOF", "127.0.0.1", port_of(self.servers[0]))
        until(lambda: self.replica.info("replication")["master_link_status"] == "up", "a replica")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """While the replica's process is stopped: it stays connected, and confirms nothing."""
        pid = self.servers[1].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        for client in (self.primary, self.replica):
            client.close()
        for server in reversed(self.servers):
            server.kill()  # a request would be waited for, by a primary for its replicas
            server.stop()


def blocked(server: redis.Redis) -> bool:
    """Whether a client waits for a confirmation on this server."""
    return any(
        "b" in one["flags"] and one["cmd"] in ("wait", "waitaof") for one in server.client_list()
    )
