"""What the store sends is what the scripts' headers name, slot by slot.

Each sample passes a slot's name as its value, so that each argument has to arrive under its own
name; where the store computes a value, the sample says which."""

import inspect

import pytest

from rqueue.protocol import commands
from rqueue.protocol.commands import Note, Put, Ran, Retried, admin, room, streams
from rqueue.protocol.result_wait import await_result
from rqueue.protocol.scripts import SCRIPTS, script
from tests.protocol.running_jobs import RUNNING
from tests.protocol.sample import K, Sample, W
from tests.protocol.shard_samples import SHARDS

RETRIED = Retried("i3", 7, "tail", True, b"e", 2)

SAMPLES: dict[str, list[Sample]] = {
    **(RUNNING | SHARDS),
    "await_result": [
        Sample(await_result(K, "id", wait=True), {"wait": "1"}),
        Sample(await_result(K, "id", wait=False), {"wait": "0"}),
    ],
    "browse": [Sample(commands.browse(K, "cursor", "limit"))],
    "browse_set": [
        Sample(commands.browse_set(K, "which", ("score", "member"), "limit"), {"member": b"member"})
    ],
    "cancel": [
        Sample(commands.cancel(K, "id", held=True), {"held": "1"}),
        Sample(commands.cancel(K, "id", held=False), {"held": "0"}),
        Sample(commands.cancel(K, "id", purge=True), {"held": "purge"}),
        Sample(commands.cancel(K, "id", force="stop"), {"held": "stop"}),
        Sample(commands.cancel(K, "id", force="kill"), {"held": "kill"}),
    ],
    "check_job": [
        Sample(
            commands.check_job(K, "id", b"member", ["c1"]),
            {"id": b"id", "member": b"member", "deep": "1"},
            rest=[b"c1"],
        ),
        Sample(commands.check_job(K, "id", deep=False), {"id": b"id", "member": b"", "deep": "0"}),
    ],
    "check_page": [Sample(commands.check_page(K, "which", "start", "stop"))],
    "check_rights": [Sample(commands.check_rights(K))],
    "check_scan": [Sample(commands.check_scan(K, "cursor", "limit"))],
    "check_types": [
        Sample(commands.check_types(K, ["k1"]), {"how": "keys"}, rest=[b"k1"]),
        Sample(
            commands.types_met_by(commands.settle(K, "c", "1", None, ack=["i1"], batch=b"?" * 600)),
            {"how": "words"},
            rest=["c", "1", "i1"],
        ),
        Sample(
            commands.types_met_by(
                commands.enqueue_alike(K, ["i1", b"e"], note=Note("r", 3, 7, 1, 5, b"?"))
            ),
            {"how": "words"},
            rest=[b"r,3,7,1,5,;?", "4,,0,1", "i1", b"e", b"r", b"r:3:7"],
        ),
    ],
    "commit": [
        Sample(
            commands.commit(
                K,
                "consumer",
                "term",
                [Put("n1", b"e1"), Put("n2", b"e2", priority=9)],
                ack=["i1"],
                done=[("i2", None, b"r")],
                others=[("q2", Put("n3", b"e3"))],
                freed="freed",  # type: ignore[arg-type]
                batch="batch",  # type: ignore[arg-type]
                rows="rows",  # type: ignore[arg-type]
            ),
            {"groups": "1,1,0,0,0", "count": 2, "runs": "4,,0,1;9,,0,1", "others": 1},
            rest=["n1", b"e1", "n2", b"e2", "q2", "n3", "4,,0,", b"e3", "i1", "i2", "", b"r"],
        ),
        Sample(
            commands.commit(K, puts=[Put("n1", b"e1")]),
            {
                **{"consumer": "", "term": "", "freed": 0, "batch": b"", "rows": 0, "groups": 0},
                **{"count": 1, "runs": "4,,0,1", "others": 0},
            },
            rest=["n1", b"e1"],
        ),
    ],
    "commit_write": [
        Sample(commands.commit_write(K, "run", 3, 5000), {"epoch": 3, "keep": 5000}),
        Sample(commands.commit_write(K, "run", None, 5000), {"epoch": "", "keep": 5000}),
    ],
    "configure": [
        Sample(
            commands.configure(K, {"keep_ms": 5, "priorities": 3}),
            rest=["keep_ms", 5, "priorities", 3],
        )
    ],
    "counts": [
        Sample(commands.counts(K, oldest=True), {"waiting": "1"}),
        Sample(commands.counts(K, oldest=False), {"waiting": "0"}),
    ],
    "enqueue": [
        Sample(
            commands.enqueue(K, [Put("i1", b"e1"), Put("i2", b"e2")]),
            {"how": "0", "runs": "4,,0,2"},
            ["i1", b"e1", "i2", b"e2"],
        ),
        Sample(
            commands.enqueue(
                K,
                [
                    Put("i1", b"e1", delay_ms=30),
                    Put("i2", b"e2", at_ms=99, priority=9),
                    Put("i3", b"e3", max_deliveries=5),
                ],
            ),
            {"how": "0", "runs": "4,+30,0,1;9,@99,0,1;4,,5,1"},
            ["i1", b"e1", "i2", b"e2", "i3", b"e3"],
        ),
        Sample(
            commands.enqueue_one(K, "i1", b"e1", immediate=True, mandatory=True),
            {"how": "4", "runs": "4,,0,1"},
            ["i1", b"e1"],
        ),
        Sample(
            commands.enqueue(K, [Put("i1", b"e1")], immediate=True),
            {"how": "1", "runs": "4,,0,1"},
            ["i1", b"e1"],
        ),
        Sample(
            commands.enqueue_one(K, "i1", b"e1"),
            {"how": "0", "runs": "4,,0,1"},
            ["i1", b"e1"],
        ),
        Sample(
            commands.enqueue_flat(
                K, ["i1", b"e1", "i2", b"e2", "i3", b"e3"], ["4,,0,", "9,,0,", "9,,0,"]
            ),
            {"how": "0", "runs": "4,,0,1;9,,0,2"},
            ["i1", b"e1", "i2", b"e2", "i3", b"e3"],
        ),
        Sample(
            commands.enqueue_alike(K, ["i1", b"e1", "i2", b"e2"]),
            {"how": "0", "runs": "4,,0,2"},
            ["i1", b"e1", "i2", b"e2"],
        ),
        Sample(
            room.with_grant(commands.enqueue_one(K, "i1", b"e1"), "producer"),
            {"how": "0", "runs": "4,,0,1>producer"},
            ["i1", b"e1"],
        ),
        Sample(
            commands.enqueue_alike(K, ["i1", b"e1"], note=Note("run", 3, 7, 16, 5000, b"\0,;\xff")),
            {"how": b"run,3,7,16,5000,;\0,;\xff", "runs": "4,,0,1"},
            ["i1", b"e1"],
        ),
    ],
    "interest": [Sample(commands.interest(K, "consumer", "term", W))],
    "pause": [Sample(commands.pause(K))],
    "resign": [Sample(commands.resign(K, "id", b"a", b"b"), {"envelope": b"a", "fresh": b"b"})],
    "promote": [
        Sample(commands.promote(K), {"others": 0}),
        Sample(commands.promote(K, ["i1"], others=3), {"others": 3}, rest=["i1"]),
    ],
    "pull": [
        Sample(commands.pull(K, "consumer", "term", W), {"recall": ""}),
        Sample(commands.pull(K, "consumer", "term", W, recall=7), {"recall": 7}),
    ],
    "reorder": [
        Sample(
            commands.reorder(K, "front", [("i1", b"e1", b"f1"), ("i2", b"", b"")]),
            {"to": "front"},
            rest=["i1", b"e1", b"f1", "i2", b"", b""],
        ),
    ],
    "move": [
        Sample(
            commands.move(K, "target", "left", [admin.Moved("i1", "d1", "4,,0,", b"e1")]),  # type: ignore[arg-type]
            rest=["i1", "d1", "4,,0,", b"e1"],
        ),
    ],
    "readmit": [
        Sample(commands.readmit(K, [("i1", 5), ("i2", 0)]), {"how": "go"}, ["i1", 5, "i2", 0]),
        Sample(commands.readmit(K, [("i1", 5)], look=True), {"how": "look"}, ["i1", 5]),
    ],
    "expire": [Sample(commands.expire(K, ["i1", "i2"]), rest=["i1", "i2"])],
    "reject": [Sample(commands.reject(K, ["i1"], b"message"), {"message": b"message"}, ["i1"])],
    "purge": [
        Sample(commands.purge(K, "limit"), {"scheduled": "0"}),
        Sample(commands.purge(K, "limit", scheduled=True), {"scheduled": "1"}),
    ],
    "purge_held": [
        Sample(commands.purge_held(K, "consumer", ["i1", "i2"]), rest=["i1", "i2"]),
    ],
    "purge_dead": [Sample(commands.purge_dead(K, ["i1", "i2"]), rest=["i1", "i2"])],
    "note_running": [
        Sample(commands.note_running(K, "consumer", [Ran("i1", 2, 3)]), rest=["i1", 2, 3])
    ],
    "reclaim": [
        Sample(commands.reclaim(K, "consumer", "cause", [Ran("i1", 2, 3)]), rest=["i1", 2, 3])
    ],
    "register": [
        Sample(
            commands.register(
                K,
                "consumer",
                mode="mode",
                priority="priority",
                window=W,
                lease_ms="lease",
                slots="slots",
                worker="worker",
            ),
            {"limits": "", "token": ""},
        ),
        Sample(
            commands.register(
                K,
                "consumer",
                mode="mode",
                priority="priority",
                window=W,
                lease_ms="lease",
                slots="slots",
                worker="worker",
                limits={"t": (1, 2)},
                token="token",
            ),
            {"limits": b'{"t":[1,2]}'},
        ),
    ],
    "renew": [
        Sample(commands.renew(K, "lease", [])),
        Sample(commands.renew(K, "lease", ["c1", "c2"]), rest=["c1", "c2"]),
    ],
    "repair_consumer": [Sample(commands.repair_consumer(K, "consumer"), {"consumer": b"consumer"})],
    "repair_job": [
        Sample(
            commands.repair_job(K, "id", "step", b"member", ["c1"]),
            {"id": b"id", "member": b"member"},
            rest=[b"c1"],
        )
    ],
    "repair_group": [
        Sample(
            commands.repair_group(K, "a", (2, 1), commands.Miscount(-2, "x", "y"), ["i1"]),
            {"group": b"a", "was": "2", "blocked": "1", "fewer": -2, "last": "x", "by": "y"},
            rest=[b"i1"],
        ),
    ],
    "repair_leftovers": [Sample(commands.repair_leftovers(K, "which", ["i1"]), rest=[b"i1"])],
    "repair_meta": [
        Sample(commands.repair_meta(K, [4]), {"was": "", "marked": "", "highest": 0}, rest=[4]),
        Sample(commands.repair_meta(K, [], (2, 1), 7), {"was": "2", "marked": "1", "highest": 7}),
    ],
    "repair_type": [Sample(commands.repair_type(K, "key"), {"key": b"key"})],
    "requeue": [Sample(commands.requeue(K, ["i1"]), rest=["i1"])],
    "await_room": [
        Sample(commands.await_room(K, "producer", 2, 9, 5), {"jobs": 2, "wait": 9, "bytes": 5})
    ],
    "group_owner": [
        Sample(
            commands.group_owner(K, "a b"),
            {"group": "a%20b", "bucket": "", "consumer": "", "how": "look"},
        ),
        Sample(
            commands.group_owner(K, bucket=3, reset=True),
            {"group": "", "bucket": "3", "consumer": "", "how": "reset"},
        ),
        Sample(
            commands.group_owner(K, consumer="consumer", reset=True),
            {"group": "", "bucket": "", "how": "reset"},
        ),
    ],
    "key_owner": [
        Sample(commands.key_owner(K, "key"), {"step": "look"}, rest=["key"]),
        Sample(commands.key_owner(K, "key", clear=True), {"step": "clear"}, rest=["key"]),
        Sample(commands.key_owners(K, ["k", "l"]), {"step": "look"}, rest=["k", "l"]),
        Sample(commands.mend_keys(K, ["k", "l"]), {"step": "mend"}, rest=["k", "l"]),
    ],
    "repair_room": [Sample(commands.repair_room(K))],
    "read_schedules": [
        Sample(commands.read_schedules(K, ["s", "r"]), {"cursor": ""}, rest=["s", "r"])
    ],
    "set_schedule": [
        Sample(
            commands.set_schedule(K, "s", "7", {"terms": "4,,0,"}),
            {"name": "s", "version": "7", "schedule": b'{"terms":"4,,0,"}'},
        )
    ],
    "declare_schedule": [
        Sample(
            commands.declare_schedule(
                K, "consumer", "term", "app", "name", "hash", {"terms": "4,,0,"}
            ),
            {"schedule": b'{"terms":"4,,0,"}'},
        )
    ],
    "refill_schedule": [
        Sample(
            commands.refill_schedule(K, "s", "7", [1, 2], {"1": "S"}),
            {"name": "s", "version": "7", "ticks": b"[1,2]", "signed": b'{"1":"S"}'},
        )
    ],
    "run_schedule": [
        Sample(commands.run_schedule(K, "s", 5, "S"), {"name": "s", "at": 5, "signed": "S"})
    ],
    "remove_schedule": [Sample(commands.remove_schedule(K, "s"), {"name": "s"})],
    "resume": [Sample(commands.resume(K))],
    "read_shares": [Sample(commands.read_shares(K, 10), {"most": 10})],
    "set_share": [Sample(commands.set_share(K, "share", 3), {"weight": "3"})],
    "read_limits": [Sample(commands.read_limits(K))],
    "set_limit": [
        Sample(commands.set_limit(K, "limit", "3"), {"most": "3"}),
        Sample(commands.set_limit(K, "limit", ""), {"most": ""}),
    ],
    "settle": [
        Sample(
            commands.settle(
                K,
                "consumer",
                "term",
                W,
                ack=["i1"],
                done=[("i2", None, b"r"), ("i9", 60, b"s")],
                retry=[RETRIED],
                reject=[("i4", b"c")],
                release=["i5", "i6", "i7"],
                freed="freed",
                batch="batch",
                rows="rows",
            ),
            {"groups": "1,2,1,1,3"},
            [
                *["i1", "i2", "", b"r", "i9", 60, b"s"],
                *["i3", 7, "tail", "1", 2, b"e", "i4", b"c", "i5", "i6", "i7"],
            ],
        ),
        Sample(
            commands.settle(K, "consumer", "term", None, freed="freed", batch="batch", rows="rows"),
            {"jobs": -1, "bytes": 0, "groups": 0},
        ),
    ],
    "delete": [
        Sample(
            commands.delete(K, jobs=True, to="to"),
            {"jobs": "1", "consumers": "0", "back": "0"},
        ),
    ],
    "delete_end": [Sample(commands.delete_end(K))],
    "seal": [Sample(streams.seal(K, "j1", 7), {"id": b"j1", "total": 7})],
    "read_keys": [Sample(commands.read_keys(K.meta, [("TIME",)]), rest=[0, "TIME"])],
    "read_stream": [Sample(streams.read_stream(K, "j1"), {"id": b"j1"})],
    "repair_parents": [Sample(commands.repair_parents(K, "j1", 7), {"id": b"j1", "first": 7})],
    "repair_outbox": [Sample(commands.repair_outbox(K, ["m1"]), rest=[b"m1"])],
    "link": [
        Sample(commands.link(K, "source", ["dead", "expired"]), {"what": "dead,expired"}),
        Sample(commands.link(K, "source", ()), {"what": ""}),
    ],
    "join": [
        Sample(commands.join(K, [("j1", b"e1"), ("j2", b"e2")]), rest=[b"j1", b"e1", b"j2", b"e2"])
    ],
    "outgoing_done": [Sample(commands.outgoing_done(K, [b"m1", b"m2"]), rest=[b"m1", b"m2"])],
    "outgoing_take": [Sample(commands.outgoing_take(K, "limit"))],  # type: ignore[arg-type]
    "show": [Sample(commands.show(K, "id"))],
    "unpark": [Sample(commands.unpark(K, "cursor", ["t1", "t2"]), rest=["t1", "t2"])],
    "unregister": [Sample(commands.unregister(K, "consumer", "term"))],
}

ALL = [pytest.param(name, one, id=name) for name, some in SAMPLES.items() for one in some]


def test_every_script_has_a_sample() -> None:
    assert set(SAMPLES) == set(SCRIPTS.names())


def test_every_function_of_the_store_has_a_sample() -> None:
    functions = {n for n in commands.__all__ if inspect.isfunction(getattr(commands, n))}
    functions.add(await_result.__name__)  # stands with the wait for results
    aliases = {"types_met_by", "key_owners", "mend_keys", "watch_on", "enqueue_alike"}
    aliases |= {"enqueue_flat", "enqueue_one"}
    assert functions - aliases == set(SAMPLES)


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_the_call_names_its_script_and_the_queue(name: str, sample: Sample) -> None:
    assert sample.call.script == name
    assert script(name).header.keys == ("meta", "guard")
    assert sample.call.keys == ("rqueue:{q}:meta", "rqueue:{q}:guard")
    assert sample.call.keys == (K.meta, K.guard)


@pytest.mark.parametrize(("name", "sample"), ALL)
def test_each_argument_is_in_its_slot(name: str, sample: Sample) -> None:
    header = script(name).header
    sent = list(sample.call.args)
    fixed = len(header.argv)
    assert dict(zip(header.argv, sent[:fixed], strict=True)) == {
        slot: sample.computed.get(slot, slot) for slot in header.argv
    }
    assert sent[fixed:] == sample.rest
    assert header.rest is not None or sample.rest == []
