"""Tasks by name: what a worker looks a job's task up in."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from rqueue.errors import TaskAlreadyRegistered, UnknownTask
from rqueue.tasks.likeness import alike
from rqueue.tasks.task import Task

__all__ = ["Registry", "registry"]


class Registry:
    """Tasks by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[Any, Any]] = {}

    def add(self, task: Task[Any, Any]) -> None:
        """Register a task. Raises TaskAlreadyRegistered if another function has its name.

        The same function again takes the earlier one's place: of a module that is imported under
        two names or loaded anew, or of a factory that runs anew (`rqueue.tasks.likeness`).
        """
        other = self._tasks.get(task.name)
        if other is not None and not (
            other.place == task.place and alike(other.function, task.function)
        ):
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

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def __iter__(self) -> Iterator[Task[Any, Any]]:
        return iter(list(self._tasks.values()))

    def __len__(self) -> int:
        return len(self._tasks)


registry = Registry()
"""Where `@task` registers, unless it is given another."""
