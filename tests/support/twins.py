"""Tests that are played by both clients, in a thread and on a loop.

The first is generated from the second, and a test compares them. What differs are their transports.
A test that both would play is played by one of them, by turns, so that half of the tests are on
each transport; by both in the long run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import pytest


def take_turns(twins: Mapping[str, Sequence[pytest.Item]]) -> None:
    """Leave one of each two to the long run. twins: the same tests of both clients, by a name."""
    for test, both in twins.items():
        if len(both) == 2:
            both[1 - crc32(test.encode()) % 2].add_marker(pytest.mark.long)
