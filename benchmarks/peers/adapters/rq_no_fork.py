"""RQ with `SimpleWorker`, which runs jobs in its own process: faster, and a job that crashes takes
its worker along. RQ's own benchmark shows both (docs/benchmark.md), so both are here."""

from benchmarks.peers import adapter
from benchmarks.peers.adapters import rq_


def worker(processes):
    return rq_.worker(processes, "rq.worker.SimpleWorker")


if __name__ == "__main__":
    adapter.main(rq_.enqueue, worker)
