"""What a job's code has done so far, as it is kept in the job's stored value."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from dataclasses import dataclass, field
from typing import Any

from orjson import JSONDecodeError, dumps, loads

__all__ = ["KeptSteps"]


@dataclass(slots=True)
class KeptSteps:
    """results: of steps, by name, as JSON. positions: of loops, by name, as JSON."""

    results: dict[str, Any] = field(default_factory=dict)
    positions: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.results or self.positions)

    @classmethod
    def of(cls, value: bytes) -> KeptSteps:
        """Those in a stored job; none where they cannot be read."""
        for tag in value.partition(b";")[0].split(b"|")[1:]:
            if tag[:1] == b"n":
                try:
                    text = tag[1:] + b"=" * (-len(tag[1:]) % 4)
                    results, positions = loads(urlsafe_b64decode(text))
                    return cls(dict(results), dict(positions))
                except (Error, JSONDecodeError, TypeError, ValueError):
                    break
        return cls()

    def shown(self) -> dict[str, Any]:
        """For people and for JSON: results of steps, and positions of loops as such."""
        return self.results | {f"position of {name}": at for name, at in self.positions.items()}

    def text(self) -> str:
        """As they stand in the header: without the letters that mean something there."""
        if not self:
            return ""
        return urlsafe_b64encode(dumps([self.results, self.positions])).rstrip(b"=").decode()
