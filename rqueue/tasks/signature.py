"""Whether a call fits a function: asked at every enqueue, so that it fails in the web app."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Any

from rqueue.errors import BadArguments, ConfigError
from rqueue.tasks.arguments import GIVEN, Reader
from rqueue.tasks.depends import marker_of, tick_parameter
from rqueue.tasks.other_words import hint_of_option, hint_of_parameter

__all__ = ["GIVEN", "OPTIONS", "CallChecker"]

OPTIONS = frozenset(
    (
        *("queue", "id", "priority", "at", "max_deliveries", "max_crashes", "retry"),
        *(
            "time_limit",
            "soft_time_limit",
            "ttl",
            "max_wait",
            "keep",
            "headers",
            "labels",
            "immediate",
            "mandatory",
            "group",
            "key",
            "sort_key",
            "on_commit",
            "hold",
            "front",
            "unique",
            "after",
            "on_failure",
            "limit",
            "share",
            "replicas",
            "fsync",
            "confirm_ms",
        ),
        *("sender", "async_sender"),
    )
)
"""What `task.options` takes, and some give to the call itself."""


class CallChecker:
    """Checks calls of one function; a call that fits costs a fraction of a microsecond.

    `positional` names the parameters that may be given by position, `*rest` as the last one if
    there is one. A call without keywords fits if it has `least` to `most` arguments: what is asked
    on the way of nearly every enqueue, without a call. `least` is infinite if the values are to be
    looked at too.
    """

    __slots__ = (
        "_allowed",
        "_alone",
        "_any_keyword",
        "_function",
        "_look_again",
        "_reader",
        "_required",
        "_signature",
        "_task",
        "least",
        "most",
        "positional",
        "provided",
    )

    least: float
    most: float
    positional: tuple[str, ...]
    provided: tuple[str, ...]
    """The parameters that a worker fills: dependencies."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self._task = task
        self._function = function
        self._signature, self.provided = _given_by_callers(task, function)
        by_position: list[inspect.Parameter] = []
        by_keyword: list[inspect.Parameter] = []
        rest = ""
        self._any_keyword = False
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest = "*" + parameter.name
            elif parameter.kind is parameter.VAR_KEYWORD:
                self._any_keyword = True
            elif parameter.kind is parameter.KEYWORD_ONLY:
                by_keyword.append(parameter)
            else:
                by_position.append(parameter)
        self.positional = (*(p.name for p in by_position), *((rest,) if rest else ()))
        # For each number of positional arguments: which keywords may, and which must, be given.
        self._allowed: list[frozenset[str]] = []
        self._required: list[frozenset[str]] = []
        for given in range(len(by_position) + 1):
            left = by_position[given:]
            named = [p for p in left if p.kind is not p.POSITIONAL_ONLY] + by_keyword
            needed = [p for p in left + by_keyword if p.default is p.empty]
            self._allowed.append(frozenset(p.name for p in named))
            self._required.append(frozenset(p.name for p in needed))
        self.most = math.inf if rest else len(by_position)
        alone = [given for given, needed in enumerate(self._required) if not needed]
        self._alone = min(alone, default=math.inf)  # never, if a keyword is required
        self._look_at_types()

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise BadArguments unless the function takes these arguments."""
        given = len(args)
        if given > self.most:
            self._explain(args, kwargs)
        given = min(given, len(self._required) - 1)
        if kwargs:
            names = kwargs.keys()
            # With **keywords a name may be anything: the slow way knows every rule.
            if self._any_keyword or not self._required[given] <= names <= self._allowed[given]:
                self._explain(args, kwargs)
        elif self._required[given]:
            self._explain(args, kwargs)
        if self._look_again:
            self._look_at_types(last=True)
        if self._reader is not None:
            self._reader.check(args, kwargs)

    def _look_at_types(self, *, last: bool = False) -> None:
        """Find out which arguments have types. An annotation may name something that is defined
        later: then the first call looks again. Calls of plain JSON are never looked at. Raises
        ConfigError."""
        reader = Reader(self._task, self._function)
        self._look_again = not (reader.whole or last)
        self._reader = reader if reader.typed or self._look_again else None
        self.least = self._alone if self._reader is None else math.inf

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call that fits, by their names, with those that it leaves out."""
        bound = self._bound(args, kwargs)
        bound.apply_defaults()
        return bound.arguments

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        """As `Signature.bind`, which until Python 3.13 refuses in `**keywords` the name of a
        parameter that is given by position only. Raises TypeError."""
        by_place, rest = set(), ""
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is parameter.POSITIONAL_ONLY:
                by_place.add(name)
            elif parameter.kind is parameter.VAR_KEYWORD:
                rest = name
        again = {name: kwargs[name] for name in by_place & kwargs.keys()} if rest else {}
        given = {name: value for name, value in kwargs.items() if name not in again}
        bound = self._signature.bind(*args, **given)
        if again:
            bound.arguments[rest] = {**bound.arguments.get(rest, {}), **again}
        return bound

    def plainly(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Raise BadArguments where the function is called here and now, and a dependency is not
        among the arguments: nobody would fill it."""
        signature = inspect.signature(function)
        try:
            given = signature.bind_partial(*args, **kwargs).arguments
        except TypeError:
            return  # the call itself says so
        missing = [name for name in self.provided if name not in given]
        if missing:
            passed = ", ".join(f"{name}=..." for name in missing)
            raise BadArguments(
                self._task,
                f"a worker fills {', '.join(missing)}, and a plain call does not: pass {passed}",
                str(self._signature),
            )

    def names(self) -> list[str]:
        """The names of all parameters."""
        return list(self._signature.parameters)

    def _explain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            self._bound(args, kwargs)
        except TypeError as error:
            said = str(error)
            found = re.search(r"unexpected keyword argument '(\w+)'", said)
            if found is not None and found[1] in OPTIONS:
                said += (
                    f" (an option stands before the call: .options({found[1]}=...).enqueue(...))"
                )
            elif found is not None and (hint := hint_of_option(found[1])):
                said += f" (if an option is meant: {hint})"
            elif found is None and (
                hint := hint_of_parameter(next(iter(self._signature.parameters), ""))
            ):
                said += f" ({hint})"
            raise BadArguments(self._task, said, str(self._signature)) from None


def _given_by_callers(
    task: str, function: Callable[..., Any]
) -> tuple[inspect.Signature, tuple[str, ...]]:
    """The signature of a function without what a worker fills (dependencies, the tick), and the
    names of the dependencies. Raises ConfigError if an argument that may be given by position
    stands behind one of them."""
    signature = inspect.signature(function)
    given: list[inspect.Parameter] = []
    provided: list[str] = []
    behind, tick = "", tick_parameter(function)
    for parameter in signature.parameters.values():
        if parameter.name == tick:
            behind = tick
        elif marker_of(parameter, function) is not None:
            behind = parameter.name
            provided.append(behind)
        elif behind and parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            raise ConfigError(
                "Depends",
                f"task '{task}': what a worker fills (dependencies, the tick) stands behind the"
                f" arguments, and '{parameter.name}' stands behind '{behind}'",
            )
        else:
            given.append(parameter)
    return (signature.replace(parameters=given) if behind else signature), tuple(provided)
