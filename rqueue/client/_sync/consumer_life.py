# Generated from rqueue/client/_async/consumer_life.py (`make generate`): do not edit.
"""The life of a consumer: it registers, joins again, leaves; and its calls, one script each."""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rqueue.client._sync.shard_course import TableSteps
from rqueue.errors import (
    ConnectionLost,
    ConsumerRefused,
    RegistrationLost,
    RQueueError,
    ServerError,
)
from rqueue.logs import logger
from rqueue.model.expect import expect
from rqueue.protocol import commands
from rqueue.protocol.browsing import Start
from rqueue.protocol.commands.consumers import Registered
from rqueue.protocol.consumer_calls import DEFAULT_LEASE_MS, ConsumerCalls, Mode, consumer_name
from rqueue.protocol.course import run_course
from rqueue.protocol.credit import Credit, SharedCredit
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.repeats import Repeats
from rqueue.transport.connection import Connection
from rqueue.transport.lease_renewer import LeaseRenewer
from rqueue.transport.routed_connection import connection_for
from rqueue.transport.wake_listener import WakeListener

if TYPE_CHECKING:
    import redis

log = logger("rqueue")


class ConsumerLife(ConsumerCalls):
    """What a consumer is beside its steps; see `Consumer`."""

    def __init__(
        self,
        client: redis.Redis,
        keys: QueueKeys,
        *,
        name: str = "",
        jobs: int = 1,
        bytes: int = 0,
        credit: Credit | SharedCredit | None = None,
        priority: int = 0,
        mode: Mode = "acquire",
        lease_ms: int = DEFAULT_LEASE_MS,
        slots: int = 1,
        worker: str = "",
        history: bool = True,
        start: Start = "head",
        auto_close: bool = False,
        renew: bool = True,
        select: str = "",
        connection: Connection | None = None,
        listener: WakeListener | None = None,
        table_steps: TableSteps | None = None,
    ) -> None:
        super().__init__(
            keys,
            name=name,
            jobs=jobs,
            bytes=bytes,
            credit=credit,
            priority=priority,
            mode=mode,
            lease_ms=lease_ms,
            slots=slots,
            worker=worker,
            history=history,
            start=start,
            auto_close=auto_close,
            select=select,
        )
        self._client = client
        expect("renew", renew, bool, "True or False")
        expect("history", history, bool, "True or False")
        self._renews = renew
        self._table_steps = table_steps
        self._renewer: LeaseRenewer | None = None
        self._own_connection = connection is None
        self._connection = connection_for(client, keys) if connection is None else connection
        self._own_listener = listener is None
        self._data_lost = False
        self._listener = listener

    # -- life --------------------------------------------------------------------------------------

    def register(self) -> Self:
        """Join the queue with a lease and a new term. A server that gives no connection is tried
        again a few times. Raises LifecycleError if it is joined, and the server errors."""
        try:
            reply = self._registered()
        except ConsumerRefused:
            if not run_course(self._state.making_way(self.lease_ms), self._call):
                raise
            reply = self._registered()
        self._data_lost = not self._state.registered(reply)
        self._lost = False
        if self._listener is None:
            self._listener = WakeListener(
                connection_for(self._client, self._state.keys, timeout=None)
            )
        self._listener.add(self._state.name, self._state.keys.wake(self._state.name))
        if self._renews:
            self._renewer = LeaseRenewer(
                self._client,
                self._state.keys,
                [self._state.name],
                self.lease_ms,
                self.connection,
                self._see_to_table,
                self._listener.doubt,
            )
            self._renewer.start()
        if self.mode == "browse" and self._view.begin(self._state.now):
            self._browsed(self._run(self._browse_call(1)))
            self._view.more = True
        return self

    def _see_to_table(self) -> None:
        """Of a shard: do what the table asks for, as pools do with each renewal. If that fails, the
        next renewal tries again."""
        if self._table_steps is None:
            return
        try:
            self._table_steps()
        except RQueueError as error:
            log.debug("queue %s: its table of shards: %s", self._state.keys.queue, error)

    def _registered(self) -> Registered:
        repeats = Repeats()
        while True:
            try:
                joined: Registered = self._call(self._register_call())
                return joined
            except ServerError as error:
                if error.outcome_unknown:
                    raise
                pause = repeats.pause(error)
            if pause:
                time.sleep(pause)

    def rejoin(self) -> None:
        """After the registration was lost: join again, under a new name, holding nothing."""
        self._leave()
        self._state.name = consumer_name(self._state.name.rsplit(":", 2)[0])
        self.register()

    def close(self) -> None:
        """Leave the queue: what is held is released, uncounted, to its place (X-21). A second
        close, or one after the lease ended, does nothing."""
        self._lost = False
        try:
            if self._state.term:
                self._part()
        finally:
            if self._state.credit is not None:
                self._state.credit.leave()
            if self._own_listener and self._listener is not None:
                self._listener.close()
            if self._own_connection:
                self._connection.close()

    def _part(self) -> None:
        try:
            try:
                self._unregister()
            except ConnectionLost:
                self._unregister()  # over a new connection: it may be sent twice
        except RegistrationLost:
            pass  # everything went back already
        finally:
            self._leave()

    def _unregister(self) -> None:
        call = self._state.unregister_call()
        while (self._call(call)).held:
            pass

    def _leave(self) -> None:
        self._forget()
        renewer, self._renewer = self._renewer, None
        if renewer is not None:
            renewer.stop()
        if self._listener is not None:
            self._listener.remove(self._state.keys.wake(self._state.name))

    def __enter__(self) -> Self:
        if self._state.term:
            return self
        try:
            return self.register()
        except BaseException:
            with suppress(RQueueError):  # the end of its lease releases what this did not
                self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -- inside ------------------------------------------------------------------------------------

    def _run(self, call: commands.ScriptCall[Any]) -> Any:
        try:
            return self._call(call)
        except RegistrationLost:
            self._lose()
            raise

    def _lose(self) -> None:
        self._lost = True
        self.connection.loses()
        self._leave()

    def _call(self, call: commands.ScriptCall[Any]) -> Any:
        try:
            answer = self._connection.run(
                call, queue=self._state.keys.queue, consumer=self._state.name
            )
        except RQueueError as error:
            self.connection.fails(error)
            raise
        self.connection.works()
        return answer
