"""A worker process that writes down its way: run as a program, ended by SIGTERM.

`python -m benchmarks.profiles.way_worker URL OUTPUT`. It follows its main thread, which runs the
jobs; the stand-by thread does nothing for a job that is over at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.profiles.tracer import Tracer
from rqueue.settings import Settings
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker import worker


def main(url: str, output: str) -> None:
    """Work until a signal comes; then write what was entered."""
    spec = WorkerSpec(Settings(url=url), ("benchmarks.apps.tasks",), ("default",))
    tracer = Tracer()
    with tracer.running():
        worker.run(spec, StatusPage(spec.slots), "traced", 0)
    Path(output).write_text(json.dumps(tracer.events))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
