"""What a pool logs, in which form, and that the application's own logging is its own."""

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import JobFailed
from rqueue.logs import JsonFormatter, logger
from rqueue_workers.pool import log_setup
from rqueue_workers.pool_file import load_pool_file
from rqueue_workers.spec import PoolSpec
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool

APP = "tests.workers.logging_app"


def test_a_pool_s_lines_are_json_and_those_of_the_application_are_its_own(
    make_pool: Callable[..., Pool], queue: Queue
) -> None:
    pool = make_pool(app=[APP], log_format="json", log_level="info")
    failed = queue.send("speak", ["hello"])
    refused = queue.send("refuse")
    for job in (failed, refused):
        with pytest.raises(JobFailed):
            job.result(PATIENCE)
    assert pool.drained() == 0
    lines = pool.log.splitlines()
    assert [line for line in lines if not line.startswith("{")] == ["shop says hello"]
    records = [json.loads(line) for line in lines if line.startswith("{")]
    assert {line["logger"] for line in records} == {"rqueue.pool", "rqueue.worker"}
    by_job = {line["job"]: line for line in records if "job" in line}
    line = by_job[failed.id]
    assert (line["level"], line["task"], line["queue"]) == ("ERROR", "speak", queue.name)
    assert line["message"].startswith(f"job {failed.id} of speak failed for good after 1 attempt")
    assert "ValueError: no" in line["exception"] and line["time"].endswith("Z")
    assert line["pid"] not in (pool.pid, None)
    assert by_job[refused.id]["message"].endswith("rejected itself: not today")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The logger of rqueue, as a new process has it."""
    found = logging.getLogger("rqueue")
    before = found.level, found.handlers[:], found.propagate
    found.setLevel(logging.NOTSET)
    found.handlers[:] = []
    found.propagate = False
    yield found
    found.setLevel(before[0])
    found.handlers[:], found.propagate = before[1], before[2]


def spec(**options: object) -> PoolSpec:
    return load_pool_file(None, {"app": ["a"], "url": "redis://x", **options}, {})


@pytest.mark.parametrize(
    ("options", "level"),
    [
        ({}, logging.INFO),
        ({"quiet": True}, logging.WARNING),
        ({"log_level": "debug"}, logging.DEBUG),
        ({"log_level": "error", "quiet": True}, logging.ERROR),
    ],
)
def test_levels(root: logging.Logger, options: dict[str, object], level: int) -> None:
    log_setup.configure(spec(**options))
    assert root.level == level


def test_a_format_that_is_asked_for_wins_over_a_handler(root: logging.Logger) -> None:
    mine = logging.NullHandler()
    root.addHandler(mine)
    log_setup.configure(spec())
    assert mine in root.handlers and not any(
        isinstance(one.formatter, log_setup.Utc) for one in root.handlers
    )
    log_setup.configure(spec(log_format="json"))
    (handler,) = root.handlers
    assert isinstance(handler.formatter, JsonFormatter)


def test_a_record_that_json_cannot_hold_is_still_a_line(root: logging.Logger) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root.addHandler(handler)
    log = logger("rqueue.test")
    log.error("a\nb", extra={"at": ..., "number": 2**70, "_hidden": 1})
    log.error("%s", "\ud800")
    log.error("plain", stack_info=True)
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert first["message"] == r"a\nb"
    assert (first["at"], first["number"]) == ("Ellipsis", str(2**70)) and "_hidden" not in first
    assert "d800" in second["message"]
    assert third["stack"].startswith("Stack")
