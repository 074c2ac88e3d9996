"""Run the demo of the pipeline: a pool with failures, an archiver that is killed, a report, a
replay, and a comparison of the lake with history and with the jobs that there were."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rqueue.client._sync.queue import Queue
from rqueue.demo import tenants
from rqueue.demo.archiver import QUICK_START, Archiver
from rqueue.demo.comparison import Comparison, RowKey, print_comparison
from rqueue.demo.modules import library_files
from rqueue.demo.pool import Pool, running_pool
from rqueue.demo.traffic import Traffic
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RQueueError
from rqueue.inspector.history import read_history

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from rqueue.spark.access import Access

FILES = 500
DONE_S = 300.0
REPLAY = "storage-is-back"
SMALL = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": QUICK_START}
"""Settings for data that is small."""


def run(console: Console | None = None, files: int = FILES, folder: Path | None = None) -> int:
    """Run the demo; exit code 0 only if lake, history and jobs agree.

    files: of Python's library, spread evenly over it. folder: for the report's page and the lake;
    a new temporary one by default. Raises SparkMissing and JavaMissing, before anything is begun.
    """
    from rqueue.spark.java import use_java
    from rqueue.spark.registration import require_spark

    require_spark()
    use_java()
    console = console or Console()
    folder = Path(tempfile.mkdtemp(prefix="rqueue-demo-spark-")) if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="rqueue-demo-") as data,
            EmbeddedRedis(Path(data) / "redis", persistent=True) as server,
        ):
            paths = spread_evenly(list(library_files()), files)
            show = Show(console, server.url, folder, logs, paths)
            version = ".".join(map(str, server.binary.version))
            show.say(f"embedded server {version}; {len(show.paths)} files, two tenants, two tasks")
            found = show.play()
    except (RQueueError, OSError) as error:
        console.print("[red]the demo failed:[/]", escape(str(error)), highlight=False)
        console.print(f"its logs: {logs}", highlight=False, markup=False, soft_wrap=True)
        return 1
    print_comparison(console, found)
    console.print(f"report: {show.page}", highlight=False, markup=False, soft_wrap=True)
    console.print(f"lake:   {show.lake}", highlight=False, markup=False, soft_wrap=True)
    return 1 if found.problems else 0


def spread_evenly(paths: list[str], count: int) -> list[str]:
    """`count` of them, from all over the list."""
    return [paths[index * len(paths) // count] for index in range(min(count, len(paths)))]


@dataclass
class Show:
    """One run: where everything is, and what was enqueued."""

    console: Console
    url: str
    folder: Path
    logs: Path
    paths: list[str]
    jobs: set[str] = field(default_factory=set)
    _began: float = field(default_factory=time.monotonic)

    @property
    def lake(self) -> Path:
        """The lake's folder."""
        return self.folder / "lake"

    @property
    def page(self) -> Path:
        """The report's page."""
        return self.folder / "report.html"

    def say(self, text: str) -> None:
        """A line with the time since the beginning."""
        seconds = int(time.monotonic() - self._began)
        line = f"[dim]{seconds // 60}:{seconds % 60:02d}[/]  {text}"
        self.console.print(line, highlight=False, soft_wrap=True)

    def play(self) -> Comparison:
        """All of it, in order."""
        outage = {tenants.VARIABLE: str(self.folder / "outage")}
        log = self.logs / "pool.log"
        with running_pool(
            self.url, tenants.__name__, tenants.QUEUES, log, variables=outage
        ) as pool:
            self._work(pool)
            from rqueue.spark import session

            self.say("starting Spark here, for the report")
            spark = session("local[2]", "rqueue-demo", quiet=True, **SMALL)
            try:
                self._report(spark)
                self._replay(spark, pool)
                self._archive_again(spark)
                return self._compare(spark)
            finally:
                spark.stop()

    # -- the pool, and its work --------------------------------------------------------------------

    def _work(self, pool: Pool) -> None:
        """Enqueue in waves, while an archiver works; kill it, and start another one."""
        log = self.logs / "archiver.log"
        archiver = Archiver(self.url, self.lake, log, self._archived)
        try:
            self.say(f"started the archiver, process {archiver.pid}")
            traffic = Traffic(self.url, self.paths, self.folder / "outage", self.say)
            traffic.start()
            wait_until(
                lambda: archiver.batches >= 1, "the first batch of the archive", pool, archiver
            )
            self.say(f"tenants alpha and beta send {len(traffic):,} jobs, alpha evenly")
            traffic.go()
            wait_until(
                lambda: archiver.batches >= 2 and traffic.half_sent,
                "half of the jobs",
                pool,
                archiver,
            )
            archiver.kill()
            self.say(f"[bold]killed the archiver with SIGKILL[/] after {archiver.batches} batches")
            archiver = Archiver(self.url, self.lake, log, self._archived)
            self.say(f"started it again, process {archiver.pid}")
            traffic.join()
            self.jobs |= traffic.jobs
            wait_until(lambda: archiver.batches >= 1, "a batch of the archive", pool, archiver)
            self._wait_for_jobs(pool, archiver)
            self.say(f"all {len(self.jobs):,} jobs ended")
        finally:
            archiver.stop()

    def _archived(self, said: dict[str, Any]) -> None:
        if said["event"] == "batch":
            lag = said["lag_rows"]
            self.say(
                f"archived {said['rows']:,} rows in {said['seconds']:.1f} s, {said['total']:,} by"
                f" this archiver; {lag:,} wait in Redis"
            )

    def _wait_for_jobs(self, *needed: Pool | Archiver) -> None:
        """Until nothing waits, is held or scheduled."""
        queues = [Queue(name, self.url) for name in tenants.QUEUES]

        def idle() -> bool:
            counts = [queue.counts() for queue in queues]
            return not any(one.ready + one.scheduled + one.held for one in counts)

        try:
            wait_until(idle, "the end of all jobs", *needed)
        finally:
            for queue in queues:
                queue.close()

    # -- the pipeline ------------------------------------------------------------------------------

    def _report(self, spark: SparkSession) -> None:
        from rqueue.pipeline.report.report import Objectives, report
        from rqueue.pipeline.table import history

        now = round(time.time() * 1000)
        start = now - 86_400_000
        rows = history(spark, start, now, lake=str(self.lake), live={"url": self.url})
        objectives = Objectives(wait_s=2.0, run_s=0.5)
        found = report(
            rows,
            start,
            now,
            objectives=objectives,
            sources=[f"lake {self.lake}", "what is in Redis only"],
            access=self._access(),
        )
        try:
            self.page.write_text(found.html(), encoding="utf-8")
        finally:
            found.close()
        self.say(f"wrote the report: {escape(str(self.page))}")

    def _replay(self, spark: SparkSession, pool: Pool) -> None:
        from rqueue.pipeline.replay.ledger import Ledger
        from rqueue.pipeline.replay.replay import choose_dead, replay

        access = self._access()
        dead = spark.read.format("rqueue").options(url=self.url, states="dead").load()
        tenant = dead["headers"]["tenant"].alias("tenant")
        kinds = dead.groupBy("task", tenant, _error()).count()
        table = Table("task", "tenant", "error", "jobs", title="dead letters")
        for row in kinds.orderBy("task", "tenant", "error").collect():
            table.add_row(row["task"], row["tenant"], row["error"], f"{row['count']:,}")
        self.console.print(table)
        ledger = Ledger(spark, str(self.lake), REPLAY)
        chosen = choose_dead(
            spark, access, "error LIKE '%StorageAway'", ledger, queues=tenants.QUEUES
        )
        done = replay(chosen, access, REPLAY)
        self.jobs |= {row["replayed_as"] for row in ledger.done().collect()}
        self.say(f"replayed the {done.jobs:,} that the storage had failed")
        self._wait_for_jobs(pool)
        self.say("they ended")

    def _archive_again(self, spark: SparkSession) -> None:
        from rqueue.pipeline.archive.archiver import archive

        done = archive(spark, str(self.lake), {"url": self.url}, once=True)
        self.say(f"archived what came since: {done.rows:,} rows")

    def _compare(self, spark: SparkSession) -> Comparison:
        from rqueue.pipeline.lake import lake

        rows = lake.read(spark, str(self.lake)).select("queue", "entry", "id", "outcome", "row")
        archived = [
            ((row["queue"], row["entry"], row["id"], row["outcome"]), row["row"])
            for row in rows.collect()
        ]
        return Comparison.of(self._history(), archived, self.jobs)

    def _history(self) -> Iterator[RowKey]:
        """Rows by the package's own reader, which knows no Spark."""
        for name in tenants.QUEUES:
            with Queue(name, self.url) as queue:
                for row in read_history(queue.redis, queue.keys):
                    yield name, row["entry"], row["id"], row["outcome"]

    def _access(self) -> Access:
        from rqueue.spark.access import Access
        from rqueue.spark.options import JobsRead, read_options

        return Access.of(read_options(JobsRead, {"url": self.url}))


def _error() -> Column:
    from pyspark.sql import functions as F

    kind = F.coalesce(F.get_json_object("cause", "$.type"), F.get_json_object("cause", "$.kind"))
    return F.substring_index(kind, ".", -1).alias("error")


def wait_until(true: Callable[[], object], what: str, *needed: Pool | Archiver) -> None:
    """Look until it is true. Raises RQueueError after too long, and if one of the programs that
    are needed for it ends."""
    end = time.monotonic() + DONE_S
    pause = threading.Event()
    while not true():
        for program in needed:
            program.check()
        if time.monotonic() > end:
            raise RQueueError(f"{what}: not within {DONE_S:g} s")
        pause.wait(0.1)
