"""What pytest loads of rqueue in each of its runs: a fixture, and nothing more until a test asks
for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rqueue.testing import Harness

MARKER = (
    "rqueue(inline=False, at=None): whether jobs of the fixture `rqueue` run where they are"
    " enqueued, and the time at which the test begins"
)


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def rqueue(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """The program's queues in memory, while this test runs: assert what is enqueued, and run it
    (`rqueue.testing.Harness`). `@pytest.mark.rqueue(inline=True)`: jobs run at enqueue;
    `at=datetime(2030, 1, 31, 8, tzinfo=UTC)`: the test begins then."""
    from rqueue.testing import in_memory

    marker = request.node.get_closest_marker("rqueue")
    with in_memory(**({} if marker is None else options_of(marker))) as harness:
        yield harness


def options_of(marker: pytest.Mark) -> dict[str, Any]:
    """What a marker says, by name. Fails the test where it says something else than it can."""
    wrong = [repr(value) for value in marker.args]
    wrong += [name for name in marker.kwargs if name not in ("inline", "at")]
    if wrong:
        pytest.fail(
            f"@pytest.mark.rqueue does not know {', '.join(wrong)}; it is written {MARKER}",
            pytrace=False,
        )
    return dict(marker.kwargs)
