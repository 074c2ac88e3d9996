# Generated from rqueue/client/_async/queue_calls.py (`make generate`): do not edit.
"""A queue by name, and the script calls on it: what handles, putters and the queue itself share."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rqueue.client._sync.shard_course import TableSteps
from rqueue.errors import ConfigError, QueueSharded, ServerError
from rqueue.model.cancellation import Cancellation
from rqueue.model.confirmation import Confirmation, Unconfirmed
from rqueue.model.connection_state import ConnectionStates
from rqueue.model.expect import expect, shown
from rqueue.model.names import check_queue
from rqueue.protocol import commands
from rqueue.protocol.commands.admin import CANCELLED_FROM
from rqueue.protocol.forwarding import forward_soon, sends_on
from rqueue.protocol.job_packer import JobPacker
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.paging import AnyPage, Paging
from rqueue.protocol.sharding import refuse_spread
from rqueue.protocol.stop_wait import StopWait
from rqueue.settings import Settings, redact
from rqueue.transport.discovery import with_url
from rqueue.transport.node_connections import connections_for
from rqueue.transport.redis_client import (
    open_client,
    patience_of,
    require_bytes,
    url_of,
)
from rqueue.transport.server_check import ServerFacts, check_confirmable

if TYPE_CHECKING:
    import redis

__all__ = ["QueueCalls"]

T = TypeVar("T")
P = TypeVar("P", bound=AnyPage)


class QueueCalls:
    """A queue, by name, over connections that it opens at its first command."""

    def __init__(
        self,
        name: str = "default",
        url: str | None = None,
        *,
        redis: redis.Redis | None = None,
        namespace: str | None = None,
        signing_keys: dict[str, str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        given = Settings.of(settings, url=url, namespace=namespace, signing_keys=signing_keys)
        self.settings = given
        self.keys = QueueKeys(check_queue(name), given.namespace)
        if "://" in name and url is None and redis is None:
            raise ConfigError("name", f"{shown(redact(name))} is a URL: Queue(name, url)")
        self.name = name
        self._packer = JobPacker(self.keys, given)
        self.targets: set[str] = set()
        """Queues to which jobs of transactions go, and that were asked whether they take them."""
        self.table_steps: TableSteps | None = None
        """Of a shard: does what the table of the shards asks for, as its consumers do."""
        self._owns = redis is None
        if redis is not None:
            require_bytes(redis)
            self.redis = redis
            patience = patience_of(redis)
        else:
            self.settings = given = with_url(given)
            self.redis = open_client(
                str(given.url),
                socket_connect_timeout=given.connect_timeout,
                socket_timeout=given.command_timeout,
            )
            patience = given.command_timeout
        self._transport = connections_for(self.redis, patience)

    @property
    def connection(self) -> ConnectionStates:
        """Whether Redis is reached, as this queue's calls saw it last, and listeners that are
        called when that changes (C-29)."""
        return self._transport.states

    def _run(self, call: commands.ScriptCall[T]) -> T:
        if call.confirm is not None:
            self._check_confirmable(call.confirm)
        return self._transport.run(call, queue=self.name)

    def _pages(self, paging: Paging[P, Any]) -> Iterator[P]:
        """All pages of a listing; the next one is read when it is asked for."""
        while call := paging.call:
            yield paging.read(self._run(call))

    def _run_here(self, call: commands.ScriptCall[T]) -> T:
        """`_run`, of what is asked of a queue that has its jobs itself. Raises QueueSharded where
        its shards have them: the answer says nothing of these."""
        answer = self._run(call)
        refuse_spread(self.keys)
        return answer

    def _facts(self) -> ServerFacts:
        return self._transport.facts(self.keys.meta)

    def _check_confirmable(self, confirm: Confirmation) -> None:
        """See to it that the server can confirm an enqueue so, before anything is stored."""
        confirmable = self._transport.confirmable(self.keys.meta)
        if confirm in confirmable:
            return
        patience = self._transport.patience
        if patience is not None and confirm.within_ms >= patience * 1000:
            raise ConfigError(
                "confirm_ms",
                f"{confirm.within_ms} ms is not below the time that an answer may take, "
                f"{patience:g} s (RQUEUE_COMMAND_TIMEOUT)",
            )
        check_confirmable(url_of(self.redis), self._facts, confirm)
        confirmable.add(confirm)

    def _require_confirmed(self, unconfirmed: Unconfirmed | None, ids: Iterable[str]) -> None:
        """Raise NotConfirmed of these jobs, unless nothing is missing. The server is looked at anew
        then, before the next one is stored."""
        if unconfirmed is not None:
            self._transport.confirmable(self.keys.meta).clear()
            raise unconfirmed.error(self.name, tuple(ids))

    def holder(self, id: str) -> QueueCalls:
        """The queue of the shard that knows a job, of a queue that has turned out to be spread.
        Raises QueueSharded of what cannot be."""
        raise QueueSharded(self.name)

    def shards_left(self) -> list[str]:
        """The shards that a queue which is spread has still."""
        raise QueueSharded(self.name)

    def cancel(
        self,
        id: str,
        *,
        held: bool = True,
        running: bool = False,
        kill: bool = False,
        timeout: float | None = 0.0,
    ) -> Cancellation:
        """Cancel a job; true if it had not ended. held=False leaves a job alone that a worker holds
        (C-25).

        running: what runs is to be interrupted (a task on the event loop is cancelled, which it is
        in any case; in other code `Cancelled` is raised); kill: its worker process is to be
        killed. Both reach the code of a job, too, that was cancelled before and runs on. Waits for
        at most `timeout` seconds (None: for ever) until the code runs no more, and says how far
        that is. Raises the server errors.
        """
        expect("id", id, str, "a job's id")
        for name, value in (("held", held), ("running", running), ("kill", kill)):
            expect(name, value, bool, "True or False")
        wait = StopWait(self.keys, id, timeout, self._transport.patience)
        force: Literal["", "stop", "kill"] = "kill" if kill else "stop" if running else ""
        try:
            was = self._run(commands.cancel(self.keys, id, held=held, force=force))
        except QueueSharded:
            its = self.holder(id)
            return its.cancel(id, held=held, running=running, kill=kill, timeout=timeout)
        if sends_on(self.keys):
            # jobs of other queues may wait for it
            forward_soon(self._run, self.keys)
        if was in CANCELLED_FROM and was != "held":
            return Cancellation.ENDED
        if not force:
            return Cancellation.REQUESTED if was == "held" else Cancellation.NONE
        look = commands.read_stop(self.keys, id)
        while True:
            try:
                block = wait.heard(self._run(look))
                if not block:
                    return wait.stage
                self._transport.run_then(look, block, queue=self.name)
            except ServerError as error:
                time.sleep(wait.pause(error))

    def close(self) -> None:
        """Close the connections that this queue opened."""
        if self._owns:
            self._transport.close_client()
        self._transport.close()
