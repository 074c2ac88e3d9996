"""How far the lake is behind Redis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rqueue.spark.access import Access
from rqueue.spark.history.entries import look, order
from rqueue.spark.history.stream import Offset, backlog

__all__ = ["Lag", "measure"]


@dataclass(frozen=True, slots=True)
class Lag:
    """The rest that is not archived yet: how many rows of history, and the age of the oldest
    one."""

    rows: int
    seconds: float


def measure(access: Access, reached: Mapping[str, str]) -> Lag:
    """The lag of a stream that has reached these offsets. Raises what Redis fails with."""
    with access.client() as client:
        names = sorted(reached)
        ends = look(client, access, names)
        now = {name: str(Offset(end.last, end.rows)) for name, end in ends.items()}
        oldest: list[int] = []
        for name in names:
            after = Offset.of(reached[name]).entry
            if order(ends[name].last) > order(after):
                found: Any = client.xrange(access.keys(name).history, f"({after}", count=1)
                oldest += [order(id.decode())[0] for id, _ in found]
        if not oldest:
            return Lag(0, 0.0)
        seconds, micros = server_time(client, access, names[0])
        return Lag(backlog(reached, now), max(0.0, seconds + micros / 1e6 - min(oldest) / 1000))


def server_time(client: Any, access: Access, queue: str) -> tuple[int, int]:
    """Redis's clock, in seconds and microseconds; in a cluster that of the queue's node."""
    if not access.cluster:
        return client.time()  # type: ignore[no-any-return]
    node = client.get_node_from_key(access.keys(queue).history)
    return client.time(target_nodes=node)  # type: ignore[no-any-return]
