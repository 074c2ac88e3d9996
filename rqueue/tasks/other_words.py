"""Words that other queues have for what is called differently here, for errors that say so."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from rqueue.errors import ConfigError

__all__ = ["hint_of_option", "other_method", "refuse_unknown", "with_known_options"]

P = ParamSpec("P")
R = TypeVar("R")

_RETRIES = "max_deliveries counts the first attempt too"
_POLICY = "retry=RetryPolicy(...) says when and after which errors a job is tried again"
_SECONDS = "time_limit is in seconds"
_LIVES = "ttl is in seconds"
_DELAY = "a call is delayed by enqueue_in(seconds, ...)"

OPTION_WORDS = {
    "limit": _SECONDS,
    "timeout": _SECONDS,
    "job_timeout": _SECONDS,
    "hard_time_limit": _SECONDS,
    "soft_limit": "soft_time_limit is in seconds",
    "max_retries": _RETRIES,
    "retries": _RETRIES,
    "max_tries": _RETRIES,
    "autoretry_for": _POLICY,
    "retry_backoff": _POLICY,
    "retry_delay": _POLICY,
    "default_retry_delay": _POLICY,
    "min_backoff": _POLICY,
    "max_backoff": _POLICY,
    "queue_name": "it is called queue",
    "actor_name": "it is called name",
    "task_id": "it is called id",
    "job_id": "it is called id",
    "_job_id": "it is called id",
    "result_ttl": "keep is in seconds",
    "result_expires": "keep is in seconds",
    "keep_result": "keep is in seconds",
    "expires": _LIVES,
    "expires_in": _LIVES,
    "max_age": _LIVES,
    "delay": _DELAY,
    "countdown": _DELAY,
    "_defer_by": _DELAY,
    "eta": "a call is enqueued for a time by enqueue_at(when, ...)",
    "_defer_until": "a call is enqueued for a time by enqueue_at(when, ...)",
    "acks_late": "ack is 'late', the default, or 'early'",
    "bind": "the job is current_job()",
    "meta": "a job has headers and labels",
}
"""Options of other queues' tasks and calls, by the words of ours."""

METHOD_WORDS = {
    "delay": "enqueue(...) is now, enqueue_in(seconds, ...) is later",
    "adelay": "aenqueue(...) is now, aenqueue_in(seconds, ...) is later",
    "apply_async": "enqueue(...); options stand before it: .options(...).enqueue(...)",
    "apply": "call the task itself: task(...)",
    "call_local": "call the task itself: task(...)",
    "send": "enqueue(...)",
    "send_with_options": ".options(...).enqueue(...)",
    "schedule": "enqueue_in(seconds, ...) or enqueue_at(when, ...)",
    "kiq": "enqueue(...), or await aenqueue(...)",
    "kicker": ".options(...).enqueue(...)",
    "defer": "enqueue(...)",
    "defer_async": "await aenqueue(...)",
    "configure": ".options(...)",
}
"""Methods of other queues' tasks, by ours."""


def hint_of_option(option: str) -> str:
    """What an option of another queue is called here; "" where that is not known."""
    return OPTION_WORDS.get(option, "")


def refuse_unknown(given: Collection[str], known: Collection[str], what: str) -> None:
    """Raise ConfigError where an option is none of those that `what` has; it names ours."""
    for option in given:
        if option in known:
            continue
        hint = hint_of_option(option)
        if not hint and (near := get_close_matches(option, known, 1)):
            hint = f"did you mean {near[0]}?"
        raise ConfigError(option, f"there is no such option of {what}{'; ' if hint else ''}{hint}")


def with_known_options(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function whose keywords are the options of `what` refuse unknown ones by name, with a
    ConfigError in place of a TypeError."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = frozenset(inspect.signature(function).parameters)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given: Mapping[str, object] = kwargs
            if not known.issuperset(given):
                refuse_unknown(given, known, what)
            return function(*args, **kwargs)

        return call

    return decorate


def other_method(task: str, name: str) -> AttributeError:
    """The error of a task that is asked for a method that it has not; it names ours."""
    hint = METHOD_WORDS.get(name, "")
    said = f"task '{task}' has no attribute '{name}'"
    return AttributeError(f"{said}; here it is {hint}" if hint else said)
