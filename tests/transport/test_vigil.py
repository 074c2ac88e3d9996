"""What becomes of an answer that comes late, whatever is said meanwhile of who is in charge."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Collection, Iterator
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import exceptions as rx

from rqueue.protocol.slots import Address
from rqueue.transport import async_vigil, vigil
from rqueue.transport.async_vigil import AsyncVigil, watch
from rqueue.transport.vigil import Replaced, Vigil
from tests.support.patience import PATIENCE

ASKED, OTHER = Address("old", 1), Address("new", 2)

SAID = {
    "the same": (ASKED,),
    "another": (OTHER,),
    "a failover": None,
    "nothing": OSError("no Sentinel answers"),
}
"""What an answer to the question may be."""


class Others:
    """Say one thing after the other, and the last one again and again. The late answer is there
    from the question `late` on."""

    def __init__(self, words: list[str], late: int, answer: socket.socket) -> None:
        self.words = words
        self.asked = 0
        self._late = late
        self._answer = answer

    def __call__(self, silent: Collection[Address]) -> Collection[Address] | None:
        assert set(silent) == {ASKED}
        word = self.words[min(self.asked, len(self.words) - 1)]
        if self.asked == self._late:
            self._answer.send(b"+OK\r\n")
        self.asked += 1
        if isinstance(found := SAID[word], Exception):
            raise found
        return found  # type: ignore[return-value]

    async def soon(self, silent: Collection[Address]) -> Collection[Address] | None:
        return self(silent)


@pytest.fixture(autouse=True, scope="module")
def hurried() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (vigil, async_vigil):
            patch.setattr(module, "AGAIN_S", 0.002)
            patch.setattr(module, "HURRIED_S", 0.001)
        patch.setattr(async_vigil, "QUIET_S", 0.001)
        yield


def must_leave(words: list[str], asked: int) -> bool:
    """Whether the answer counts for nothing. asked: how many questions were asked."""
    return "another" in [words[min(n, len(words) - 1)] for n in range(asked)]


COURSES = st.tuples(
    st.lists(st.sampled_from(list(SAID)), max_size=5),
    st.sampled_from([word for word in SAID if word != "a failover"]),
    st.integers(0, 5),
)


@given(COURSES)
def test_a_late_answer_counts_only_of_a_server_in_charge(
    course: tuple[list[str], str, int],
) -> None:
    words, late = [*course[0], course[1]], course[2]
    ours, server = socket.socketpair()
    with ours, server:
        others = Others(words, late, server)
        connection = SimpleNamespace(_sock=ours, host=ASKED.host, port=ASKED.port)
        try:
            assert Vigil(others).waits(connection, select.POLLIN, PATIENCE, True)
        except Replaced:
            assert must_leave(words, others.asked)
        else:
            assert not must_leave(words, others.asked)
            assert others.asked > late, "it was not asked since the answer was there"


@given(COURSES)
def test_the_same_of_asyncio(course: tuple[list[str], str, int]) -> None:
    words, late = [*course[0], course[1]], course[2]

    async def play() -> None:
        ours, server = socket.socketpair()
        with ours, server:
            ours.setblocking(False)
            others = Others(words, late, server)
            asked = AsyncVigil(others.soon)
            connection = SimpleNamespace(is_connected=True, host=ASKED.host, port=ASKED.port)
            try:
                async with watch(lambda: asked, connection, PATIENCE, due=True):
                    await asyncio.get_running_loop().sock_recv(ours, 5)
            except Replaced:
                assert must_leave(words, others.asked)
            else:
                assert not must_leave(words, others.asked)

    asyncio.run(play())


def test_in_doubt_for_all_its_time_it_counts_for_nothing() -> None:
    ours, server = socket.socketpair()
    with ours, server:
        others = Others(["a failover"], 0, server)
        connection = SimpleNamespace(_sock=ours, host=ASKED.host, port=ASKED.port)
        with pytest.raises(rx.TimeoutError, match="a failover is under way"):
            Vigil(others).waits(connection, select.POLLIN, 0.2, True)


def test_a_forked_child_asks_by_itself() -> None:
    """The parent's thread is not there."""
    ours, server = socket.socketpair()
    with ours, server:
        shared = Vigil(Others(["the same"] * 3 + ["another"], 10**6, server))
        connection = SimpleNamespace(_sock=ours, host=ASKED.host, port=ASKED.port)
        with pytest.raises(Replaced):
            shared.waits(connection, select.POLLIN, PATIENCE, True)
        if (child := os.fork()) == 0:
            code = 1
            try:
                shared.waits(connection, select.POLLIN, PATIENCE, True)
            except Replaced:
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
