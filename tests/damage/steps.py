"""Calls of every script, as they are made."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha1
from typing import Any

from hypothesis import strategies as st

from rqueue.model.schedule import Timing
from rqueue.protocol import commands
from rqueue.protocol.commands import Note, Put, Ran, Retried, ScriptCall, Window, streams
from rqueue.protocol.commands.admin import Moved
from rqueue.protocol.commands.room import with_grant
from rqueue.protocol.policies import PLAIN, ExcludedPolicies, Kind
from rqueue.protocol.policies.refusals import ELSEWHERE
from rqueue.protocol.result_wait import await_result
from rqueue.protocol.scripts import SCRIPTS
from tests.damage.damages import NAMES
from tests.damage.puts import fitting, ids
from tests.damage.world import BATCH, BODY, ERROR, KEYS, World
from tests.support.schedules import schedule

some = st.lists(ids, max_size=4)
names = st.sampled_from(["c2", "c3", "c3", "c2", "b1", "ghost"])
whos = names
jobs = st.sampled_from([0, 1, 2, 5, 100])
windows = st.builds(Window, jobs, st.sampled_from([0, 0, 50, 120, 1000]))
times = st.sampled_from([0, 0, 1000, 7_000_000])
retries = st.builds(
    Retried,
    ids,
    st.sampled_from([0, 0, 500, 9_000_000]),
    st.sampled_from(["old", "head", "tail", "park", "aside"]),
    st.booleans(),
    st.sampled_from([ERROR, b""]),
    st.sampled_from([None, None, 0, 1]),
)
flags = st.booleans()
held = ["a0", "a1", "a2", "a3", "big"]
mine = st.lists(st.sampled_from([*held, "r0"]), max_size=3)
members = st.sampled_from([b"", b"9500000000000001r0", b"x", b"s261\x0000000000000001r0", b"s"])
producers = st.sampled_from(["p0", "p1", "p2", "new"])
schedules = st.sampled_from(["s0", "s1", "s2", "new"])
timings = st.sampled_from(
    [Timing.of(every=60), Timing.of(cron="* * * * *", missed="all"), Timing.of(every=5, jitter=3)]
)
outgoing = st.sampled_from([b"00000000000001\nother\nx7", b"?"])
ends = st.sampled_from(
    [
        b'["0","x.0","done","","7","1","x.1","dead","1","{}"]',
        b'["99","x","cancelled","",""]',
        b'["0"]',
        b'{"a":[1]}',
        b"[[],{},7]",
        b"?",
    ]
)


def _settle(world: World, draw: Callable[[Any], Any]) -> ScriptCall[Any]:
    name = draw(names)
    ack = ["a0"] if (lone := draw(st.booleans())) else draw(mine)
    rest: dict[str, Any] = {}
    if not lone or draw(st.booleans()):
        rest = {
            "done": draw(
                st.lists(st.tuples(st.sampled_from(held), times, st.just(b"7")), max_size=1)
            ),
            "retry": draw(
                st.lists(
                    retries.map(lambda r: r._replace(id=draw(st.sampled_from(held)))), max_size=2
                )
            ),
            "reject": [(id, ERROR) for id in draw(mine)],
            "release": draw(mine),
        }
        if world.kind == PLAIN and draw(flags):
            rest["retry"].append(Retried(draw(st.sampled_from(held)), 0, ELSEWHERE, False, b""))
    rows = draw(st.sampled_from([0, 0, 1]))
    window = draw(st.one_of(st.none(), windows))
    term = world.terms.get(name, "0")
    return commands.settle(
        KEYS, name, term, window, ack=ack, freed=draw(jobs), batch=BATCH, rows=rows, **rest
    )


def _commit(world: World, draw: Callable[[Any], Any]) -> ScriptCall[Any]:
    name = draw(names)
    return commands.commit(
        KEYS,
        name if draw(st.booleans()) else "",
        _term(world, name),
        draw(st.lists(fitting(world, draw), max_size=2)),
        ack=draw(mine),
        reject=[(id, ERROR) for id in draw(mine)],
        release=draw(mine),
    )


def _enqueue(world: World, draw: Callable[[Any], Any]) -> ScriptCall[Any]:
    if draw(st.booleans()):
        put = Put(draw(ids), BODY)
        if draw(st.booleans()):
            return with_grant(commands.enqueue(KEYS, [put]), draw(producers))
        return commands.enqueue(KEYS, [put], immediate=draw(st.booleans()))
    if draw(st.booleans()):
        note = Note(
            "run", draw(st.sampled_from([0, 1, 2])), 0, draw(st.sampled_from([0, 8])), 5, b"x" * 8
        )
        return commands.enqueue_alike(KEYS, ["new", BODY], note=note)
    return commands.enqueue(KEYS, draw(st.lists(fitting(world, draw), min_size=1, max_size=4)))


def _may_take_on(world: World, policy: str) -> bool:
    try:
        world.kind.having((policy,))
    except ExcludedPolicies:
        return False
    return True


def _term(world: World, name: str) -> str:
    return world.terms.get(name, "0")


def _leaving(world: World, id: str) -> Moved:
    """A job as it was read before it is moved away."""
    value = world.values.get(id.encode(), b"")
    return Moved(id, sha1(value).hexdigest(), "4,,0,", BODY)


ALONE = (Kind.of(["last_value"]), Kind.of(["ring"]))
"""Kinds that take on neither live consumers nor times to live."""

Maker = Callable[[World, Callable[[Any], Any]], ScriptCall[Any]]
places = st.sampled_from([None, 0, 1, 3])
"""Where a recall begins."""
MAKERS: dict[str, Maker] = {
    "await_result": lambda w, d: await_result(KEYS, d(ids), wait=d(flags)),
    "await_room": lambda w, d: commands.await_room(
        KEYS, d(producers), d(st.sampled_from([1, 2, 99])), d(st.sampled_from([0, 0, 5000]))
    ),
    "browse": lambda w, d: commands.browse(
        KEYS, d(st.sampled_from(["", "4r3.0@1,9r-", "o699999999999999.2.261", "x"])), 5
    ),
    "browse_set": lambda w, d: commands.browse_set(
        KEYS,
        d(st.sampled_from(["scheduled", "dead", "held:c2", "held:c3", "held:ghost"])),
        d(st.sampled_from([("-inf", ""), ("1", "a0"), ("inf", "x")])),
        d(st.sampled_from([1, 500])),
    ),
    "cancel": lambda w, d: commands.cancel(
        KEYS, d(ids), held=d(flags), force=d(st.sampled_from(["", "", "stop", "kill"]))
    ),
    "keep_steps": lambda w, d: commands.keep_steps(
        KEYS, n := d(names), _term(w, n), d(ids), d(st.sampled_from([0, 1])), "W3t9LHt9XQ"
    ),
    "report": lambda w, d: commands.report(
        KEYS,
        n := d(names),
        _term(w, n),
        [commands.JobReport(id, d(jobs), b"[1,2]", "t", 1, [b"1,20;x"]) for id in d(mine)],
        d(some),
    ),
    "watch": lambda w, d: d(st.sampled_from([commands.watch, commands.watch_on]))(KEYS, d(ids)),
    "note_stop": lambda w, d: commands.note_stop(
        KEYS, d(names), d(st.sampled_from(["delivered", "ended"])), [d(ids), *d(some)]
    ),
    "read_stop": lambda w, d: commands.read_stop(KEYS, d(ids)),
    "check_job": lambda w, d: commands.check_job(
        KEYS, d(ids), d(members), ["ghost"], deep=d(flags)
    ),
    "check_page": lambda w, d: commands.check_page(
        KEYS,
        d(
            st.sampled_from(
                ["ready:4", "ready:9", "due:6", "scheduled", "heads", "dead", "held:c3"]
            )
        ),
        0,
        99,
    ),
    "link": lambda w, d: commands.link(KEYS, "other", d(st.sampled_from([["dead"], []]))),
    "delete": lambda w, d: commands.delete(
        KEYS, jobs=d(flags), consumers=d(flags), to=d(st.sampled_from(["", "other"]))
    ),
    "delete_end": lambda w, d: commands.delete_end(KEYS),
    "repair_parents": lambda w, d: commands.repair_parents(
        KEYS, d(ids), d(st.sampled_from([0, 2]))
    ),
    "seal": lambda w, d: streams.seal(KEYS, d(ids), d(st.sampled_from([0, 2]))),
    "read_stream": lambda w, d: streams.read_stream(KEYS, d(ids)),
    "join": lambda w, d: commands.join(KEYS, [(d(ids), d(ends)), ("x", d(ends))]),
    "repair_outbox": lambda w, d: commands.repair_outbox(KEYS, [d(outgoing).decode(), "x"]),
    "outgoing_done": lambda w, d: commands.outgoing_done(KEYS, [d(outgoing), b"x"]),
    "outgoing_take": lambda w, d: commands.outgoing_take(KEYS, d(st.sampled_from([1, 100]))),
    "check_rights": lambda w, d: commands.check_rights(KEYS),
    "read_keys": lambda w, d: commands.read_keys(KEYS.meta, [("HGET", KEYS.jobs, d(ids))]),
    "check_scan": lambda w, d: commands.check_scan(KEYS, "0", 100),
    "check_types": lambda w, d: d(
        st.sampled_from(
            [
                commands.check_types(KEYS, ["meta", "held:c2"]),
                commands.types_met_by(commands.enqueue(KEYS, [Put("r0", BODY)])),
            ]
        )
    ),
    "commit": _commit,
    "commit_write": lambda w, d: commands.commit_write(
        KEYS, "run", d(st.sampled_from([None, 1, 2])), 500
    ),
    "configure": lambda w, d: commands.configure(
        KEYS,
        d(
            st.sampled_from(
                [
                    {"keep_ms": 2000},
                    {"keep_ms": 900}
                    if w.kind in ALONE
                    else {"keep_ms": 900}
                    if w.kind in ALONE
                    else {"dead_to": "other"},
                    {"max_deliveries": 3},
                    {"priorities": 10},
                    {"keep_ms": 900} if w.kind in ALONE else {"ttl_ms": 500},
                    {"max_jobs": 50} if "ring" not in w.kind.policies else {"keep_ms": 900},
                ]
            )
        ),
    ),
    "counts": lambda w, d: commands.counts(KEYS, oldest=d(flags)),
    "enqueue": _enqueue,
    "interest": lambda w, d: commands.interest(KEYS, n := d(names), _term(w, n), d(windows)),
    "note_running": lambda w, d: commands.note_running(
        KEYS, d(names), [Ran(id, 1, 2) for id in d(mine)]
    ),
    "pause": lambda w, d: commands.pause(KEYS),
    "promote": lambda w, d: commands.promote(KEYS, d(some), others=d(st.sampled_from([0, 0, 3]))),
    "pull": lambda w, d: commands.pull(
        KEYS, n := d(names), _term(w, n), d(windows), recall=d(places)
    ),
    "purge": lambda w, d: commands.purge(KEYS, d(st.sampled_from([1, 3, 500])), scheduled=d(flags)),
    "purge_held": lambda w, d: commands.purge_held(KEYS, d(names), [d(ids), *d(some)]),
    "purge_dead": lambda w, d: commands.purge_dead(KEYS, [d(ids), *d(some)]),
    "reclaim": lambda w, d: commands.reclaim(
        KEYS, d(names), ERROR, [Ran(id, 1, 2) for id in d(mine)]
    ),
    "register": lambda w, d: commands.register(
        KEYS,
        d(st.sampled_from(["new", "c3", "ghost"])),
        mode=d(st.sampled_from(["acquire", "browse"])),
        priority=d(st.sampled_from([0, 5])),
        window=d(windows),
        lease_ms=5000,
        limits=d(st.sampled_from([None, {"t": (1, 2)}])),
    ),
    "renew": lambda w, d: commands.renew(KEYS, 5000, d(st.lists(names, max_size=2))),
    "reorder": lambda w, d: commands.reorder(
        KEYS,
        d(st.sampled_from([0, 4, 9, 9, "front", "front"])),
        [(id, b"", b"") for id in [d(ids), *d(some)]],
    ),
    "repair_consumer": lambda w, d: commands.repair_consumer(KEYS, d(names)),
    "repair_group": lambda w, d: commands.repair_group(
        KEYS,
        d(st.sampled_from(["a", "k", ""])),
        d(st.sampled_from([None, (2, 1)])),
        d(st.sampled_from([commands.Miscount(), commands.Miscount(2), commands.Miscount(-1, "x")])),
        d(st.lists(ids, max_size=2)),
    ),
    "repair_job": lambda w, d: commands.repair_job(
        KEYS, d(ids), d(st.sampled_from(["place", "place", "take"])), d(members), ["ghost"]
    ),
    "repair_leftovers": lambda w, d: commands.repair_leftovers(
        KEYS,
        d(
            st.sampled_from(
                [
                    *("causes", "errors", "awaited", "parked", "byte_waiters", "records", "cause"),
                    "waiting",
                ]
            )
        ),
        d(some),
    ),
    "repair_meta": lambda w, d: commands.repair_meta(
        KEYS, [4, 9], d(st.sampled_from([None, (2, 1)])), 99
    ),
    "group_owner": lambda w, d: commands.group_owner(
        KEYS,
        **d(
            st.sampled_from(
                [
                    {"group": "g"},
                    {"group": "b"},
                    {"bucket": 0},
                    {"bucket": 7},
                    {"consumer": "c4"},
                ]
            )
        ),
        reset=d(flags),
    ),
    "key_owner": lambda w, d: commands.key_owner(
        KEYS, d(st.sampled_from(["k0", "k2", "k5", "x"])), clear=d(flags)
    ),
    "repair_room": lambda w, d: commands.repair_room(KEYS),
    "read_schedules": lambda w, d: commands.read_schedules(
        KEYS, d(st.sampled_from([["s0", "ghost"], []])), d(st.sampled_from(["", "0"]))
    ),
    "set_schedule": lambda w, d: commands.set_schedule(
        KEYS,
        d(schedules),
        d(st.sampled_from(["", "1", "1", "7"])),
        schedule(w.kept_at, d(timings), state=d(st.sampled_from(["active", "paused"]))),
    ),
    "declare_schedule": lambda w, d: commands.declare_schedule(
        KEYS, n := d(names), _term(w, n), "app", d(schedules), "h", schedule(w.kept_at, d(timings))
    ),
    "refill_schedule": lambda w, d: commands.refill_schedule(
        KEYS, d(schedules), d(st.sampled_from(["1", "7"])), [w.kept_at + 1, w.kept_at + 2], {}
    ),
    "run_schedule": lambda w, d: commands.run_schedule(
        KEYS, d(schedules), d(st.sampled_from([0, 0, w.kept_at]))
    ),
    "remove_schedule": lambda w, d: commands.remove_schedule(KEYS, d(schedules)),
    "repair_type": lambda w, d: commands.repair_type(
        KEYS, d(st.sampled_from(["meta", "scheduled", "ready:4", "held:c3", "nothing"]))
    ),
    "requeue": lambda w, d: commands.requeue(KEYS, [d(ids), "x0", *d(some)]),
    "resign": lambda w, d: commands.resign(KEYS, d(ids), BODY, b'["u"]'),
    "resume": lambda w, d: commands.resume(KEYS),
    "read_limits": lambda w, d: commands.read_limits(KEYS),
    "read_shares": lambda w, d: commands.read_shares(KEYS, 100),
    "set_limit": lambda w, d: (
        commands.set_limit(
            KEYS,
            *d(
                st.sampled_from(
                    [("crm", ""), ("crm=a", "0"), ("all", "5"), ("@r", "9/1000+2"), ("@r=a", "")]
                )
            ),
        )
        if _may_take_on(w, "limits")
        else commands.pause(KEYS)
    ),
    "read_shards": lambda w, d: commands.read_shards(KEYS),
    "find_known": lambda w, d: commands.find_known(KEYS, d(st.sampled_from([["a"], ["a", "new"]]))),
    "set_shards": lambda w, d: (
        commands.set_shards(
            KEYS,
            d(st.sampled_from([0, 0, 4])),
            {"version": d(st.sampled_from(["1", "5"])), "moving": "open 1", "1": "open 1 "},
        )
        if _may_take_on(w, "sharded")
        else commands.pause(KEYS)
    ),
    "inform_shard": lambda w, d: (
        commands.inform_shard(
            KEYS,
            "of",
            version := d(st.sampled_from([1, 2, 7])),
            d(st.sampled_from(["", "fence", "shut", "wait"])),
            d(st.sampled_from([(), (1,), (1, 2)])),
            d(st.sampled_from([None, {"version": str(version), "0": "open 1 "}])),
        )
        if _may_take_on(w, "shard")
        else commands.pause(KEYS)
    ),
    "lift_fence": lambda w, d: (
        commands.lift_fence(KEYS, d(st.sampled_from([1, 7])), d(st.sampled_from([1, 2])))
        if _may_take_on(w, "shard")
        else commands.resume(KEYS)
    ),
    "set_share": lambda w, d: (
        commands.set_share(KEYS, *d(st.sampled_from([("a", 5), ("b", None), ("new", 1), ("*", 2)])))
        if _may_take_on(w, "shares")
        else commands.pause(KEYS)
    ),
    "move": lambda w, d: commands.move(
        KEYS,
        "other",
        d(st.sampled_from([1, 1_700_000_000_000])),
        [_leaving(w, id) for id in [d(ids), *d(some)]],
    ),
    "readmit": lambda w, d: commands.readmit(
        KEYS, [(id, d(st.sampled_from([0, 1]))) for id in [d(ids), "x0"]], look=d(flags)
    ),
    "expire": lambda w, d: commands.expire(KEYS, [d(ids), *d(some)]),
    "reject": lambda w, d: commands.reject(KEYS, [d(ids), *d(some)], b"why"),
    "settle": _settle,
    "show": lambda w, d: commands.show(KEYS, d(ids)),
    "unpark": lambda w, d: commands.unpark(KEYS, "0", d(st.sampled_from([["t"], ["u", "t"], []]))),
    "unregister": lambda w, d: commands.unregister(KEYS, n := d(names), _term(w, n)),
}

assert NAMES
assert set(MAKERS) == set(SCRIPTS.names()), set(MAKERS) ^ set(SCRIPTS.names())
