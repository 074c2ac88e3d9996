"""Huey on Redis.

Process workers, as its documentation recommends for work that uses the CPU ("Consuming tasks",
`-k process`); `RedisHuey` pops with a blocking command by default. A task that returns None stores
no result (`store_none`, default). `-n`: no periodic tasks here.
"""

from huey import RedisHuey

from benchmarks.peers import adapter

huey = RedisHuey("bench", url=adapter.URL)

TASKS = {
    "hit": huey.task()(adapter.hit),
    "record": huey.task()(adapter.record),
    "weigh": huey.task()(adapter.weigh),
    "work": huey.task()(adapter.work),
}


def enqueue(task, arguments):
    call = TASKS[task]
    for args in arguments:
        call(*args)


def worker(processes):
    command = [f"{__spec__.name}.huey", "-k", "process", "-w", str(processes), "-n", "-q"]
    return [adapter.program("huey_consumer", *command)]


if __name__ == "__main__":
    adapter.main(enqueue, worker)
