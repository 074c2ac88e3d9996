"""Every option of the Spark sources, once: names, types, defaults, where it counts, its meaning.

`python -m rqueue.spark.options` prints the table of `docs/spark.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from rqueue.errors import ConfigError, InvalidName
from rqueue.spark import option_values as values
from rqueue.spark.modes import HistoryRead, HistoryStream, JobsRead, JobsWrite, Mode, Place
from rqueue.spark.option_values import EVERY, JOB_STATES

__all__ = [
    "EVERY",
    "JOB_STATES",
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

READ_RATE = 4_000.0
"""Jobs a second that a partition reads at most, where nothing else is said: with one partition for
each core, on the very machine of Redis and the workers, these lose less than a fifth."""


_IGNORED = frozenset({"checkpointlocation", "queryname"})  # Spark's own, which it passes on


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


_ALL = (HistoryRead, HistoryStream, JobsRead, JobsWrite)
_HISTORY = (HistoryRead, HistoryStream)

OPTIONS = (
    Option(
        "url", "text", "", values.text, _ALL,
        "address of Redis, without user and password: `redis://`, `rediss://`, `unix://`, "
        "`redis+sentinel://` or `redis+cluster://`; "
        "without it the driver's `RQUEUE_URL` counts, else the server of `rqueue dev` in its "
        "folder",
    ),
    Option(
        "namespace", "text", "", values.namespace, _ALL,
        "what every key begins with; without it the driver's `RQUEUE_NAMESPACE`, or `rqueue`",
    ),
    Option("cluster", "true or false", "false", values.flag, _ALL,
        "Redis is a Redis Cluster, of which `url` names a node, as `redis+cluster://` says too"),
    Option(
        "credentialsFile", "path", "", values.text, _ALL,
        "file on the driver's host with lines `RQUEUE_USERNAME=...` and `RQUEUE_PASSWORD=...`; "
        "without it these variables of the driver's environment, or those in its `RQUEUE_URL`",
    ),
    Option(
        "connectTimeout", "duration", "5s", values.seconds, _ALL, "limit for opening a connection"
    ),
    Option(
        "commandTimeout", "duration", "30s", values.seconds, _ALL,
        "limit for the answer to one command",
    ),
    Option(
        "patience", "duration", "1m", values.seconds, _ALL,
        "how long a read or write, and the planning of a read, tries again while Redis cannot be "
        "reached, or is full",
    ),
    Option(
        "queues", "names or `*`", "*", values.queues, (*_HISTORY, JobsRead),
        "queues to read, with commas between them (`\\,` is a comma in a name); `*` for all of the "
        "namespace, with a stream also those that appear while it runs",
    ),
    Option(
        "since", "time or entry", "-", values.moment, _HISTORY,
        "first entry: an ISO 8601 time with its zone, ms since the epoch, or the id of an entry, "
        "all inclusive; `-` for the oldest there is; a new stream may begin with `latest`",
    ),
    Option(
        "after", "JSON object", "", values.offsets, (HistoryRead,),
        "for each queue in it the id of an entry: of that queue only what was written after it, "
        'and not before `since`; `{"mail": "1767225600000-0"}`',
    ),
    Option(
        "until", "time or entry", "+", values.moment, (HistoryRead,),
        "last entry, written like `since`, inclusive; `+` for the newest at the time of planning",
    ),
    Option(
        "partitionRows", "number", "100000", values.number(1), (*_HISTORY, JobsRead),
        "rows that one partition reads, about; each partition is of one queue",
    ),
    Option(
        "maxRowsPerBatch", "number", "1000000", values.number(1), (HistoryStream,),
        "rows of one micro-batch at most; an entry is never divided, so that the first one may "
        "exceed it",
    ),
    Option(
        "failOnDataLoss", "true or false", "true", values.flag, (HistoryStream,),
        "end the stream when Redis trimmed rows before they were read; false: go on with what is "
        "left, and log what is lost",
    ),
    Option(
        "states", "names or `*`", "*", values.states, (JobsRead,),
        f"states of jobs to read: {', '.join(JOB_STATES)}",
    ),
    Option("tasks", "names or `*`", "*", values.entries, (JobsRead,), "tasks of the jobs to read"),
    Option(
        "levels", "numbers or `*`", "*", values.levels, (JobsRead,),
        "priority levels of the jobs to read; waiting jobs of others are not looked at",
    ),
    Option(
        "pageSize", "number", "500", values.number(1, 500), (JobsRead,),
        "jobs that one command reads",
    ),
    Option(
        "queue", "name", "", values.queue, (JobsWrite,),
        "queue of rows that have no column `queue`",
    ),
    Option("task", "name", "", values.text, (JobsWrite,),
    "task of rows that have no column `task`"),
    Option(
        "runId", "text", "", values.run, (JobsWrite,),
        "name of this write: repeated under the same name it enqueues nothing twice, and refuses a "
        "table that is divided into other partitions; by default a stream's query id, or a new one "
        "for each batch write",
    ),
    Option(
        "idColumn", "column", "", values.text, (JobsWrite,),
        "column that holds the jobs' ids; by default `id`, if there is one, else ids are derived",
    ),
    Option(
        "batchSize", "number", "250", values.number(1, 1000), (JobsWrite,),
        "jobs that one command enqueues",
    ),
    Option(
        "maxRowsPerSecond", "number", "", values.rate, (JobsRead, JobsWrite),
        "jobs that each partition reads or enqueues a second; 0 for no limit, which is how it is "
        f"written by default; read are {READ_RATE:.0f}",
    ),
    Option(
        "remember", "duration", "7d", values.seconds, (JobsWrite,),
        "how long Redis remembers what a run wrote: so late it may still be repeated",
    ),
    Option(
        "badRows", "`fail` or `side`", "fail", values.one_of("fail", "side"), (JobsWrite,),
        "rows that are no jobs: fail the write, or go to `badRowsPath` with the reason",
    ),
    Option(
        "badRowsPath", "path", "", values.text, (JobsWrite,),
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
            # Spark passes names on in lower case
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
        f"did you mean {' or '.join(near)}? (Spark passes names on in small letters)"
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
