"""A Java for Spark that does not write to the terminal of our commands.

Spark greets with a banner and warns of things that cannot be changed before a log level can be set;
Java itself warns of the modules that Spark asks it for. Java's other messages are passed on: why it
cannot start, or why it dies.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["end_quietly", "start_java"]

LOG4J = Path(__file__).with_name("log4j2.properties")

STDERR = 2

_OPTIONS = "SPARK_SUBMIT_OPTS"
"""Spark's variable for options of the Java that it starts, beside those of its settings."""

_NOISE = re.compile(rb"WARNING: |Picked up \w+: ")
"""How lines begin with which Java announces incubating modules and the like, and options that the
environment gave it."""


def start_java(settings: Mapping[str, Any]) -> bool:
    """Start the Java of this process's Spark sessions, silently; False if one runs already.

    settings: of the session that is made next. Raises what PySpark raises when it does not start;
    what Java said is on stderr by then.
    """
    from pyspark import SparkConf, SparkContext, java_gateway

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return False
    conf = SparkConf().setAll([(name, str(value)) for name, value in settings.items()])
    read_end, write_end = os.pipe()
    said = os.fdopen(read_end, "rb")
    reader = threading.Thread(target=_pass_on, args=(said,), name="java-stderr", daemon=True)
    reader.start()
    try:
        with _without_log():
            launch: Any = java_gateway.launch_gateway
            gateway = launch(conf, popen_kwargs={"stderr": write_end})
    except BaseException:
        os.close(write_end)
        reader.join(5)  # all that it said, before the error that this is
        raise
    os.close(write_end)
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)
    return True


def end_quietly(spark: SparkSession) -> None:
    """When the Java of a session is killed, let PySpark print no traceback for each connection: who
    waits for an answer gets an error."""
    for name in ("py4j", "py4j.java_gateway", "py4j.clientserver"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)  # some of it goes to the root
    server: Any = spark.sparkContext._accumulatorServer
    if server is not None:
        server.handle_error = lambda *_: None


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """Log4j of the next Java takes our file, beside all that the environment asks of that Java."""
    before = os.environ.get(_OPTIONS)
    ours = f'"-Dlog4j2.configurationFile={LOG4J.as_uri()}"'
    os.environ[_OPTIONS] = f"{before} {ours}" if before else ours
    try:
        yield
    finally:
        if before is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = before


def _pass_on(said: IO[bytes]) -> None:
    """Write lines to our stderr as they come, without the noise, until Java is gone."""
    with said:
        for line in worth_saying(said):
            # the reader may be gone: Java must not be held up by that
            with contextlib.suppress(OSError):
                os.write(STDERR, line)


def worth_saying(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines that are not what Java says each time it starts."""
    return (line for line in lines if not _NOISE.match(line))
