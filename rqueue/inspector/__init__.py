"""Look at queues and steer them: what the CLI and a web page are built on.

Everything reads in pages and changes nothing unless its name says so. `Inspector` is the door; what
it returns are plain dataclasses, times in ms since the epoch by Redis's clock.
"""

from rqueue.inspector.cancelling import CancelAnswer
from rqueue.inspector.consumers import ConsumerInfo
from rqueue.inspector.dead_letters import DeadFilter
from rqueue.inspector.doctor.doctor import Doctor
from rqueue.inspector.doctor.findings import INVARIANTS, Finding
from rqueue.inspector.ended_jobs import EndedJob, EndedJobs
from rqueue.inspector.inspector import Inspector
from rqueue.inspector.jobs import BROWSABLE, Look, Page
from rqueue.inspector.queues import QueueInfo, Survey
from rqueue.inspector.stats import Spread, Stats
from rqueue.transport.key_scan import FoundQueues

__all__ = [
    "BROWSABLE",
    "INVARIANTS",
    "CancelAnswer",
    "ConsumerInfo",
    "DeadFilter",
    "Doctor",
    "EndedJob",
    "EndedJobs",
    "Finding",
    "FoundQueues",
    "Inspector",
    "Look",
    "Page",
    "QueueInfo",
    "Spread",
    "Stats",
    "Survey",
]
