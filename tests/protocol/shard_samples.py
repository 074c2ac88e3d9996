"""Samples of the calls about queues that are spread over shards."""

from rqueue.protocol.commands.shards import (
    find_known,
    inform_shard,
    lift_fence,
    read_shards,
    set_shards,
)
from tests.protocol.sample import K, Sample

SHARDS: dict[str, list[Sample]] = {
    "read_shards": [Sample(read_shards(K))],
    "set_shards": [
        Sample(
            set_shards(K, 3, {"version": "4", "moving": "open 1", "1": "open 1 "}),
            {"before": 3},
            ["version", "4", "moving", "open 1", "1", "open 1 "],
        )
    ],
    "inform_shard": [
        Sample(
            inform_shard(K, "of", 4, "role", (1, 2)),
            {"version": 4, "sources": "1 2"},
        ),
        Sample(
            inform_shard(K, "of", 4, "role", (1, 2), {"version": "4", "0": "open 1 "}),
            {"version": 4, "sources": "1 2"},
            ["version", "4", "0", "open 1 "],
        ),
    ],
    "find_known": [Sample(find_known(K, ["a", "b"]), {}, ["a", "b"])],
    "lift_fence": [Sample(lift_fence(K, 4, 2), {"version": 4, "source": 2})],
}
