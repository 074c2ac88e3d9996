"""History rows from what the executors leave."""

from typing import Any

from orjson import loads

from rqueue.model.envelope import pack
from rqueue.model.history_batch import pack as pack_columns
from rqueue.model.history_batch import unpack
from rqueue.model.ids import new_id
from rqueue.model.job import EPOCH_MS
from rqueue.protocol.commands.settle import Retried
from rqueue_workers.worker.history_rows import pack_rows
from rqueue_workers.worker.outcome import Ack, Done, Unfinished

BODY = pack("t.ask", (1,))


EPOCH = float(EPOCH_MS)


def unpacked(packed: bytes) -> list[dict[str, Any]]:
    """Rows with their times from `EPOCH_MS` on; 0 where there is none."""
    rows = unpack(packed)
    for one in rows:
        for name in ("enqueued", "acquired", "started", "finished"):
            one[name] = one[name] and one[name] - EPOCH_MS
    return rows


def row(id_: str, head: bytes, started: float, finished: float) -> Ack:
    value = head + b";" + BODY
    return (id_.encode(), value, head, "t.ask", EPOCH_MS + 1_000, started, finished)


RETRIED = Retried("x", 0, "old", True, b"")


def test_rows_stand_in_the_order_of_the_settle_call() -> None:
    ids = [new_id() for _ in range(4)]
    rows = unpacked(
        pack_rows(
            "q",
            "w",
            EPOCH,
            [row(ids[0], b"1,900", 1.0, 1.25)],
            [Done(*row(ids[1], b"2,901", 1.25, 1.5), None, b"[1,2]")],
            [
                Unfinished(*row(ids[2], b"3,902", 2.0, 2.5), "retry", "E", RETRIED),
                Unfinished(
                    *row(ids[3], b"4,903,7,3,2,5,950", 2.5, 2.75), "reject", "F", None, b"{}"
                ),
            ],
        )
    )
    assert [r["id"] for r in rows] == ids
    assert [r["outcome"] for r in rows] == ["ack", "ack", "retry", "dead"]
    assert [r["error"] for r in rows] == ["", "", "E", "F"]
    assert [r["result_size"] for r in rows] == [0, 5, 0, 0]
    assert [r["enqueued"] for r in rows] == [900, 901, 902, 903]
    assert [r["finished"] for r in rows] == [1250, 1500, 2500, 2750]
    assert {r["body_size"] for r in rows} == {len(BODY)}
    last = rows[3]
    assert (last["level"], last["deliveries"], last["attempts"], last["due"]) == (7, 3, 2, 950)
    assert (rows[0]["level"], rows[0]["attempts"]) == (4, 0)


def test_envelopes_are_recorded_where_they_are_asked_for() -> None:
    acks = [row(new_id(), b"1,900", 1.0, 1.25)]
    unreadable = (b"x", b"\xff;\xff\xfe", b"\xff", "", EPOCH_MS + 1_000, 2.5, 2.5)
    others = [
        Unfinished(*row(new_id(), b"3,902", 2.0, 2.5), "retry", "E", RETRIED),
        Unfinished(*unreadable, "reject", "F", None, b"{}"),
    ]

    def bodies(of: str, *groups: Any) -> list[str]:
        return [r["body"] for r in unpacked(pack_rows("q", "w", EPOCH, *groups, bodies=of))]

    assert bodies("none", acks, [], others) == ["", "", ""]
    assert bodies("failed", acks, [], others) == ["", BODY.decode(), ""]
    assert bodies("all", acks, [], others) == [BODY.decode(), BODY.decode(), ""]
    assert bodies("all", acks, [], []) == [BODY.decode()]
    assert bodies("failed", acks, [], []) == [""]


def test_any_id_and_any_header_has_a_row() -> None:
    rows = unpacked(
        pack_rows(
            "q", "w", EPOCH, [row("a\nü", b"1,900", 1.0, 1.0), row("b", b"x", 1.0, 1.0)], [], []
        )
    )
    assert [r["id"] for r in rows] == ["a\nü", "b"]
    assert [r["enqueued"] for r in rows] == [900, 0]


def test_headers_of_all_kinds_stand_together() -> None:
    heads = [
        b"1,900",
        b"4,903,7,3,2,5,950",
        b"4,903,7,3,2",
        b"1,,2,3,4,5,6",
        b'1,"a"',
        b"1,[2",
        b"2,904",
    ]
    readable = [heads[0], heads[1], heads[6]]
    longer = [*readable, b"4,906,7,3,2,5,951,1,0", b"5,907,7,0,0,0,952,0,0,1795357154383"]
    timed = [longer[4], b"6,908,4,0,0,0,0,0,0,1795357154384"]
    alike = [heads[1], b"5,905,7,3,2,5,950"]
    for some, expected in (
        (alike, [(903, 7, 950), (905, 7, 950)]),
        ([*alike, b"14,904,17,3,2,5,950"], [(903, 7, 950), (905, 7, 950), (904, 17, 950)]),
        ([*alike, b"4,7,3,2,5,950"], [(903, 7, 950), (905, 7, 950), (0, 4, 0)]),
        (longer, [(900, 4, 0), (903, 7, 950), (904, 4, 0), (906, 7, 951), (907, 7, 952)]),
        (timed, [(907, 7, 952), (908, 4, 0)]),
        (readable, [(900, 4, 0), (903, 7, 950), (904, 4, 0)]),
        (heads, [(900, 4, 0), (903, 7, 950), *[(0, 4, 0)] * 4, (904, 4, 0)]),
    ):
        acks = [row(new_id(), head, 1.0, 1.0) for head in some]
        rows = unpacked(pack_rows("q", "w", EPOCH, acks, [], []))
        assert [(r["enqueued"], r["level"], r["due"]) for r in rows] == expected


def test_groups_and_shares_are_named() -> None:
    heads = [b"1,900", b"2,901|ga%2Eb", b"3,902,7,3,2,5,950|eacme%7C", b"4,903|k1|ex"]
    acks = [row(new_id(), head, 1.0, 1.0) for head in heads]
    rows = unpacked(pack_rows("q", "w", EPOCH, acks, [], []))
    assert [r["group"] for r in rows] == ["", "a.b", "", ""]
    assert [r["share"] for r in rows] == ["", "", "acme|", "x"]


def test_a_job_alone_is_packed_as_it_would_be_in_company() -> None:
    plain = row(new_id(), b"1,900", 1.25, 1.5)
    result = Done(*row(new_id(), b"1,900", 1.25, 1.5), None, b"[1,2]")
    others = [
        row("no id of ours ü", b"1,900", 1.25, 1.5),
        row("-" * 36, b"1,900", 1.25, 1.5),
        row(new_id().upper(), b"1,900", 1.25, 1.5),
        row(new_id(), b"4,903,7,3,2,5,950", 1.25, 1.5),
        row(new_id(), b"4,9e3", 1.25, 1.5),
        row(new_id(), b"1,1700", 1.25, 1.5),  # enqueued after all that: two clocks
    ]
    queue, worker = '10 % of "q"', "%d ü"
    for one in [result, *[Done(*other, None, b"") for other in [plain, *others]]]:
        dones = [one]
        (alone,) = unpacked(pack_rows(queue, worker, EPOCH, [], dones, []))
        both = unpacked(pack_rows(queue, worker, EPOCH, [plain], dones, []))
        assert alone == both[1]
        (without,) = unpacked(pack_rows(queue, worker, EPOCH, [one[:7]], [], []))
        assert without == {**alone, "result_size": 0}
    packed = pack_rows(queue, worker, EPOCH, [plain], [], [])
    assert packed == pack_columns(unpack_one(packed)), "byte for byte"


def unpack_one(packed: bytes) -> dict[str, object]:
    (only,) = unpack(packed)
    return {name: [value] if name == "id" else value for name, value in only.items()}


def test_no_time_is_before_the_one_that_it_follows() -> None:
    """Redis's clock and ours differ by a reply's way: that is no reason to write nonsense."""
    (only,) = unpacked(pack_rows("q", "w", EPOCH, [row("a", b"1,1002", 1.0, 1.001)], [], []))
    times = [only[name] for name in ("enqueued", "acquired", "started", "finished")]
    assert times == [1002] * 4
    assert loads(BODY)[0] == only["task"]
