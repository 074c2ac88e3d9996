"""Selectors: boolean expressions over the labels of jobs, as consumers give them (Q-22).

The grammar is that of JMS selectors without arithmetic: `gpu and version >= 42`, `region in ('eu',
'us')`, `size between 1 and 10`, `name like 'a%'`, `zone is null`, `not`, brackets. It is so small
that a parser of its own is shorter than the grammar file of a parser generator would be, and can
say at which column an expression is wrong.

Three-valued: what speaks of a label that a job does not have, or compares values of two types, is
neither true nor false, and what is not true does not match. Scripts evaluate the `postfix` form,
once for each set of labels; `matches` says the same, in Python.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rqueue.errors import InvalidSelector
from rqueue.model.names import group_of, group_text

__all__ = ["Selector", "class_shown", "class_text", "label_problem", "selector"]

LONGEST = 1000
"""Characters of an expression."""

DEEPEST = 50
"""Brackets and `not`s within each other."""

MOST_WORDS = 300
"""Words of the postfix form: a script's work for each set of labels."""

CLASS_BYTES = 384
"""Bytes of a set of labels as it stands in the header of its jobs."""

WHOLE = 2**53
"""Whole numbers up to here are the same in Lua."""

Value = str | bool | int | float
Labels = Mapping[str, Value]

_WORD = re.compile(
    r"""\s*(?:
      (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+")
    | (?P<name>[^\W\d][\w.]*)
    | (?P<sign><>|!=|<=|>=|==|[=<>(),])
    )""",
    re.VERBOSE,
)
_KEYWORDS = {
    *("and", "or", "not", "in", "is", "null", "between", "like", "escape", "true", "false"),
}
_SIGNS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

Node = tuple[Any, ...]
"""("label", name), ("value", value), (sign, one, other), ("&" or "|", one, other), ("!", one),
("?", label), ("~", label, pattern)."""


@dataclass(frozen=True, slots=True)
class Selector:
    """An expression that was read. `text`: as it was written; `postfix`: as scripts evaluate it;
    equal expressions, written in other ways, have the same one."""

    text: str
    postfix: str
    tree: Node = field(repr=False, compare=False)

    def matches(self, labels: Labels) -> bool:
        """Whether a job with these labels is selected."""
        return _truth(_evaluate(self.tree, labels)) is True


def selector(text: str) -> Selector:
    """Read an expression. Raises InvalidSelector, which names the column."""
    if not isinstance(text, str):
        raise InvalidSelector(repr(text), 1, "an expression is text")
    if len(text) > LONGEST:
        raise InvalidSelector(text, LONGEST, f"it is longer than {LONGEST} characters")
    tree = _Parser(text).whole()
    words = _postfix(tree)
    if len(words) > MOST_WORDS:
        raise InvalidSelector(text, 1, f"it has {len(words)} parts; at most {MOST_WORDS} fit")
    return Selector(text, " ".join(words), tree)


def label_problem(labels: Labels) -> str:
    """Why a job with these labels cannot be of a class; "" where it can."""
    for name, value in labels.items():
        if type(value) is int and abs(value) > WHOLE:
            return f"{name!r} is {value}: whole numbers up to 2^53 can be selected by"
    size = len(class_text(labels))
    if size > CLASS_BYTES:
        return f"they have {size} bytes as a set; at most {CLASS_BYTES} fit"
    return ""


def class_text(labels: Labels) -> str:
    """A set of labels as it stands in terms, headers and keys: letters, digits and `_ - % : +`.
    Equal sets have equal texts."""
    if not labels:
        return ""
    return "+".join(sorted(f"{group_text(name)}:{_word(labels[name])}" for name in labels))


def class_shown(text: str) -> str:
    """What `class_text` made, for people: "gpu=true, region='eu'"; "?" of jobs whose labels are not
    known to their queue; "!" of jobs that all consumers have refused."""
    if text in ("?", "!"):
        return "labels not known" if text == "?" else "a refusal of all consumers"
    shown = []
    for part in sorted(text.split("+")) if text else ():
        name, _, word = part.partition(":")
        value = {"t": "true", "f": "false"}.get(word) or word[1:]
        value = f"'{group_of(value)}'" if word[:1] == "s" else value
        shown.append(f"{group_of(name)}={value}")
    return ", ".join(shown) or "no labels"


def _word(value: Value) -> str:
    if value is True or value is False:
        return "t" if value else "f"
    if isinstance(value, str):
        return "s" + group_text(value)
    return "n" + (f"{value:.17g}" if isinstance(value, float) else f"{value}")


class _Parser:
    """Recursive descent; each method reads one rule, and leaves the place behind it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.deep = 0
        self.at = 0
        self.column = 1
        self.kind = ""
        self.word = ""
        self.next()

    def fault(self, problem: str) -> InvalidSelector:
        found = f"'{self.word}'" if self.kind else "the end"
        return InvalidSelector(self.text, self.column, f"{problem}, not {found}")

    def next(self) -> None:
        """On to the next word."""
        rest = self.text[self.at :]
        self.column = self.at + len(rest) - len(rest.lstrip()) + 1
        if not rest.strip():
            self.kind, self.word = "", ""
            return
        found = _WORD.match(self.text, self.at)
        if found is None:
            sign = self.text[self.column - 1]
            problem = f"{sign!r} cannot stand here"
            if sign in "'\"":
                problem = f"a {sign} that is not closed"
            elif sign == "-":
                problem = "a name with '-' stands in double quotes, and there is no arithmetic"
            raise InvalidSelector(self.text, self.column, problem)
        self.kind, self.word = found.lastgroup or "", found[found.lastgroup or 0]
        if self.kind == "name" and self.word.lower() in _KEYWORDS:
            self.kind, self.word = "keyword", self.word.lower()
        self.at = found.end()

    def is_(self, *words: str) -> bool:
        return self.kind in ("keyword", "sign") and self.word in words

    def take(self, *words: str) -> bool:
        if not self.is_(*words):
            return False
        self.next()
        return True

    def need(self, word: str) -> None:
        if not self.take(word):
            raise self.fault(f"'{word}' is expected")

    def whole(self) -> Node:
        if not self.kind:
            raise InvalidSelector(self.text, 1, "it is empty")
        tree = self.either()
        if self.kind:
            raise self.fault("'and', 'or' or the end is expected")
        return tree

    def either(self) -> Node:
        tree = self.both()
        while self.take("or"):
            tree = ("|", tree, self.both())
        return tree

    def both(self) -> Node:
        tree = self.negated()
        while self.take("and"):
            tree = ("&", tree, self.negated())
        return tree

    def negated(self) -> Node:
        if not self.is_("not", "("):
            return self.condition()
        self.deep += 1
        if self.deep > DEEPEST:
            raise InvalidSelector(self.text, self.column, f"more than {DEEPEST} brackets or 'not'")
        if self.take("not"):
            tree: Node = ("!", self.negated())
        else:
            self.need("(")
            tree = self.either()
            self.need(")")
        self.deep -= 1
        return tree

    def condition(self) -> Node:
        column, word = self.column, self.word
        one = self.operand("a label or a value is expected")
        if self.kind == "sign" and self.word in _SIGNS:
            sign = _SIGNS[self.word]
            self.next()
            return self.compared(sign, one, self.operand("a label or a value is expected"))
        negated = self.take("not")
        if self.is_("in", "between", "like") and one[0] != "label":
            raise InvalidSelector(self.text, column, f"a label is expected, not '{word}'")
        if self.take("in"):
            tree = self.among(one)
        elif self.take("between"):
            tree = self.compared(">=", one, self.operand("a number is expected"))
            self.need("and")
            tree = ("&", tree, self.compared("<=", one, self.operand("a number is expected")))
        elif self.take("like"):
            tree = ("~", one, self.pattern())
        elif negated:
            raise self.fault("'in', 'between' or 'like' is expected")
        elif self.is_("is"):
            if one[0] != "label":
                raise InvalidSelector(self.text, column, f"a label is expected, not '{word}'")
            self.next()
            negated = self.take("not")
            self.need("null")
            tree = ("?", one)
        else:
            if one[0] == "value" and not isinstance(one[1], bool):
                raise self.fault("a comparison is expected")
            return one
        return ("!", tree) if negated else tree

    def compared(self, sign: str, one: Node, other: Node) -> Node:
        if sign not in ("=", "<>"):
            for side in (one, other):
                if side[0] == "value" and isinstance(side[1], str | bool):
                    shown = _shown(side[1])
                    problem = f"{shown} is compared by = and <> only: '{sign}' is for numbers"
                    raise InvalidSelector(self.text, self.column, problem)
        return (sign, one, other)

    def among(self, one: Node) -> Node:
        self.need("(")
        tree: Node = ()
        while True:
            other = self.operand("a value is expected", value=True)
            tree = ("|", tree, ("=", one, other)) if tree else ("=", one, other)
            if not self.take(","):
                break
        if not self.is_(")"):
            raise self.fault("',' or ')' is expected")
        self.next()
        return tree

    def pattern(self) -> tuple[str, ...]:
        """Characters; "*" stands for any number of them, "." for one, which are no characters of
        an escaped text."""
        if self.kind != "text":
            raise self.fault("a pattern in single quotes is expected")
        text = self.word[1:-1].replace("''", "'")
        self.next()
        escape = ""
        if self.take("escape"):
            escape = self.word[1:-1] if self.kind == "text" else ""
            if len(escape) != 1:
                raise self.fault("one character in single quotes is expected")
            self.next()
        parts, plain = [], False
        for sign in text:
            if sign == escape and not plain:
                plain = True
                continue
            wild = "" if plain else {"%": "*", "_": "."}.get(sign, "")
            parts.append(wild or group_text(sign))
            plain = False
        return tuple(parts)

    def operand(self, problem: str, *, value: bool = False) -> Node:
        kind, word, column = self.kind, self.word, self.column
        if kind == "number":
            number = float(word) if re.search(r"[.eE]", word) else int(word)
            if abs(number) > WHOLE:
                raise InvalidSelector(self.text, column, "a number is at most 2^53")
            node: Node = ("value", number)
        elif kind == "text":
            node = ("value", word[1:-1].replace("''", "'"))
        elif self.is_("true", "false"):
            node = ("value", word == "true")
        elif kind == "name" and not value:
            node = ("label", word)
        elif kind == "quoted" and not value:
            node = ("label", word[1:-1].replace('""', '"'))
        else:
            raise self.fault(problem)
        for text in node[1:]:
            if isinstance(text, str) and not text.isprintable():
                raise InvalidSelector(self.text, column, "a control character")
        self.next()
        return node


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"'{value}'"


def _postfix(tree: Node) -> list[str]:
    kind = tree[0]
    if kind == "label":
        return ["l" + group_text(tree[1])]
    if kind == "value":
        return [_word(tree[1])]
    if kind == "~":
        return [*_postfix(tree[1]), "~" + "".join(tree[2])]
    return [word for part in tree[1:] for word in _postfix(part)] + [kind]


def _evaluate(tree: Node, labels: Labels) -> Value | None:
    """Its value; None: unknown."""
    kind = tree[0]
    if kind == "label":
        return labels.get(tree[1])
    if kind == "value":
        value: Value = tree[1]
        return value
    if kind == "?":
        return _evaluate(tree[1], labels) is None
    if kind == "~":
        text = _evaluate(tree[1], labels)
        return _like(text, tree[2]) if isinstance(text, str) else None
    if kind in _COMPARE:
        return _compared(kind, _evaluate(tree[1], labels), _evaluate(tree[2], labels))
    one = _truth(_evaluate(tree[1], labels))
    if kind == "!":
        return None if one is None else not one
    other = _truth(_evaluate(tree[2], labels))
    decides = kind == "|"
    if one is decides or other is decides:
        return decides
    return None if one is None or other is None else not decides


def _truth(value: Value | None) -> bool | None:
    return value if isinstance(value, bool) else None


def _compared(sign: str, one: Value | None, other: Value | None) -> bool | None:
    if one is None or other is None:
        return None
    numbers = type(one) in (int, float) and type(other) in (int, float)
    if not numbers and (type(one) is not type(other) or sign not in ("=", "<>")):
        return None
    return _COMPARE[sign](one, other)


def _like(text: str, pattern: tuple[str, ...]) -> bool:
    """True if a text fits a pattern.

    Each piece between two wildcards takes the first place where it fits: the time grows with the
    text, not with the number of wildcards.
    """
    pieces: list[list[str]] = [[]]
    for part in pattern:
        if part == "*":
            pieces.append([])
        else:
            pieces[-1] += "." if part == "." else map(re.escape, group_of(part))
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return len(text) == len(first) and _fits(first).fullmatch(text) is not None
    at, end = len(first), len(text) - len(last)
    if at > end or not _fits(first).match(text) or not _fits(last).fullmatch(text, end):
        return False
    for piece in pieces[1:-1]:
        found = _fits(piece).search(text, at, end)
        if found is None:
            return False
        at = found.end()
    return True


def _fits(piece: list[str]) -> re.Pattern[str]:
    return re.compile("".join(piece), re.DOTALL)
