"""The key of a unique job, and how long it is the job's own, as text: in terms and in headers."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from orjson import OPT_SORT_KEYS, dumps, loads

from rqueue.model.envelope import pack

__all__ = ["KEY_MAX", "REPLACING", "Conflict", "UniqueKey", "digest_of", "is_key"]

KEY_MAX = 64
"""Characters of a key: letters, digits, `_` and `-`."""

Conflict = Literal["existing", "raise", "replace", "debounce", "throttle"]
"""What an enqueue does whose key another job has: it answers with that job, or is refused; or that
job, where it waits, gets its arguments; and its time; or it follows when the period is over."""

REPLACING = ("replace", "debounce", "throttle")
"""Those of them by which a job that waits gets other arguments."""

_ANSWERS: dict[Conflict, str] = {
    "existing": "x",
    "raise": "f",
    "replace": "r",
    "debounce": "d",
    "throttle": "t",
}
_CONFLICTS = {letter: conflict for conflict, letter in _ANSWERS.items()}
_LASTS = {"e": "end", "s": "start"}
_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TEXT = re.compile(r"([es]|\d{1,12})(?:([xfrt])|(d)(\d{0,12})):([A-Za-z0-9_-]{1,64})")


class UniqueKey(NamedTuple):
    """key: what no two jobs have at a time. until: "end", until the job has ended; "start", until a
    consumer takes it; or ms from its enqueue, for which it also lasts when the job is done before.
    most_ms: of a debounce, how long behind its enqueue a job is due at the latest; 0: no such time.
    """

    key: str
    until: Literal["end", "start"] | int = "end"
    on_conflict: Conflict = "existing"
    most_ms: int = 0

    @property
    def replaces(self) -> bool:
        """Whether a job that waits may get the arguments of another one."""
        return self.on_conflict in REPLACING

    @property
    def text(self) -> str:
        """As terms and headers say it: "<e|s|ms><x|f|r|t>:<key>", or "sd<most ms>:<key>"."""
        lasts = self.until if isinstance(self.until, int) else self.until[0]
        most = self.most_ms or ""
        return f"{lasts}{_ANSWERS[self.on_conflict]}{most}:{self.key}"

    @classmethod
    def parse(cls, text: str) -> UniqueKey | None:
        """The key whose text this is; None where it is none."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        lasts, answer, debounce, most, key = found.groups()
        until: Any = _LASTS.get(lasts) or int(lasts)
        return cls(key, until, _CONFLICTS[answer or debounce], int(most or 0))


def is_key(text: str) -> bool:
    """Whether this may be a key."""
    return _KEY.fullmatch(text) is not None


def digest_of(task: str, chosen: Any) -> str:
    """The key of a call: 22 characters, of the task's name and what tells its calls apart, which is
    compared as the JSON that the job would carry. Raises NotEncodable, which names the task."""
    said = chosen if isinstance(chosen, Mapping) else {"key": chosen}
    packed = pack(task, (), dict(said))
    whole = dumps(loads(packed), option=OPT_SORT_KEYS)
    return urlsafe_b64encode(blake2b(whole, digest_size=16).digest()).decode().rstrip("=")
