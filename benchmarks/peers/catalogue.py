"""The peers: what to install for each, and which adapter runs it. Every one gets an environment of
its own, because each pins another version of redis-py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """name: as people know it. needs: requirements of its environment. adapter: its module."""

    name: str
    adapter: str
    needs: tuple[str, ...]
    environment: str

    @property
    def package(self) -> str:
        """The distribution whose version is reported."""
        return self.needs[0].partition("[")[0]


def _peer(name: str, adapter: str, *needs: str, environment: str = "") -> Peer:
    return Peer(name, f"benchmarks.peers.adapters.{adapter}", needs, environment or name)


# hiredis wherever the peer's client can use it, and uvloop for the asyncio ones: what each one's
# documentation recommends for production, and what makes it faster
PEERS = {
    peer.name: peer
    for peer in (
        _peer("dramatiq", "dramatiq_", "dramatiq[redis]", "hiredis"),
        _peer("huey", "huey_", "huey", "redis", "hiredis"),
        _peer("rq", "rq_", "rq", "hiredis"),
        _peer("rq-no-fork", "rq_no_fork", "rq", "hiredis", environment="rq"),
        _peer("celery", "celery_", "celery[redis]", "hiredis"),
        _peer("taskiq", "taskiq_", "taskiq", "taskiq-redis", "hiredis", "uvloop"),
        _peer("saq", "saq_", "saq[redis,hiredis]", "typing_extensions", "uvloop"),
        _peer("arq", "arq_", "arq", "hiredis", "uvloop"),
        _peer("streaq", "streaq_", "streaq", "uvloop"),
    )
}
