"""A script's text made of its file, its includes and the policies of one kind of queue.

Lines that are replaced (see `lua/README.md`): `@include`, `@each` and `@one`, which ask the
policies, `@hooks`, `@if` and `@fast`, which keep lines only where a policy answers, `@stamp`, and
`@step`, which makes a function of a whole script.
What no policy of the kind answers is not there: a plain queue's text has no line about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from rqueue.protocol.script_header import HOOKS, PolicyHeader, fault
from rqueue.protocol.script_lines import Line, runs_of
from rqueue.protocol.script_parts import Scope, gathered

_FORMS = {
    "include": '--- @include "noun/name"',
    "each": "--- @each [answer = ]hook(arguments)",
    "one": "--- @one hook",
    "hooks": "--- @hooks hook",
    "if": "--- @if hook",
    "fast": "--- @fast",
    "end": "--- @end",
    "stamp": "--- @stamp",
    "step": '--- @step "script"',
    "joins": "--- @joins",
}

_ASKING = {"each": 2, "one": 1, "hooks": 1}
"""Directives that ask a hook, and where in what they say its name stands."""

Stack = tuple[tuple[str, int], ...]


class _Block(NamedTuple):
    """What indented lines of a file belong to: how far they are indented, the files that are known
    there, and where their functions are."""

    within: int
    known: set[str]
    scope: Scope


class Expansion:
    """One script for one kind of queue: `lines`, and for each of them where it came from.

    read: a file's text by its path below the folder of sources, None where there is none.
    """

    def __init__(
        self,
        read: Callable[[str], str | None],
        policies: Sequence[PolicyHeader],
        stamp: str,
        first_line: str,
        file: str,
        *,
        plain: bool,
    ) -> None:
        self._read = read
        self._policies = policies
        self._stamp = stamp
        self._plain = plain
        self._scopes: list[Scope] = []
        self._fast = all(policy.fast for policy in policies)
        self._stamps: list[int] = []
        self.lines = [first_line]
        self.origins = [(file, 1)]
        self.asked: set[str] = set()
        """Hooks that it asks, whether a policy of this kind answers or not."""
        self.composed = False
        """Whether anything in it depends on the kind of the queue."""

    def expand(self, text: str, file: str) -> None:
        """Expand the file of the script itself, and all that it asks for."""
        scope = self._open(PurePosixPath(file).stem)
        self._expand(text, file, (), set(), scope)
        self._close(scope)
        stamp = repr(self._stamp) if self.composed else "false"
        for at in self._stamps:
            within = self.lines[at].partition("-")[0]
            self.lines[at] = f"{within}local STAMP = {stamp}"
        if self.composed and not self._plain:
            self.lines, self.origins = gathered(self.lines, self.origins, self._scopes)
        self._name_arguments()

    def _name_arguments(self) -> None:
        """Make a local variable of ARGV, for a script that has any: each look at a global one is a
        look into a table, and what comes alone is half a dozen of those looks."""
        body = next((at for at, line in enumerate(self.lines) if not line.startswith("--")), None)
        if body is not None and "ARGV[" in "\n".join(self.lines[body:]):
            self.lines.insert(body, "local ARGV = ARGV")
            self.origins.insert(body, self.origins[body])

    def _answering(self, hook: str, file: str, number: int, stack: Stack) -> list[PolicyHeader]:
        if hook not in HOOKS:
            raise fault(file, number, f"no hook {hook!r}; hooks: {', '.join(HOOKS)}", stack)
        self.composed = True
        self.asked.add(hook)
        return [policy for policy in self._policies if hook in policy.hooks]

    def _put(self, line: str, file: str, number: int) -> None:
        self.lines.append(line)
        self.origins.append((file, number))

    def _open(self, script: str) -> Scope:
        scope = Scope(script, len(self._scopes), len(self.lines))
        self._scopes.append(scope)
        return scope

    def _close(self, scope: Scope) -> None:
        scope.last = len(self.lines) - 1

    def _expand(self, text: str, file: str, stack: Stack, done: set[str], scope: Scope) -> None:
        # Depth first and in place: what an include needs stands before it, whichever file asked
        # first. What indented ones define is known to the rest of their block, and not outside:
        # the indentation says where that ends.
        blocks: list[_Block] = []
        kept: list[bool] = []  # of the conditions that this line stands in
        opened: list[int] = []
        shared = "/" in file.removeprefix("lua/")
        for line in self._each(text, file, stack, scope if shared else None, kept, blocks):
            number, written, within, word, said, code, function = line
            if word == "end":
                if not kept:
                    raise fault(file, number, "@end of nothing", stack)
                kept.pop()
                opened.pop()
                continue
            if word == "if":
                kept.append(bool(self._answering(said[0], file, number, stack)))
                opened.append(number)
                continue
            if word == "fast":
                self.composed = True
                kept.append(self._fast)
                opened.append(number)
                continue
            if not all(kept):
                # the hook is asked here, also where no policy of this kind answers
                if word in _ASKING:
                    self.asked.add(said[_ASKING[word]])
                continue
            while blocks and blocks[-1].within > within:
                self._close(blocks.pop().scope)
            if not word:
                # Redis need not keep what only people read; a script's own header stays
                if code or not stack:
                    if shared and function:
                        scope.functions[len(self.lines)] = function
                    self._put(written, file, number)
                continue
            if word == "stamp":
                self._stamps.append(len(self.lines))
                self._put(written, file, number)
                continue
            if word == "step":
                self._put_step(said[0], file, number, stack, done)
                continue
            targets, made = self._replacement(line, file, stack)
            if within and (not blocks or blocks[-1].within < within):
                known = blocks[-1].known if blocks else done
                blocks.append(_Block(within, {*known}, self._open(scope.script)))
            known, its = blocks[-1][1:] if within else (done, scope)
            for target in targets:
                self._insert(target, file, number, stack, known, its)
            for one in made:
                self._put(one, file, number)
        for block in blocks:
            self._close(block.scope)
        if kept:
            raise fault(file, opened[-1], "this has no @end", stack)

    def _each(
        self,
        text: str,
        file: str,
        stack: Stack,
        scope: Scope | None,
        kept: Sequence[bool],
        blocks: Sequence[_Block],
    ) -> Iterator[Line]:
        """The lines of a file that are to be looked at: runs of others are put down, or passed over
        where a condition does not keep them. scope: where their functions are noted, if they are.
        """
        for one in runs_of(text, file):
            if isinstance(one, Line):
                yield one
            elif not all(kept):
                continue
            elif blocks and one.within < blocks[-1].within:  # a block ends in it
                yield from one.lines
            elif not stack:  # its comments stay
                self.lines += one.texts
                self.origins += one.origins
            else:
                if scope is not None and one.functions:
                    at = len(self.lines)
                    scope.functions |= {at + line: name for line, name in one.functions.items()}
                self.lines += one.code
                self.origins += one.code_origins

    def _replacement(self, line: Line, file: str, stack: Stack) -> tuple[list[str], list[str]]:
        """The files to be included for a directive, and its own lines."""
        number, word, said = line.number, line.word, line.said
        if word == "include":
            return [f"include/{said[1]}.lua"], []
        if word == "joins":
            self.composed = True
            words = [its.name for its in self._policies if its.structure == "none"]
            table = ", ".join(f"['{its}'] = true" for its in words)
            return [], [f"{said[0]}local JOINS = {{ {table} }}"]
        if word == "hooks":
            answering = self._answering(said[1], file, number, stack)
            return [self._home(policy, said[1]) for policy in answering], []
        if word == "one":
            within, hook = said
            answering = self._answering(hook, file, number, stack)
            if len(answering) != 1:
                names = ", ".join(policy.name for policy in answering) or "none"
                raise fault(file, number, f"one policy of a kind answers {hook}: {names}", stack)
            name = f"{answering[0].name}_{hook}"
            return [self._home(answering[0], hook)], [f"{within}local {hook} = {name}"]
        if word == "each":
            within, answer, hook, arguments = said
            answering = self._answering(hook, file, number, stack)
            # an answer that is among the arguments goes through all of them; else the first counts
            chain = answer and answer in [part.strip() for part in arguments.split(",")]
            made = []
            for policy in answering:
                call = f"{policy.name}_{hook}({arguments})"
                if chain:
                    call = f"{answer} = {call}"
                elif answer:
                    call = f"{answer} = {answer} or {call}"
                made.append(within + call)
            return [self._home(policy, hook) for policy in answering], made
        wrong = re.sub(r"\s*--+\s*@(\w+).*", r"\1", line.text)
        raise fault(file, number, f"malformed {wrong}; write: {_FORMS[wrong]}", stack)

    def _put_step(self, name: str, file: str, number: int, stack: Stack, done: set[str]) -> None:
        """A whole script as a function of its keys and arguments."""
        path = f"lua/{name}.lua"
        text = self._read(f"{name}.lua")
        if text is None or path in [above for above, _ in stack] + [file]:
            raise fault(file, number, f'no other script "{name}"', stack)
        self._put(f"local function {name}_step(KEYS, ARGV)", file, number)
        scope = self._open(name)
        self._expand(text, path, (*stack, (file, number)), set(done), scope)
        self._close(scope)
        self._put("end", file, number)

    def _home(self, policy: PolicyHeader, hook: str) -> str:
        """Where a policy's hook stands: one that calls what asks the policies has its own file."""
        own = f"policies/{policy.name}/{hook}.lua"
        return own if self._read(own) is not None else f"policies/{policy.name}.lua"

    def _insert(
        self,
        path: str,
        file: str,
        number: int,
        stack: Stack,
        known: set[str],
        scope: Scope,
    ) -> None:
        target = f"lua/{path}"
        if target in known:
            return
        trail = [above for above, _ in stack] + [file]
        if target in trail:
            circle = " -> ".join([*trail[trail.index(target) :], target])
            raise fault(file, number, f"circular include: {circle}", stack)
        included = self._read(path)
        if included is None:
            name = path.removeprefix("include/").removesuffix(".lua")
            raise fault(file, number, f'no include "{name}": {target} is not there', stack)
        self._expand(included, target, (*stack, (file, number)), known, scope)
        known.add(target)
