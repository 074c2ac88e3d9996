"""The pages of other queues say with which versions both can be installed."""

import pytest

from tools import side_by_side


@pytest.mark.long
@pytest.mark.parametrize("peer", side_by_side.PEERS)
def test_the_table_is_what_the_resolver_says(peer: str) -> None:
    assert side_by_side.written(peer) == side_by_side.table(peer)


@pytest.mark.parametrize("peer", side_by_side.PEERS)
def test_each_version_has_a_row(peer: str) -> None:
    rows = side_by_side.written(peer).splitlines()[2:]
    assert [row.split()[1] for row in rows] == list(side_by_side.PEERS[peer][1])
