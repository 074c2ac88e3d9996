"""What the tests of looking commands take, and the jobs that they look at."""

from collections.abc import Callable
from typing import Any

from click.testing import Result

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.protocol import commands

Run = Callable[..., Result]
Read = Callable[..., Any]
Make = Callable[..., Consumer]


def fill(queue: Queue, count: int) -> list[str]:
    puts = [commands.Put(f"j{i:03}", b'["app.t",[%d]]' % i) for i in range(count)]
    queue.enqueue_puts(puts)
    return [put.id for put in puts]
