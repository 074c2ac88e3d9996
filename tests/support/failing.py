"""Jobs that fail, in tests."""

from tests.support.queue_fixture import QueueFixture, ids


def fail_all(q: QueueFixture, rounds: int) -> list[list[str]]:
    """Take everything and fail it, so many times; what came in each round."""
    consumer = q.join()
    seen = []
    for round_ in range(rounds):
        jobs = consumer.pull()
        seen.append(ids(jobs))
        for job in jobs:
            consumer.retry(job, error={"type": "ValueError", "message": f"round {round_}"})
    consumer.close()
    return seen
