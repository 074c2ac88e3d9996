"""Makes the archive of classes for the Java of tests on Spark, unless it is there: `make test` runs
this first. It costs about as much as it saves for four Javas; the suite starts more than ten."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.keys import QueueKeys
from tests.support.history import write
from tests.support.spark import LOCAL_SETTINGS, end_gateway
from tests.support.spark_home import QUICK, class_archive, use_spark_home

DUMP_S = 300
"""Seconds that Java may take to write the archive."""


def make_archive(to: Path) -> bool:
    """Let a Java archive some history and read it, and keep the classes that it has loaded; False
    where this Java writes no archive."""
    from rqueue.pipeline.archive.archiver import archive
    from rqueue.spark import session

    use_spark_home()
    with tempfile.TemporaryDirectory(dir=to.parent) as folder, EmbeddedRedis() as server:
        made = Path(folder, "classes.jsa")
        # it would name each class that it leaves out
        options = f"{QUICK} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
        conf = LOCAL_SETTINGS | {"spark.driver.extraJavaOptions": options}
        with redis.Redis.from_url(server.url) as client:
            write(client, QueueKeys("mail"), entries=3, rows=40)
        spark = session("local[2]", "rqueue-classes", quiet=True, **conf)
        archive(spark, f"{folder}/lake", {"url": server.url}, once=True)
        spark.read.parquet(f"{folder}/lake").groupBy("queue").count().collect()
        spark.stop()
        end_gateway(DUMP_S)
        if made.exists():
            made.rename(to)
    return to.exists()


def main() -> int:
    if class_archive().exists():
        return 0
    print("make: archiving the classes of Spark, once, so that its Java starts quickly", flush=True)
    if not make_archive(class_archive()):
        print("make: this Java wrote no archive; Spark starts without", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
