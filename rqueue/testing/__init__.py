"""Help for tests of programs that use rqueue.

| module | has |
| --- | --- |
| `harness` | what the pytest fixture `rqueue` gives: jobs are asserted and run in the test itself |
| `replaced_server` | a server in memory in the place of all others |
| `expectations` | which jobs are meant, and what is said where they are not there |
| `one_thread_worker` | runs jobs as a worker does, in the thread that asks for it |
| `due_times` | when something becomes due next |
| `mixin` | the harness for unittest and Django |
| `clocks` | a queue's time on a real server, stopped or moved, and its upkeep |

Above the workers' layer, as it runs jobs by their parts.
"""

from rqueue.testing.clocks import FrozenTime, frozen_time, housekeeping, move_time
from rqueue.testing.harness import Harness, in_memory
from rqueue.testing.mixin import RqueueTestMixin
from rqueue.testing.one_thread_worker import Drained, Ran

__all__ = [
    "Drained",
    "FrozenTime",
    "Harness",
    "Ran",
    "RqueueTestMixin",
    "frozen_time",
    "housekeeping",
    "in_memory",
    "move_time",
]
