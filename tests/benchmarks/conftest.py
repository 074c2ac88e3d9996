"""That a row runs is seen with programs that begin with rqueue loaded, too: most of what small
numbers take is the start of these."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any
from unittest.mock import patch

import pytest

from benchmarks.lab import processes
from benchmarks.lab.bench import Bench
from tests.support.forked_program import ForkedProgram

START = processes.start
"""As a benchmark starts them."""


def forked(command: Sequence[str], environment: Mapping[str, str], output: IO[bytes]) -> Any:
    """The same program, forked where it is a module of Python."""
    python, option, module, *arguments = command
    if (python, option) != (sys.executable, "-m"):
        return START(command, environment, output)
    stream: Any = output
    return ForkedProgram(module, *arguments, output=stream, environment=environment, leads=True)


@pytest.fixture(scope="module", autouse=True)
def programs() -> Iterator[None]:
    """Programs of benchmarks are forked."""
    with patch.object(processes, "start", forked):
        yield


@pytest.fixture
def programs_begin_with_nothing(programs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what measures a start, as the benchmarks start them."""
    monkeypatch.setattr(processes, "start", START)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench("tiny", 1) as bench:
        yield bench
