"""An older version of the application: it does not know the newer tasks."""

from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry, registry


@task(name="old.only")
def only() -> str:
    return "old"


def forget_the_others(tasks: Registry) -> None:
    for name in [known.name for known in tasks if not known.name.startswith("old.")]:
        del tasks._tasks[name]


# the test process may have imported the newer one before it forked this worker
forget_the_others(registry)
