"""Runs one pool as a program: options as JSON, by the names they have in a pool file.

Besides these: `sabotage` lets the supervisor itself fail, `subreaper` gives it orphans,
`respawn_delays`, `path` to import from.
"""

import ctypes
import json
import sys
from dataclasses import replace

from rqueue_workers.pool.supervisor import Supervisor
from rqueue_workers.run import load_pool_file


def main() -> int:
    options = json.loads(sys.argv[1])
    sabotage = options.pop("sabotage", False)
    if options.pop("subreaper", False):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # as the first process of a container is
    if "path" in options:
        sys.path.insert(0, options.pop("path"))
    delays = tuple(options.pop("respawn_delays", (0.0, 0.05, 0.1)))
    spec = replace(load_pool_file(None, options), respawn_delays=delays)
    supervisor = Supervisor(spec)
    if sabotage:
        supervisor._fill = None  # type: ignore[assignment,method-assign]
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
