"""History rows of a settled batch: from the tuples that the executors leave to packed columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import sub
from typing import Any

from orjson import loads

from rqueue.model.history_batch import pack, plain_row
from rqueue.model.job import EPOCH_MS, parse_header
from rqueue.model.labels import ALL, labels_of, may_have_labels
from rqueue_workers.worker.outcome import Ack, Done, Outcome, Unfinished

SAID = {"reject": "dead"}
"""A settle rejects a job; what became of it, whichever way, is called dead in the history."""

_HEADER = ("", "enqueued", "level", "deliveries", "attempts", "", "due")
"""The columns of a job's whole header; "" for what no row tells."""

_SHORT = b",4,0,0,0,0"
_NONE = b"0,%d" % -EPOCH_MS + _SHORT
_READABLE = re.compile(rb"\d+,-?\d+(?:,\d+){5}")
_SEVEN = re.compile(rb"^((?:-?\d+,){6}\d+)(?:,\d+)+$")
"""The beginning of a header that counts crashes too, or says when the job expires."""


def pack_rows(
    queue: str,
    worker: str,
    offset: float,
    acks: Sequence[Ack],
    dones: Sequence[Done],
    others: Sequence[Unfinished],
    bodies: str = "none",
    labels: Sequence[str] = ALL,
) -> bytes:
    """Pack the rows in the order of a settle call. `offset`: ms to add to monotonic ms to get
    Redis's clock. `bodies`: whose envelopes the rows hold (one of `spec.BODIES`). `labels`: which
    labels and headers (see `rqueue.model.labels`)."""
    if bodies != "all" and not others and len(acks) + len(dones) == 1:
        single = _single(queue, worker, offset, acks[0] if acks else dones[0], labels)
        if single is not None:
            return single
    rows: Sequence[Outcome] = acks
    if dones or others:
        rows = [*acks, *dones, *others]
    # the shortest row ends it: what they have in common
    ids, values, heads, tasks, acquired, starts, ends = list(zip(*rows, strict=False))[:7]
    count = len(ids)
    sizes = list(map(sub, map(len, values), map(len, heads)))
    finished = [int(at * 1000 + offset) for at in ends]
    if starts[1:] == ends[:-1]:  # one after the other: the very same times
        begun = [int(starts[0] * 1000 + offset), *finished[:-1]]
    else:
        begun = [int(at * 1000 + offset) for at in starts]
    columns: dict[str, Any] = {
        "id": ids,
        "task": list(tasks),
        "queue": queue,
        "acquired": list(acquired),
        "started": begun,
        "finished": finished,
        "worker": worker,
        "outcome": "ack",
        "body_size": [size - 1 for size in sizes],
        "level": 4,
    }
    fields = _fields(heads)
    if fields is not None and len(fields) == 2 * count:  # plain jobs on their first way
        columns["enqueued"] = fields[1::2]
    else:
        _headers(columns, heads)
    columns["enqueued"] = enqueued = [at + EPOCH_MS for at in columns["enqueued"]]
    if count and min(acquired) < max(enqueued):
        # two clocks: what we make of Redis's may be a little late, and no job is older than it is
        columns["acquired"] = got = list(map(max, acquired, enqueued))
        columns["started"] = begun = list(map(max, columns["started"], got))
        columns["finished"] = list(map(max, columns["finished"], begun))
    if dones or others:
        before = len(acks) + len(dones)
        columns["outcome"] = ["ack"] * before + [
            SAID.get(row.outcome, row.outcome) for row in others
        ]
        columns["error"] = [""] * before + [row.error for row in others]
        columns["result_size"] = (
            [0] * len(acks) + [len(row.payload) for row in dones] + [0] * len(others)
        )
    if labels and may_have_labels(values):
        columns["labels"] = [labels_of(value, labels) for value in values]
    if bodies == "all":
        columns["body"] = list(map(_body, rows))
    elif bodies == "failed" and others:
        columns["body"] = [""] * (len(acks) + len(dones)) + list(map(_body, others))
    return pack(columns)


def _body(row: Outcome) -> str:
    try:
        return str(row[1][len(row[2]) + 1 :], "utf-8")
    except UnicodeDecodeError:
        return ""  # no envelope of ours


def _single(
    queue: str, worker: str, offset: float, row: Ack | Done, labels: Sequence[str]
) -> bytes | None:
    """One job that succeeded, if it was a plain one on its first way."""
    id_, value, head, task, acquired, started, finished = row[:7]
    _, _, field = head.partition(b",")
    if not field.isdigit() or len(field) > 15 or not id_.isascii() or not id_:
        return None
    if value[-2:-1] == b"}" and labels_of(value, labels):
        return None
    enqueued = int(field) + EPOCH_MS
    # two clocks, as below
    got = acquired if acquired > enqueued else enqueued
    begun = int(started * 1000 + offset)
    if begun < got:
        begun = got
    ended = int(finished * 1000 + offset)
    if ended < begun:
        ended = begun
    result_size = len(row.payload) if isinstance(row, Done) else 0
    body_size = len(value) - len(head) - 1
    numbers = (enqueued, got, begun, ended - begun, result_size, body_size)
    return plain_row(task, queue, worker) % (len(id_), *numbers) + id_


def _fields(heads: Sequence[bytes]) -> list[int] | None:
    try:
        fields: list[int] = loads(b"[%b]" % b",".join(heads))
    except ValueError:
        return None
    return fields


def _headers(columns: dict[str, Any], heads: Sequence[bytes]) -> None:
    """The columns of headers that are not all short. One that cannot be read says nothing."""
    if any(b"|" in head for head in heads):
        named = [parse_header(head) for head in heads]
        columns["group"] = [header.group if header else "" for header in named]
        columns["share"] = [header.share if header else "" for header in named]
        heads = [head.partition(b"|")[0] for head in heads]
    if _READABLE.fullmatch(heads[0]):
        rest = heads[0].split(b",", 2)[2]
        end = b"," + rest
        # jobs that were due at one instant are alike
        if all(head.endswith(end) for head in heads):
            fields = _fields([head[: -len(end)] for head in heads])
            if fields is not None and len(fields) == 2 * len(heads):
                columns["enqueued"] = fields[1::2]
                columns |= zip(_HEADER[2:], map(int, rest.split(b",")), strict=True)
                del columns[""]
                return
    whole = [
        head if (commas := head.count(b",")) == 6
        else head + _SHORT if commas == 1
        else _SEVEN.sub(rb"\1", head) if commas in (8, 9)
        else _NONE
        for head in heads
    ]  # fmt: skip
    fields = _fields(whole)
    if fields is None or set(map(type, fields)) != {int}:
        whole = [head if _READABLE.fullmatch(head) else _NONE for head in whole]
        fields = [int(field) for head in whole for field in head.split(b",")]
    for index, name in enumerate(_HEADER):
        if name:
            columns[name] = fields[index::7]
