"""A producer of several scenarios, a thread for each:
`python -m tests.soak.scenario_producer NAMES FACTOR SEED URL`."""

from __future__ import annotations

import signal
import sys
import threading
import traceback

from tests.soak.publisher import Publisher
from tests.soak.records import READY
from tests.soak.scenario import Scenario
from tests.soak.scenarios import choose


def produce(scenario: Scenario, publisher: Publisher, factor: float) -> None:
    """Go on with what earlier lives began, and then with more, until it is asked to end."""
    publisher.record(READY, scenario=scenario.name)
    try:
        scenario.resume(publisher)
        scenario.enqueue(publisher)  # so that each one is there, however short a soak is
        for _ in publisher.pauses(scenario.rate * factor):
            scenario.enqueue(publisher)
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        publisher.say("wrong", 0, error=type(error).__name__, said=trace[-1000:])
    publisher.close()
    publisher.left()


def main(names: str, factor: str, seed: str, url: str) -> None:
    """Produce until SIGTERM."""
    publishers = []
    threads = []
    for scenario in choose(names.split(",")):
        publishers.append(publisher := Publisher(scenario.name, int(seed), url))
        its = (scenario, publisher, float(factor))
        threads.append(threading.Thread(target=produce, args=its, name=scenario.name))

    def end(*_: object) -> None:
        for publisher in publishers:
            publisher.over.set()

    signal.signal(signal.SIGTERM, end)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
