"""The consumer protocol, one step at a time: register, wait, pull, settle, interest, close.

The workers of `rqueue_workers` are built on it; so may be others. One consumer belongs to one
thread. Rows Q-32 to Q-54 describe the protocol; `docs/protocol.md` draws it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

import orjson
import redis

from rqueue import store
from rqueue.codec import encode_result
from rqueue.errors import LifecycleError, NotRegistered, RegistrationLost
from rqueue.job import Delivery
from rqueue.keys import QueueKeys
from rqueue.leases import Renewer
from rqueue.listener import Listener, Wake
from rqueue.store.consumers import Mode
from rqueue.store.settle import Pulled, Retried, Window
from rqueue.wire import Wire

DEFAULT_LEASE_MS = 30_000


def consumer_name(prefix: str = "") -> str:
    """A name nobody had before: host, process, and chance (H-12)."""
    host = socket.gethostname().split(".")[0]
    return f"{prefix or host}:{os.getpid()}:{token_hex(4)}"


class Consumer:
    """One subscription to one queue. Made by `Queue.consumer(...)`.

    jobs, bytes: its window, that is what it may hold at once, all in all (bytes 0: no limit; Q-50).
    priority: higher ones are served first while they have credit (Q-45). mode: "acquire", or
    "browse" to look without taking. lease_ms: how long it may stay silent. slots: jobs it can run
    at once; a consumer whose lease ends is charged for as many. renew: keep the lease from a thread
    of this process (a pool's supervisor does it for its workers instead).

    `state` is the list it is in: interested, notified, not_interested, browsers. `timer_ms`: until
    the next due job, where this consumer is the one to pull then, else -1. `refused`: ids of the
    last settle that it did not hold any more. `now`: ms, Redis's clock at the last reply.
    """

    def __init__(
        self,
        client: redis.Redis,
        keys: QueueKeys,
        *,
        name: str = "",
        jobs: int = 1,
        bytes: int = 0,
        priority: int = 0,
        mode: Mode = "acquire",
        lease_ms: int = DEFAULT_LEASE_MS,
        slots: int = 1,
        worker: str = "",
        renew: bool = True,
        wire: Wire | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.keys = keys
        self.name = name or consumer_name()
        self.window = Window(jobs, bytes)
        self.priority = priority
        self.mode: Mode = mode
        self.lease_ms = lease_ms
        self.slots = slots
        self.worker = worker or self.name
        self.term = ""
        self.state = ""
        self.timer_ms = -1
        self.refused: list[str] = []
        self.now = 0
        self._client = client
        self._renews = renew
        self._renewer: Renewer | None = None
        self._own_wire = wire is None
        self._wire = wire if wire is not None else Wire(client)
        self._own_listener = listener is None
        self._listener = listener
        self._held: dict[str, int] = {}
        self._cursor = ""

    # -- life --------------------------------------------------------------------------------------

    def register(self) -> Self:
        """Join the queue with a lease and a new term. Raises LifecycleError if it is joined."""
        if self.term:
            raise LifecycleError(f"consumer '{self.name}' is registered")
        call = store.register(
            self.keys,
            self.name,
            mode=self.mode,
            priority=self.priority,
            window=self.window,
            lease_ms=self.lease_ms,
            slots=self.slots,
            worker=self.worker,
        )
        registered = self._wire.run(call, queue=self.keys.queue, consumer=self.name)
        self.now, self.term, self.state = registered
        if self._listener is None:
            self._listener = Listener(Wire(self._client, timeout=None))
        self._listener.add(self.name, self.keys.wake(self.name))
        if self._renews:
            self._renewer = Renewer(Wire(self._client), self.keys, [self.name], self.lease_ms)
            self._renewer.start()
        return self

    def rejoin(self) -> None:
        """After the registration was lost: join again, under a new name and with empty hands."""
        self._leave()
        prefix = self.name.rsplit(":", 2)[0]
        self.name = consumer_name(prefix)
        self.register()

    def close(self) -> None:
        """Leave the queue: what is held goes back uncounted, in its place (X-21). A second close,
        or one after the lease ended, does nothing."""
        term = self.term
        if term:
            call = store.unregister(self.keys, self.name, term)
            try:
                while self._wire.run(call, queue=self.keys.queue, consumer=self.name).held:
                    pass
            except RegistrationLost:
                pass  # its lease ended: everything went back already
            finally:
                self._leave()
        if self._own_listener and self._listener is not None:
            self._listener.close()
        if self._own_wire:
            self._wire.close()

    def _leave(self) -> None:
        self.term = self.state = ""
        self._held.clear()
        if self._renewer is not None:
            self._renewer.stop()
            self._renewer = None
        if self._listener is not None:
            self._listener.remove(self.keys.wake(self.name))

    def __enter__(self) -> Self:
        return self if self.term else self.register()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Consumer {self.name!r} of queue {self.keys.queue!r}: {self.state or 'closed'}>"

    # -- protocol ----------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """Jobs in its hands, as far as it knows."""
        return len(self._held)

    def pull(self, *, recall: bool = False) -> list[Delivery]:
        """Acquire what the window allows, oldest of the highest level first (Q-40).

        recall: also return what the queue says is in these hands (after a lost reply, H-18). A
        browser gets the next jobs behind its cursor, and acquires none. Raises RegistrationLost.
        """
        self._joined()
        if self.mode == "browse":
            page = self._run(store.browse(self.keys, self._cursor, max(1, self.window.jobs)))
            self._cursor, self.now = page.cursor, page.now
            seen: list[Delivery] = page.jobs
            return seen
        if recall:
            self._held.clear()
        call = store.pull(self.keys, self.name, self.term, self.window, recall=recall)
        return self._take(self._run(call))

    def settle(
        self,
        *,
        ack: Iterable[Delivery | str] = (),
        done: Iterable[tuple[Delivery | str, Any]] = (),
        retry: Iterable[Retried] = (),
        reject: Iterable[tuple[Delivery | str, dict[str, Any]]] = (),
        release: Iterable[Delivery | str] = (),
        pull: bool = False,
        batch: bytes = b"",
        rows: int = 0,
    ) -> list[Delivery]:
        """Say what became of jobs; with `pull`, acquire the next ones in the same step.

        ack: done. done: (job, result), the result is kept. retry: failed, again later. reject:
        (job, cause), to the dead letters. release: given back unstarted. Jobs that are not in these
        hands any more change nothing and are named in `refused` (H-08). batch, rows: packed history
        rows of ack, done, retry, reject, in this order. Raises RegistrationLost, NotEncodable.
        """
        self._joined()
        freed = 0
        pop = self._held.pop
        ids: list[list[str]] = [[], [], []]
        for into, jobs in zip(ids, (ack, release), strict=False):
            for job in jobs:
                id_ = job if type(job) is str else job.id  # type: ignore[union-attr]
                into.append(id_)
                freed += pop(id_, 0)
        kept = []
        for job, value in done:
            id_ = _id(job)
            kept.append((id_, None, encode_result(value)))
            freed += pop(id_, 0)
        again = list(retry)
        for retried in again:
            freed += pop(_text(retried.id), 0)
        buried = []
        for job, cause in reject:
            id_ = _id(job)
            buried.append((id_, orjson.dumps(cause)))
            freed += pop(id_, 0)
        call = store.settle(
            self.keys,
            self.name,
            self.term,
            self.window if pull else None,
            ack=ids[0],
            done=kept,
            retry=again,
            reject=buried,
            release=ids[1],
            freed=freed,
            batch=batch,
            rows=rows,
        )
        return self._take(self._run(call))

    def interest(self, jobs: int, bytes: int = 0) -> str:
        """Set the window without pulling; none: not interested (drain, Q-54). Returns the state:
        "notified" means work waits, pull."""
        self._joined()
        self.window = Window(jobs, bytes)
        self.state = self._run(store.interest(self.keys, self.name, self.term, self.window))
        return self.state

    def wait(self, timeout: float | None = None) -> list[Wake]:
        """Wait for a wake-up, at most `timeout` seconds; [] when nothing came.

        A job handed over directly comes with it and is in these hands. When `timer_ms` is set the
        wait ends by then: pull. Raises the server errors of `rqueue.errors`.
        """
        self._joined()
        assert self._listener is not None
        if self.timer_ms >= 0:
            due = self.timer_ms / 1000
            timeout = due if timeout is None else min(timeout, due)
        return [wake for wake in self._listener.wait(timeout) if self.hear(wake)]

    def hear(self, wake: Wake) -> bool:
        """Take note of a wake-up; False if it says nothing new (a job a recall named before)."""
        if wake.job is not None:
            if wake.job.id in self._held:
                return False
            self._held[wake.job.id] = len(wake.job.value)
        elif wake.kind == "revoked":
            self._held.pop(wake.id, None)
        return True

    # -- one job at a time -------------------------------------------------------------------------

    def ack(self, job: Delivery | str, result: Any = None) -> bool:
        """Done. False if it was not in these hands any more: nothing changed."""
        self.settle(done=[(job, result)])
        return not self.refused

    def retry(
        self,
        job: Delivery | str,
        *,
        delay: float = 0,
        error: dict[str, Any] | None = None,
        place: str = "",
        charge: bool = True,
    ) -> bool:
        """Failed, again in `delay` seconds; counted unless `charge` is False. place: "old" (the
        default without a delay), "head" (the default with one), "tail" (X-05)."""
        where = place or ("head" if delay > 0 else "old")
        body = orjson.dumps(error) if error else b""
        self.settle(retry=[Retried(_id(job), round(delay * 1000), where, charge, body)])
        return not self.refused

    def release(self, job: Delivery | str) -> bool:
        """Give it back unstarted: its old position, not counted (Q-03)."""
        self.settle(release=[job])
        return not self.refused

    def reject(self, job: Delivery | str, reason: str, kind: str = "rejected") -> bool:
        """Failed for good, to the dead letters."""
        cause = {"kind": kind, "type": "", "message": reason, "at": self.now, "worker": self.worker}
        self.settle(reject=[(job, cause)])
        return not self.refused

    # -- inside ------------------------------------------------------------------------------------

    def _joined(self) -> None:
        if not self.term:
            raise NotRegistered(self.name, queue=self.keys.queue)

    def _run(self, call: store.Call[Any]) -> Any:
        try:
            return self._wire.run(call, queue=self.keys.queue, consumer=self.name)
        except RegistrationLost:
            self._leave()
            raise

    def _take(self, pulled: Pulled) -> list[Delivery]:
        self.now, self.state, self.timer_ms, refused, flat = pulled
        self.refused = [id_.decode() for id_ in refused]
        jobs = _deliveries(flat)
        held = self._held
        for job in jobs:
            held[job.id] = len(job.value)
        return jobs


def _deliveries(flat: Sequence[bytes]) -> list[Delivery]:
    return [Delivery(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]


def _id(job: Delivery | str) -> str:
    return job if isinstance(job, str) else job.id


def _text(id_: str | bytes) -> str:
    return id_ if isinstance(id_, str) else id_.decode()
