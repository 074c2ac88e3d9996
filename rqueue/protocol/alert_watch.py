"""How one listens to the alerts of a queue: the part that needs no I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import monotonic
from typing import Any

from rqueue.errors import ConfigError, ServerError
from rqueue.model.alert import Alert
from rqueue.model.expect import expect, expect_number, shown
from rqueue.protocol import commands
from rqueue.protocol.commands.alert_notes import alerts_in
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.repeats import Patience
from rqueue.protocol.replies import raw_text
from rqueue.protocol.result_wait import WAIT_SLICE_S
from rqueue.protocol.state_watch import BEGIN

__all__ = ["AlertWatch"]


class AlertWatch:
    """One listener's way through the alerts of a queue, for at most `timeout` seconds (None: for
    ever). `after`: the id of the alert that it heard last; "": those to come. `patience`: seconds
    that a reply may take, None = for ever; a blocked command lasts well below."""

    __slots__ = ("_after", "_deadline", "_keys", "_patience", "_slice", "over")

    def __init__(
        self, keys: QueueKeys, after: str, timeout: float | None, patience: float | None
    ) -> None:
        if timeout is not None:
            expect_number("timeout", timeout, "a number of seconds, or None", least=-math.inf)
        expect("after", after, str, "the id of an alert")
        first, dash, second = after.partition("-")
        if after != "" and not (first.isdigit() and (second.isdigit() or not dash)):
            raise ConfigError("after", f"{shown(after)} is not the id of an alert")
        self._keys = keys
        self._after = after
        self._slice = WAIT_SLICE_S if patience is None else min(WAIT_SLICE_S, patience * 0.6)
        self._deadline = math.inf if timeout is None else monotonic() + timeout
        self._patience = Patience()
        self.over = False
        """Whether the time is over."""

    def ask(self) -> tuple[commands.ScriptCall[commands.Counts], tuple[str | float, ...]]:
        """A look at the queue, and what goes with it: at first a question for the last alert, where
        those before are not wanted, then a wait for the next one."""
        call = commands.counts(self._keys, oldest=False)
        if not self._after:
            return call, ("XREVRANGE", self._keys.alerts, "+", "-", "COUNT", 1)
        pause = max(1, round(1000 * min(self._slice, self._deadline - monotonic())))
        return call, ("XREAD", "BLOCK", pause, "STREAMS", self._keys.alerts, self._after)

    def heard(self, entries: Any) -> list[Alert]:
        """The alerts in the answer to the command. Raises what it was refused with."""
        if isinstance(entries, Exception):
            raise entries
        if not self._after:
            self._after = raw_text(entries[0][0]) if entries else BEGIN
            return []
        self.over = monotonic() >= self._deadline
        if not entries:
            return []
        ((_, news),) = entries.items() if isinstance(entries, Mapping) else entries
        alerts = alerts_in(news)
        self._after = alerts[-1].id
        return alerts

    def pause(self, error: ServerError) -> float:
        """Seconds until one may ask anew after a failure. Raises the server error where no time is
        left, or waiting is of no use."""
        return self._patience.pause(error, self._deadline - monotonic())
