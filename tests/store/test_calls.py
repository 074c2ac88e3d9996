"""What the store sends is what the scripts' headers name, slot by slot.

Each sample passes the name of a slot as its value, so that every argument has to arrive under its
own name; where the store computes a value, the sample says which.
"""

import inspect
from dataclasses import dataclass, field
from typing import Any

import pytest

from rqueue import store
from rqueue.keys import QueueKeys
from rqueue.scripts import SCRIPTS, script
from rqueue.store import Call, Note, Put, Ran, Retried, Window

K = QueueKeys("q")
W: Any = Window("jobs", "bytes")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sample:
    call: Call[Any]
    computed: dict[str, object] = field(default_factory=dict)
    """Slots whose value is not their name."""
    rest: list[object] = field(default_factory=list)
    """What goes into the variadic rest."""


RETRIED = Retried("i3", 7, "tail", True, b"e", 2)

SAMPLES: dict[str, list[Sample]] = {
    "await_result": [
        Sample(store.await_result(K, "id", wait=True), {"wait": "1"}),
        Sample(store.await_result(K, "id", wait=False), {"wait": "0"}),
    ],
    "browse": [Sample(store.browse(K, "cursor", "limit"))],
    "browse_set": [
        Sample(store.browse_set(K, "which", ("score", "member"), "limit"), {"member": b"member"})
    ],
    "cancel": [
        Sample(store.cancel(K, "id", held=True), {"held": "1"}),
        Sample(store.cancel(K, "id", held=False), {"held": "0"}),
        Sample(store.cancel(K, "id", purge=True), {"held": "purge"}),
    ],
    "check_job": [
        Sample(
            store.check_job(K, "id", b"seat", ["c1"]),
            {"id": b"id", "seat": b"seat", "deep": "1"},
            rest=[b"c1"],
        ),
        Sample(store.check_job(K, "id", deep=False), {"id": b"id", "seat": b"", "deep": "0"}),
    ],
    "check_page": [Sample(store.check_page(K, "which", "start", "stop"))],
    "check_rights": [Sample(store.check_rights(K))],
    "check_scan": [Sample(store.check_scan(K, "cursor", "limit"))],
    "commit_write": [
        Sample(store.commit_write(K, "run", 3, 5000), {"epoch": 3, "keep": 5000}),
        Sample(store.commit_write(K, "run", None, 5000), {"epoch": "", "keep": 5000}),
    ],
    "configure": [
        Sample(
            store.configure(K, {"keep_ms": 5, "priorities": 3}),
            rest=["keep_ms", 5, "priorities", 3],
        )
    ],
    "counts": [
        Sample(store.counts(K, oldest=True), {"waiting": "1"}),
        Sample(store.counts(K, oldest=False), {"waiting": "0"}),
    ],
    "enqueue": [
        Sample(
            store.enqueue(K, [Put("i1", b"e1"), Put("i2", b"e2")]),
            {"how": "0", "runs": "4,,0,2"},
            ["i1", b"e1", "i2", b"e2"],
        ),
        Sample(
            store.enqueue(
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
            store.enqueue(K, [Put("i1", b"e1")], immediate=True),
            {"how": "1", "runs": "4,,0,1"},
            ["i1", b"e1"],
        ),
        Sample(
            store.enqueue_one(K, "i1", b"e1"),
            {"how": "0", "runs": "4,,0,1"},
            ["i1", b"e1"],
        ),
        Sample(
            store.enqueue_flat(
                K, ["i1", b"e1", "i2", b"e2", "i3", b"e3"], ["4,,0,", "9,,0,", "9,,0,"]
            ),
            {"how": "0", "runs": "4,,0,1;9,,0,2"},
            ["i1", b"e1", "i2", b"e2", "i3", b"e3"],
        ),
        Sample(
            store.enqueue_alike(K, ["i1", b"e1", "i2", b"e2"]),
            {"how": "0", "runs": "4,,0,2"},
            ["i1", b"e1", "i2", b"e2"],
        ),
        Sample(
            store.enqueue_alike(K, ["i1", b"e1"], note=Note("run", 3, 7, 16, 5000, b"\0,;\xff")),
            {"how": b"run,3,7,16,5000;\0,;\xff", "runs": "4,,0,1"},
            ["i1", b"e1"],
        ),
    ],
    "interest": [Sample(store.interest(K, "consumer", "term", W))],
    "pause": [Sample(store.pause(K))],
    "resign": [Sample(store.resign(K, "id", b"a", b"b"), {"envelope": b"a", "fresh": b"b"})],
    "promote": [Sample(store.promote(K)), Sample(store.promote(K, ["i1"]), rest=["i1"])],
    "pull": [
        Sample(store.pull(K, "consumer", "term", W), {"recall": ""}),
        Sample(store.pull(K, "consumer", "term", W, recall=7), {"recall": 7}),
    ],
    "purge": [
        Sample(store.purge(K, "limit"), {"scheduled": "0"}),
        Sample(store.purge(K, "limit", scheduled=True), {"scheduled": "1"}),
    ],
    "purge_dead": [Sample(store.purge_dead(K, ["i1", "i2"]), rest=["i1", "i2"])],
    "note_running": [
        Sample(store.note_running(K, "consumer", [Ran("i1", 2, 3)]), rest=["i1", 2, 3])
    ],
    "reclaim": [
        Sample(store.reclaim(K, "consumer", "cause", [Ran("i1", 2, 3)]), rest=["i1", 2, 3])
    ],
    "register": [
        Sample(
            store.register(
                K,
                "consumer",
                mode="mode",
                priority="priority",
                window=W,
                lease_ms="lease",
                slots="slots",
                worker="worker",
            ),
            {"limits": ""},
        ),
        Sample(
            store.register(
                K,
                "consumer",
                mode="mode",
                priority="priority",
                window=W,
                lease_ms="lease",
                slots="slots",
                worker="worker",
                limits={"t": (1, 2)},
            ),
            {"limits": b'{"t":[1,2]}'},
        ),
    ],
    "renew": [
        Sample(store.renew(K, "lease", [])),
        Sample(store.renew(K, "lease", ["c1", "c2"]), rest=["c1", "c2"]),
    ],
    "repair_consumer": [Sample(store.repair_consumer(K, "consumer"), {"consumer": b"consumer"})],
    "repair_job": [
        Sample(
            store.repair_job(K, "id", "step", b"seat", ["c1"]),
            {"id": b"id", "seat": b"seat"},
            rest=[b"c1"],
        )
    ],
    "repair_leftovers": [Sample(store.repair_leftovers(K, "which", ["i1"]), rest=[b"i1"])],
    "repair_meta": [
        Sample(store.repair_meta(K, [4]), {"was": "", "marked": "", "highest": 0}, rest=[4]),
        Sample(store.repair_meta(K, [], (2, 1), 7), {"was": "2", "marked": "1", "highest": 7}),
    ],
    "requeue": [Sample(store.requeue(K, ["i1"]), rest=["i1"])],
    "resume": [Sample(store.resume(K))],
    "settle": [
        Sample(
            store.settle(
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
            store.settle(K, "consumer", "term", None, freed="freed", batch="batch", rows="rows"),
            {"jobs": -1, "bytes": 0, "groups": 0},
        ),
    ],
    "show": [Sample(store.show(K, "id"))],
    "unpark": [Sample(store.unpark(K, "cursor", ["t1", "t2"]), rest=["t1", "t2"])],
    "unregister": [Sample(store.unregister(K, "consumer", "term"))],
}

ALL = [pytest.param(name, one, id=name) for name, some in SAMPLES.items() for one in some]


def test_every_script_has_a_sample() -> None:
    assert set(SAMPLES) == set(SCRIPTS.names())


def test_every_function_of_the_store_has_a_sample() -> None:
    functions = {n for n in store.__all__ if inspect.isfunction(getattr(store, n))}
    aliases = {"enqueue_alike", "enqueue_flat", "enqueue_one"}
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
