"""Every option of the Spark sources, once: names, types, defaults, where it counts, its meaning.

`python -m rqueue.spark.options` prints the table of `docs/spark.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from rqueue.errors import ConfigError, InvalidName
from rqueue.model.names import check_namespace, check_queue
from rqueue.model.times import parse_duration

__all__ = [
    "EVERY",
    "OPTIONS",
    "HistoryRead",
    "HistoryStream",
    "JobsRead",
    "JobsWrite",
    "Option",
    "Place",
    "markdown",
    "read_options",
]

EVERY: tuple[str, ...] = ()
"""Of `queues` and `states`: all there are."""

READ_RATE = 4_000.0
"""Jobs a second that a partition reads at most, where nothing else is said: with one partition for
each core, on the very machine of Redis and the workers, these lose less than a fifth."""

JOB_STATES = ("ready", "scheduled", "parked", "held", "blocked", "dead")

_IGNORED = frozenset({"checkpointlocation", "queryname"})  # Spark's own, which it hands on
_RUN = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ENTRY = re.compile(r"\d{1,20}(-\d{1,20})?")


# -- what the modes get ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where Redis is, for every mode; see `rqueue.spark.access`. Times are seconds."""

    url: str | None
    namespace: str | None
    cluster: bool
    credentials_file: str | None
    connect_timeout: float
    command_timeout: float


@dataclass(frozen=True, kw_only=True)
class HistoryRead(Place):
    """`spark.read.format("rqueue-history")`."""

    queues: tuple[str, ...]
    since: str
    after: Mapping[str, str]
    until: str
    partition_rows: int


@dataclass(frozen=True, kw_only=True)
class HistoryStream(Place):
    """`spark.readStream.format("rqueue-history")`."""

    queues: tuple[str, ...]
    since: str
    partition_rows: int
    max_rows_per_batch: int
    fail_on_data_loss: bool


@dataclass(frozen=True, kw_only=True)
class JobsRead(Place):
    """`spark.read.format("rqueue")`."""

    queues: tuple[str, ...]
    states: tuple[str, ...]
    tasks: tuple[str, ...]
    levels: tuple[int, ...]
    partition_rows: int
    page_size: int
    max_rows_per_second: float | None


@dataclass(frozen=True, kw_only=True)
class JobsWrite(Place):
    """`df.write.format("rqueue")` and `writeStream`."""

    queue: str | None
    task: str | None
    run_id: str | None
    id_column: str | None
    batch_size: int
    max_rows_per_second: float | None
    patience: float
    remember: float
    bad_rows: str
    bad_rows_path: str | None


Mode = type[Place]


# -- the table -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Option:
    """One option: how it is written, of which type, the default as one would write it ("" for
    none), what reads it, and the modes that know it."""

    name: str
    type: str
    default: str
    parse: Callable[[str], Any]
    modes: tuple[Mode, ...]
    meaning: str

    @property
    def field(self) -> str:
        """The name of its field in the modes."""
        return re.sub(r"[A-Z]", lambda upper: "_" + upper[0].lower(), self.name)


def _text(text: str) -> str | None:
    return text or None


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _number(least: int, most: int | None = None) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text.replace("_", ""))
        except ValueError:
            raise ValueError(f"{text!r} is not a whole number") from None
        if number < least:
            raise ValueError(f"{number} is below {least}")
        if most is not None and number > most:
            raise ValueError(f"{number} is above {most}")
        return number

    return parse


def _rate(text: str) -> float | None:
    if not text:
        return None
    try:
        rate = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not 0 <= rate < float("inf"):
        raise ValueError(f"{text!r} is not a number of rows per second")
    return rate


def _seconds(text: str) -> float:
    return parse_duration(text)


def _entries(text: str) -> tuple[str, ...]:
    """Names between commas; one with a backslash before it belongs to a name."""
    if text.strip() == "*":
        return EVERY
    names = [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", text)]
    return tuple(dict.fromkeys(name for name in names if name))


def _queues(text: str) -> tuple[str, ...]:
    names = _entries(text)
    if not names and text.strip() != "*":
        raise ValueError("names no queue; write names with commas between them, or *")
    for name in names:
        check_queue(name)
    return names


def _offsets(text: str) -> Mapping[str, str]:
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise ValueError(f"not JSON ({error})") from None
    if type(found) is not dict:
        raise ValueError(f"{text!r} is no JSON object of queues and ids of entries")
    for queue, entry in found.items():
        check_queue(queue)
        if type(entry) is not str or not _ENTRY.fullmatch(entry):
            raise ValueError(f"{entry!r} of queue '{queue}' is not the id of an entry")
    return found


def _run(text: str) -> str | None:
    if text and not _RUN.fullmatch(text):
        raise ValueError(f"{text!r} is not 1 to 100 letters, digits, '.', '_' or '-'")
    return text or None


def _queue(text: str) -> str | None:
    return check_queue(text) if text else None


def _states(text: str) -> tuple[str, ...]:
    states = _entries(text)
    if wrong := sorted(set(states) - set(JOB_STATES)):
        raise ValueError(f"{wrong[0]!r} is no state; there are {', '.join(JOB_STATES)}")
    return states


def _levels(text: str) -> tuple[int, ...]:
    return tuple(map(_number(0, 9), _entries(text)))


def _namespace(text: str) -> str | None:
    return check_namespace(text) if text else None


def _moment(text: str) -> str:
    """The id of an entry, from a time or an id; "-" and "+" are the two ends."""
    from datetime import datetime

    if text in ("-", "+", "earliest", "latest"):
        return {"earliest": "-", "latest": "+"}.get(text, text)
    if _ENTRY.fullmatch(text):
        return text
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a time (2030-01-31T08:00:00+00:00), nor ms since the epoch, nor "
            "the id of an entry (1700000000000-0)"
        ) from None
    if time.tzinfo is None:
        raise ValueError(f"{text!r} says no time zone; write {text}Z for UTC, or {text}+02:00")
    return str(round(time.timestamp() * 1000))


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"{text!r} is not one of {', '.join(words)}")
        return text.lower()

    return parse


_ALL = (HistoryRead, HistoryStream, JobsRead, JobsWrite)
_HISTORY = (HistoryRead, HistoryStream)

OPTIONS = (
    Option(
        "url", "text", "", _text, _ALL,
        "address of Redis, without user and password: `redis://`, `rediss://`, `unix://` or "
        "`redis+sentinel://`; "
        "without it the driver's `RQUEUE_URL` counts",
    ),
    Option(
        "namespace", "text", "", _namespace, _ALL,
        "what every key begins with; without it the driver's `RQUEUE_NAMESPACE`, or `rqueue`",
    ),
    Option("cluster", "true or false", "false", _flag, _ALL, "Redis is a Redis Cluster"),
    Option(
        "credentialsFile", "path", "", _text, _ALL,
        "file on the driver's host with lines `RQUEUE_USERNAME=...` and `RQUEUE_PASSWORD=...`; "
        "without it these variables of the driver's environment, or those in its `RQUEUE_URL`",
    ),
    Option(
        "connectTimeout", "duration", "5s", _seconds, _ALL, "limit for opening a connection"
    ),
    Option(
        "commandTimeout", "duration", "30s", _seconds, _ALL, "limit for the answer to one command"
    ),
    Option(
        "queues", "names or `*`", "*", _queues, (*_HISTORY, JobsRead),
        "queues to read, with commas between them (`\\,` is a comma in a name); `*` for all of the "
        "namespace, with a stream also those that appear while it runs",
    ),
    Option(
        "since", "time or entry", "-", _moment, _HISTORY,
        "first entry: an ISO 8601 time with its zone, ms since the epoch, or the id of an entry, "
        "all inclusive; `-` for the oldest there is; a new stream may begin with `latest`",
    ),
    Option(
        "after", "JSON object", "", _offsets, (HistoryRead,),
        "for each queue in it the id of an entry: of that queue only what was written after it, "
        'and not before `since`; `{"mail": "1767225600000-0"}`',
    ),
    Option(
        "until", "time or entry", "+", _moment, (HistoryRead,),
        "last entry, written like `since`, inclusive; `+` for the newest at the time of planning",
    ),
    Option(
        "partitionRows", "number", "100000", _number(1), (*_HISTORY, JobsRead),
        "rows that one partition reads, about; each partition is of one queue",
    ),
    Option(
        "maxRowsPerBatch", "number", "1000000", _number(1), (HistoryStream,),
        "rows of one micro-batch at most; an entry is never divided, so that the first one may "
        "exceed it",
    ),
    Option(
        "failOnDataLoss", "true or false", "true", _flag, (HistoryStream,),
        "end the stream when Redis trimmed rows before they were read; false: go on with what is "
        "left, and log what is lost",
    ),
    Option(
        "states", "names or `*`", "*", _states, (JobsRead,),
        f"states of jobs to read: {', '.join(JOB_STATES)}",
    ),
    Option("tasks", "names or `*`", "*", _entries, (JobsRead,), "tasks of the jobs to read"),
    Option(
        "levels", "numbers or `*`", "*", _levels, (JobsRead,),
        "priority levels of the jobs to read; waiting jobs of others are not looked at",
    ),
    Option(
        "pageSize", "number", "500", _number(1, 500), (JobsRead,), "jobs that one command reads"
    ),
    Option(
        "queue", "name", "", _queue, (JobsWrite,), "queue of rows that have no column `queue`"
    ),
    Option("task", "name", "", _text, (JobsWrite,), "task of rows that have no column `task`"),
    Option(
        "runId", "text", "", _run, (JobsWrite,),
        "name of this write: repeated under the same name it enqueues nothing twice; by default a "
        "stream's query id, or a new one for each batch write",
    ),
    Option(
        "idColumn", "column", "", _text, (JobsWrite,),
        "column that holds the jobs' ids; by default `id`, if there is one, else ids are derived",
    ),
    Option(
        "batchSize", "number", "250", _number(1, 1000), (JobsWrite,),
        "jobs that one command enqueues",
    ),
    Option(
        "maxRowsPerSecond", "number", "", _rate, (JobsRead, JobsWrite),
        "jobs that each partition reads or enqueues a second; 0 for no limit, which is how it is "
        f"written by default; read are {READ_RATE:.0f}",
    ),
    Option(
        "patience", "duration", "1m", _seconds, (JobsWrite,),
        "how long a partition waits, trying again, while Redis cannot be reached or is full",
    ),
    Option(
        "remember", "duration", "7d", _seconds, (JobsWrite,),
        "how long Redis remembers what a run wrote: so late it may still be repeated",
    ),
    Option(
        "badRows", "`fail` or `side`", "fail", _one_of("fail", "side"), (JobsWrite,),
        "rows that are no jobs: fail the write, or go to `badRowsPath` with the reason",
    ),
    Option(
        "badRowsPath", "path", "", _text, (JobsWrite,),
        "folder or URI for them, as JSON lines; one that all executors can write to",
    ),
)  # fmt: skip

_MODES = {
    HistoryRead: "history",
    HistoryStream: "history stream",
    JobsRead: "jobs",
    JobsWrite: "write",
}

M = TypeVar("M", bound=Place)


def read_options(mode: type[M], given: Mapping[str, str]) -> M:
    """The options of a mode out of what the user gave; the case of a name does not count.

    Raises ConfigError, which names the option at fault, and those of a similar name.
    """
    known = {option.name.lower(): option for option in OPTIONS if mode in option.modes}
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name.lower() in _IGNORED:
            continue
        option = known.get(name.lower())
        if option is None:
            # Spark hands names on in lower case
            written = {one.name.lower(): one.name for one in OPTIONS}.get(name.lower(), name)
            raise ConfigError(written, _unknown(name, mode, known.values()))
        values[option.field] = _parsed(option, text)
    for option in known.values():
        if option.field not in values:
            values[option.field] = option.parse(option.default)
    return mode(**{field.name: values[field.name] for field in fields(mode)})


def _parsed(option: Option, text: str) -> Any:
    try:
        return option.parse(text)
    except ConfigError as error:
        raise ConfigError(option.name, error.problem) from None
    except (InvalidName, ValueError) as error:
        raise ConfigError(option.name, str(error)) from None


def _unknown(name: str, mode: type[Place], known: Iterable[Option]) -> str:
    names = {option.name.lower(): option.name for option in known}
    if elsewhere := [option for option in OPTIONS if option.name.lower() == name.lower()]:
        places = ", ".join(_MODES[other] for other in elsewhere[0].modes)
        return f"no option of '{_MODES[mode]}' (it is one of: {places})"
    near = [names[match] for match in get_close_matches(name.lower(), names, n=3, cutoff=0.5)]
    there = (
        f"did you mean {' or '.join(near)}? (Spark hands names on in small letters)"
        if near
        else f"there are {', '.join(names.values())}"
    )
    return f"there is no such option; {there}"


def markdown() -> str:
    """The table of `docs/spark.md`."""
    lines = ["| option | type | default | of | meaning |", "| --- | --- | --- | --- | --- |"]
    for option in OPTIONS:
        places = "all" if option.modes == _ALL else ", ".join(_MODES[mode] for mode in option.modes)
        default = f"`{option.default}`" if option.default else ""
        lines.append(
            f"| `{option.name}` | {option.type} | {default} | {places} | {option.meaning} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
