"""Names: of queues and how they stand in a Redis key, of tasks, of consumers.

None may hold a control character: names are printed and logged, one to a line.

Every key of a queue carries `{tag}`: Redis Cluster places a key by what stands between its first
`{` and the `}` that follows. A `}` in a queue's name would end the tag early, so it is written as
`%7D`, and `%` as `%25`; everything else, `{` and text of any language, stands as it is.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from rqueue.errors import InvalidName
from rqueue.text.escape import steering

__all__ = [
    "MAX_NAME",
    "check_consumer",
    "check_group",
    "check_key",
    "check_name_of_limit",
    "check_namespace",
    "check_queue",
    "check_share",
    "check_sort_text",
    "check_stored_queue",
    "check_task",
    "group_of",
    "group_text",
    "refuse_control",
    "tag",
    "untag",
]

MAX_NAME = 200
MAX_GROUP = 128
"""Bytes of a group's name, of a key, and of text that jobs are sorted by."""

_NAMESPACE = re.compile(r"[A-Za-z0-9_.:/-]{1,64}")


def refuse_control(what: str, value: str) -> str:
    """Return `value` unless it holds a control character, a line break or a mark of direction.

    Raises InvalidName, which says that this `what` cannot be used.
    """
    found = steering(value)
    if found:
        raise InvalidName(what, value, f"holds the control character U+{ord(found):04X}")
    return value


def check_queue(name: str) -> str:
    """Return `name` when it may name a queue: 1 to 200 characters of any language.

    Raises InvalidName.
    """
    return refuse_control("queue name", check_stored_queue(name))


def check_stored_queue(name: str) -> str:
    """Return `name` when there can be keys of such a queue.

    That is more than `check_queue` lets in: names that were written into Redis by hand have to be
    looked at and removed too. Raises InvalidName.
    """
    if not isinstance(name, str):
        raise InvalidName("queue name", name, f"must be a str, not {type(name).__name__}")
    if not name:
        raise InvalidName("queue name", name, "is empty")
    if len(name) > MAX_NAME:
        raise InvalidName("queue name", name, f"has {len(name)} characters; at most {MAX_NAME} fit")
    if "\0" in name:  # signatures separate the queue's name from the job's id by a NUL
        raise InvalidName("queue name", name, "contains a NUL character")
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InvalidName("queue name", name, "has a lone surrogate: no UTF-8") from None
    return name


def check_namespace(name: object) -> str:
    """Return `name` when it may begin every key: 1 to 64 of letters, digits and `_ . : / -`.

    Raises InvalidName.
    """
    if not isinstance(name, str) or not _NAMESPACE.fullmatch(name):
        raise InvalidName("namespace", name, "must be 1 to 64 of letters, digits and _ . : / -")
    return name


def check_task(name: str) -> str:
    """Return `name` when it may name a task: 1 to 200 characters of any language.

    Raises InvalidName.
    """
    return _check_label("task name", name)


def check_consumer(name: str) -> str:
    """Return `name` when it may name a consumer: 1 to 200 characters of any language.

    Raises InvalidName.
    """
    return _check_label("consumer name", name)


def _check_label(what: str, name: str) -> str:
    if not isinstance(name, str):
        raise InvalidName(what, name, f"must be a str, not {type(name).__name__}")
    if not name:
        raise InvalidName(what, name, "is empty")
    if len(name) > MAX_NAME:
        raise InvalidName(what, name, f"has {len(name)} characters; at most {MAX_NAME} fit")
    return name if name.isprintable() else refuse_control(what, name)


def check_group(name: str) -> str:
    """Return `name` when it may name a group: 1 to 128 bytes of UTF-8. Raises InvalidName."""
    return _check_bytes("group", name)


def check_key(name: str) -> str:
    """Return `name` when it may be a job's key: 1 to 128 bytes of UTF-8. Raises InvalidName."""
    return _check_bytes("key", name)


def check_sort_text(text: str) -> str:
    """Return `text` when jobs can be sorted by it: 1 to 128 bytes of UTF-8. Raises InvalidName."""
    return _check_bytes("sort key", text)


def check_name_of_limit(name: str) -> str:
    """Return `name` when it may name a limit: 1 to 128 bytes of UTF-8. Raises InvalidName."""
    return _check_bytes("limit", name)


def _check_bytes(what: str, name: str) -> str:
    _check_label(what, name)
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidName(what, name, "has a lone surrogate: no UTF-8") from None
    if size > MAX_GROUP:
        raise InvalidName(what, name, f"has {size} bytes; at most {MAX_GROUP} fit")
    return name


def check_share(name: str) -> str:
    """Return `name` when it may name a share: 1 to 128 bytes of UTF-8. Raises InvalidName."""
    return _check_bytes("share", name)


def group_text(name: str) -> str:
    """A group's name, or a key, as it stands in terms, headers and keys of Redis: letters, digits,
    `_ - %`."""
    if name.isascii() and name.isalnum():
        return name
    return quote(name, "").replace(".", "%2E").replace("~", "%7E")


def group_of(text: str) -> str:
    """The group's name, or the key, that `text` was made of."""
    return unquote(text) if "%" in text else text


def tag(name: str) -> str:
    """A queue's name as it stands between the braces of a key: it holds no `}`."""
    if "}" in name or "%" in name:
        return name.replace("%", "%25").replace("}", "%7D")
    return name


def untag(tag: str) -> str:
    """The queue's name that `tag` was made of."""
    if "%" in tag:
        return tag.replace("%7D", "}").replace("%25", "%")
    return tag
