"""Dramatiq on Redis.

Its guide recommends one process per core and the default of 8 threads each; the command line's
defaults otherwise (docs: "Workers", `dramatiq --help`). Acknowledged after the run, retried by the
default middleware. No results, as it has none by default.
"""

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers import adapter

broker = RedisBroker(url=adapter.URL)
dramatiq.set_broker(broker)

TASKS = {
    "hit": dramatiq.actor(adapter.hit),
    "record": dramatiq.actor(adapter.record),
    "weigh": dramatiq.actor(adapter.weigh),
    "work": dramatiq.actor(adapter.work),
}


def enqueue(task, arguments):
    send = TASKS[task].send
    for args in arguments:
        send(*args)


def worker(processes):
    return [adapter.program("dramatiq", __spec__.name, "--processes", str(processes))]


if __name__ == "__main__":
    adapter.main(enqueue, worker)
