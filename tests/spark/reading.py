"""Reading a history stream slice by slice, without Spark."""

import pickle
from collections.abc import Callable, Iterator

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from rqueue.spark.history.stream import HistoryStreamReader

ALL = ReadAllAvailable()
MakeReader = Callable[..., HistoryStreamReader]


def ids(reader: HistoryStreamReader, start: dict[str, str], end: dict[str, str]) -> list[list[str]]:
    """The ids of the rows of each slice."""
    found = []
    for part in reader.partitions(start, end):
        travelled = pickle.loads(pickle.dumps(reader))  # as to an executor
        found.append([id for batch in travelled.read(part) for id in batch["id"].to_pylist()])
    return found


def jobs(first: int, last: int) -> list[str]:
    return [f"job-{number}" for number in range(first, last)]


# -- limits ----------------------------------------------------------------------------------------


def walk(
    reader: HistoryStreamReader, start: dict[str, str], limit: ReadLimit
) -> Iterator[dict[str, str]]:
    """The ends of all batches until nothing is left."""
    reader.prepareForTriggerAvailableNow()
    while (end := reader.latestOffset(start, limit)) != start:
        yield end
        start = end
