"""Whether the server keeps what it is given."""

from __future__ import annotations

import time
from dataclasses import replace

import redis

from rqueue.errors import EvictionPolicy
from rqueue.inspector.doctor.findings import Finding, Severity
from rqueue.protocol.commands.server import ping, server_info
from rqueue.transport.redis_client import execute
from rqueue.transport.server_check import REPLICA, read_facts

MEMORY_SHARE = 0.9
SLOW_PING_MS = 20.0


def check_server(client: redis.Redis, *, of_cluster: bool = False) -> list[Finding]:
    """Findings that an operator should mend on one server. of_cluster: it is meant to be a node of
    one. Raises the server errors."""
    found: list[Finding] = []

    def add(kind: str, says: str, severity: Severity = "problem") -> None:
        found.append(Finding("server", kind, "", "", says, severity=severity))

    info = execute(client, server_info())
    pings = []
    for _ in range(5):
        began = time.perf_counter()
        execute(client, ping())
        pings.append((time.perf_counter() - began) * 1000)
    facts = read_facts(info)
    if of_cluster:
        facts = replace(facts, mode="standalone")
    problem = facts.problem
    if isinstance(problem, EvictionPolicy):
        add("eviction", str(problem))
    elif problem is not None:
        add("version", str(problem))
    if facts.warning:
        add("eviction", facts.warning, "note")
    if info.get("evicted_keys"):
        add(
            "evicted",
            f"the server has evicted {info['evicted_keys']} keys since it started: if one was a"
            " queue's, its jobs are gone",
        )
    if facts.replica is not None:
        add("replica", REPLICA)
    if facts.loading:
        pass  # what it keeps is not known yet
    elif not facts.persistent:
        saves = info.get("rdb_saves", 0) or info.get("rdb_bgsave_in_progress", 0)
        kept = "only snapshots are kept" if saves else "nothing may be kept"
        add(
            "persistence",
            f"the append-only file is off: after a crash of the server {kept}, and the latest jobs"
            " are lost; CONFIG SET appendonly yes, and into redis.conf (hosted Redis: in the"
            " provider's parameter group or instance settings)",
            "note",
        )
    elif info.get("aof_last_write_status", "ok") != "ok":
        add("aof", "the last write to the append-only file failed: is the disk full?")
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        add("snapshot", "the last snapshot failed (disk full, or no memory to fork?)")
    limit, used = int(info.get("maxmemory", 0)), int(info.get("used_memory", 0))
    if limit and used > MEMORY_SHARE * limit:
        add(
            "memory",
            f"{used / limit:.0%} of maxmemory are used: at 100% jobs are refused; raise it, or"
            " purge",
        )
    elif not limit:
        add(
            "no-limit",
            "maxmemory is not set: a full host kills the server instead of jobs being refused",
            "note",
        )
    middle = sorted(pings)[len(pings) // 2]
    if middle > SLOW_PING_MS:
        add(
            "slow",
            f"a round trip takes {middle:.0f} ms: the server is far away, or busy (SLOWLOG GET)",
            "note",
        )
    return found
