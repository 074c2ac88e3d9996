"""Every reply with which Redis refuses, and every public call."""

from collections.abc import Callable
from typing import Any

import rqueue
from rqueue import errors
from rqueue.client._async.consumer import AsyncConsumer
from rqueue.client._async.job_handle import AsyncJobHandle
from rqueue.client._async.put_handle import AsyncPutHandle
from rqueue.client._async.putter import AsyncBackgroundPuts
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.put_handle import PutHandle
from rqueue.client._sync.putter import BackgroundPuts
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Inspector, QueueInfo, Survey
from rqueue.inspector.doctor.doctor import Doctor
from rqueue.model.job import Delivery
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.job_packer import Call

REPLIES: dict[str, type[errors.RQueueError]] = {
    "LOADING Redis is loading the dataset in memory": errors.RedisLoading,
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL.": errors.RedisBusy,
    "INPROG Failover in progress": errors.RedisBusy,
    "TRYAGAIN Multiple keys request during rehashing of slot": errors.SlotBusy,
    "ASK 5718 127.0.0.1:7001": errors.SlotBusy,
    "CLUSTERDOWN Hash slot not served": errors.SlotBusy,
    "NOSCRIPT No matching script. Please use EVAL.": errors.RedisBusy,
    "READONLY You can't write against a read only replica.": errors.RedisReadOnly,
    "MASTERDOWN Link with MASTER is down": errors.RedisReadOnly,
    "NOREPLICAS Not enough good replicas to write.": errors.RedisReadOnly,
    "MISCONF Redis is configured to save RDB snapshots, but": errors.RedisReadOnly,
    "UNBLOCKED force unblock from blocking operation": errors.RedisReadOnly,
    "OOM command not allowed when used memory > 'maxmemory'.": errors.RedisOutOfMemory,
    "MOVED 5718 127.0.0.1:7001": errors.WrongServer,
    "CROSSSLOT Keys in request don't hash to the same slot": errors.WrongServer,
    "NOPROTO unsupported protocol version": errors.WrongServer,
    "ERR unknown command 'EVALSHA', with args beginning with:": errors.WrongServer,
    "ERR DB index is out of range": errors.WrongServer,
    "NOAUTH Authentication required.": errors.AuthenticationFailed,
    "WRONGPASS invalid username-password pair or user is disabled.": errors.AuthenticationFailed,
    "NOPERM User app has no permissions to run the 'evalsha' command": errors.AuthenticationFailed,
    "NOPERM No permissions to access a key": errors.AuthenticationFailed,
    "DENIED Redis is running in protected mode": errors.AuthenticationFailed,
    "ERR max number of clients reached": errors.ConnectionLost,
    "EXECABORT Transaction discarded because of previous errors.": errors.CommandRefused,
    "WRONGTYPE Operation against a key holding the wrong kind of value": errors.QueueDamaged,
    "ERR nobody knows this one": errors.CommandRefused,
    "ODD nor this one": errors.CommandRefused,
}


OF_SCRIPTS = errors.CommandRefused
"""What a script call makes a ScriptError of."""


JOB = Delivery(b"x", b"1,0;{}")
QUEUE: dict[str, Callable[[Queue], object]] = {
    "send": lambda q: q.send("t"),
    "enqueue": lambda q: q.enqueue("t"),
    "enqueue_request": lambda q: rqueue.task(name="t", sender=q, registry=rqueue.Registry())(
        _nothing
    ).enqueue(),
    "enqueue_many": lambda q: q.enqueue_many([Call("t"), Call("t")]),
    "enqueue_workflow": lambda q: q.enqueue_workflow(
        rqueue.group(rqueue.task(name="t", registry=rqueue.Registry())(_nothing).s())
    ),
    "enqueue_puts": lambda q: q.enqueue_puts([Put("x", b"{}")]),
    "counts": lambda q: q.counts(),
    "cancel": lambda q: q.cancel("x"),
    "promote": lambda q: q.promote("x"),
    "promote_all": lambda q: q.promote_all(),
    "set_priority": lambda q: q.set_priority("x", 9),
    "move_to_front": lambda q: q.move_to_front("x"),
    "move": lambda q: q.move("other", "x"),
    "move_all": lambda q: q.move_all("other"),
    "copy": lambda q: q.copy("other", "x"),
    "copy_all": lambda q: q.copy_all("other"),
    "expire": lambda q: q.expire("x"),
    "expire_all": lambda q: q.expire_all(),
    "reject": lambda q: q.reject("x"),
    "reject_all": lambda q: q.reject_all(),
    "cancel_all": lambda q: q.cancel_all(),
    "pause": lambda q: q.pause(),
    "delete": lambda q: q.delete(),
    "forward": lambda q: q.forward(),
    "resume": lambda q: q.resume(),
    "configure": lambda q: q.configure(priorities=5),
    "alerts": lambda q: _first(q.alerts(0.05)),
}


def _first(states: Any) -> object:
    return anext(states) if hasattr(states, "__anext__") else next(states)


HANDLE: dict[str, Callable[[Any], object]] = {
    "state": lambda job: job.state(),
    "states": lambda job: _first(job.states(0.05)),
    "watch": lambda job: _first(job.watch(0.05)),
    "progress": lambda job: job.progress(),
    "result": lambda job: job.result(0.05),
    "cancel": lambda job: job.cancel(),
}


CONSUMER: dict[str, Callable[[Any], object]] = {
    "pull": lambda c: c.pull(),
    "settle": lambda c: c.settle(ack=["x"], pull=True),
    "interest": lambda c: c.interest(1),
    "grant": lambda c: c.grant(1),
    "stop": lambda c: c.stop(),
    "flush": lambda c: c.flush(),
    "drain": lambda c: _all(c.drain()),
    "ack": lambda c: c.ack(JOB),
    "retry": lambda c: c.retry(JOB),
    "release": lambda c: c.release(JOB),
    "reject": lambda c: c.reject(JOB, "why"),
    "refuse": lambda c: c.refuse(JOB),
    "recover": lambda c: c.recover(),
    "cancel": lambda c: c.cancel(),
    "wait": lambda c: c.wait(5),
    "receive": lambda c: c.receive(5),
    "rejoin": lambda c: c.rejoin(),
    "close": lambda c: c.close(),
}


NOTHING_SEEN = Survey(
    QueueInfo("q", *(0,) * 6, False, {}, 0, {}, {}, 0, 0, 0),
    {},
    {},
)
"""An earlier look."""

INSPECTOR: dict[str, Callable[[Inspector], object]] = {
    "queue_names": lambda i: i.queue_names(),
    "find_queues": lambda i: i.find_queues(),
    "queues": lambda i: i.queues(),
    "queue": lambda i: i.queue("q"),
    "require_queue": lambda i: i.require_queue("q"),
    "survey": lambda i: i.survey("q"),
    "parts": lambda i: i.parts("q"),
    "spread": lambda i: i.spread(["q"]),
    "each": lambda i: [i.survey(name) for name in i.each(["q"])],
    "part": lambda i: i.part("q"),
    "client_of": lambda i: i.client_of("q"),
    "measure": lambda i: i.measure("q", NOTHING_SEEN),
    "purge": lambda i: i.purge("q"),
    "jobs": lambda i: i.jobs("q"),
    "all_jobs": lambda i: list(i.all_jobs("q")),
    "job": lambda i: i.job("x"),
    "cancel": lambda i: i.cancel("x", "q"),
    "ended_jobs": lambda i: list(i.ended_jobs("q")),
    "consumers": lambda i: i.consumers("q"),
    "group_owners": lambda i: i.group_owners("q"),
    "alerts": lambda i: i.alerts("q"),
    "alerts_by_queue": lambda i: i.alerts_by_queue("q"),
    "log": lambda i: i.log("x", "q"),
    "dead": lambda i: list(i.dead("q")),
    "requeue_dead": lambda i: i.requeue_dead("q"),
    "purge_dead": lambda i: i.purge_dead("q"),
    "history": lambda i: list(i.history("q")),
    "last_rows": lambda i: i.last_rows("q", 5),
    "parked": lambda i: i.parked("q", ["id"]),
    "follow_history": lambda i: next(i.follow_history("q")),
    "stats": lambda i: i.stats("q", wait=lambda _seconds: None),
}


DOCTOR: dict[str, Callable[[Doctor], object]] = {
    "check": lambda d: d.check(),
    "check_server": lambda d: d.check_server(),
    "check_queue": lambda d: d.check_queue("q"),
    "check_queue_at": lambda d: d.check_queue_at("q", ""),
    "check_queues_at": lambda d: list(d.check_queues_at({"q": ""})),
    "check_service": lambda d: d.check_service("q"),
    "heal": lambda d: d.heal("q"),
    "heal_at": lambda d: d.heal_at("q", ""),
}


PARTS = {"begin_here", "drop", "enqueue_here", "finish_here", "holder", "shards_left"}
"""Of calls that are tried: the step in one queue, or one shard, and which shard that is."""

QUIET = {
    Queue: {"at", "close", "consumer", "envelope", "get", "job", "putter", "transaction"} | PARTS,
    AsyncQueue: {"at", "close", "consumer", "envelope", "get", "job", "putter", "transaction"}
    | PARTS,
    Consumer: {"ack_multiple", "hear", "register"},  # of no job: sends nothing
    AsyncConsumer: {"ack_multiple", "hear", "register"},
    JobHandle: set(),
    AsyncJobHandle: set(),
    PutHandle: {"wait_stored"},
    AsyncPutHandle: {"wait_stored"},
    BackgroundPuts: {"add_error_listener", "add_listener", "close", "enqueue_request", "flush"}
    | {"put", "put_call"},
    AsyncBackgroundPuts: {"add_error_listener", "add_listener", "close", "enqueue_request", "flush"}
    | {"put", "put_call"},
    Inspector: {"close", "doctor", "keys", "node_of"},
    Doctor: {"repair", "check_places", "with_shards"},  # of a damaged queue `check_queue` says more
}
"""What sends nothing, or is tried by a test of its own below."""


def _nothing() -> None:
    """A task."""


def _all(batches: Any) -> object:
    async def collect() -> list[Any]:
        return [batch async for batch in batches]

    return collect() if hasattr(batches, "__anext__") else list(batches)
