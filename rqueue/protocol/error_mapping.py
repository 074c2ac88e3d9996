"""What an error reply of Redis means, and the loss of a connection: one table for every caller.

Three things are to be known of each: which error of `rqueue.errors` it is; whether it passes by
itself (`RedisUnavailable`: wait, and try again) or stays until an operator changes something
(`UnusableServer`); and whether the command may have been carried out all the same (the error's
`outcome_unknown`). A command that Redis answered with an error was not carried out. One whose
answer was lost may have been, and stays so when a repeat of it is refused: see `unsure`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from redis import exceptions as rx

from rqueue import errors
from rqueue.protocol.unreachable import (
    advised,
    is_no_cluster,
    never_connected,
    no_primary,
    not_connected,
    said_of_the_map,
)

__all__ = [
    "REPLIES",
    "Meaning",
    "damaged",
    "is_wrong_type",
    "moved_on",
    "translate",
    "unsure",
]


class Meaning(NamedTuple):
    """Of one error reply: the error, and its text, where `{said}` is what the server said."""

    error: type[errors.ServerError]
    says: str


CLUSTER = (
    "this is a node of a Redis Cluster: write its address as redis+cluster://HOST:PORT, which "
    "leads to all nodes"
)

MOVING = "the queue's slot is being moved to another node of the cluster"
NO_CLUSTER = "this server is not in cluster mode: write its address as redis://HOST:PORT"

REPLIES: dict[str, Meaning] = {
    # these pass by themselves
    "LOADING": Meaning(errors.RedisLoading, "Redis is starting and still loads its data"),
    "READONLY": Meaning(
        errors.RedisReadOnly,
        "Redis takes no writes now: it is a replica, use the primary's address",
    ),
    "MASTERDOWN": Meaning(errors.RedisReadOnly, "Redis takes no writes now: {said}"),
    "NOREPLICAS": Meaning(errors.RedisReadOnly, "Redis takes no writes now: {said}"),
    "MISCONF": Meaning(errors.RedisReadOnly, "Redis takes no writes now: {said}"),
    "UNBLOCKED": Meaning(errors.RedisReadOnly, "a failover is under way: {said}"),
    "OOM": Meaning(errors.RedisOutOfMemory, "Redis reached its maxmemory and stored nothing"),
    "BUSY": Meaning(errors.RedisBusy, "a script has kept Redis busy for too long: {said}"),
    "INPROG": Meaning(errors.RedisBusy, "a failover is under way: {said}"),
    "NOSCRIPT": Meaning(errors.RedisBusy, "Redis forgot a script that it was just taught: {said}"),
    "TRYAGAIN": Meaning(errors.SlotBusy, "a slot of the cluster is being moved: {said}"),
    "ASK": Meaning(errors.SlotBusy, "a slot of the cluster is being moved: {said}"),
    "CLUSTERDOWN": Meaning(errors.SlotBusy, "the cluster is down: {said}"),
    # these stay until an operator changes something
    "NOAUTH": Meaning(errors.AuthenticationFailed, "Redis refuses the login: {said}"),
    "WRONGPASS": Meaning(errors.AuthenticationFailed, "Redis refuses the login: {said}"),
    "DENIED": Meaning(errors.AuthenticationFailed, "Redis refuses the connection: {said}"),
    "NOPERM": Meaning(errors.AuthenticationFailed, "the login lacks a right: {said}"),
    "NOPROTO": Meaning(errors.WrongServer, "this is no Redis 6.2 or later: {said}"),
    "MOVED": Meaning(errors.WrongServer, CLUSTER),
    "CROSSSLOT": Meaning(errors.WrongServer, CLUSTER),
    "EXECABORT": Meaning(errors.CommandRefused, "Redis refused a command: {said}"),
    "WRONGTYPE": Meaning(
        errors.CommandRefused, "Redis refused a command: {said}: a key that rqueue did not write"
    ),
}
"""By the first word of the reply."""

_SAYINGS: tuple[tuple[str, Meaning], ...] = (
    # before Redis 7 the login's rights inside a script have no word of their own
    ("^ACL failure|user executing the script can't", REPLIES["NOPERM"]),
    ("no password is set|without any password configured|invalid password", REPLIES["WRONGPASS"]),
    (
        "^max number of clients",
        Meaning(errors.ConnectionLost, "Redis refuses the connection: {said}"),
    ),
    ("^SELECT is not allowed in cluster", Meaning(errors.WrongServer, CLUSTER)),
    (
        "DB index|invalid DB",
        Meaning(errors.WrongServer, "the server has no database of the number in the URL: {said}"),
    ),
    (
        "unknown command .SENTINEL",
        Meaning(
            errors.WrongServer,
            "what answers is no Sentinel: redis+sentinel:// wants the address of Sentinels, whose "
            "port is mostly 26379",
        ),
    ),
    (
        "unknown command",
        Meaning(
            errors.WrongServer,
            "this is no Redis 6.2 or later, or one where a command is disabled: {said}",
        ),
    ),
)
"""Replies that begin with ERR, by what follows."""

_OTHER = Meaning(errors.CommandRefused, "Redis refused a command: {said}")

_WRAPPED = re.compile(
    r"(?:(?:ERR )?Error running script .*?)?@?user_script: ?\d+: (?:@user_script: ?\d+: )?-?(.*)",
    re.DOTALL,
)
_WORD = re.compile(r"[A-Z]{2,}(?= |$)")
_COMMAND = re.compile(r"(?:run|execute) the '([^']+)'")


def translate(
    error: Exception,
    *,
    url: str = "",
    script: str = "",
    queue: str = "",
    consumer: str = "",
    sent: bool = True,
) -> Exception:
    """The error of ours for one of redis-py's; what is not Redis's own comes back as it is.

    script, queue, consumer: what the command was about. sent: False if it had no connection.
    """
    if isinstance(error, errors.RQueueError):
        return error
    if isinstance(error.__context__, rx.ReadOnlyError) and isinstance(error, rx.ConnectionError):
        error = error.__context__  # redis-py hangs up on what is no primary any more
    if isinstance(error, rx.RedisClusterException):
        inner = said_of_the_map(error)
        error = inner if inner is not None and _said(inner)[0] else error
    found = _translated(error, url, script, queue, consumer, sent)
    earlier = _earlier(error)
    if earlier is not None and isinstance(found, errors.ServerError) and not _said(earlier)[0]:
        lost = _lost(earlier, url, sent=not not_connected(earlier))
        if lost is not None and lost.outcome_unknown:
            return unsure(lost, found)
    return found


def _earlier(error: BaseException | None) -> Exception | None:
    """What went wrong first, where redis-py repeated a command (see `connection.NotingRetry`), or
    this one, which teaches a script, is the repeat of another."""
    while error is not None:
        found: Exception | None = getattr(error, "earlier", None)
        if found is not None:
            return found
        error = error.__context__ if isinstance(error.__context__, rx.NoScriptError) else None
    return None


def _translated(
    error: Exception, url: str, script: str, queue: str, consumer: str, sent: bool
) -> Exception:
    word, said = _said(error)
    if word:
        return _refusal(error, word, said, url, script, queue, consumer)
    if (lost := _lost(error, url, sent)) is not None:
        return lost
    if isinstance(error, rx.InvalidResponse):
        # the first byte of a TLS alert
        hint = "; does it want TLS (rediss://)?" if "x15" in repr(said) else ""
        return errors.WrongServer(f"what answers is no Redis: {said}{hint}", url=url)
    return error


def _lost(error: Exception, url: str, sent: bool) -> errors.ServerError | None:
    """The error of a connection that could not be made, or broke."""
    made: errors.ServerError
    if isinstance(error, rx.TimeoutError | TimeoutError):
        sent = sent and not never_connected(error)
        said = f"no answer from Redis in time: {error}"
        if address := getattr(error, "silent", ""):
            said = f"no answer from {address}"
        said = advised(said, error, url, sent=sent)
        late = made = errors.RedisTimeout(said, url=url)
        late.elsewhere = getattr(error, "elsewhere", False)
        late.waited = getattr(error, "waited", 0.0)
    elif isinstance(error, rx.ConnectionError | OSError):
        why = no_primary(str(error), url) or f"cannot reach Redis: {error}"
        made = errors.ConnectionLost(advised(why, error, url, sent=sent), url=url)
    elif isinstance(error, rx.ClusterError):  # redis-py was sent to and fro, and gave up
        made = errors.SlotBusy(MOVING, url=url)
        sent = False
    elif isinstance(error, rx.RedisClusterException):
        if is_no_cluster(error):
            return errors.WrongServer(NO_CLUSTER, url=url)
        first = error.__cause__ or error
        said = advised(f"cannot reach any node of the cluster: {first}", first, url, sent=False)
        made = errors.ConnectionLost(said, url=url)
    else:
        return None
    made.outcome_unknown = sent
    return made


def _said(error: Exception) -> tuple[str, str]:
    """The word that an error reply begins with, and the rest; "" where there is no reply."""
    code = getattr(error, "status_code", None)
    said = str(error)
    reply = isinstance(error, rx.ResponseError) or type(error) in _WORDS or _NO_ROOM.match(said)
    if not code and not reply:
        return "", said
    # Redis 6.2 wraps what a command says inside a script
    if (wrapped := _WRAPPED.match(said)) is not None:
        said, code = wrapped[1], None
    if not code and (found := _WORD.match(said)) is not None:
        code, said = found[0], said[found.end() :].strip()
    if not code and _NO_LOGIN.match(said):
        code = "NOAUTH"
    return code or _WORDS.get(type(error), "ERR"), said


# redis-py before 7.2 keeps no word of a reply, and has one class for NOAUTH and WRONGPASS
_NO_LOGIN = re.compile("Authentication required|HELLO must be called with the client already auth")
_NO_ROOM = re.compile("max number of clients reached")

_WORDS: dict[type[Exception], str] = {
    rx.AuthenticationError: "WRONGPASS",
    rx.AuthorizationError: "NOPERM",
    rx.BusyLoadingError: "LOADING",
    rx.MasterDownError: "MASTERDOWN",
    rx.ClusterDownError: "CLUSTERDOWN",
    rx.MovedError: "MOVED",
    rx.AskError: "ASK",
    rx.TryAgainError: "TRYAGAIN",
    rx.ClusterCrossSlotError: "CROSSSLOT",
    rx.ReadOnlyError: "READONLY",
    rx.NoPermissionError: "NOPERM",
    rx.NoScriptError: "NOSCRIPT",
    rx.OutOfMemoryError: "OOM",
    rx.ExecAbortError: "EXECABORT",
}
"""Of the errors that redis-py makes itself, without the word of a reply."""

# not in redis-py 6.2 and earlier
if _provider := getattr(rx, "ExternalAuthProviderError", None):
    _WORDS[_provider] = "WRONGPASS"


_FEW_LABELS = (
    "a set of labels is a class of jobs, of which 64 may wait in a queue: labels are for what has"
    " few values (a region, a version, needs a GPU); ids of users or documents belong into the"
    " arguments"
)
_FEW_SELECTORS = (
    "consumers that select the same share one expression: write it the same way in all of them,"
    " and leave ids out of it"
)
_MAKE_IT = "a mandatory job makes none; `configure` does, and a job that is not mandatory"


def _refusal(
    error: Exception, word: str, said: str, url: str, script: str, queue: str, consumer: str
) -> Exception:
    """The error for an error reply."""
    if word == "NOCONSUMER":
        return errors.NoConsumer(queue)
    if word == "NOQUEUE":
        return errors.UnknownQueue(queue, _MAKE_IT)
    if word == "FULL":
        return _full(queue, said)
    if word == "SHARDED":
        return errors.QueueSharded(queue)
    if word == "SHARDS":
        return errors.ShardsChanged.said(queue, said)
    if word == "NOPARENT":
        why, id_ = said.split(" ", 1)
        if why == "unknown":
            return errors.UnknownJob(id_, queue=queue)
        return errors.WorkflowEnded(queue, id_)
    if word == "SEALED":
        total, asked, id_ = said.split(" ", 2)
        return errors.StreamSealed(queue, id_, total=int(total), said=int(asked))
    if word == "DUPLICATE":
        index, state, id_ = said.split(" ", 2)
        return errors.DuplicateJob(queue, id_, state, int(index))
    if word == "GONE":
        return errors.ConsumerGone(consumer, queue=queue)
    if word == "DELETING":
        return errors.RedisBusy(f"queue '{queue}' is being deleted: it takes nothing until it is")
    if word == "REFUSED":
        said = f"consumer '{consumer}' is refused by queue '{queue}': {said}"
        return errors.ConsumerRefused(said, consumer=consumer, queue=queue)
    if word == "CLASSES":
        return errors.ConfigError("labels", f"{said}; {_FEW_LABELS}")
    if word == "AUDIENCES":
        return errors.ConfigError("select", f"{said}; {_FEW_SELECTORS}")
    if word == "CONFLICT":
        return errors.ConfigError(*said.split(" ", 1))
    if word == "SCHEMA":
        return errors.WrongServer(said, url=url)
    if word == "DAMAGED":
        return _refused_as_damaged(queue, said)
    if word == "WRONGTYPE" and queue:
        return damaged(queue, "", ())
    if word == "MOVED" and "+cluster://" in url:  # its client does not follow within a pipeline
        return errors.SlotBusy(MOVING, url=url)
    meaning = REPLIES.get(word)
    whole = said if word == "ERR" else f"{word} {said}".strip()
    if meaning is None:
        meaning = next((means for saying, means in _SAYINGS if re.search(saying, whole)), None)
    # what a script itself says, or does wrong: no fault of the server
    if script and (meaning is None or meaning.error is errors.CommandRefused):
        place = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        return errors.ScriptError(script, whole + place)
    meaning = meaning or _OTHER
    if meaning.error is errors.AuthenticationFailed:
        return errors.AuthenticationFailed(
            _login(word, said, whole, meaning, queue, script), url=url
        )
    made = meaning.error(meaning.says.format(said=whole), url=url)
    made.outcome_unknown = False
    return made


_IN_BYTES = ("limit_bytes", "waiting_bytes", "granted_bytes", "size")


def _full(queue: str, said: str) -> errors.QueueFull:
    """What a bounded queue says of itself when it refuses: see `lua/policies/bounded/fit.lua`."""
    waits, limit, waiting, granted, jobs, *sizes = (int(number) for number in said.split())
    more = {"granted": granted, "jobs": jobs, **dict(zip(_IN_BYTES, sizes, strict=False))}
    return errors.QueueFull(queue, limit, waiting, waits=waits == 1, **more)


def is_wrong_type(error: Exception) -> bool:
    """Whether a command met a key that is of another type."""
    return _said(error)[0] == "WRONGTYPE"


def damaged(queue: str, base: str, wrong: Sequence[tuple[str, str, str]]) -> errors.QueueDamaged:
    """The error of a step that met a key of a wrong type. base: the prefix of the queue's keys;
    wrong: such keys, without it, with the type that was found and the one that is expected."""
    if not wrong:
        problem = "one of its keys is of another type than rqueue keeps there"
        return errors.QueueDamaged(queue, problem=problem)
    key, found, expected = sorted(wrong)[0]
    return errors.QueueDamaged(queue, base + key, found, expected)


_WRONG_TYPE = re.compile(r"the key (.+) is a (\w+), where rqueue keeps a (\w+)\. ", re.DOTALL)
_WRONG_VALUE = re.compile(r"field .+? of (?:the key )?(.+?) is no number", re.DOTALL)


def _refused_as_damaged(queue: str, said: str) -> errors.QueueDamaged:
    """What a step found that looked before its first write: see `lua/include/queue/sound.lua`."""
    if (wrong := _WRONG_TYPE.match(said)) is not None:
        return errors.QueueDamaged(queue, *wrong.groups())
    value = _WRONG_VALUE.match(said)
    problem = said.partition(". Nothing was changed")[0]
    return errors.QueueDamaged(queue, value[1] if value else "", problem=problem)


def _login(word: str, said: str, whole: str, meaning: Meaning, queue: str, script: str) -> str:
    """What is wrong with a login, and what to give it."""
    if word == "NOAUTH" or "already authenticated" in said:
        return "Redis refuses the login: it wants a password, and the URL has none"
    if meaning is not REPLIES["NOPERM"]:
        return meaning.says.format(said=whole)
    if (command := _COMMAND.search(said)) is not None:
        return f"the login may not run '{command[1]}': give it +{command[1]} ({said})"
    if "key" in said:
        keys = f"the keys of queue '{queue}'" if queue else "rqueue's keys"
        return f"the login may not touch {keys}: give it ~rqueue:* (or its namespace) ({said})"
    if script and "executing the script" in said:  # Redis 7 says neither the command nor the key
        return (
            f"the login lacks a right that the step '{script}' needs: a viewer may change nothing; "
            "docs/servers.md has the rights of a client, a worker and an inspector"
        )
    return meaning.says.format(said=said)


def moved_on(error: Exception) -> bool:
    """Whether another server may be in charge by now, or another login: an address is looked up,
    and a login is made, by a new connection only."""
    return isinstance(
        error, errors.RedisReadOnly | errors.RedisLoading | errors.AuthenticationFailed
    )


def unsure(lost: errors.ServerError, later: errors.ServerError) -> errors.ServerError:
    """A command lost its answer, and its repeat was refused, or did not get through: the error to
    be raised. Whether the first one was carried out is not known, whatever became of the second."""
    if later.outcome_unknown:
        return later
    made = type(lost)(f"{lost}; whether it was done is not known, and then: {later}")
    made.url = lost.url
    made.outcome_unknown = True
    made.__cause__ = later
    return made
