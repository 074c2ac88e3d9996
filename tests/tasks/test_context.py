from rqueue.model.job import Delivery
from rqueue.tasks.context import JobContext, current, current_job


def test_there_is_none_outside_a_job() -> None:
    assert current_job() is None


def test_what_a_job_knows_of_itself() -> None:
    delivery = Delivery("j", b'5,-35689600000,9,2,1,10,0;["t"]')
    opts = {"headers": {"trace": "x"}, "labels": {"gpu": True}}
    job = JobContext(delivery, "t", "q", opts, 1700000000009, "w", 12.5)
    token = current.set(job)
    try:
        assert current_job() is job
    finally:
        current.reset(token)
    assert (job.id, job.task, job.queue, job.worker) == ("j", "t", "q", "w")
    assert (job.delivery, job.attempts) == (3, 1)
    assert (job.enqueued_ms, job.acquired_ms) == (1700000000000, 1700000000009)
    assert job.headers == {"trace": "x"}
    assert job.labels == {"gpu": True}
    assert job.deadline == 12.5
    assert not job.cancelled
    assert not job.stopping
    assert JobContext(delivery, "t", "q").headers == {}
