"""Tasks by name: what a worker looks a job's task up in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from rqueue.errors import TaskAlreadyRegistered, UnknownTask

if TYPE_CHECKING:
    pass

from rqueue.tasks.task import Task

__all__ = ["Registry", "Wrapper", "registry"]

Wrapper = Callable[[Task[Any, Any], Callable[..., Any]], Callable[..., Any]]
"""Makes of a task and its function what a worker calls for a job of it."""


class Registry:
    """Tasks by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[Any, Any]] = {}
        self._wrappers: list[Wrapper] = []

    def add(self, task: Task[Any, Any]) -> None:
        """Register a task. Raises TaskAlreadyRegistered when another function has its name.

        The same function of the same file again (a module imported under two names, a reload) takes
        the earlier one's place.
        """
        other = self._tasks.get(task.name)
        if other is not None and other.place != task.place:
            raise TaskAlreadyRegistered(task.name, other.place, task.place)
        self._tasks[task.name] = task

    def get(self, name: str) -> Task[Any, Any]:
        """The task of this name. Raises UnknownTask, which names the nearest ones."""
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTask(name, get_close_matches(name, self._tasks, 2)) from None

    def find(self, name: str) -> Task[Any, Any] | None:
        """The task of this name, or None."""
        return self._tasks.get(name)

    def wrap(self, wrapper: Wrapper) -> None:
        """Let workers of this process call what `wrapper(task, function)` returns for each job, in
        place of the task's function. It takes the function's arguments and is asked once for each
        task, when all are there; what was given first is the outermost. A plain call of the task
        stays one of the function."""
        self._wrappers.append(wrapper)

    def for_jobs(self, task: Task[Any, Any]) -> Callable[..., Any]:
        """What a worker calls for a job of this task."""
        function = task.function
        for wrapper in reversed(self._wrappers):
            function = wrapper(task, function)
        return function

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[Task[Any, Any]]:
        return iter(list(self._tasks.values()))

    def __len__(self) -> int:
        return len(self._tasks)


registry = Registry()
"""Where `@task` registers, unless it is given another."""
