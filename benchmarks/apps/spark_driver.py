"""A Spark driver that writes jobs and archives history, both at once, until a signal comes.

`python -m benchmarks.apps.spark_driver URL MASTER FOLDER JOBS`: jobs go into the queue in rounds of
so many, each a write with a name of its own; which round comes next stands in FOLDER/round. Killed
at any moment and started again, it repeats the round that was under way. When FOLDER/stop is there
it writes no further round, and when FOLDER/drained is there it archives what is left, and ends. It
says a line for each round, for each batch of the archive, and for each of these steps.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.lab.processes import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4


def next_round(folder: Path) -> int:
    """The number of rounds that are done."""
    try:
        return int((folder / "round").read_text())
    except FileNotFoundError:
        return 0


def write_rounds(spark: SparkSession, url: str, folder: Path, jobs: int) -> None:
    """Round after round, until there is the file `stop`; at least one, for it may be half done."""
    while True:
        number = next_round(folder)
        table = spark.range(number * jobs, (number + 1) * jobs, 1, PARTITIONS)
        options = {"url": url, "queue": "bench", "task": "stamp", "runId": f"round-{number}"}
        options["batchSize"] = "100"
        writer = table.selectExpr("array(id) AS args").write.format("rqueue").options(**options)
        writer.mode("append").save()
        draft = folder / "round.new"
        draft.write_text(str(number + 1))
        draft.replace(folder / "round")
        print(f"round {number}", flush=True)
        if (folder / "stop").exists():
            return


def main(url: str, master: str, folder: Path, jobs: int) -> None:
    """See above; a failure of either part ends both."""
    from rqueue.pipeline.archive.archiver import archive
    from rqueue.spark import session

    more: dict[str, Any] = {
        "spark.executorEnv.PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "workers"))),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.executor.memory": "512m",
        "spark.scheduler.mode": "FAIR",  # neither part waits for all of the other's tasks
    }
    spark = session(master, "rqueue-kill", **more)
    lake, options = str(folder / "lake"), {"url": url, "queues": "bench"}
    options["maxRowsPerBatch"] = "5000"
    stop = threading.Event()

    def run() -> None:
        try:
            archive(
                spark,
                lake,
                options,
                interval_s=0.5,
                stop=stop,
                on_batch=lambda batch: print(f"batch {batch.number}", flush=True),
            )
        except BaseException as error:
            print(f"archive: {error}", flush=True)
            os._exit(1)

    archiver = threading.Thread(target=run, name="archiver")
    archiver.start()
    try:
        write_rounds(spark, url, folder, jobs)
    except BaseException as error:
        print(f"write: {error}", flush=True)
        os._exit(1)
    print("written", flush=True)
    while not (folder / "drained").exists():  # a pool works off what is left
        time.sleep(0.05)
    stop.set()
    archiver.join()
    archive(spark, lake, options, once=True)
    print("end", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
