"""A call as the store makes it, and what it sends in which slot of its script."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rqueue.protocol.commands import ScriptCall, Window
from rqueue.protocol.keys import QueueKeys

K = QueueKeys("q")
W: Any = Window("jobs", "bytes")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sample:
    call: ScriptCall[Any]
    computed: dict[str, object] = field(default_factory=dict)
    """Slots whose value is not their name."""
    rest: list[object] = field(default_factory=list)
    """What goes into the variadic rest."""
