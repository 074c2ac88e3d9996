# Generated from rqueue/client/_async/queue_alerts.py (`make generate`): do not edit.
"""Alerts of a queue, as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rqueue.client._sync.queue_moving import QueueMoving
from rqueue.errors import ServerError
from rqueue.model.alert import Alert
from rqueue.protocol.alert_watch import AlertWatch
from rqueue.protocol.sharding import refuse_spread

__all__ = ["QueueAlerts"]


class QueueAlerts(QueueMoving):
    """What a queue says of itself."""

    def alerts(self, timeout: float | None = None, *, after: str = "") -> Iterator[Alert]:
        """The queue's alerts, as they come (Q-72), for at most `timeout` seconds (None: for ever):
        with `configure(alert_depth=...)` there is one where an arrival brings the queue to that
        many jobs, and none until it has fallen below. after: the id of an alert, for those behind
        it, of which the last 100 are kept ("0": all); without it those to come.

        Any number of listeners hear each. Listens without polling, and goes on while Redis is gone.
        Raises ConfigError, QueueSharded, and the server errors.
        """
        watch = AlertWatch(self.keys, after, timeout, self._transport.patience)
        while not watch.over:
            try:
                call, command = watch.ask()
                _, entries = self._transport.run_then(call, command, queue=self.name)
                refuse_spread(self.keys)
                alerts = watch.heard(entries)
            except ServerError as error:
                time.sleep(watch.pause(error))
            else:
                yield from alerts
