"""What a job waits for: its parents, as text in terms and in headers, and what they left."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, overload

from orjson import JSONDecodeError, loads

from rqueue.errors import Undecodable
from rqueue.model.job import Delivery
from rqueue.model.names import group_of, group_text

__all__ = [
    "CHAIN_MAX",
    "LOST_MS",
    "NAMED_MAX",
    "PAIRS_MAX",
    "PARENTS_MAX",
    "QUEUES_MAX",
    "RESULTS_MAX",
    "Dependant",
    "Failure",
    "MemberIds",
    "OnFailure",
    "Parents",
    "as_signed",
    "given_to",
    "has_dependants",
    "read_results",
]

NAMED_MAX = 100
"""Parents that a job may have by name."""

RESULTS_MAX = 1000
"""Parents whose results a job may get."""

PARENTS_MAX = 1_000_000
"""Parents that a job may have."""

CHAIN_MAX = 200
"""Calls of a chain: with each the ids of those before it are longer."""

PAIRS_MAX = 10_000
"""Of two groups in a chain, members of the one times members of the other: one step may end all of
the first, and each of the second hears of each."""

LOST_MS = 600_000
"""For how long the producer of a stream may say nothing before it is taken for lost."""

QUEUES_MAX = 16
"""Queues that one workflow may go through."""

OnFailure = Literal["stop", "continue", "wait"]
"""What becomes of a job of which a parent ends without being done: it is cancelled; the failure
counts as an end; it waits on where the parent is dead, and may be requeued."""

Takes = Literal["nothing", "result", "results"]
"""What a job gets of its parents: nothing, the result of its one parent as first argument, or the
list of all results."""

_POLICIES = {"stop": "s", "continue": "c", "wait": "w", "failed": "f"}
_OF_LETTER = {letter: policy for policy, letter in _POLICIES.items()}
_TAKES: dict[Takes, str] = {"nothing": "n", "result": "o", "results": "l"}
_TAKES_OF = {letter: takes for takes, letter in _TAKES.items()}
_STREAMED = "s"
_TEXT = re.compile(r"([scwf])([nols])(\d{1,7})(?:@([\w%/-]+))?(?::([\w%/-]+))?", re.ASCII)


class Parents(NamedTuple):
    """total: how many they are. ids: their names; () = those derived from the job's own id,
    `<id>.0` and so on. on_failure: an `OnFailure`, or "failed": the job runs only where its one
    parent fails. queues: of a workflow that goes through several the queues in which they are; () =
    that of the job. streamed: they come as a stream; total is 0 as long as that is open."""

    total: int
    takes: Takes = "nothing"
    on_failure: OnFailure | Literal["failed"] = "stop"
    ids: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    streamed: bool = False

    @property
    def open(self) -> bool:
        """Whether more of them may come, of a job that waits."""
        return self.streamed and not self.total

    @property
    def text(self) -> str:
        """As terms and headers say it: "<policy><takes><total>[@<queue>/...][:<id>/<id>...]"."""
        if self.streamed:  # of one length, so that a job is as large before and after
            return f"{_POLICIES[self.on_failure]}{_STREAMED}{self.total:07}"
        said = f"{_POLICIES[self.on_failure]}{_TAKES[self.takes]}{self.total}"
        if self.queues:
            said += f"@{'/'.join(map(group_text, self.queues))}"
        return f"{said}:{'/'.join(map(group_text, self.ids))}" if self.ids else said

    @classmethod
    def parse(cls, text: str) -> Parents | None:
        """The parents whose text this is; None where it is none."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        policy, takes, total, queues, ids = found.groups()
        on_failure: Any = _OF_LETTER[policy]
        if takes == _STREAMED:
            return cls(int(total), on_failure=on_failure, streamed=True)
        return cls(int(total), _TAKES_OF[takes], on_failure, _names(ids), _names(queues))

    def of(self, id: str) -> list[str]:
        """The ids of the parents of the job with this id."""
        return self.first(id, self.total)

    def first(self, id: str, most: int) -> list[str]:
        """The ids of the first of them, at most so many."""
        if self.ids:
            return list(self.ids[:most])
        return [f"{id}.{place}" for place in range(min(most, self.total))]


class Dependant(NamedTuple):
    """A job that waits for another one, as that one says it: in a workflow of several queues nobody
    else can. queue: where it is; "" = in the same one. wants: whether it gets the result. id: its
    own; "" = the one that the other's is derived from. place: of the other one among those that it
    waits for."""

    queue: str = ""
    wants: bool = False
    id: str = ""
    place: int = 0

    @property
    def text(self) -> str:
        """As terms say it: "<r|n><queue>[:<place>/<id>]"."""
        said = f"{'r' if self.wants else 'n'}{group_text(self.queue)}"
        return f"{said}:{self.place}/{group_text(self.id)}" if self.id else said

    @classmethod
    def parse(cls, text: str) -> Dependant:
        """The job whose text this is, of terms that were written here."""
        queue, _, rest = text[1:].partition(":")
        place, _, id_ = rest.partition("/")
        return cls(group_of(queue), text[:1] == "r", group_of(id_), int(place or 0))

    def of(self, id: str) -> str:
        """The id of the job that waits for the job `id`."""
        return self.id or id.rpartition(".")[0]


class Failure(NamedTuple):
    """What a parent left that was not done: its id, the state in which it ended, and the type and
    the message of its error, where there was one."""

    id: str
    state: str
    type: str = ""
    message: str = ""


class MemberIds(Sequence[str]):
    """The ids of a streamed workflow's jobs, that of the one that waits first; none is kept."""

    def __init__(self, root: str, count: int) -> None:
        self._root = root
        self._places = range(-1, count)

    def _id(self, place: int) -> str:
        return self._root if place < 0 else f"{self._root}.{place}"

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """An id, or a list of some."""
        if isinstance(index, slice):
            return [self._id(place) for place in self._places[index]]
        return self._id(self._places[index])

    def __len__(self) -> int:
        return len(self._places)


def as_signed(waits: str) -> str:
    """What a job waits for as its creator signed it: how many a stream has the queue says."""
    if waits[1:2] != _STREAMED:
        return waits
    parents = Parents.parse(waits)
    return waits if parents is None else parents._replace(total=0).text


def has_dependants(value: bytes) -> bool:
    """Whether a stored job says of itself that others wait for it, of which some may be in other
    queues."""
    return b"|t" in value and b"|t" in value.partition(b";")[0]


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(map(group_of, text.split("/"))) if text else ()


def given_to(job: Delivery) -> list[Any]:
    """The first arguments of a delivered job, which come from its parents. Raises Undecodable."""
    if b"|i" not in job.value:  # nearly all jobs
        return []
    return read_results(job.header.waits, job.header.results) if job.header.results else []


def read_results(waits: str, text: str) -> list[Any]:
    """The first arguments of a job that gets results. waits: what it waited for; text: what its
    parents left; both as its header has them. Raises Undecodable."""
    parents = Parents.parse(waits)
    try:
        left = [_left(*one) for one in loads(text)]
    except (JSONDecodeError, TypeError, ValueError) as error:
        raise Undecodable(f"no results of parents ({error})", text.encode()) from None
    return left if parents is None or parents.takes == "result" else [left]


def _left(done: int, what: Any) -> Any:
    if done:
        return what
    if not isinstance(what, Mapping):
        raise ValueError("a failure is an object")
    return Failure(*(str(what.get(name) or "") for name in Failure._fields))
