"""Read the alerts of a queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rqueue.model.alert import Alert
from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_text


def _alert(id: Any, fields: Any) -> Alert:
    if not isinstance(fields, Mapping):
        fields = dict(zip(fields[::2], fields[1::2], strict=True))
    said = {raw_text(name): raw_text(value) for name, value in fields.items()}
    return Alert(raw_text(id), int(said["at"]), int(said["depth"]), int(said["threshold"]))


def alerts_in(entries: Iterable[Any]) -> list[Alert]:
    """The alerts in entries of the stream, in their order."""
    return [_alert(id, fields) for id, fields in entries]


def _read_alerts(replies: Sequence[Any]) -> list[Alert]:
    return alerts_in(replies[0])


def kept_alerts(keys: QueueKeys) -> CommandCall[list[Alert]]:
    """The alerts that are kept, the earliest first."""
    return CommandCall(keys.meta, [("XRANGE", keys.alerts, "-", "+")], _read_alerts)
