"""Many queues are looked at one after the other, each by the same questions. Those are asked ahead:
of the next queues all at once, in one transaction, so that some queues cost one round trip."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from threading import get_ident
from types import TracebackType
from typing import Any

import redis

from rqueue.protocol.call import Arg
from rqueue.protocol.keys import QueueKeys

__all__ = ["AskedAhead"]

MOST = 300
"""Commands that are asked ahead of one queue; one that needs more is asked as it goes."""

TOGETHER = 100
"""Commands of several queues in one transaction at the most: others wait for so long."""

Words = tuple[Arg, ...]
Template = list[tuple[tuple[bool, Any], ...]]
"""Commands, each word as (True, what follows the queue's base) or (False, the word)."""


class _Look:
    """What is asked of one queue. shape: its keys without names, as far as they are known. replies:
    what was asked ahead, for each command in order; each reply is given once."""

    def __init__(self, queue: QueueKeys, found: Mapping[str, list[str]] | None) -> None:
        self.queue = queue
        self.base = base = queue.base
        self.keys = keys = None if found is None else found.get(base, [])
        rest = [key[len(base) :].partition(":") for key in keys or ()]
        self.shape = frozenset(kind + (name if name.isdigit() else "") for kind, _, name in rest)
        self.replies: dict[Words, deque[Any]] = {}
        self.expected: list[Words] = []
        self.asked: list[Words] = []

    def template(self) -> Template:
        """What was asked, for another queue."""
        return [tuple(self._of_any(word) for word in words) for words in self.asked]

    def _of_any(self, word: Arg) -> tuple[bool, Any]:
        base: Any = self.base.encode() if isinstance(word, bytes) else self.base
        mine = isinstance(word, bytes | str) and word.startswith(base)
        return (True, word[len(base) :]) if mine else (False, word)  # type: ignore[index]

    def expect(self, template: Template) -> None:
        """The commands of a template, of this queue, are likely asked."""
        text, raw = self.base, self.base.encode()
        self.expected = [
            tuple(
                ((raw if isinstance(word, bytes) else text) + word) if mine else word
                for mine, word in words
            )
            for words in template
        ]


class AskedAhead:
    """A client of redis-py that asks ahead. Within `each` the questions that were asked of the last
    queue of the same shape go to the next one together; a question that comes gets that reply, the
    first time. Any other goes to the server as it comes, and all do behind `expire`. Only for
    questions: nothing that writes is to be sent within `each`."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self._looks: dict[int, _Look] = {}
        """Thread -> the queue that it looks at."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    @property
    def looks(self) -> bool:
        """True within `each`, in this thread."""
        return get_ident() in self._looks

    def each(
        self, queues: Iterable[QueueKeys], found: Mapping[str, list[str]] | None = None
    ) -> Iterator[QueueKeys]:
        """These queues; while its caller has one of them, that one is asked ahead. found: base ->
        the names of a queue's keys, from one scan."""
        mine, templates = get_ident(), dict[frozenset[str], Template]()
        alone = hasattr(self.client, "connection_pool")  # no cluster
        looks = [_Look(keys, found) for keys in queues]
        for number, look in enumerate(looks):
            if alone:
                if not look.expected and look.shape in templates:
                    self._ask(looks[number : number + TOGETHER], templates)
                self._looks[mine] = look
            try:
                yield look.queue
            finally:
                self._looks.pop(mine, None)
            if look.asked != look.expected and 0 < len(look.asked) <= MOST:
                templates[look.shape] = look.template()
            look.replies, look.expected, look.asked = {}, [], []  # of no more use

    def _ask(self, looks: list[_Look], templates: Mapping[frozenset[str], Template]) -> None:
        """Ask the first of these queues, and more as far as they fit into one transaction."""
        some: list[_Look] = []
        count = 0
        for look in looks:
            if template := templates.get(look.shape):
                count += len(template)
                if some and count > TOGETHER:
                    break
                look.expect(template)
                some.append(look)
        try:
            with self.client.pipeline(transaction=True) as pipe:
                for look in some:
                    for words in look.expected:
                        pipe.execute_command(*words)
                replies = iter(pipe.execute(raise_on_error=False))
        except (redis.RedisError, OSError):
            return  # the questions go one by one, and say what is wrong
        for look in some:
            for words in look.expected:
                look.replies.setdefault(words, deque()).append(next(replies))

    def expire(self) -> None:
        """Time passes: what is asked of this queue from now on is to be true then."""
        if look := self._looks.pop(get_ident(), None):
            look.replies = {}

    def keys_of(self, keys: QueueKeys, rest: str) -> list[str] | None:
        """Names of the queue's keys that match, from the scan; None: they are not known."""
        look = self._looks.get(get_ident())
        if look is None or look.keys is None or look.base != keys.base:
            return None
        base = len(look.base)
        return [key for key in look.keys if fnmatchcase(key[base:], rest)]

    def _known(self, commands: list[Words]) -> list[Any] | None:
        look = self._looks.get(get_ident())
        if look is None:
            return None
        look.asked += [words for words in commands if words[0] != "SCRIPT"]  # that is no question
        found = []
        for words in commands:
            if not (replies := look.replies.get(words)):
                return None
            found.append(replies.popleft())
        return found

    def execute_command(self, *words: Any, **options: Any) -> Any:
        """As redis-py's."""
        known = None if options else self._known([words])
        if known is None:
            return self.client.execute_command(*words, **options)
        if isinstance(known[0], Exception):
            raise known[0]
        return known[0]

    def pipeline(self, transaction: bool = True) -> _Pipeline:
        """As redis-py's."""
        return _Pipeline(self, self.client.pipeline(transaction=transaction))


class _Pipeline:
    """Commands that are asked together."""

    def __init__(self, ahead: AskedAhead, pipe: Any) -> None:
        self._ahead = ahead
        self._pipe = pipe
        self._commands: list[Words] = []

    def execute_command(self, *words: Any) -> None:
        """As redis-py's."""
        self._commands.append(words)

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """As redis-py's."""
        known = self._ahead._known(self._commands)
        if known is None:
            for words in self._commands:
                self._pipe.execute_command(*words)
            known = self._pipe.execute(raise_on_error=False)
        if raise_on_error:
            for reply in known:
                if isinstance(reply, Exception):
                    raise reply
        return known

    def __enter__(self) -> _Pipeline:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pipe.reset()
