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
    """results: of steps, by name, as JSON. positions: of loops, by name, as JSON.

    key_id, mac: the signature of both, where a worker with signing keys kept them.
    """

    results: dict[str, Any] = field(default_factory=dict)
    positions: dict[str, Any] = field(default_factory=dict)
    key_id: str = ""
    mac: str = ""

    def __bool__(self) -> bool:
        return bool(self.results or self.positions)

    @classmethod
    def of(cls, value: bytes) -> KeptSteps:
        """Those in a stored job; none if they cannot be read."""
        for tag in value.partition(b";")[0].split(b"|")[1:]:
            if tag[:1] == b"n":
                try:
                    results, positions, *signature = loads(cls.json_of(tag[1:].decode()))
                    key_id, mac = map(str, signature or ("", ""))
                    return cls(dict(results), dict(positions), key_id, mac)
                except (Error, JSONDecodeError, TypeError, ValueError):
                    break
        return cls()

    @staticmethod
    def json_of(text: str) -> bytes:
        """The JSON in a text of the header. Raises ValueError."""
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))

    @staticmethod
    def text_of(json: bytes) -> str:
        """JSON without the letters that have a meaning in a header."""
        return urlsafe_b64encode(json).rstrip(b"=").decode()

    def shown(self) -> dict[str, Any]:
        """For people and for JSON: results of steps, and positions of loops as such."""
        return self.results | {f"position of {name}": at for name, at in self.positions.items()}

    def text(self) -> str:
        """Results and positions for the header, not signed."""
        return self.text_of(dumps([self.results, self.positions])) if self else ""
