"""History: one row for each job that a worker settled, many rows in one stream entry, by column.

A worker packs the rows of a batch and sends them with the settle call; the script stores them and
adds which of them it refused. Jobs that end without a worker get a row from the script that ends
them, as a line of JSON with the same names. `read_entry` reads both.

Packed form: a version byte, then a JSON array of columns, a NUL, and the ids; compressed (zlib,
level 1) from `ZIPPED` rows on, since the compressor alone costs more than a whole small batch. A
column whose values are all equal is that one value instead of a list; the last ones, `body`,
`labels` and `share`, are left out where no row has them. `labels` are a list of those that differ,
and which of them each row has. Times are differences: of `enqueued`, `due` and `acquired` to the
row before; of `started` to the `finished` of the row before, which is nothing when a worker runs
one job after the other; of `finished` to its own `started`. Ids that are ASCII of one length are
stored byte by byte across the rows (all first characters, all second characters, ...), which puts
what they have in common together: then the length stands where otherwise the list of the ids does,
and they follow the NUL.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain, compress
from operator import sub
from typing import Any, NamedTuple

from orjson import JSONDecodeError, dumps, loads

from rqueue.errors import Undecodable

__all__ = [
    "COLUMNS",
    "NAMES",
    "Column",
    "Packed",
    "damaged_row",
    "of_later_version",
    "pack",
    "plain_row",
    "read_entry",
    "refused_rows",
    "unpack",
    "unpack_columns",
    "unpack_packed",
    "unpack_rows",
]

VERSION = b"\x01"
UNZIPPED = b"\x02"

ZIPPED = 5
"""Rows from which on a batch is compressed."""

_LARGEST = 16 * 1024**2
"""Bytes of one entry, unpacked: `pack` makes none larger, so a larger one is crafted."""

_BODIES_MOST = 8 * 1024**2
"""Bytes of the envelopes that one entry holds, as they are written."""

_TIME_MOST = 9_000_000_000_000_000 // 1000
"""The latest time in ms that fits into Spark's microseconds."""


class Column(NamedTuple):
    """One column: its name, `str`, `int` or `dict`, its unit and what it means."""

    name: str
    type: type
    unit: str
    meaning: str


OUTCOMES = (
    "ack, retry, dead (failed for good), crash, snooze, refuse, park, cancelled, purged, expired,"
    " displaced, moved (to another queue), changed (its place), or damaged (an entry that cannot be"
    " read, which `error` explains)"
)

COLUMNS = (
    Column("id", str, "", "the job's id"),
    Column("task", str, "", "the task's name; empty if the job could not be decoded"),
    Column("queue", str, "", "the queue's name"),
    Column("level", int, "", "priority level, higher first"),
    Column("group", str, "", "the job's group; empty without one"),
    Column("outcome", str, "", OUTCOMES),
    Column("attempts", int, "", "attempts charged before this one"),
    Column("deliveries", int, "", "times handed out before this one"),
    Column("enqueued", int, "ms", "when the queue accepted the job"),
    Column("due", int, "ms", "when it was last scheduled for; 0 = never, or at the tail since"),
    Column("acquired", int, "ms", "when the worker got it; 0 = never"),
    Column("started", int, "ms", "when the task began to run; 0 = it did not"),
    Column("finished", int, "ms", "when the task, or else the job, ended"),
    Column("worker", str, "", "the worker's name; empty if none had it"),
    Column("error", str, "", "dotted name of the exception, or the kind of failure; empty if none"),
    Column("result_size", int, "bytes", "size of the encoded result"),
    Column("body_size", int, "bytes", "size of the envelope"),
    Column("body", str, "", "the envelope, where the pool records it; else empty"),
    Column("labels", dict, "", "the job's labels, and the headers that the pool records, as text"),
    Column("share", str, "", "the job's share; empty without one"),
)
"""The columns of a row, in order. Times are ms since the epoch by Redis's clock."""

NAMES = tuple(column.name for column in COLUMNS)
_DEFAULTS: dict[str, Any] = {column.name: column.type() for column in COLUMNS}
_PLAIN = tuple(
    name
    for name in NAMES
    if name not in ("id", "enqueued", "due", "acquired", "started", "finished")
)
_KNOWN = frozenset(NAMES)
_COLUMN_TYPES = {column.name: column.type for column in COLUMNS}
_MOST = {column.name: _TIME_MOST if column.unit == "ms" else 2**31 - 1 for column in COLUMNS}
"""The largest number of each column; the least one is as far below 0."""
_RARE = ("body", "labels", "share")
"""The last columns: entries in which no row has them end before them."""


def pack(columns: Mapping[str, Any]) -> bytes:
    """Pack a batch. Each column is a list, or one value for all rows; `id` is always a list, of
    text or of its UTF-8.

    Columns left out are empty or 0. Raises ValueError for an unknown column, or one of another
    length.
    """
    if not columns.keys() <= _KNOWN:
        raise ValueError(f"no such history column: {', '.join(sorted(columns.keys() - _KNOWN))}")
    ids = columns["id"]
    count = len(ids)
    for name, column in columns.items():
        if type(column) is list and len(column) != count:
            raise ValueError(f"history column '{name}' has {len(column)} rows, not {count}")
    width, raw = _pack_ids(ids)
    started = _full(columns.get("started", 0), count)
    finished = _full(columns.get("finished", 0), count)
    packed: list[Any] = [
        count,
        width or [_text(id_) for id_ in ids],
        *[_differences(columns.get(name, 0)) for name in ("enqueued", "due", "acquired")],
        started[0] if count else 0,
        _collapse(list(map(sub, started[1:], finished))),
        _collapse(list(map(sub, finished, started))),
        *[_collapse(columns.get(name, _DEFAULTS[name])) for name in _PLAIN[: -len(_RARE)]],
        _collapse(_within(columns.get("body", ""), count)),
        _coded(columns.get("labels")),
        _collapse(columns.get("share", "")),
    ]
    while packed[-1] == "":
        packed.pop()
    text = dumps(packed) + b"\0" + raw
    return UNZIPPED + text if count < ZIPPED else VERSION + zlib.compress(text, 1)


def _within(bodies: Any, count: int) -> Any:
    """The bodies up to `_BODIES_MOST`; those that do not fit are empty."""
    if not bodies:
        return bodies
    left, kept = _BODIES_MOST, []
    for body in _full(bodies, count):
        size = len(dumps(body))
        kept.append(body if size <= left else "")
        left -= size if size <= left else 0
    return kept


@lru_cache(maxsize=1024)
def plain_row(task: str, queue: str, worker: str) -> bytes:
    """What `pack` makes of one row of a plain job that succeeded at its first attempt, in a tenth
    of the time: what a worker that settles each job by itself needs.

    To be filled in by `%` with the length of the id, enqueued, acquired, started, how long it ran,
    size of the result and of the body; the id, which is ASCII, comes behind.
    """
    said = {"task": task, "queue": queue, "worker": worker, "outcome": "ack", "level": 4}
    plain = dumps([said.get(name, _DEFAULTS[name]) for name in _PLAIN[: -len(_RARE)]])[1:-1]
    plain = plain.replace(b"%", b"%%")
    head, size, body_size = plain.rsplit(b",", 2)
    if (size, body_size) != (b"0", b"0"):
        raise AssertionError("the sizes are not the last columns")
    # count, length of the id, enqueued, due, acquired, started, no gaps, how long it ran, ...
    return UNZIPPED + b"[1,%d,%d,0,%d,%d,0,%d," + head + b",%d,%d]\0"


class Packed(NamedTuple):
    """The columns of a packed batch, as they are: what is the same in all rows stands once.

    ids: a list, or the text of all of them, one behind the other, where all are ASCII of one
    length. columns: all others, in no order; each a list with a value for each row, or one value.
    """

    rows: int
    ids: list[str] | bytes
    columns: dict[str, Any]


def unpack_columns(data: bytes) -> dict[str, list[Any]]:
    """The columns of a packed batch, in the order of `COLUMNS`. Raises Undecodable."""
    count, ids, columns = unpack_packed(data)
    columns["id"] = ids if isinstance(ids, list) else _cut(ids, count)
    return {name: _full(columns[name], count) for name in NAMES}


def unpack_packed(data: bytes) -> Packed:
    """The columns of a packed batch without spreading what is the same in all of its rows.

    Raises Undecodable.
    """
    try:
        text, _, raw = _unzip(data).partition(b"\0")
        count, ids, enqueued, due, acquired, first, gaps, runs, *plain = loads(text)
        # Before anything is spread over `count` rows, as many ids must be there.
        if type(count) is not int:
            raise ValueError(f"{count!r} is no number of rows")
        if type(ids) is int:
            if count < 1 or ids < 1 or len(raw) != ids * count or not raw.isascii():
                raise ValueError(f"{len(raw)} bytes are not {count} ids of {ids} characters")
            ids = _along(raw, ids)
        elif type(ids) is not list:
            raise ValueError("no ids")
        elif len(ids) != count:
            raise Undecodable("history columns differ in length", data)
        columns = {
            "enqueued": _sums(enqueued, count),
            "due": _sums(due, count),
            "acquired": _sums(acquired, count),
        }
        if count and type(gaps) is int and type(runs) is int and not gaps and not runs:
            columns["started"] = columns["finished"] = first + 0  # a number, or a TypeError
        else:
            # started 1, finished 1, started 2, finished 2, ...: each a difference to the one before
            steps = chain.from_iterable(
                zip([first, *_full(gaps, count - 1)], _full(runs, count), strict=True)
            )
            times = list(accumulate(steps)) if count else []
            columns["started"], columns["finished"] = times[::2], times[1::2]
        plain += [""] * min(len(_RARE), len(_PLAIN) - len(plain))
        columns |= zip(_PLAIN, plain, strict=True)
        columns["labels"] = _uncoded(columns["labels"])
        if any(type(one) is list and len(one) != count for one in columns.values()):
            raise Undecodable("history columns differ in length", data)
        if type(ids) is list and not set(map(type, ids)) <= {str}:
            raise ValueError("an id is no text")
        if count:
            columns = {name: _checked(name, column) for name, column in columns.items()}
    except (zlib.error, JSONDecodeError, TypeError, ValueError, IndexError) as error:
        raise Undecodable(f"not history rows ({error})", data) from None
    return Packed(count, ids, columns)


def _unzip(data: bytes) -> bytes:
    if data[:1] == UNZIPPED:
        return data[1:]
    if data[:1] != VERSION:
        raise Undecodable("history rows of another version than this rqueue reads", data)
    inflate = zlib.decompressobj()
    unzipped = inflate.decompress(data[1:], _LARGEST)
    if not inflate.eof:
        raise Undecodable("history rows are cut short", data)
    return unzipped


def _checked(name: str, column: Any) -> Any:
    """A column, or its one value. Whole numbers are ints, however a damaged header wrote them.
    Raises ValueError if its values are of another type or too large."""
    kind = _COLUMN_TYPES[name]
    values = column if type(column) is list else [column]
    if kind is int and float in set(map(type, values)):
        values = [int(one) if type(one) is float and one.is_integer() else one for one in values]
        column = values if type(column) is list else values[0]
    if not set(map(type, values)) <= {kind}:
        raise ValueError(f"column '{name}' holds other values than {kind.__name__}")
    if kind is int and values and not 0 - _MOST[name] <= min(values) <= max(values) <= _MOST[name]:
        raise ValueError(f"column '{name}' has numbers that are too large")
    if kind is dict and any(
        not set(map(type, labels.values())) <= {str} for labels in values if labels
    ):
        raise ValueError("a label is no text")
    return column


def of_later_version(fields: Mapping[bytes, bytes]) -> bool:
    """True if a stream entry may be of a later rqueue: its version byte is an unknown one."""
    return UNZIPPED < fields.get(b"b", b"")[:1] < b" "


def damaged_row(queue: str, entry: str, error: Undecodable) -> dict[str, Any]:
    """The row that stands for an entry that cannot be read, with the time of its id."""
    written = int(entry.partition("-")[0])
    finished = written if written <= _TIME_MOST else 0
    return {
        **_DEFAULTS,
        "queue": queue,
        "outcome": "damaged",
        "finished": finished,
        "error": f"entry {entry}: {error}",
    }


def unpack_rows(data: bytes, refused: Iterable[int] = ()) -> Iterator[tuple[Any, ...]]:
    """The rows of a packed batch as tuples in the order of `COLUMNS`, without the refused ones.

    Raises Undecodable.
    """
    columns = unpack_columns(data)
    rows: Iterator[tuple[Any, ...]] = zip(*columns.values(), strict=True)
    left_out = set(refused)
    if not left_out:
        return rows
    return compress(rows, [index not in left_out for index in range(len(columns["id"]))])


def unpack(data: bytes, refused: Iterable[int] = ()) -> list[dict[str, Any]]:
    """The rows of a packed batch as dicts, without the refused ones. Raises Undecodable."""
    return [dict(zip(NAMES, row, strict=True)) for row in unpack_rows(data, refused)]


def refused_rows(fields: Mapping[bytes, bytes]) -> frozenset[int]:
    """The numbers of the rows that the script refused. Raises Undecodable."""
    refused = fields.get(b"r", b"")
    try:
        return frozenset(map(int, refused.split(b","))) if refused else frozenset()
    except ValueError:
        raise Undecodable("the refused rows of history are no numbers", refused) from None


def read_entry(fields: Mapping[bytes, bytes], queue: str) -> list[dict[str, Any]]:
    """The rows of one stream entry of `queue`, a worker's or a script's.

    A row that a script wrote may have one more key, `cause`: a dict that says why the job is dead.
    Raises Undecodable.
    """
    batch = fields.get(b"b")
    if batch is not None:
        return unpack(batch, refused_rows(fields))
    rows = []
    for line in fields.get(b"j", b"").splitlines():
        try:
            # what a script copied out of a damaged job need not be UTF-8
            written = loads(line.decode("utf-8", "replace"))
        except JSONDecodeError as error:
            raise Undecodable(f"not a history row ({error})", line) from None
        if type(written) is not dict:
            raise Undecodable("not a history row", line)
        row = {**_DEFAULTS, "queue": queue, **written}
        try:
            for name in NAMES:
                row[name] = _checked(name, [row[name]])[0]
        except ValueError as error:
            raise Undecodable(f"not a history row ({error})", line) from None
        cause = written.get("cause")
        if type(cause) is dict and not row["error"] and row["outcome"] != "moved":
            row["error"] = cause.get("type") or cause.get("kind") or ""
        rows.append(row)
    return rows


# -- columns ---------------------------------------------------------------------------------------


def _full(column: Any, count: int) -> list[Any]:
    return column if type(column) is list else [column] * max(count, 0)


def _collapse(column: Any) -> Any:
    """One value if all are equal, else the list."""
    if type(column) is list:
        if not column:
            return 0
        first = column[0]
        if column.count(first) == len(column):
            return first
    return column


def _coded(column: Any) -> Any:
    """Labels as [those that differ, which of them each row has]; "" where no row has any."""
    if not column:
        return ""
    if type(column) is not list:
        return [[column], 0]
    numbers: dict[bytes, int] = {}
    which = [numbers.setdefault(dumps(labels or {}), len(numbers)) for labels in column]
    if len(numbers) == 1 and b"{}" in numbers:
        return ""
    return [list(map(loads, numbers)), _collapse(which)]


def _uncoded(packed: Any) -> Any:
    """The labels of each row, or those of all of them."""
    if packed == "":
        return {}
    known, which = packed
    if type(known) is not list or any(type(labels) is not dict for labels in known):
        raise ValueError("labels are no objects")
    if type(which) is not list:
        return known[which]
    return [known[number] for number in which]


def _differences(column: Any) -> Any:
    """A time column as [first, differences], or one value when all are equal."""
    column = _collapse(column)
    if type(column) is not list:
        return column
    return [column[0], _collapse(list(map(sub, column[1:], column)))]


def _sums(packed: Any, count: int) -> Any:
    if type(packed) is not list:
        return packed
    first, steps = packed
    return list(accumulate(_full(steps, count - 1), initial=first))


# -- ids -------------------------------------------------------------------------------------------


def _text(id_: str | bytes) -> str:
    return id_ if isinstance(id_, str) else id_.decode()


def _pack_ids(ids: Sequence[str | bytes]) -> tuple[int, bytes]:
    """The length of each id, and byte by byte across the rows what they are; 0 and nothing unless
    all are ASCII of one length."""
    count = len(ids)
    if not count or len(lengths := set(map(len, ids))) != 1:
        return 0, b""
    try:
        text = b"".join(ids)  # type: ignore[arg-type]
    except TypeError:
        text = "".join(map(_text, ids)).encode()
    (width,) = lengths
    if not width or len(text) != width * count or not text.isascii():
        return 0, b""
    return width, _across(text, width)


def _across(text: bytes, width: int) -> bytes:
    """Ids that stand one behind the other: all first characters, all second ones, and so on."""
    return b"".join([text[at::width] for at in range(width)])


def _along(across: bytes, width: int) -> bytes:
    """And back."""
    count = len(across) // width
    text = bytearray(len(across))
    for at in range(width):
        text[at::width] = across[at * count : (at + 1) * count]
    return bytes(text)


def _cut(text: bytes, count: int) -> list[str]:
    """The ids that stand one behind the other in a text."""
    width = len(text) // count
    whole = text.decode()
    return [whole[at : at + width] for at in range(0, len(whole), width)]
