"""A password shows nowhere: not in plans, logs, checkpoints, event logs, or what fails."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.keys import QueueKeys
from tests.support.history import trim, write
from tests.support.spark import TIMEOUT

USER, PASSWORD = "reporter", "hunter2-s3cr3t"
ROOT = Path(__file__).resolve().parents[2]

# Everything that Spark is ready to say: its whole log, its event log, extended plans, and errors.
DRIVER = """
import sys
from rqueue.spark import session

url, folder = sys.argv[1:]
spark = session("local[2]", **{
    "spark.log.level": "INFO",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": folder + "/events",
    "spark.eventLog.compress": "false",
    "spark.sql.shuffle.partitions": "1",
})
options = {"url": url, "queues": "q"}
frame = spark.read.format("rqueue-history").options(**options).load()
for mode in ("extended", "formatted"):
    frame.filter("outcome = 'ack'").groupBy("task").count().explain(mode=mode)
print("ROWS", frame.count())
print(repr(frame), frame._jdf.queryExecution().toString())

def stream(**more):
    query = (
        spark.readStream.format("rqueue-history").options(**options, **more).load()
        .writeStream.format("parquet")
        .option("checkpointLocation", folder + "/checkpoint").option("path", folder + "/out")
        .trigger(availableNow=True).start()
    )
    query.explain(True)
    try:
        query.awaitTermination()
    except Exception as error:
        print("FAILED", error)
    print(query.lastProgress, query.status)

stream()
sys.stdin.readline()  # now rows are trimmed
stream()
sys.stdin.readline()  # now the password is another one
stream(failOnDataLoss="false")
try:
    frame.count()
except Exception as error:
    print("FAILED", error)
print("END")
"""


@pytest.mark.long
@pytest.mark.timeout(TIMEOUT)
def test_a_password_is_seen_nowhere(make_server: Any, tmp_path: Path) -> None:
    server: EmbeddedRedis = make_server(port=0)
    keys = QueueKeys("q")
    (tmp_path / "events").mkdir()
    admin = redis.Redis.from_url(server.url)
    admin.acl_setuser(
        USER, enabled=True, passwords=[f"+{PASSWORD}"], keys=["*"], commands=["+@all"]
    )
    admin.config_set("requirepass", "for-the-admin-alone")
    written = write(admin, keys, 3, 10)
    environ = {**os.environ, "RQUEUE_USERNAME": USER, "RQUEUE_PASSWORD": PASSWORD}
    with (tmp_path / "stdout").open("w") as out, (tmp_path / "stderr").open("w") as log_file:
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", DRIVER, server.tcp_url, str(tmp_path)],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=log_file,
            cwd=tmp_path,
            text=True,
        )
    assert process.stdin is not None
    checkpoint = tmp_path / "checkpoint/commits/0"
    try:
        wait_for(process, checkpoint)
        write(admin, keys, 3, 10)
        trim(admin, keys, 5)
        process.stdin.write("\n")
        process.stdin.flush()
        wait_for(process, tmp_path / "stdout", "history of queue 'q' is lost")
        admin.acl_setuser(USER, passwords=[f"-{PASSWORD}", "+another"])
        process.stdin.write("\n")
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0, (tmp_path / "stderr").read_text()[-3000:]
    finally:
        process.kill()
        process.wait()
        admin.close()
    said = (tmp_path / "stdout").read_text()
    assert "ROWS 30" in said, said
    assert said.rstrip().endswith("END")
    assert f"after entry {written[-1]}" in said
    assert said.count("Redis refuses the login") >= 2
    log = (tmp_path / "stderr").read_text()
    assert "MicroBatchExecution" in log  # it is Spark's own log
    events = [path.read_text() for path in (tmp_path / "events").rglob("events_*")]
    assert any("rqueue-history" in text for text in events)
    seen = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and PASSWORD.encode() in path.read_bytes()
    ]
    assert seen == []


def wait_for(process: subprocess.Popen[str], file: Path, text: str = "") -> None:
    """Until a file is there and holds a text: files tell nobody."""
    pause, deadline = threading.Event(), time.monotonic() + TIMEOUT
    while not (file.exists() and text in file.read_text()):
        assert process.poll() is None, file.parent.joinpath("stderr").read_text()[-3000:]
        assert time.monotonic() < deadline
        pause.wait(0.1)
