"""Jobs that ended are enqueued again: chosen by SQL, each once, however often it is tried.

Chosen are dead letters, with all the columns of jobs (`rqueue.spark.schemas.JOBS`) and `error`, the
type of what killed them; or jobs of a lake, of which one row of history at least fits. What is
enqueued is the job as it was: task, arguments and all options that travelled with it, at its level,
with the header `replay_of` (its old id) and without a due time. A job of the lake can come again if
its envelope is recorded there, or while its dead letter is in Redis; the others are counted, with
the reason.

Each job gets an id that is derived from the name of the replay, its queue and its old id. It is
enqueued by the very step that notes it in Redis (`rqueue.spark.write.sink`), and each batch is then
noted in a ledger (`rqueue.pipeline.replay.ledger`). A replay that was killed at any moment goes on
under the same name: what the ledger has is left out, and what was enqueued but not noted there,
Redis knows, for `REMEMBER`. A job that fits later is one more; one that was replayed under this
name never is.

Rows are chosen by Spark, and enqueued by the driver: a replay has one rate, and one order (the
jobs' own).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F

from rqueue.errors import CodecError, ConfigError
from rqueue.model.envelope import pack, unpack
from rqueue.model.ids import shortened
from rqueue.model.job import Delivery
from rqueue.pipeline.replay.ledger import Done, Ledger
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import SLICE
from rqueue.protocol.commands.enqueue import Put
from rqueue.spark.write.rows import Job
from rqueue.spark.write.sink import Sink, Task
from rqueue.transport.redis_client import execute

if TYPE_CHECKING:
    import redis
    from pyspark.sql import DataFrame, SparkSession

    from rqueue.spark.access import Access

__all__ = ["HEADER", "Chosen", "Replayed", "choose_dead", "choose_lake", "default_name", "replay"]

HEADER = "replay_of"
"""Header of a replayed job: the id that it had before."""

REMEMBER = 7 * 86_400.0
"""Seconds that Redis remembers what a replay enqueued; the ledger does for ever."""

STEP = 1000
"""Jobs enqueued between two files of the ledger, at the most."""

NOT_THERE = "its envelope is not in the lake, and no dead letter of this id is in Redis"
NO_KEYS = "it is signed, and there are no keys here to sign it again: set RQUEUE_SIGNING_KEYS"
REPLAYED = "it was replayed under this name before"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,89}")


@dataclass(frozen=True)
class Chosen:
    """The jobs that were chosen: a table with queue, id, task, level, error, body (the envelope, or
    null where Redis has it), position (of a dead letter, else 0), place (their order) and problem
    (why it cannot be replayed, or null). `ledger` is that of the replay."""

    rows: DataFrame
    ledger: Ledger

    def summary(self) -> Summary:
        """How many there are, and of which kinds."""
        found = self.rows.groupBy("queue", "task", "problem").count().collect()
        summary = Summary()
        for row in found:
            count = row["count"]
            summary.chosen += count
            if row["problem"] is None:
                summary.replayable += count
                key = (row["queue"], row["task"] or "")
                summary.kinds[key] = summary.kinds.get(key, 0) + count
            elif row["problem"] == REPLAYED:
                summary.replayed += count
            else:
                summary.refused[row["problem"]] = summary.refused.get(row["problem"], 0) + count
        return summary

    def elsewhere(self) -> dict[str, int]:
        """How many of those that would be replayed were, under other names; by name."""
        return self.ledger.of_others(self.rows.where("problem IS NULL"))

    def sample(self, count: int = 10) -> list[dict[str, Any]]:
        """Some of those that would be replayed, the first ones."""
        some = self.rows.where("problem IS NULL").orderBy("place").limit(count)
        return [row.asDict() for row in some.select("queue", "id", "task", "error").collect()]


@dataclass(slots=True)
class Summary:
    """How many jobs were chosen; how many of them can be replayed, were before, or are refused, by
    reason. `kinds`: the replayable ones by queue and task."""

    chosen: int = 0
    replayable: int = 0
    replayed: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    kinds: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(slots=True)
class Replayed:
    """The result of a replay: `jobs` that are new; `before`: that were enqueued under this name
    before; `refused`, by reason; `purged` dead letters."""

    jobs: int = 0
    before: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    purged: int = 0


# -- which ones ------------------------------------------------------------------------------------


def default_name(*facts: object) -> str:
    """The name of a replay that got none: the same for the same choice."""
    return "auto-" + blake2b(repr(facts).encode(), digest_size=6).hexdigest()


def choose_dead(
    spark: SparkSession,
    access: Access,
    where: str,
    ledger: Ledger,
    *,
    queues: Sequence[str] = (),
    limit: int | None = None,
) -> Chosen:
    """Dead letters that a condition fits, oldest position first. Spark raises what is wrong with
    the condition."""
    dead = _dead_letters(spark, access, queues)
    fitting = dead.where(F.expr(where))
    rows = fitting.select(
        "queue",
        "id",
        "task",
        "level",
        "error",
        F.lit(None).cast("string").alias("body"),
        F.coalesce("position", F.lit(0)).alias("position"),
        F.coalesce("position", F.lit(0)).alias("place"),
        F.col("problem").alias("unreadable"),
    ).dropDuplicates(["queue", "id"])
    return Chosen(_checked(rows, ledger, limit), ledger)


def choose_lake(
    spark: SparkSession,
    access: Access,
    lake: DataFrame,
    where: str,
    ledger: Ledger,
    *,
    limit: int | None = None,
) -> Chosen:
    """Jobs of a lake of which a row fits, in the order of their last one that does."""
    fitting = lake.where(F.expr(where))
    written = F.split("entry", "-")
    place = written[0].cast("long") * 1_000_000 + F.least(written[1].cast("long"), F.lit(999_999))
    last = F.struct(place.alias("place"), "row", "task", "level", "error")
    jobs = fitting.groupBy("queue", "id").agg(
        F.max(last).alias("last"), F.max("body").alias("body")
    )
    # only where there are rows: what else is in Redis may be large, or of another version
    queues = sorted(row.queue for row in jobs.select("queue").distinct().collect())
    if queues:
        dead = _dead_letters(spark, access, queues).select(
            "queue", "id", "position", F.col("problem").alias("problem_there")
        )
    else:
        dead = spark.createDataFrame(
            [], "queue string, id string, position long, problem_there string"
        )
    rows = (
        jobs.join(dead.dropDuplicates(["queue", "id"]), ["queue", "id"], "left")
        .withColumn(
            "unreadable",
            F.when(
                F.col("body").isNull(),
                F.when(F.col("position").isNull(), F.lit(NOT_THERE)).otherwise(
                    F.col("problem_there")
                ),
            ),
        )
        .select(
            "queue",
            "id",
            "last.task",
            "last.level",
            "last.error",
            "body",
            F.coalesce("position", F.lit(0)).alias("position"),
            "last.place",
            "unreadable",
        )
    )
    return Chosen(_checked(rows, ledger, limit), ledger)


def _dead_letters(spark: SparkSession, access: Access, queues: Sequence[str]) -> DataFrame:
    reader = spark.read.format("rqueue").options(**access.options).option("states", "dead")
    if queues:
        reader = reader.option("queues", ",".join(name.replace(",", "\\,") for name in queues))
    error = F.coalesce(F.get_json_object("cause", "$.type"), F.get_json_object("cause", "$.kind"))
    return reader.load().withColumn("error", error)


def _checked(rows: DataFrame, ledger: Ledger, limit: int | None) -> DataFrame:
    """Why a row cannot be replayed, in column `problem`; at most `limit` of those that can, less
    those that were replayed before: a replay that is repeated enqueues no more in all."""
    done = ledger.done()
    noted = done.select("queue", "id", F.lit(True).alias("noted"))
    reason = F.when(F.col("noted"), F.lit(REPLAYED)).otherwise(F.col("unreadable"))
    checked = rows.join(noted, ["queue", "id"], "left").withColumn("problem", reason)
    checked = checked.drop("noted", "unreadable")
    if limit is None:
        return checked
    left = max(0, limit - done.count())
    good = checked.where("problem IS NULL").orderBy("place", "queue", "id").limit(left)
    return good.union(checked.where("problem IS NOT NULL"))


# -- again -----------------------------------------------------------------------------------------


class _Ready(NamedTuple):
    """A job that is about to be enqueued again."""

    job: Job
    done: Done


def replay(
    chosen: Chosen,
    access: Access,
    name: str,
    *,
    rate: float = 0.0,
    to_queue: str | None = None,
    purge: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Replayed:
    """Enqueue again the jobs that were chosen; `on_progress` is called with how many are done.

    name: of the replay (see the module). rate: jobs a second, 0 for no limit. to_queue: another
    queue than their own. purge: drop the dead letters that were replayed. Raises ConfigError, and
    the server errors: then a part is done, and the same replay goes on.
    """
    check_name(name)
    if not 0 <= rate < float("inf"):
        raise ConfigError("rate", f"{rate!r} is no number of jobs per second")
    size = STEP if not rate else max(1, min(STEP, round(rate)))
    result = Replayed()
    with access.client() as client:
        worker = _Replay(client, access, name, rate, to_queue, result)
        try:
            rows = chosen.rows.where("problem IS NULL").orderBy("place", "queue", "id")
            iterator = rows.toLocalIterator(prefetchPartitions=True)
            while step := list(islice(iterator, size)):
                worker.step(step, chosen.ledger, purge)
                if on_progress is not None:
                    on_progress(result.jobs + result.before + sum(result.refused.values()))
            if purge:
                worker.purge_noted(chosen)
        finally:
            worker.close()
    return result


def check_name(name: str) -> str:
    """Return `name` when it may name a replay. Raises ConfigError."""
    if not _NAME.fullmatch(name):
        raise ConfigError("name", f"{name!r} is not 1 to 90 of letters, digits, '_', '.' and '-'")
    return name


def derived_id(name: str, queue: str, id: str) -> str:
    """The id of a replayed job: 22 letters and digits, 128 bits of the name and the old id."""
    digest = blake2b(f"{name}\0{queue}\0{id}".encode(), digest_size=16, person=b"rqueue-replay")
    return shortened(digest.digest())


class _Replay:
    """Enqueues one step after the other over one connection."""

    def __init__(
        self,
        client: redis.Redis,
        access: Access,
        name: str,
        rate: float,
        to_queue: str | None,
        result: Replayed,
    ) -> None:
        self._client = client
        self._access = access
        self._name = name
        self._to = to_queue
        self._result = result
        self._signer = access.signer
        # One partition for all: what was enqueued before is found, in whichever step it was.
        task = Task(f"replay-{name}", 0, 0, 250, rate, 60.0, REMEMBER)
        self._sink = Sink(client, access.keys, task, self._signer, cluster=access.cluster)

    def close(self) -> None:
        self._sink.close()

    def step(self, rows: Sequence[Any], ledger: Ledger, purge: bool) -> None:
        """Enqueue these, and note that in the ledger; then drop their dead letters."""
        ready: list[_Ready] = []
        for row in rows:
            one = self._ready(row)
            if isinstance(one, str):
                self._result.refused[one] = self._result.refused.get(one, 0) + 1
            else:
                ready.append(one)
                self._sink.add(one.job)
        self._sink.flush()
        if ready:
            ledger.add([one.done for one in ready])
        counts = self._sink.counts
        self._result.jobs = counts.jobs
        self._result.before = counts.repeated + counts.known
        if purge:
            self._purge([one.done for one in ready])

    def _ready(self, row: Any) -> _Ready | str:
        """The job to be enqueued, or why it cannot be."""
        queue, old = row["queue"], row["id"]
        body, level, most, crashes = row["body"], row["level"], 0, 0
        position = row["position"]
        try:
            if body is None:
                shown = execute(
                    self._client, commands.show(self._access.keys(queue), old), queue=queue
                )
                if shown.state != "dead":
                    return f"it is {shown.state} now, and no dead letter any more"
                dead = Delivery(old, shown.value)
                body, level, position = dead.body, dead.level, dead.position
                most, crashes = dead.max_deliveries, dead.max_crashes
            else:
                body = body.encode()
            if self._signer is not None:
                body = self._signer.verify(queue, old, body).json
            elif body[:1] == b"S":
                return NO_KEYS
            task, args, kwargs, opts = unpack(body)
            headers = {**opts.get("headers", {}), HEADER: old}
            fresh = pack(task, args, kwargs, {**opts, "headers": headers})
        except (CodecError, UnicodeError) as error:
            return f"its envelope cannot be used: {type(error).__name__}"
        new = derived_id(self._name, queue, old)
        terms = Put(new, b"", level, max_deliveries=most, max_crashes=crashes).terms
        done = Done(queue, old, position, new, round(time.time() * 1000))
        return _Ready(Job(0, self._to or queue, new, fresh, terms), done)

    def purge_noted(self, chosen: Chosen) -> None:
        """Drop dead letters that were chosen and replayed before, and that a kill left behind."""
        noted = chosen.ledger.done()
        left = chosen.rows.where(F.col("problem") == REPLAYED).where("position != 0")
        # The position tells one death from the next: a job that died again since then is another
        # one.
        rows = left.join(noted, ["queue", "id", "position"]).select(noted.columns)
        iterator = rows.toLocalIterator()
        while some := [Done(*row) for row in islice(iterator, STEP)]:
            self._purge(some)

    def _purge(self, done: Sequence[Done]) -> None:
        by_queue: dict[str, list[str]] = {}
        for one in done:
            by_queue.setdefault(one.queue, []).append(one.id)
        for queue, ids in by_queue.items():
            keys = self._access.keys(queue)
            for start in range(0, len(ids), SLICE):
                part = ids[start : start + SLICE]
                call = commands.purge_dead(keys, part)
                self._result.purged += execute(self._client, call, queue=queue)
