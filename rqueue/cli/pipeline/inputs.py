"""What the commands of `rqueue pipeline` are given, looked at before Spark starts for it; and the
files that they write.

Java takes ten seconds to start, and a minute on a busy machine: what can be seen without it to be
wrong is said at once. Where a file may be somewhere else than on this machine nothing is concluded,
and Spark says what it finds.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from rqueue.cli.exit_codes import USAGE, Failure
from rqueue.cli.pipeline.spark_conf import settings_of

_ELSEWHERE = ("HADOOP_CONF_DIR", "HADOOP_HOME", "SPARK_CONF_DIR", "SPARK_HOME", "YARN_CONF_DIR")
"""Variables with which Spark may read a path without a scheme from another file system."""

_PATTERN = frozenset("*?[{")
"""What makes a pattern of a path, to Hadoop."""


def check_lake(lake: str | None, master: str | None, conf: tuple[str, ...]) -> None:
    """Refuse a lake that is to be read and is not there: ConfigError, and UsageError for an empty
    name. None: no lake is read."""
    from rqueue.spark.registration import require_spark

    if lake is None:
        return
    check_name(lake)
    require_spark()  # who lacks it hears of that first
    here = local_path(lake, master, conf)
    if here is not None and not (here / "_spark_metadata").is_dir():
        from rqueue.pipeline.errors import no_lake

        raise no_lake(str(here.absolute()))


def check_name(lake: str) -> None:
    """Refuse a lake's name that is empty. Raises UsageError."""
    if not lake.strip():
        raise click.UsageError("--lake is empty: name a folder, or a URL that Spark reads")


def check_files(paths: tuple[str, ...], master: str | None, conf: tuple[str, ...]) -> None:
    """Refuse files to read that are not there. Raises UsageError."""
    from rqueue.spark.registration import require_spark

    require_spark()
    for path in paths:
        here = None if _PATTERN & set(path) else local_path(path, master, conf)
        if here is not None and not here.exists():
            raise click.UsageError(f"there is no file or folder {path}")


def check_output(file: str | None, option: str) -> None:
    """Refuse a file that cannot be written: its folder is not there, or read-only, or it is one
    itself. Raises UsageError and Failure."""
    if file is None or file == "-":
        return
    path = Path(file)
    if path.is_dir():
        raise click.UsageError(f"{option} {file} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise click.UsageError(f"{option} {file}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise Failure(f"{option} {file} cannot be written: no permission, or read-only", USAGE)


def write_output(file: str, text: str) -> None:
    """Write a file, whole or not at all. Raises OSError with its name."""
    path = Path(file).resolve()
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if path.exists() and not path.is_file():  # a device, a pipe
            path.write_text(text, encoding="utf-8")
            return
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, file) from None


def local_path(text: str, master: str | None, conf: tuple[str, ...]) -> Path | None:
    """The place on this machine that Spark reads by this name; None where it may read another."""
    url = urlsplit(text)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        return Path(unquote(url.path))
    if url.scheme or not (master or "local").startswith("local"):
        return None
    if "PYSPARK_GATEWAY_PORT" in os.environ or any(name in os.environ for name in _ELSEWHERE):
        return None
    if any(name.startswith("spark.hadoop.") for name in settings_of(conf)):
        return None
    return Path(text)
