"""Names of queues, and the form in which they stand in a Redis key.

Every key of a queue carries `{tag}`: Redis Cluster places a key by what stands between its first
`{` and the `}` that follows. A `}` in a queue's name would end the tag early, so it is written as
`%7D`, and `%` as `%25`; everything else, `{` and text of any language, stands as it is.
"""

from __future__ import annotations

import re

from rqueue.errors import InvalidName

__all__ = ["MAX_NAME", "check_namespace", "check_queue", "tag", "untag"]

MAX_NAME = 200

_NAMESPACE = re.compile(r"[A-Za-z0-9_.:/-]{1,64}")


def check_queue(name: str) -> str:
    """Return `name` when it may name a queue: 1 to 200 characters of any text, without NUL.

    Raises InvalidName.
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


def check_namespace(name: str) -> str:
    """Return `name` when it may begin every key: 1 to 64 of letters, digits and `_ . : / -`.

    Raises InvalidName.
    """
    if not _NAMESPACE.fullmatch(name):
        raise InvalidName("namespace", name, "must be 1 to 64 of letters, digits and _ . : / -")
    return name


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
