"""The bare wake-up: another process blocked in BRPOP hears of an LPUSH, and may answer.

Run as a program: `python -m benchmarks.floors.wakeup URL`. It notes on the board when it heard of a
number (`one way`), and answers with an LPUSH (`there and back`).
"""

from __future__ import annotations

import sys
import time

import redis

from benchmarks.apps import board
from benchmarks.apps.board import Board

ASK, TELL, ANSWER = "floor:ask", "floor:tell", "floor:answer"


def main(url: str) -> None:
    """Listen for ever."""
    client = redis.Redis.from_url(url, socket_timeout=None)
    while True:
        heard = client.brpop([TELL, ASK], 0)
        key, value = heard  # type: ignore[misc]
        if key == TELL.encode():
            board.started(int(value))
        else:
            client.lpush(ANSWER, value)


def one_way(client: redis.Redis, seen: Board, number: int) -> float:
    """Seconds from before the LPUSH until the other process has it."""
    begin = time.monotonic_ns()
    client.lpush(TELL, number)
    return heard(seen, number, begin)


def heard(seen: Board, number: int, begin: int, seconds: float = 5.0) -> float:
    """Seconds from `begin` to the mark, once it is there."""
    end = begin + int(seconds * 1e9)
    while not seen.mark(number, board.STARTS):
        if time.monotonic_ns() > end:
            raise TimeoutError(f"number {number} did not arrive in {seconds:g} s")
        time.sleep(0.0005)
    return (seen.mark(number, board.STARTED) - begin) / 1e9


def there_and_back(client: redis.Redis, number: int) -> float:
    """Seconds from before the LPUSH until the answer is here."""
    begin = time.perf_counter()
    client.lpush(ASK, number)
    client.brpop([ANSWER], 5)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(sys.argv[1])
