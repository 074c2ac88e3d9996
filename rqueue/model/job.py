"""A job as it is stored, handed out and ended: states, outcomes, deliveries.

Stored in the hash `jobs` as `header;envelope`. The header is text, `position,enqueued` or, once
anything differs from the defaults, `position,enqueued,level,deliveries,attempts,max_deliveries,
due_ms`, and where it crashed before, or may crash more or less often than others,
`,crashes,max_crashes` behind that, and `,expires_ms` behind that where it has a time to live; then
tags, `|g<group>`, `|k<key>`, `|s<sort key>`, `|u<unique>`, `|b<bucket>` or `|B<bucket>`,
`|w<parents>`, `|p`, `|i<results>`, `|l<limit>` and `|e<share>`. `enqueued` is in ms since
`EPOCH_MS`. Scripts rewrite the header and never look into the envelope.

Nothing here is parsed before it is asked for: a worker builds thousands of deliveries a second.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from rqueue.errors import Undecodable
from rqueue.model.names import group_of
from rqueue.model.sort_keys import SortKey, sort_key_of

__all__ = [
    "DEFAULT_LEVEL",
    "EPOCH_MS",
    "Delivery",
    "Header",
    "JobState",
    "Outcome",
    "is_mark",
    "parse_header",
    "parse_value",
    "sort_key",
]

DEFAULT_LEVEL = 4  # JMS's default priority


class JobState(StrEnum):
    """Where a job is. The values are the words of the CLI, of JSON and of error messages.

    parked: it waits for a worker that knows its task. blocked: behind others of its group.
    deferred: it waits for other jobs, its parents. moved: it is in another queue now, to which
    people moved it.
    """

    READY = "ready"
    SCHEDULED = "scheduled"
    PARKED = "parked"
    BLOCKED = "blocked"
    DEFERRED = "deferred"
    HELD = "held"
    DEAD = "dead"
    DONE = "done"
    CANCELLED = "cancelled"
    PURGED = "purged"
    EXPIRED = "expired"
    DISPLACED = "displaced"
    MOVED = "moved"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Nothing more will happen to the job by itself (a dead letter may still be requeued)."""
        return self in _ENDED


_LIVE = frozenset(
    (
        *(JobState.READY, JobState.SCHEDULED, JobState.PARKED, JobState.BLOCKED),
        *(JobState.DEFERRED, JobState.HELD),
    )
)
_ENDED = frozenset(JobState) - _LIVE - {JobState.UNKNOWN}


class Outcome(StrEnum):
    """The outcome that a consumer gives a job when it settles it.

    ack: done. retry: failed, again later, counted. release: returned unstarted to its old
    position, not counted. reject: failed for good, to the dead letters.
    """

    ACK = "ack"
    RETRY = "retry"
    RELEASE = "release"
    REJECT = "reject"


class Header(NamedTuple):
    """The parsed header of a stored job.

    Times are ms since the epoch by Redis's clock. `deliveries`: times handed out before;
    `attempts`: those of them that were charged; `max_deliveries`: 0 = the queue's; `due_ms`:
    0 = an ordinary one: never scheduled, or moved to the tail since then. `crashes`: those of the
    attempts that cost a worker its process; `max_crashes`: 0 = the queue's. `expires_ms`: after it
    the job is not delivered any more; 0 = never. `group`, `key` and the like: empty = none.
    `bucket`: of its group where groups are sticky, "" = none; `first`: it is the first job of that
    which its consumer is delivered.
    `waits`: its `Parents` as text; `counts`: the job that its id is derived from waits for it;
    `results`: what its parents left, JSON (`rqueue.model.parents.read_results`); "" = nothing.
    """

    position: int
    enqueued_ms: int
    level: int = DEFAULT_LEVEL
    deliveries: int = 0
    attempts: int = 0
    max_deliveries: int = 0
    due_ms: int = 0
    crashes: int = 0
    max_crashes: int = 0
    expires_ms: int = 0
    group: str = ""
    key: str = ""
    sort: str = ""
    unique: str = ""
    bucket: str = ""
    first: bool = False
    waits: str = ""
    counts: bool = False
    results: str = ""
    limits: tuple[str, ...] = ()
    share: str = ""


EPOCH_MS = 1_735_689_600_000
"""What `enqueued` counts from in a stored header: the first of January 2025."""

_new = tuple.__new__
_DEFAULTS = (DEFAULT_LEVEL, 0, 0, 0, 0, 0, 0, 0, "", "", "", "", "", False, "", False, "", (), "")
_ESCAPED = (b"g", b"k", b"s", b"u")
_NUMBERS = 10
_LENGTHS = (2, 7, 9, 10)
"""Fields that a header has; `lua/include/job/value.lua` writes these."""


def is_mark(value: bytes) -> bool:
    """Whether a stored value is no job, but the mark of one that was cancelled while it waited."""
    return value[:1] == b"!"


def parse_header(head: bytes) -> Header | None:
    """The header of a stored job, as it stands before the envelope; None where it is none. Whatever
    reads a header reads it here."""
    said: dict[bytes, str] | None = None
    if b"|" in head:
        head, *tags = head.split(b"|")
        # ASCII, unless another program wrote it
        said = {tag[:1]: tag[1:].decode("utf-8", "replace") for tag in tags}
        many = tuple(tag[1:].decode("utf-8", "replace") for tag in tags if tag[:1] == b"l")
    fields = head.split(b",")
    count = len(fields)
    try:
        # past Header's own constructor: half the time
        if count == 2 and not said:  # nearly all jobs
            return _new(Header, (int(fields[0]), int(fields[1]) + EPOCH_MS, *_DEFAULTS))
        if count in _LENGTHS:
            position, enqueued, *rest = map(int, fields)
            header = _new(Header, (position, enqueued + EPOCH_MS, *rest, *_DEFAULTS[count - 2 :]))
            if said:
                group, key, sort, unique = (group_of(said.get(tag, "")) for tag in _ESCAPED)
                return _new(
                    Header,
                    (
                        *header[:_NUMBERS],
                        *(group, key, sort, unique),
                        *(said.get(b"b", "") or said.get(b"B", ""), b"B" in said),
                        *(said.get(b"w", ""), b"p" in said, said.get(b"i", "")),
                        many,
                        group_of(said.get(b"e", "")),
                    ),
                )
            return header
    except ValueError:
        pass
    return None


def sort_key(head: bytes) -> tuple[int, int] | None:
    """Where a job or a mark (`!<position>,<due>`) stands in its list, from what is stored before
    the envelope: due time (0: an ordinary one), then position. None where it says no such thing."""
    if is_mark(head):
        position, comma, due = head[1:].partition(b",")
        return (int(due), int(position)) if comma and position.isdigit() and due.isdigit() else None
    header = parse_header(head)
    return None if header is None else (header.due_ms, header.position)


def parse_value(value: bytes) -> tuple[Header, bytes]:
    """Split a stored value into its header and the envelope. Raises Undecodable."""
    head, semicolon, body = value.partition(b";")
    header = parse_header(head) if semicolon else None
    if header is None:
        raise Undecodable("not a stored job (no header)", value)
    return header, body


def has_crashed(value: bytes) -> bool:
    """Whether a job was charged with a crash: asked of every job, and most headers are short."""
    end = value.find(b";")
    if value.count(b",", 0, end) < 7:
        return False
    header = parse_header(value[:end])
    return header is not None and header.crashes > 0


def has_expired(value: bytes, now: int) -> bool:
    """Whether a job's time to live was over by then, ms: asked of many, and most headers are
    short."""
    end = value.find(b";")
    if value.count(b",", 0, end) < _NUMBERS - 1:
        return False
    header = parse_header(value[:end])
    return header is not None and 0 < header.expires_ms < now


def enqueued_by(job: Delivery, last: int | None) -> bool:
    """True if the job's position is at most this one; None: any. A damaged job counts as old."""
    try:
        return last is None or job.position <= last
    except Undecodable:
        return True


def delivered_before(head: bytes) -> bool:
    """Whether a job was handed out before this time, as its header says."""
    header = parse_header(head)
    return header is not None and header.deliveries > 0


class Delivery:
    """One job that a consumer holds. `id` is text; `value` is what the hash `jobs` holds.

    Header and envelope are split when first asked for. Raises Undecodable then, if they are broken.
    """

    __slots__ = ("_body", "_header", "id", "value")

    id: str
    value: bytes
    _header: Header | None
    _body: bytes | None

    def __init__(self, id: str | bytes, value: bytes) -> None:
        self.id = id if type(id) is str else id.decode()  # type: ignore[union-attr]
        self.value = value
        self._header = None
        self._body = None

    @property
    def header(self) -> Header:
        """All fields of the header."""
        header = self._header
        if header is None:
            header, self._body = parse_value(self.value)
            self._header = header
        return header

    @property
    def body(self) -> bytes:
        """The envelope, signed or not, as the client packed it."""
        body = self._body
        if body is None:
            value = self.value
            start = value.find(b";") + 1
            if not start:
                raise Undecodable("not a stored job (no header)", value)
            body = self._body = value[start:]
        return body

    @property
    def position(self) -> int:
        """The job's place among the jobs of its level; given once, kept for life."""
        return self.header.position

    @property
    def enqueued_ms(self) -> int:
        """When the queue accepted the job, ms since the epoch by Redis's clock."""
        return self.header.enqueued_ms

    @property
    def level(self) -> int:
        """Priority level, higher first."""
        return self.header.level

    @property
    def deliveries(self) -> int:
        """How many times the job was handed out before this time."""
        return self.header.deliveries

    @property
    def attempts(self) -> int:
        """How many of the earlier deliveries were charged (a retry, a crash while running)."""
        return self.header.attempts

    @property
    def max_deliveries(self) -> int:
        """The job's own limit of charged attempts; 0 = the queue's."""
        return self.header.max_deliveries

    @property
    def due_ms(self) -> int:
        """When it was last scheduled for, ms; 0 = never, or it moved to the tail since then."""
        return self.header.due_ms

    @property
    def crashes(self) -> int:
        """How many of the attempts so far cost a worker its process."""
        return self.header.crashes

    @property
    def max_crashes(self) -> int:
        """The job's own limit of crashes; 0 = the queue's."""
        return self.header.max_crashes

    @property
    def expires_ms(self) -> int:
        """After when the job is not delivered any more, ms since the epoch; 0 = never."""
        return self.header.expires_ms

    @property
    def group(self) -> str:
        """The job's group; "" without one."""
        return self.header.group

    @property
    def first_of_group(self) -> bool:
        """Whether its consumer owns the job's group from this job on, where groups are sticky."""
        return self.header.first

    @property
    def key(self) -> str:
        """The job's key; "" without one."""
        return self.header.key

    @property
    def sort_key(self) -> SortKey | None:
        """What the job is sorted by; None without that."""
        return sort_key_of(self.header.sort)

    @property
    def redelivered(self) -> bool:
        """Whether the job was handed out before: it may have run, wholly or in part."""
        return self.header.deliveries > 0

    def __repr__(self) -> str:
        return f"<Delivery {self.id!r} of {len(self.value)} bytes>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Delivery):
            return NotImplemented
        return self.id == other.id and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.id)
