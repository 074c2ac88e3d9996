"""Plans for queues whose answer is known."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import redis
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError
from rqueue.pipeline.plan.keda import keda_yaml, scaling
from rqueue.pipeline.plan.measure import TooFew, burstiness, measure, visits
from rqueue.pipeline.plan.plan import Goal, Plan, plan, plan_pool, rising
from rqueue.pipeline.plan.queueing import Load, wait_quantile
from rqueue.spark.schemas import HISTORY, HISTORY_COLUMNS, arrow_schema
from rqueue.tasks.options import Options
from tests.pipeline.history_rows import T0, frame

Floats = NDArray[np.float64]


def drawn(rate: float, run: float, count: int, seed: int = 1) -> tuple[Floats, Floats]:
    """Arrivals at random and runs without memory, whose means are exact."""
    random = np.random.default_rng(seed)
    exact = -np.log(1 - (np.arange(count) + 0.5) / count)
    exact /= exact.mean()
    return np.cumsum(random.permutation(exact) / rate), random.permutation(exact) * run


def history(
    spark: SparkSession, arrived: Floats, runs: Floats, *, queue: str = "mail", wait: int = 10
) -> DataFrame:
    """Rows of jobs that arrived and ran so (seconds), each after a wait in ms."""
    count = len(arrived)
    at = T0 + (arrived * 1000).astype("int64")
    begun = at + wait
    ended = begun + (runs * 1000).round().astype("int64")
    known = {
        "queue": [queue] * count,
        "entry": [f"{ms}-0" for ms in ended],
        "row": [0] * count,
        "id": [f"{queue}-{i}" for i in range(count)],
        "level": [4] * count,
        "outcome": ["ack"] * count,
        "enqueued": at * 1000,
        "started": begun * 1000,
        "finished": ended * 1000,
    }
    schema = arrow_schema(HISTORY_COLUMNS)
    arrays = [
        pa.array(known[field.name], field.type)
        if field.name in known
        else pa.nulls(count, field.type)
        for field in schema
    ]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))


def quick(target: float, **more: object) -> Goal:
    return Goal(target, **{"repetitions": 6, "jobs": 6_000, "loads": (0.5, 1.0, 2.0), **more})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made() -> dict[str, Plan]:
    return {}


@pytest.fixture
def known(spark: SparkSession, made: dict[str, Plan]) -> Plan:
    """4 workers busy; p95 within 0.8 s takes 6 of them: 1.20 s with 5, 0.44 s with 6 (Erlang)."""
    if not made:
        rows = history(spark, *drawn(8.0, 0.5, 12_000))
        (made["it"],) = plan(spark, rows, quick(0.8), window_s=3600)
    return made["it"]


def test_the_right_number_is_found(known: Plan) -> None:
    exact = {c: wait_quantile(Load(8.0, 0.5), c, 0.95) for c in (5, 6)}
    assert exact[5] > 0.8 > exact[6], "what the test rests on"
    assert (known.workers, known.model_workers) == (6, 6)
    assert known.by_load[1.0] == 6
    assert known.by_load[0.5] < 6 < known.by_load[2.0] == 10


def test_what_was_measured_is_what_came(known: Plan) -> None:
    measured = known.measured
    assert (measured.queues, measured.visits, measured.jobs) == (("mail",), 12_000, 12_000)
    assert measured.load.rate == pytest.approx(8.0, rel=0.02)
    assert measured.load.run == pytest.approx(0.5, rel=0.01)
    assert measured.load.arrivals_cv2 == pytest.approx(1.0, rel=0.1)
    assert measured.load.runs_cv2 == pytest.approx(1.0, rel=0.02)
    assert measured.wait_s == pytest.approx(0.01, rel=0.1)


def test_the_simulation_checks_the_model(known: Plan) -> None:
    assert known.error is not None and known.error < 0.15
    assert known.sets == sum(
        known.goal.repetitions * ((point.fitted is not None) + (point.measured is not None))
        for point in known.points
    )
    for point in known.curve():
        assert point.fitted is not None and point.measured is not None
        if point.workers == 6:
            assert point.fitted.wait == pytest.approx(0.435, rel=0.15)
    waits = [point.fitted.wait for point in known.curve() if point.fitted is not None]
    assert waits == sorted(waits, reverse=True)


def test_the_same_history_and_seed_make_the_same_plan(spark: SparkSession, known: Plan) -> None:
    again = plan_pool(spark, known.measured, known.goal)
    assert again.points == known.points
    other = plan_pool(spark, known.measured, quick(0.8, seed=2))
    assert other.points != known.points


def test_bursts_that_a_count_shows_take_more_workers(spark: SparkSession) -> None:
    # every 20 s the jobs of 20 s at once: far from what arrives at random
    arrived = np.repeat(np.arange(200) * 20.0, 80)
    runs = np.full(len(arrived), 0.25)
    (found,) = plan(spark, history(spark, arrived, runs), quick(2.0, loads=(1.0,)), window_s=4000)
    assert found.measured.load.erlangs == pytest.approx(1.0, rel=0.02)
    # 80 jobs at once: with c workers the k-th waits 0.25·floor(k/c) s, and the 76th may wait 2 s
    exact = next(c for c in range(2, 80) if 0.25 * ((math.ceil(0.95 * 80) - 1) // c) <= 2.0)
    trace = [point for point in found.curve() if point.measured and point.measured.most <= 2.0]
    assert min(point.workers for point in trace) in (exact, exact + 1)
    assert found.workers >= exact
    assert plan_pool(spark, found.measured, quick(20.0, loads=(1.0,))).workers < exact


def test_runs_are_counted_with_their_retries(spark: SparkSession) -> None:
    rows = frame(
        spark,
        [
            {"id": "a", "outcome": "retry", "at": 400, "enqueued": 0, "started": 100}
            | {"finished": 400},
            # released: comes again when the run before ended, though nothing says it was due
            {"id": "a", "outcome": "release", "at": 900, "enqueued": 0, "started": 600}
            | {"finished": 900, "due": 500},
            {"id": "a", "outcome": "ack", "at": 1500, "enqueued": 0, "started": 1000}
            | {"finished": 1000, "due": 500},
            {"id": "b", "outcome": "cancelled", "at": 1600, "enqueued": 0},
            {"id": "c", "outcome": "ack", "at": 2000, "enqueued": 1800, "started": 1790}
            | {"finished": 1900},
        ],
    )
    found = visits(rows).orderBy("arrived").collect()
    assert [(row["id"], row["arrived"] - T0) for row in found] == [
        ("a", 0),
        ("a", 500),
        ("a", 900),
        ("c", 1800),
    ]
    assert [row["waited"] for row in found] == pytest.approx([0.1, 0.1, 0.1, 0.0])
    assert [row["run"] for row in found] == pytest.approx([0.3, 0.3, 0.0005, 0.11])


def test_the_busiest_window_counts(spark: SparkSession) -> None:
    quiet, busy = np.arange(0, 600, 5.0), np.arange(600, 1200, 0.5)
    arrived = np.concatenate([quiet, busy, np.arange(1200, 1800.1, 5.0)])
    (found,) = measure(history(spark, arrived, np.full(len(arrived), 0.2)), window_s=600)
    assert found.window_s == pytest.approx(600, rel=0.01)
    assert found.load.rate == pytest.approx(2.0, rel=0.05)
    assert (found.busiest_ms - T0) / 1000 == pytest.approx(600, abs=1)
    assert found.quietest == pytest.approx(0.2 * 0.2, rel=0.05)
    assert found.average == pytest.approx(0.2 * len(arrived) / 1800, rel=0.05)
    assert found.load.arrivals_cv2 < 0.1


def test_a_plan_for_each_queue(spark: SparkSession) -> None:
    one = history(spark, *drawn(2.0, 0.5, 300), queue="b")
    two = history(spark, *drawn(2.0, 0.5, 300), queue="a")
    few = history(spark, *drawn(2.0, 0.5, 99), queue="few")
    every = one.union(two).union(few)
    assert [found.queues for found in measure(every)] == [("a",), ("b",)]
    assert [found.queues for found in measure(every, queues=["b", "few"])] == [("b",)]


def served(
    spark: SparkSession, arrived: Floats, runs: Floats, workers: int, *, lost: float = 0.0
) -> DataFrame:
    """History of queues `a` and `b` in turn, served by one pool of so many workers, oldest job
    first. lost: seconds for which each worker is away behind each job."""
    free = [0.0] * workers
    rows = []
    for number, (at, run) in enumerate(zip(arrived.tolist(), runs.tolist(), strict=True)):
        slot = min(range(workers), key=free.__getitem__)
        begin = max(at, free[slot])
        free[slot] = begin + run + lost
        ms = {"enqueued": at, "started": begin, "finished": begin + run, "at": begin + run}
        rows.append(
            {"queue": "ab"[number % 2], "id": str(number), "outcome": "ack", "task": "t"}
            | {name: round(value * 1000) for name, value in ms.items()}
            # one that ended is followed by another one in its place
            | {"worker": f"host:7:{slot}-{'0a' if number % 400 < 200 else '0b'}0000"}
        )
    return frame(spark, rows)


def test_queues_of_one_pool_are_planned_together(spark: SparkSession) -> None:
    """What asks for one of them plans the pool; with the workers there were the model says what
    was measured."""
    rows = served(spark, *drawn(3.0, 0.5, 1000), workers=2)
    (found,) = plan(spark, rows, quick(1.0, loads=(1.0,)), queues=["a"], window_s=600)
    assert found.measured.queues == ("a", "b")
    assert found.measured.load.erlangs == pytest.approx(1.5, rel=0.1)
    assert found.check is not None and found.check.slots == 2
    assert found.check.model_s == pytest.approx(found.check.measured_s, rel=0.05)
    assert found.trusted and found.workers > 2


def test_a_model_that_contradicts_what_was_is_not_trusted(spark: SparkSession) -> None:
    """The workers were away half a second behind each job (crashes): that is in no run time."""
    rows = served(spark, *drawn(2.0, 0.4, 1000), workers=2, lost=0.8)
    (found,) = plan(spark, rows, quick(1.0, loads=(1.0,)), window_s=600)
    assert found.check is not None
    assert found.check.model_s < 1.0 and found.check.measured_s > 5.0
    assert not found.trusted


def test_too_few_are_refused(spark: SparkSession) -> None:
    with pytest.raises(TooFew, match="99 in the best queue"):
        measure(history(spark, *drawn(2.0, 0.5, 99)))
    with pytest.raises(TooFew, match="0 in the best queue"):
        measure(spark.createDataFrame([], HISTORY))


def test_burstiness() -> None:
    random = np.random.default_rng(4)
    plain = np.sort(random.uniform(0, 1000, 50_000))
    assert burstiness(plain, 1000, 0.1) == pytest.approx(1.0, abs=0.2)
    assert burstiness(np.arange(0, 1000, 0.1), 1000, 0.1) < 0.01
    # batches of 10 at random: variance of a count is 10 times its mean
    batches = np.sort(np.repeat(random.uniform(0, 1000, 5_000), 10))
    assert burstiness(batches, 1000, 0.1) > 7
    # a rate that alternates slowly, without batches: only the counts see it
    slow = [random.uniform(t, t + 10, 900 if t % 20 else 100) for t in range(0, 1000, 10)]
    mixed = np.sort(np.concatenate(slow))
    gaps = np.diff(mixed)
    assert gaps.var() / gaps.mean() ** 2 < 6 < 25 < burstiness(mixed, 1000, 1.0)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"target": 0.0}, "target"),
        ({"target": math.inf}, "target"),
        ({"quantile": 0.2}, "percentile"),
        ({"quantile": 1.0}, "percentile"),
        ({"repetitions": 2}, "repetitions"),
        ({"jobs": 10}, "jobs"),
        ({"loads": (0.5, 2.0)}, "loads"),
    ],
)
def test_a_wrong_goal_is_named(more: dict[str, float], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        Goal(**{"target": 1.0, **more})  # type: ignore[arg-type]


def test_numbers_for_an_autoscaler(known: Plan) -> None:
    one = scaling(known)
    assert (one.most, one.least) == (6, 6), "one window: the quietest is the busiest"
    assert scaling(replace(known, measured=replace(known.measured, quietest=0.0))).least == 1
    assert one.waiting == 1, "0.8 s of work for one worker is 1.6 runs"
    four = scaling(known, slots=4, growth=2.0)
    assert (four.most, four.waiting) == (3, 6)
    # Little: 16 jobs a second, half a second each, and the 102 ms that 10 workers let them wait,
    # before 3 replicas; 8 a second, before the 2 replicas of 6 workers; 4 a second, before 1
    each = [16 * (0.5 + 0.102) / 3, 8 * (0.5 + 0.071) / 2]
    assert four.in_system == pytest.approx(min(*each, 4 * 0.55), rel=0.05)
    assert 1 <= four.polling_s <= 30 and four.cooldown_s >= 60
    with pytest.raises(ConfigError, match="growth"):
        scaling(known, growth=7.0)
    with pytest.raises(ConfigError, match="slots"):
        scaling(known, slots=0)


def test_the_rule_for_keda(known: Plan) -> None:
    text = keda_yaml(known, scaling(known, slots=4), address="db:7000", database=3, namespace="n")
    facts = dict(re.findall(r"^\s*(?:- )?(\w+): (.+?)(?:  #.*)?$", text, re.M))
    assert facts["kind"] == "ScaledObject"
    assert (facts["minReplicaCount"], facts["maxReplicaCount"]) == ("2", "2")
    assert re.findall(r'listName: "(.*)"', text) == [
        "n:{mail}:jobs",
        "n:{mail}:dead",
        "n:{mail}:scheduled",
    ]
    assert facts["formula"] == '"jobs_0 - dead_0 - later_0"'
    assert (facts["address"], facts["databaseIndex"]) == ('"db:7000"', '"3"')
    assert "\t" not in text


def test_one_rule_for_one_deployment(known: Plan) -> None:
    two = replace(known, measured=replace(known.measured, queues=("mail", "p d}f")))
    text = keda_yaml(two, scaling(two), deployment="pool")
    assert text.count("kind: ScaledObject") == text.count("scaleTargetRef") == 1
    assert 'name: "rqueue-mail-p-d-f"' in text and 'name: "pool"' in text
    assert '"jobs_0 - dead_0 - later_0 + jobs_1 - dead_1 - later_1"' in text
    assert text.count("- type: redis") == 6
    assert len(set(re.findall(r"name: (\w+_\d)", text))) == 6


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


def test_the_number_counts_what_is_to_be_done(
    known: Plan, queue: Queue, client: redis.Redis
) -> None:
    """Ready and held jobs, neither dead letters nor those of next week, by KEDA's own script."""
    its = replace(known, measured=replace(known.measured, queues=(queue.name,)))
    text = keda_yaml(its, scaling(its), namespace=queue.keys.namespace)
    keys = dict(re.findall(r'name: (\w+_0)\n(?:.*\n)*?.*listName: "(.*)"', text))
    [formula] = re.findall(r'formula: "(.*)"', text)

    def number() -> int:
        return int(eval(formula, {name: client.eval(LENGTH, 1, key) for name, key in keys.items()}))

    assert number() == 0
    queue.send("later", options=Options(delay_ms=3_600_000))
    assert number() == 0
    for _ in range(3):
        queue.send("now", options=Options(priority=9))
    assert number() == 3
    with queue.consumer(jobs=2, renew=False) as consumer:
        first, second = consumer.pull()
        assert number() == 3
        consumer.reject(first, "no")
        consumer.retry(second, delay=60)
        assert number() == 1


LENGTH = """
local of = { zset = 'zcard', set = 'scard', list = 'llen', hash = 'hlen', none = 'llen' }
return redis.call(of[redis.call('type', KEYS[1]).ok], KEYS[1])"""
"""How KEDA's scaler for lists counts, since its version 2."""


def test_more_load_takes_no_fewer_workers() -> None:
    """The measured arrivals, or chance, may take more at one load than a higher one takes."""
    assert rising({1.0: 9, 0.5: 4, 0.75: 7, 1.25: 8, 2.0: 12}) == {
        **{1.0: 9, 0.5: 4, 0.75: 7},
        **{1.25: 9, 2.0: 12},
    }
