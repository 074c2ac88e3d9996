"""Every key of a queue, once, with its type. All share the hash tag `{queue}`: one cluster slot."""

from __future__ import annotations

from dataclasses import dataclass, field

from rqueue.model.names import check_namespace, check_stored_queue, tag, untag
from rqueue.protocol.workflow_keys import WorkflowKeys

SCHEMA = 1
"""Version of the data model; scripts refuse a queue written by another one (H-13)."""


@dataclass(frozen=True, slots=True)
class QueueKeys(WorkflowKeys):
    """Keys of one queue in one namespace. Scripts get `meta` and derive the rest from it.

    Raises InvalidName.
    """

    queue: str
    namespace: str = "rqueue"
    base: str = field(init=False)
    meta: str = field(init=False)
    results: str = field(init=False)
    """How the names of all `result` lists begin."""

    def __post_init__(self) -> None:
        check_stored_queue(self.queue)
        check_namespace(self.namespace)
        base = f"{self.namespace}:{{{tag(self.queue)}}}:"
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "meta", base + "meta")
        object.__setattr__(self, "results", base + "result:")

    def pattern(self, rest: str = "*") -> str:
        """A pattern of SCAN for keys of this queue. rest: of what follows `base`, as a pattern."""
        return glob_escape(self.base) + rest

    @property
    def guard(self) -> str:
        """never exists: declared by every script beside `meta`; see `ScriptCall.keys`."""
        return self.base + "guard"

    @property
    def jobs(self) -> str:
        """hash: id -> value (header and envelope)."""
        return self.base + "jobs"

    def ready(self, level: int) -> str:
        """list: ids of waiting jobs of a level, by position."""
        return f"{self.base}ready:{level}"

    @property
    def groups(self) -> str:
        """hash: group (escaped) -> id of the job that has its turn: ready, held, or scheduled."""
        return self.base + "groups"

    @property
    def heads(self) -> str:
        """zset: ready jobs with groups or keys: as in `scheduled`, by level, due time, position."""
        return self.base + "heads"

    @property
    def alerts(self) -> str:
        """Stream of the queue's alerts."""
        return self.base + "alerts"

    @property
    def shards(self) -> str:
        """hash: the table of the queue's shards; see `rqueue.model.shard_table`."""
        return self.base + "shards"

    @property
    def owners(self) -> str:
        """hash: bucket -> the consumer that owns its groups."""
        return self.base + "owners"

    def own(self, consumer: str) -> str:
        """zset: ready jobs of the buckets that a consumer owns, as in `heads`."""
        return f"{self.base}own:{consumer}"

    def group(self, group: str) -> str:
        """zset: those behind others of a group (escaped): as in `scheduled`, by position."""
        return f"{self.base}group:{group}"

    @property
    def latest(self) -> str:
        """hash: key (escaped) -> id of the last of its jobs that was ready, while that lives."""
        return self.base + "latest"

    @property
    def unique(self) -> str:
        """hash: key of unique jobs -> id of the job that has it."""
        return self.base + "unique"

    @property
    def periods(self) -> str:
        """zset: keys of unique jobs with a period, by its end in ms."""
        return self.base + "periods"

    @property
    def classes(self) -> str:
        """hash: labels, as in the headers of jobs -> number of their class."""
        return self.base + "classes"

    def job_class(self, number: str) -> str:
        """zset: ready jobs of a class: members and scores as of `heads`."""
        return f"{self.base}class:{number}"

    def refused(self, terms: str) -> str:
        """zset: ready jobs that the consumers of these terms refused: members and scores as of
        `heads`."""
        return f"{self.base}refused:{terms}"

    @property
    def limits(self) -> str:
        """hash: limit (escaped), with a key or without, or "<name>=*" for all its keys -> how many
        it allows, if that is set."""
        return self.base + "limits"

    @property
    def declared(self) -> str:
        """hash: limit (escaped) -> "<enqueued, ms> <how many>", as the job declares that was
        enqueued last, while permits of it are out or jobs wait for it."""
        return self.base + "declared"

    @property
    def permits(self) -> str:
        """hash: limit (escaped) -> permits that are out: jobs of it that are ready or held; of a
        rate tokens that are set aside for jobs that are ready."""
        return self.base + "permits"

    @property
    def claims(self) -> str:
        """hash: job id -> the limits that it has permits of, with spaces between them; of a rate
        with "*" and the tokens set aside, or "!" and the attempt that they are paid of."""
        return self.base + "claims"

    @property
    def reopened(self) -> str:
        """set: limits that are waited for and may have permits that are still to be offered."""
        return self.base + "reopened"

    @property
    def rates(self) -> str:
        """zset: rate -> when its bucket is full again, ms since 2025; what is past says nothing."""
        return self.base + "rates"

    @property
    def tokens_due(self) -> str:
        """zset: rate that is waited for -> when the first in line finds its tokens, ms."""
        return self.base + "tokens_due"

    @property
    def blocked(self) -> str:
        """zset: groups (escaped) with jobs behind the first one, all with score 0."""
        return self.base + "blocked"

    @property
    def schedules(self) -> str:
        """hash: name -> schedule, a JSON object (`lua/include/tick/record.lua`)."""
        return self.base + "schedules"

    @property
    def ticks(self) -> str:
        """zset: names of active schedules by their next tick in ms."""
        return self.base + "ticks"

    @property
    def owed(self) -> str:
        """hash: names of schedules of which a tick waits for the end of the job before -> 1."""
        return self.base + "owed"

    @property
    def refills(self) -> str:
        """set: names of schedules whose next ticks are to be computed."""
        return self.base + "refills"

    @property
    def producers(self) -> str:
        """zset: producers that wait for room in a bounded queue, by their turn."""
        return self.base + "producers"

    @property
    def grants(self) -> str:
        """zset: producers for which room is kept, by the deadline in ms."""
        return self.base + "grants"

    @property
    def wishes(self) -> str:
        """hash: of both, producer -> "jobs,until,bytes": for how much, and when it has to have said
        again that it waits (ms)."""
        return self.base + "wishes"

    @property
    def sizes(self) -> str:
        """hash: where a limit counts bytes, of each job that it counts, id -> its bytes."""
        return self.base + "sizes"

    def room(self, producer: str) -> str:
        """list: a word for a producer, once there may be room; it lasts as long as its grant."""
        return f"{self.base}room:{producer}"

    def due(self, level: int) -> str:
        """list: ids of promoted jobs of a level, by due time; they stand before the ready ones."""
        return f"{self.base}due:{level}"

    @property
    def scheduled(self) -> str:
        """zset: member (99 - level, 2 digits; position, 14 digits; id) by due time in ms."""
        return self.base + "scheduled"

    @property
    def expiring(self) -> str:
        """zset: ids of waiting jobs that have a time to live, by its end in ms."""
        return self.base + "expiring"

    def held(self, consumer: str) -> str:
        """list: ids that a consumer holds, in the order it acquired them."""
        return f"{self.base}held:{consumer}"

    def running(self, consumer: str) -> str:
        """hash: jobs that a consumer has been running for a while -> "deliveries,acquired,started"
        (ms): what the end of its lease charges."""
        return f"{self.base}running:{consumer}"

    @property
    def dead(self) -> str:
        """zset: ids of dead letters by time of death in ms."""
        return self.base + "dead"

    @property
    def causes(self) -> str:
        """hash: id -> cause JSON of a dead letter."""
        return self.base + "causes"

    @property
    def errors(self) -> str:
        """hash: id -> errors of the attempts so far, one JSON object per line."""
        return self.base + "errors"

    @property
    def consumers(self) -> str:
        """zset: all consumers by the end of their lease in ms."""
        return self.base + "consumers"

    def consumer(self, consumer: str) -> str:
        """hash: term, state, priority, mode, jobs, bytes, held_bytes, slots, worker, since."""
        return f"{self.base}consumer:{consumer}"

    @property
    def interested(self) -> str:
        """zset: waiting consumers, best first."""
        return self.base + "interested"

    @property
    def notified(self) -> str:
        """zset: consumers that were notified, by the time they are to have pulled."""
        return self.base + "notified"

    @property
    def not_interested(self) -> str:
        """set: consumers without credit."""
        return self.base + "not_interested"

    @property
    def browsers(self) -> str:
        """set: consumers that look and never acquire."""
        return self.base + "browsers"

    def wake(self, consumer: str) -> str:
        """list: messages to a consumer: "w" (pull), "J..." (a job), "X<id>" (revoked)."""
        return f"{self.base}wake:{consumer}"

    @property
    def byte_waiters(self) -> str:
        """hash: id of a job -> consumers whose bytes do not suffice for it, one per line."""
        return self.base + "byte_waiters"

    @property
    def ended(self) -> str:
        """hash: id -> record of an ended job, the current generation."""
        return self.base + "ended"

    @property
    def ended_old(self) -> str:
        """hash: id -> record of an ended job, the generation before."""
        return self.base + "ended:old"

    @property
    def parked(self) -> str:
        """hash: ids of scheduled jobs whose task no worker knew -> why, JSON."""
        return self.base + "parked"

    @property
    def returns_to(self) -> str:
        """hash: scheduled jobs that do not go to the head when due -> "park", "old" or "tail"."""
        return self.base + "returns_to"

    @property
    def awaited(self) -> str:
        """hash: ids whose result a client waits for."""
        return self.base + "awaited"

    def result(self, id: str) -> str:
        """list of one record, with a lifetime: each waiter moves it onto itself."""
        return self.results + id

    def stop(self, id: str) -> str:
        """list: one element when the code of a job that was cancelled runs no more. 60 s."""
        return f"{self.base}stop:{id}"

    def progress(self, id: str) -> str:
        """hash: what a job reported last: by, delivery, at (ms), said (JSON). A day."""
        return f"{self.base}progress:{id}"

    def log(self, id: str) -> str:
        """list: lines that a job has logged. A day, and as long as its record when it has ended."""
        return f"{self.base}log:{id}"

    def watch(self, id: str) -> str:
        """stream: an entry for each change of a job that is watched. 60 s."""
        return f"{self.base}watch:{id}"

    def write(self, run: str) -> str:
        """hash: the write log of a run whose steps may be sent twice; see `commands.Note`."""
        return f"{self.base}write:{run}"

    def written(self, run: str, epoch: int, partition: int) -> str:
        """string: marks of the rows that a run has written for one partition of an epoch."""
        return f"{self.base}written:{run}:{epoch}:{partition}"

    @property
    def live(self) -> str:
        """set: consumers that take jobs where others stand by."""
        return self.base + "live"

    @property
    def standbys(self) -> str:
        """zset: consumers that stand by, who takes over first before the others."""
        return self.base + "standbys"

    @property
    def outgoing(self) -> str:
        """zset: jobs on their way to other queues (turn, target and id, one a line), by the time
        before which nobody else sends them."""
        return self.base + "outgoing"

    @property
    def outgoing_jobs(self) -> str:
        """hash: member of `outgoing` -> JSON of target, id, terms and origin, and the envelope."""
        return self.base + "outgoing:jobs"

    @property
    def sources(self) -> str:
        """hash: queues whose dead letters or expired jobs come here -> which."""
        return self.base + "sources"

    @property
    def history(self) -> str:
        """stream: what became of jobs, in batches."""
        return self.base + "history"


def glob_escape(text: str) -> str:
    """`text` as a SCAN pattern that matches nothing but itself."""
    return "".join(f"\\{c}" if c in "*?[]^\\" else c for c in text)


def meta_pattern(namespace: str) -> str:
    """A pattern of SCAN that the `meta` keys of all queues of a namespace match. A key of another
    sort may match it too: `queue_in` tells."""
    return f"{glob_escape(namespace)}:{{*}}:meta"


def queue_in(meta: str, namespace: str) -> str:
    """The name of the queue of this namespace that a `meta` key belongs to; "" where it is no such
    key: the name of a consumer may look like the end of one."""
    name = queue_of(meta.removeprefix(namespace))
    return name if meta == f"{namespace}:{{{tag(name)}}}:meta" else ""


def queue_of(meta: str) -> str:
    """The name of the queue that a `meta` key belongs to; "" where it is no such key."""
    _, opened, rest = meta.partition(":{")
    return untag(rest.removesuffix("}:meta")) if opened else ""
