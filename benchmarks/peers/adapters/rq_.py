"""RQ: the default worker, which forks for every job.

`rq worker-pool` with the default `Worker` is what its documentation shows for several workers on a
machine ("Workers", "Worker Pool"). Jobs are enqueued with `enqueue_many`, one pipeline for many.
"""

from redis import Redis
from rq import Queue

from benchmarks.peers import adapter

CLASS = "rq.worker.Worker"


def enqueue(task, arguments):
    queue = Queue("bench", connection=Redis.from_url(adapter.URL))
    name = f"benchmarks.peers.adapter.{task}"
    for first in range(0, len(arguments), 500):
        part = arguments[first : first + 500]
        queue.enqueue_many([Queue.prepare_data(name, args) for args in part])


def worker(processes, worker_class=CLASS):
    command = ["worker-pool", "bench", "-n", str(processes), "-u", adapter.URL, "-q"]
    return [adapter.program("rq", *command, "-w", worker_class)]


if __name__ == "__main__":
    adapter.main(enqueue, worker)
