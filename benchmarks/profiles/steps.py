"""Time by steps: functions are wrapped, and each is charged its own time, without its callees'."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, TypeVar

C = TypeVar("C", bound=Callable[..., Any])


class Steps:
    """Nanoseconds and calls by name. For one thread: what others call is counted with it."""

    def __init__(self) -> None:
        self.cells: dict[str, list[int]] = {}
        self._inner = 0

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed. Names may be used more than once."""
        cell = self.cells.setdefault(name, [0, 0])

        def timed(*args: Any, **kwargs: Any) -> Any:
            outer, self._inner = self._inner, 0
            begin = perf_counter_ns()
            try:
                return function(*args, **kwargs)
            finally:
                took = perf_counter_ns() - begin
                cell[0] += took - self._inner
                cell[1] += 1
                self._inner = outer + took

        return timed

    def patch(self, owner: Any, attribute: str, name: str) -> None:
        """Wrap a function of a module, or a method of a class."""
        put(owner, attribute, self.wrap(name, getattr(owner, attribute)))

    def taken(self) -> dict[str, tuple[int, int]]:
        """The figures so far: (ns, calls) by name."""
        return {name: (ns, calls) for name, (ns, calls) in self.cells.items()}


def put(owner: Any, attribute: str, value: Any) -> None:
    """Replace an attribute of a class or a module, of any type."""
    setattr(owner, attribute, value)
