"""Takes the signals of a worker at its import, as scripts and some libraries do."""

import signal
import sys
import time
from pathlib import Path

from rqueue.tasks.decorator import task
from rqueue.tasks.retry import NO_RETRY


def leave(*_: object) -> None:
    sys.exit(0)


for _number in (signal.SIGTERM, signal.SIGINT, signal.SIGURG):
    signal.signal(_number, leave)
signal.set_wakeup_fd(-1)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGURG})


@task(name="g.work", retry=NO_RETRY)
def work(begun: str, seconds: float) -> str:
    Path(begun).touch()
    time.sleep(seconds)
    return "done"
