"""What Java and Spark say when our commands start them; see also the archiver that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from rqueue.spark import session
from rqueue.spark.quiet_java import LOG4J, start_java, worth_saying
from tests.support.spark_home import QUICK


def test_what_java_says_each_time_is_left_out() -> None:
    said = [
        b"WARNING: Using incubator modules: jdk.incubator.vector\n",
        b"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n",
        b"Error: Could not create the Java Virtual Machine.\n",
        b"OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory failed\n",
    ]
    assert list(worth_saying(said)) == said[2:]


def test_java_that_does_not_start_says_why(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that says something and does not come up."""

    def launch(_conf: object, popen_kwargs: dict[str, Any]) -> None:
        text = "WARNING: as always\nInvalid maximum heap size\n"
        program = f"import os; os.write(2, {text!r}.encode())"
        subprocess.run([sys.executable, "-c", program], check=True, **popen_kwargs)
        assert str(LOG4J) in os.environ["SPARK_SUBMIT_OPTS"]
        raise RuntimeError("JAVA_GATEWAY_EXITED")

    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch)
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    with pytest.raises(RuntimeError, match="GATEWAY_EXITED"):
        start_java({})
    assert capfd.readouterr().err == "Invalid maximum heap size\n"
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-Dmine=1"


@pytest.mark.parametrize(
    ("wanted", "conf", "silent"),
    [
        (True, {}, True),
        (True, {"spark.log.level": "INFO"}, False),  # who asks for Spark's log gets all of it
        (False, {}, False),  # the sessions of users
    ],
)
def test_who_gets_a_silent_java(
    monkeypatch: pytest.MonkeyPatch, wanted: bool, conf: dict[str, str], silent: bool
) -> None:
    class Enough(Exception):
        pass

    def started(_: object) -> bool:
        raise Enough

    def made(_: object) -> None:
        raise LookupError

    monkeypatch.setattr(sys.modules["rqueue.spark.session"], "start_java", started)
    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", made)
    with pytest.raises(Enough if silent else LookupError):
        session("local[1]", quiet=wanted, **conf)


@pytest.mark.long
@pytest.mark.timeout(200)
@pytest.mark.parametrize("level", [None, "INFO"])
def test_the_flag_that_shows_spark_s_log(level: str | None) -> None:
    conf = {"spark.driver.extraJavaOptions": QUICK}
    conf |= {} if level is None else {"spark.log.level": level}
    program = f"from rqueue.spark import session\nsession('local[1]', quiet=True, **{conf!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ("Using Spark's default log4j profile" in done.stderr) == (level == "INFO")
    if level is None:
        assert done.stderr == ""
