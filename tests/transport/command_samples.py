"""A sample of each call that is made of Redis's own commands, and the queue that it reads."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

from rqueue.model.alert import Alert
from rqueue.model.log_line import LogLine
from rqueue.model.progress import Progress
from rqueue.protocol import commands
from rqueue.protocol.commands import (
    alert_notes,
    class_notes,
    clock,
    consumer_checks,
    consumer_rows,
    flow_notes,
    group_notes,
    history,
    job_notes,
    key_notes,
    outgoing,
    owner_notes,
    places,
    queue_keys,
    reports,
    room_notes,
    server,
    write_log,
)
from rqueue.protocol.keys import QueueKeys
from tests.transport import limit_samples, queue_samples, share_samples
from tests.transport.limit_samples import Sample

ODD = "odd-\udcff"
"""A name with a byte that is no UTF-8."""


FIRST = history.Entry("5-1", {b"n": b"2", b"b": b"x"})
SECOND = history.Entry("7-0", {b"n": b"1", b"b": b"y"})


def fill(client: Any, keys: QueueKeys) -> None:
    """Something at every place that a call reads."""
    odd = ODD.encode("utf-8", "surrogateescape")
    client.hset(
        keys.meta,
        mapping={
            "v": 1,
            "clock": "@5000",
            "timer": "c1",
            "marked": 1,
            "history_trimmed": "4-0",
            "history_gone": 10,
            "history_rows": 3,
        },
    )
    for entry in (FIRST, SECOND):
        client.xadd(keys.history, entry.fields, id=entry.id)
    client.hset(keys.jobs, mapping={"j1": "head;one", odd: "head;three"})
    client.xadd(keys.alerts, {"at": 5000, "depth": 7, "threshold": 5}, id="5-0")
    client.hset(keys.deferred, mapping={"j1": 3})
    client.zadd(keys.unsealed, {"j1": 9300})
    client.rpush(keys.log("j1"), "7,30,1,t.2,900,20;a;b")
    client.hset(keys.progress("j1"), mapping={"delivery": 2, "at": 9000, "said": '[3,4,"p"]'})
    client.hset(keys.gathered("j1"), mapping={"0": "[1,1]", "2": "[1,2]"})
    client.setbit(keys.heard("j2"), 1, 1)
    client.hset(keys.parked, mapping={"j1": "why", odd: "?"})
    client.zadd(keys.dead, {"j1": 6000.0})
    client.zadd(keys.expiring, {"j1": 9100})
    client.hset(keys.groups, mapping={"g1": "j1", odd: odd})
    client.zadd(keys.own("c1"), {"m1": 1, odd: 2})
    client.zadd(keys.group("g1"), {"m5": 5, "m6": 6})
    client.zadd(keys.blocked, {"g1": 0})
    client.zadd(keys.heads, {"m7": 0})
    limit_samples.fill(client, keys, odd)
    queue_samples.fill(client, keys)
    share_samples.fill(client, keys, odd)
    client.hset(keys.latest, mapping={"k1": "j1", odd: odd})
    client.hset(keys.unique, mapping={"u1": "j1"})
    client.zadd(keys.periods, {"u1": 9000})
    client.hset(keys.classes, mapping={"l1": "1", odd: "2"})
    client.zadd(keys.job_class("1"), {"m9": 0, "m10": 1})
    client.zadd(keys.scheduled, {"m1": 7000, "m2": 8000})
    client.rpush(keys.ready(4), "j1", odd, "j3")
    client.rpush(keys.due(4), "j4")
    client.zadd(keys.consumers, {"c1": 9000, odd: 9500.5})
    client.hset(
        keys.consumer("c1"),
        mapping={"state": "notified", "worker": "w1", "bytes": 100, "held_bytes": 8},
    )
    client.rpush(keys.held("c1"), "j1", odd)
    client.rpush(keys.wake("c1"), "w")
    client.zadd(keys.interested, {"c2": 1, odd: 2})
    client.zadd(keys.notified, {"c1": 8500})
    client.sadd(keys.not_interested, "c3", odd)
    client.sadd(keys.browsers, "c4")
    client.sadd(keys.live, "c1", odd)
    client.zadd(keys.standbys, {"c5": 1, odd: 2})
    client.hset(keys.meta, "live_consumers", 2)
    client.zadd(keys.producers, {"p1": 1, odd: 2})
    client.zadd(keys.grants, {"p2": 9200})
    client.hset(keys.wishes, mapping={"p1": 3, odd: "?", "p2": 5})
    client.hset(keys.meta, "granted", 5)
    client.zadd(keys.outgoing, {"m8": 0, odd: 7000})
    client.hset(keys.outgoing_jobs, "m8", "?")
    client.hset(keys.write("r"), mapping={"rows": 5, "jobs": 4, "1:2": "e1"})
    client.set(keys.written("r", 1, 2), b"abcdefgh")


def samples(keys: QueueKeys) -> dict[str, list[Sample]]:
    empty = QueueKeys(keys.queue + "-no", keys.namespace)
    stopped = clock.Clock(0, stopped=5000)
    places_of_c1 = consumer_checks.ConsumerPlaces(
        {"state": "notified", "worker": "w1", "bytes": "100", "held_bytes": "8"},
        9000.0,
        ["notified"],
        8500.0,
        2,
        True,
    )
    return {
        "kept_alerts": [
            Sample(alert_notes.kept_alerts(keys), [Alert("5-0", 5000, 7, 5)]),
            Sample(alert_notes.kept_alerts(empty), []),
        ],
        "history_page": [
            Sample(history.history_page(keys, count=9), [FIRST, SECOND]),
            Sample(history.history_page(keys, "(5-1", count=9), [SECOND]),
            Sample(history.history_page(empty, count=9), []),
        ],
        "newest_entries": [
            Sample(history.newest_entries(keys), [SECOND]),
            Sample(history.newest_entries(keys, "(7-0"), [FIRST]),
        ],
        "history_part": [
            Sample(
                history.history_part(keys, "4-0", "5-1", count=9),
                history.HistoryPart([FIRST], "4-0"),
            ),
            Sample(
                history.history_part(empty, "4-0", "5-1", count=9), history.HistoryPart([], "0-0")
            ),
        ],
        "history_ends": [
            Sample(history.history_ends(keys), history.HistoryEnds("7-0", 13, "4-0", 10)),
            Sample(history.history_ends(empty), history.HistoryEnds()),
        ],
        "history_news": [
            Sample(
                history.history_news({keys: "5-1"}, count=9, block_ms=1), {keys.queue: [SECOND]}
            ),
            Sample(history.history_news({keys: "7-0"}, count=9, block_ms=1), {}),
        ],
        "notes_page": [
            Sample(
                job_notes.notes_page(keys, "parked", count=9),
                job_notes.NotesPage(0, {"j1": b"why", ODD: b"?"}),
            ),
            Sample(job_notes.notes_page(keys, "errors", count=9), job_notes.NotesPage(0, {})),
        ],
        "began_of": [
            Sample(job_notes.began_of(keys, "c1", ["j1", "j9"]), [0, 0]),
            Sample(job_notes.began_of(keys, "c1", []), []),
        ],
        "notes_of": [
            Sample(job_notes.notes_of(keys, "parked", ["j1", "j9", ODD]), [b"why", None, b"?"]),
            Sample(job_notes.notes_of(keys, "parked", []), []),
        ],
        "gathered_of": [
            Sample(
                flow_notes.gathered_of(keys, "j1"),
                flow_notes.Gathered(b"head;one", 3, 2),
            ),
            Sample(flow_notes.gathered_of(keys, ODD), flow_notes.Gathered(b"head;three", None, 0)),
            Sample(flow_notes.gathered_of(empty, "j1"), flow_notes.Gathered(None, None, 0)),
        ],
        "deadline_of": [
            Sample(flow_notes.deadline_of(keys, "j1"), 9300.0),
            Sample(flow_notes.deadline_of(empty, "j1"), None),
        ],
        "places_of": [
            Sample(flow_notes.places_of(keys, "j1", [0, 1]), [True, False]),
            Sample(flow_notes.places_of(keys, "j2", [0, 1, 99]), [False, True, False]),
            Sample(flow_notes.places_of(empty, "j1", [0]), [False]),
            Sample(flow_notes.places_of(keys, "j1", []), []),
        ],
        "jobs_of": [
            Sample(flow_notes.jobs_of(keys, ["j1", "j9", ODD]), [b"head;one", None, b"head;three"]),
            Sample(flow_notes.jobs_of(keys, []), []),
        ],
        "job_sizes": [
            Sample(job_notes.job_sizes(keys, ["j1", "j9", ODD]), [8, 0, 10]),
            Sample(job_notes.job_sizes(keys, ["j1"]), [8]),
            Sample(job_notes.job_sizes(keys, []), []),
        ],
        "deaths": [
            Sample(job_notes.deaths(keys, ["j1", "j9"]), [6000.0, None]),
            Sample(job_notes.deaths(keys, []), []),
        ],
        "expiries": [Sample(job_notes.expiries(keys, ["j1", "j9"]), [9100.0, None])],
        "expiry_page": [
            Sample(job_notes.expiry_page(keys, count=9), job_notes.ExpiryPage(0, {"j1": 9100.0}))
        ],
        "progress": [
            Sample(reports.progress(keys, "j1"), Progress(3, 4, "p", 9000, 2)),
            Sample(reports.progress(keys, ODD), None),
        ],
        "log_lines": [
            Sample(reports.log_lines(keys, "j1"), [LogLine(7, 1, 900, 20, "a;b")]),
            Sample(reports.log_lines(empty, "j1"), []),
        ],
        "group_state": [
            Sample(group_notes.group_state(keys, "g1"), group_notes.GroupState("j1", 2, True)),
            Sample(group_notes.group_state(keys, ODD), group_notes.GroupState(ODD, 0, False)),
            Sample(group_notes.group_state(empty, "g1"), group_notes.GroupState(None, 0, False)),
        ],
        "owners_of": [
            Sample(owner_notes.owners_of(keys), owner_notes.Owners(0, {})),
            Sample(owner_notes.owners_of(empty), owner_notes.Owners(0, {})),
        ],
        "own_sizes": [Sample(owner_notes.own_sizes(keys, ["c1", ODD]), [2, 0])],
        "states_of": [Sample(owner_notes.states_of(keys, ["nobody"]), [""])],
        "stuck_owners": [Sample(owner_notes.stuck_owners(keys, ["c1", ODD]), [])],
        **limit_samples.samples(keys, empty, ODD),
        **queue_samples.samples(keys, empty),
        **share_samples.samples(keys, empty, ODD),
        "turns_page": [
            Sample(
                group_notes.turns_page(keys, count=9),
                group_notes.TurnsPage(0, {"g1": "j1", ODD: ODD}),
            )
        ],
        "turns_of": [
            Sample(group_notes.turns_of(keys, ["g1", "g9", ODD]), ["j1", None, ODD]),
            Sample(group_notes.turns_of(keys, []), []),
        ],
        "latest_page": [
            Sample(
                key_notes.latest_page(keys, count=9),
                key_notes.LatestPage(0, {"k1": "j1", ODD: ODD}),
            ),
            Sample(key_notes.latest_page(empty, count=9), key_notes.LatestPage(0, {})),
        ],
        "latest_of": [
            Sample(key_notes.latest_of(keys, ["k1", "k9"]), ["j1", None]),
            Sample(key_notes.latest_of(keys, []), []),
        ],
        "unique_page": [
            Sample(key_notes.unique_page(keys, count=9), key_notes.LatestPage(0, {"u1": "j1"})),
        ],
        "period_ends": [
            Sample(key_notes.period_ends(keys, ["u1", "k9"]), [9000.0, None]),
            Sample(key_notes.period_ends(keys, []), []),
        ],
        "classes_known": [
            Sample(class_notes.classes_known(keys), {"l1": "1", ODD: "2"}),
            Sample(class_notes.classes_known(empty), {}),
        ],
        "class_sizes": [
            Sample(class_notes.class_sizes(keys, ["1", "9"]), 2),
            Sample(class_notes.class_sizes(keys, []), 0),
        ],
        "room_state": [
            Sample(
                room_notes.room_state(keys),
                room_notes.RoomState(["p1", ODD], {"p2": 9200}, {"p1": 3, ODD: None, "p2": 5}, 5),
            ),
            Sample(room_notes.room_state(empty), room_notes.RoomState([], {}, {}, 0)),
        ],
        "groups_known": [
            Sample(group_notes.groups_known(keys), ["g1"]),
            Sample(group_notes.groups_known(empty), []),
        ],
        "group_sizes": [
            Sample(group_notes.group_sizes(keys, ["g1", "g9"]), 2),
            Sample(group_notes.group_sizes(keys, ["g1"], heads=True), 3),
        ],
        "refusal_sizes": [Sample(class_notes.refusal_sizes(keys, ["t9"]), 0)],
        "place_sizes": [
            Sample(places.place_sizes(keys, [4, 5], ["c1", "c9"]), places.PlaceSizes(2, 10))
        ],
        "list_length": [
            Sample(places.list_length(keys, "ready", 4), 3),
            Sample(places.list_length(keys, "due", 5), 0),
        ],
        "id_at": [
            Sample(places.id_at(keys, "ready", 4, 1), ODD),
            Sample(places.id_at(keys, "due", 4, 0), "j4"),
            Sample(places.id_at(keys, "due", 4, 1), ""),
        ],
        "job_value": [
            Sample(places.job_value(keys, ODD), b"head;three"),
            Sample(places.job_value(keys, ""), None),
        ],
        "last_time": [Sample(places.last_time(keys, "scheduled"), 8000)],
        "succession": [
            Sample(
                consumer_rows.succession(keys),
                consumer_rows.Succession({"c1", ODD}, ["c5", ODD], 2),
            ),
            Sample(consumer_rows.succession(empty), consumer_rows.Succession(set(), [], 0)),
        ],
        "outbox": [
            Sample(outgoing.outbox(keys), outgoing.Outbox({"m8": 0.0, ODD: 7000.0}, ["m8"])),
            Sample(outgoing.outbox(empty), outgoing.Outbox({}, [])),
        ],
        "leases": [
            Sample(
                consumer_rows.leases(keys),
                consumer_rows.Leases(5000, {"c1": 9000.0, ODD: 9500.5}, "c1", ["c5", ODD]),
            ),
        ],
        "consumer_row": [
            Sample(
                consumer_rows.consumer_row(keys, "c1"),
                consumer_rows.ConsumerRow(places_of_c1.fields, 2, 1),
            ),
            Sample(consumer_rows.consumer_row(keys, "c9"), consumer_rows.ConsumerRow({}, 0, 0)),
        ],
        "last_lease": [Sample(consumer_rows.last_lease(keys, 1), 9500.5)],
        "registered_names": [Sample(consumer_rows.registered_names(keys), ["c1", ODD])],
        "worker_of": [
            Sample(consumer_rows.worker_of(keys, "c1"), "w1"),
            Sample(consumer_rows.worker_of(keys, "c9"), ""),
        ],
        "noted_ids": [Sample(consumer_rows.noted_ids(empty, "c1"), [])],
        "held_ids": [Sample(consumer_rows.held_ids(keys, "c1"), ["j1", ODD])],
        "consumer_names": [
            Sample(
                consumer_checks.consumer_names(keys),
                consumer_checks.ConsumerNames({"c1", ODD}, {"c1", "c2", "c3", "c4", ODD}),
            )
        ],
        "consumer_places": [
            Sample(consumer_checks.consumer_places(keys, "c1"), places_of_c1),
            Sample(
                consumer_checks.consumer_places(keys, ODD),
                consumer_checks.ConsumerPlaces(
                    {}, 9500.5, ["interested", "not_interested"], None, 0, False
                ),
            ),
        ],
        "held_bytes": [
            Sample(
                consumer_checks.held_bytes(keys, "c1"),
                consumer_checks.HeldBytes(100, 8, ["j1", ODD]),
            ),
            Sample(consumer_checks.held_bytes(keys, "c9"), consumer_checks.HeldBytes(0, 0, [])),
        ],
        "movement": [
            Sample(
                consumer_checks.movement(keys, [4]),
                consumer_checks.Movement(
                    paused=False, timer="c1", ready=3, due=7000.0, waiting=["c2", ODD], notified=1
                ),
            ),
            Sample(
                consumer_checks.movement(empty, []),
                consumer_checks.Movement(
                    paused=False, timer="", ready=0, due=None, waiting=[], notified=0
                ),
            ),
        ],
        "write_progress": [
            Sample(write_log.write_progress(keys, "r"), write_log.Progress(5, 4)),
            Sample(write_log.write_progress(keys, "s"), write_log.Progress(0, 0)),
        ],
        "write_logs": [
            Sample(write_log.write_logs(keys, "r"), {(1, 2): "e1"}),
            Sample(write_log.write_logs(keys, "s"), {}),
        ],
        "written_marks": [
            Sample(write_log.written_marks(keys, "r", 1, 2, 3), b"defgh"),
            Sample(write_log.written_marks(keys, "r", 1, 3, 0), b""),
        ],
        "ping": [Sample(server.ping(), None)],
        # these change the clock, in this order
        "read_clock": [Sample(clock.read_clock(keys), stopped)],
        "reset_clock": [Sample(clock.reset_clock(keys), None)],
        "move_clock": [
            Sample(clock.move_clock(keys, 30), 30),
            Sample(clock.move_clock(keys, 2), 32),
        ],
        "stop_clock": [Sample(clock.stop_clock(keys, 6000), None)],
        # and this one takes what is there away
        "remove_keys": [
            Sample(queue_keys.remove_keys(keys, []), 0),
            Sample(queue_keys.remove_keys(keys, [keys.history, keys.held(ODD), keys.jobs]), 2),
        ],
    }


def without_time(answer: Any) -> Any:
    return answer._replace(server=0) if isinstance(answer, clock.Clock) else answer


def builders() -> set[str]:
    """All functions of `rqueue.protocol.commands` that build calls of Redis's own commands."""
    found = set()
    for info in pkgutil.iter_modules(commands.__path__):
        module = importlib.import_module(f"{commands.__name__}.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if str(inspect.signature(function).return_annotation).startswith("CommandCall["):
                found.add(name)
    return found
