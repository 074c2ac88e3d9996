"""Words that other queues have for what is called differently here, for errors that say so."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from rqueue.errors import ConfigError

__all__ = [
    "AS_RATE",
    "HANDLE_WORDS",
    "MODULE_WORDS",
    "QUEUE_WORDS",
    "WORKFLOW_HANDLE_WORDS",
    "WORKFLOW_WORDS",
    "explained",
    "hint_of_option",
    "hint_of_parameter",
    "other_attribute",
    "other_method",
    "refuse_unknown",
    "with_known_options",
]

P = ParamSpec("P")
R = TypeVar("R")

_RETRIES = "max_deliveries counts the first attempt too"
_POLICY = "retry=RetryPolicy(...) says when and after which errors a job is tried again"
_SECONDS = "time_limit is in seconds"
_LIVES = "ttl is in seconds"
_DELAY = "a call is delayed by enqueue_in(seconds, ...), or the option at=timedelta(seconds=...)"
_TIMED = "a call is enqueued for a time by enqueue_at(when, ...), or the option at=when"

_WHERE = "rqueue.configure(url), or RQUEUE_URL"
_FOLLOWS = "task.s(...).on_success(other.s()) says what follows a call"
_FAILED = "task.s(...).on_error(other.s()) says what follows a call that failed"
_LATER = "s(...), a call that is made later, in a chain, group or chord"
_MANY = "group(task.s(x) for x in ...), or queue.enqueue_many([Call(task, args), ...])"
_DIED = "on_dead of a Middleware hears of jobs that failed for good"

AS_RATE = 'ten in a minute are limit=Rate(10, per="1m"), of all workers together'
"""How a rate is written here, for who writes "10/m"."""

FIRST_PARAMETERS = {
    "ctx": "nobody passes a ctx: the job is current_job(), and a parameter with Depends() is filled"
    " with what the worker holds",
    "self": "nobody passes a self: the job is current_job()",
}
"""By which arq's functions, and Celery's with bind=True, are known."""

OPTION_WORDS = {
    "timeout": _SECONDS,
    "rate_limit": AS_RATE,
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
    "eta": _TIMED,
    "defer_by": _DELAY,
    "defer_until": _TIMED,
    "_defer_until": _TIMED,
    "acks_late": "ack is 'late', the default, or 'early'",
    "bind": "the job is current_job()",
    "meta": "a job has headers and labels",
    "description": "a job has headers and labels",
    "_queue_name": "it is called queue",
    "routing_key": "it is called queue",
    "_expires": _LIVES,
    "retry_when": _POLICY,
    "throws": "give_up_on of a RetryPolicy names what is not tried again",
    "max": _RETRIES,
    "interval": "delay is in seconds, backoff says how it grows",
    "intervals": "delay is in seconds, backoff says how it grows",
    "interval_start": "delay is in seconds, backoff says how it grows",
    "failure_ttl": "dead letters stay until they are requeued or purged",
    "ignore_result": "keep says for how long a result is there",
    "store_results": "keep says for how long a result is there",
    "serializer": "arguments and results are JSON",
    "at_front": "it is called front",
    "depends_on": "after=[job, ...] names the jobs that are waited for",
    "link": _FOLLOWS,
    "on_success": _FOLLOWS,
    "pipe_target": _FOLLOWS,
    "link_error": _FAILED,
    "on_error": _FAILED,
    "on_failure": _DIED,
    "broker": "sender=queue says where a call goes",
    "broker_url": "it is called url",
    "connection": "url says where Redis is, or redis= passes a client",
}
"""Options of other queues' tasks and calls, by the words of ours."""

METHOD_WORDS = {
    "delay": "enqueue(...) for now, enqueue_in(seconds, ...) for later",
    "adelay": "aenqueue(...) for now, aenqueue_in(seconds, ...) for later",
    "apply_async": "enqueue(...); options stand before it: .options(...).enqueue(...)",
    "apply": "call the task itself: task(...)",
    "call_local": "call the task itself: task(...)",
    "send": "enqueue(...)",
    "send_with_options": ".options(...).enqueue(...)",
    "enqueue_front": ".options(front=True).enqueue(...)",
    "schedule": "enqueue_in(seconds, ...) or enqueue_at(when, ...)",
    "kiq": "enqueue(...), or await aenqueue(...)",
    "kicker": ".options(...).enqueue(...)",
    "defer": "enqueue(...)",
    "defer_async": "await aenqueue(...)",
    "configure": ".options(...)",
    "asend": "await aenqueue(...)",
    "map": _MANY,
    "starmap": _MANY,
    "chunks": _MANY,
    "signature": _LATER,
    "subtask": _LATER,
    "message": _LATER,
    "retry": "raise Retry(after=seconds) in the task",
    "fn": "function",
    "AsyncResult": "queue.job(id)",
}
"""Methods of other queues' tasks, by ours."""

QUEUE_WORDS = {
    "enqueue_in": "send(name, args, options=Options(at=timedelta(...))), or task.enqueue_in(...)",
    "enqueue_at": "send(name, args, options=Options(at=when)), or task.enqueue_at(when, ...)",
    "enqueue_front": "enqueue(task.options(front=True), ...)",
    "enqueue_call": "enqueue(task, ...), or send(name, args, kwargs, Options(...))",
    "enqueue_job": "enqueue(task, ...), or enqueue(name, ...)",
    "send_task": "send(name, args, kwargs, Options(...))",
    "fetch_job": "job(id)",
    "job_ids": "Inspector(url).jobs(queue), or 'rqueue jobs QUEUE'",
    "jobs": "Inspector(url).jobs(queue), or 'rqueue jobs QUEUE'",
    "get_jobs": "Inspector(url).jobs(queue), or 'rqueue jobs QUEUE'",
    "empty": "cancel_all(), or 'rqueue purge QUEUE'",
    "purge": "cancel_all(), or 'rqueue purge QUEUE'",
    "count": "counts().ready",
    "task": "rqueue.task, which is of no queue; its option queue names one",
}
"""Methods of other queues' queues and applications, by ours."""

HANDLE_WORDS = {
    "get": "result(timeout)",
    "wait": "result(timeout)",
    "get_result": "result(timeout)",
    "return_value": "result(0)",
    "latest_result": "result(0)",
    "ready": "state()",
    "status": "state()",
    "get_status": "state()",
    "is_finished": "state()",
    "is_failed": "state()",
    "successful": "state()",
    "failed": "state()",
    "refresh": "state(), or result(timeout): both ask Redis each time",
    "info": "Inspector(url).job(id), or 'rqueue show ID'",
    "exc_info": "Inspector(url).job(id), or 'rqueue show ID'",
    "traceback": "Inspector(url).job(id), or 'rqueue show ID'",
    "revoke": "cancel()",
    "abort": "cancel()",
    "forget": "nothing to do: results end by themselves, keep says when",
}
"""Methods of other queues' jobs and results, by ours."""


_NOW = "enqueue(), or await aenqueue(); arguments and options are those of its calls"
_BEFORE = "task.options(...).s(...): options stand before the call"
_DUE = "task.options(at=timedelta(...)).s(...), then enqueue()"
_RESULT = "enqueue().result(timeout)"

WORKFLOW_WORDS = {
    "delay": _NOW,
    "adelay": _NOW,
    "apply_async": _NOW,
    "send": _NOW,
    "run": _NOW,
    "kiq": _NOW,
    "apply": "a call of the tasks themselves: task(...)",
    "set": _BEFORE,
    "options": _BEFORE,
    "enqueue_in": _DUE,
    "enqueue_at": _DUE,
    "aenqueue_in": _DUE,
    "aenqueue_at": _DUE,
    "link": "on_success(other.s()), of a call; or chain(first.s(), other.s())",
    "then": "on_success(other.s()), of a call; or chain(first.s(), other.s())",
    "link_error": "on_error(other.s()), of a call",
    "on_success": "on_success(other.s()) of its last call, or chain(first.s(), other.s())",
    "on_error": "on_error(other.s()) of each call in it",
    "pipe": "first | second, or chain(first.s(), second.s())",
    "s": "task.s(...), which has its arguments already",
    "si": "task.si(...) in place of task.s(...)",
    "clone": "the call itself, which does not change",
    "get": _RESULT,
    "result": _RESULT,
    "join": _RESULT,
    "get_result": _RESULT,
    "get_results": _RESULT,
    "id": "enqueue().id",
    "tasks": "signatures()",
}
"""Methods of other queues' calls and workflows, by ours."""

_STATES = "[job.state() for job in workflow.jobs]"

WORKFLOW_HANDLE_WORDS = {
    "get": "result(timeout)",
    "wait": "result(timeout)",
    "join": "result(timeout)",
    "get_result": "result(timeout)",
    "get_results": "result(timeout)",
    "collect": "result(timeout)",
    "state": _STATES,
    "status": _STATES,
    "ready": _STATES,
    "completed": _STATES,
    "completed_count": _STATES,
    "successful": _STATES,
    "failed": _STATES,
    "waiting": _STATES,
    "results": "jobs",
    "children": "ids, or 'rqueue show ID', which draws the tree",
    "parent": "ids, or 'rqueue show ID', which draws the tree",
    "revoke": "cancel()",
    "forget": "nothing to do: results end by themselves, keep says when",
}
"""Methods of other queues' results of workflows, by ours."""

_TASK = "task: @task above a function"

MODULE_WORDS = {
    "signature": "task.s(...)",
    "subtask": "task.s(...)",
    "xmap": _MANY,
    "starmap": _MANY,
    "chunks": _MANY,
    "Celery": f"{_TASK}; rqueue.configure(url) says where Redis is",
    "shared_task": _TASK,
    "actor": _TASK,
    "job": _TASK,
    "AsyncResult": "queue(name).job(id)",
    "send_task": "queue(name).enqueue('app.task', ...), a task by its name",
    "get_current_job": "current_job()",
    "Worker": "the command 'rqueue worker MODULE QUEUE...'",
    "cron": "@task(cron=...), or queue(name).schedules.set(...)",
    "crontab": "@task(cron=...), or queue(name).schedules.set(...)",
    "create_pool": _WHERE,
    "RedisSettings": _WHERE,
    "set_broker": _WHERE,
    "get_broker": _WHERE,
    "WorkerSettings": "the options of 'rqueue worker', or its pool file; App(lifespan=...)",
    "StubBroker": "in_memory() of rqueue.testing, or the fixture 'rqueue' of pytest",
    "middleware": "App(middleware=[...])",
}
"""Names of other queues' packages, by ours."""


def hint_of_option(option: str) -> str:
    """What an option of another queue is called here; "" where that is not known."""
    return OPTION_WORDS.get(option, "")


def hint_of_parameter(first: str) -> str:
    """What stands for the first parameter of another queue's functions here; "" where that is
    none."""
    return FIRST_PARAMETERS.get(first, "")


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


def explained(what: str, sentence: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function refuse what it does not take with this sentence, in a ConfigError of `what`,
    in place of a TypeError."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ConfigError(what, f"{error}; {sentence}") from None
            return function(*args, **kwargs)

        return call

    return decorate


def other_method(task: str, name: str) -> AttributeError:
    """The error of a task that is asked for a method that it has not; it names ours."""
    return other_attribute(f"task '{task}'", name, METHOD_WORDS)


def other_attribute(what: str, name: str, words: Mapping[str, str]) -> AttributeError:
    """The error of something that is asked for what it has not; it names ours, by these words."""
    hint = words.get(name, "")
    said = f"{what} has no attribute '{name}'"
    return AttributeError(f"{said}; here it is {hint}" if hint else said)
