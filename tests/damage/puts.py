"""Jobs that are enqueued into damaged queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from rqueue.model.sort_keys import sort_key_text
from rqueue.protocol.commands import Put
from rqueue.protocol.policies import PLAIN
from tests.damage.damages import IDS
from tests.damage.world import BODY, World

ids = st.sampled_from([*IDS, "new", "ghost"])
puts = st.builds(
    # not Put itself: Hypothesis would draw each field that is named here by nobody
    lambda id, priority, delay_ms, max_deliveries, ttl_ms: Put(
        id, BODY, priority, delay_ms, max_deliveries=max_deliveries, ttl_ms=ttl_ms
    ),
    ids,
    st.sampled_from([4, 4, 9, 0]),
    st.sampled_from([0, 0, 1000]),
    st.sampled_from([0, 3]),
    st.sampled_from([0, 0, 0, 500]),
)
grouped = st.builds(
    lambda put, group: put._replace(ttl_ms=0, group=group), puts, st.sampled_from("gh")
)
keeping = puts.map(lambda put: put._replace(ttl_ms=0, hold=True))
fronted = puts.map(lambda put: put._replace(front=True))
untimed = puts.map(lambda put: put._replace(ttl_ms=0))
keyed = st.builds(
    lambda put, key: put._replace(ttl_ms=0, key=key), puts, st.sampled_from(["k", "l", "k5"])
)
sorted_ = st.builds(
    lambda put, key: put._replace(ttl_ms=0, sort=key),
    puts,
    st.sampled_from([sort_key_text(key) for key in ("a", "b", 7)]),
)
unique = st.builds(
    lambda put, key, how: put._replace(ttl_ms=0, unique=f"{how}:{key}"),
    puts,
    st.sampled_from(["k0", "k1", "k2", "k5", "new"]),
    st.sampled_from(["ex", "sx", "500x", "ef"]),
)
limited = st.builds(
    lambda put, some: put._replace(ttl_ms=0, limits=some),
    puts,
    st.sampled_from([("crm:1",), ("crm=a:2", "all:3"), ("new:1", "@r=a:1/1000+1*1")]),
)

shared = st.builds(
    lambda put, share: put._replace(share=share), untimed, st.sampled_from(["a", "b", "new", ""])
)


def fitting(world: World, draw: Callable[[Any], Any]) -> st.SearchStrategy[Put]:
    """Jobs that this queue may take: it has keys, or groups, times to live and unique ones."""
    kinds = [grouped, puts] + [keyed, sorted_, fronted] * (world.kind == PLAIN)
    kinds += [keeping] * ("unique" not in world.kind.policies)
    kinds += [unique] * ("hold" not in world.kind.policies)
    kinds = [sorted_, puts] if "sorted" in world.kind.policies else kinds
    kinds = [limited, unique, puts] if "limits" in world.kind.policies else kinds
    kinds = [shared, unique, puts] if "shares" in world.kind.policies else kinds
    some = draw(st.sampled_from(kinds))
    some = keyed if "last_value" in world.kind.policies else some
    return untimed if "ring" in world.kind.policies else some
