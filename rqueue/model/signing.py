"""Signatures: who may write to Redis can neither alter a signed job nor have it run twice or early.

A signed envelope is `S<key id>.<mac>.<stamp>.<json>`. The stamp is `<signed>`, or for a job of
unusual terms `<signed>;<terms>`: when it was signed, in ms since `EPOCH_MS` by the signer's clock,
and the terms it was enqueued with (priority, due time, limits; see `rqueue.model.terms`). The mac
is HMAC-SHA256, as unpadded base64url, over namespace NUL queue NUL job id NUL stamp NUL json.

So the signature holds for one namespace, one queue, one id, one due time, one priority, and for an
enqueue that takes place within `SIGNED_WITHIN_MS` of the signing. That is no longer than an id is
remembered after its job ended, hence an envelope that was kept cannot be enqueued again: at
first its id is known, afterwards the signature is too old.

Steps that a worker keeps with a signed job are signed too, with the word `steps` in the place of
the stamp.
"""

from __future__ import annotations

import hmac
import re
from binascii import b2a_base64
from collections.abc import Callable, Mapping
from time import time_ns
from typing import NamedTuple

from orjson import dumps

from rqueue.errors import ConfigError, Forged, Undecodable, Unsigned
from rqueue.model.job import EPOCH_MS, Header
from rqueue.model.parents import as_signed
from rqueue.model.sort_keys import sort_key_of, upright
from rqueue.model.steps import KeptSteps
from rqueue.model.terms import NORMAL_TERMS, TAGS, Terms

__all__ = ["SIGNED_WITHIN_MS", "Signature", "Signer", "Verified", "key_id_of", "split_signature"]

SIGNED_WITHIN_MS = 600_000
"""How far apart signing and enqueueing may be, the clocks' difference included: ten minutes, which
is what a queue remembers ended ids for unless it is configured otherwise (`keep`)."""

clock_ns: Callable[[], int] = time_ns
"""The clock of who signs, in ns since the epoch: this host's, or that of a test whose queues are in
memory, where time stands still and is moved."""

_STEPS = b"steps"
"""Stands in the place of the stamp, which begins with a digit, where kept steps are signed."""

_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TAG = rb"\|(?:%b)" % "|".join(tag.letter + tag.what.value for tag in TAGS).encode()
_STAMP = re.compile(rb"(-?\d{1,15})(?:;([0-9,+@:~]{1,100}(?:%b){0,120},))?" % _TAG)
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_MIN_SECRET = 16


def _levels_of(priority: int) -> frozenset[int]:
    """The levels that a JMS priority has in queues of 1 to 10 levels (Q-11), none above its own."""
    return frozenset(max(0, min(n - 1, priority - max(0, 5 - (n + 1) // 2))) for n in range(1, 11))


_LEVELS = tuple(map(_levels_of, range(10)))


class Signature(NamedTuple):
    """The parts of a signed envelope, nothing of it verified."""

    key_id: str
    mac: bytes
    stamp: bytes
    json: bytes


class Verified(NamedTuple):
    """What a signature vouches for: the envelope's JSON, when it was signed (ms since the epoch, by
    the signer's clock), and on which terms the job was to be enqueued."""

    json: bytes
    signed_ms: int
    terms: Terms

    def not_before_ms(self, enqueued_ms: int) -> int:
        """Before when the job must not run, for a job that was accepted at `enqueued_ms`; 0 = no
        such time. Both in ms since the epoch."""
        return self.terms.at_ms or (self.terms.delay_ms and enqueued_ms + self.terms.delay_ms)


def split_signature(body: bytes) -> Signature:
    """The parts of a signed envelope. Raises Undecodable."""
    parts = body.split(b".", 3)
    if body[:1] != b"S" or len(parts) != 4:
        raise Undecodable("not a signed envelope", body)
    # A key id that is not ASCII is nobody's; shown as well as can be.
    return Signature(parts[0][1:].decode("ascii", "backslashreplace"), *parts[1:])


def key_id_of(body: bytes) -> str:
    """The id of the key that a body says it was signed with; "" when unsigned. Not verified."""
    return split_signature(body).key_id if body[:1] == b"S" else ""


class Signer:
    """Signs with the first of its keys, accepts any of them: keys can be rotated without a pause.

    To rotate: add the new key as the last one everywhere, then make it the first, then drop the old
    one when no job signed with it is left.

    `keys` maps key ids (letters, digits, `_`, `-`) to secrets of at least 16 bytes, in order.
    `namespace`: of the queues. Raises ConfigError.
    """

    __slots__ = ("_first", "_keys", "_namespace", "_prefix")

    def __init__(self, keys: Mapping[str, str | bytes], namespace: str = "rqueue") -> None:
        self._namespace = namespace
        if not keys:
            raise ConfigError("signing keys", "at least one is needed")
        self._keys: dict[str, bytes] = {}
        for key_id, secret in keys.items():
            if not _KEY_ID.fullmatch(key_id):
                raise ConfigError(
                    "signing keys", f"{key_id!r} is no key id: 1 to 64 letters, digits, '_' or '-'"
                )
            raw = secret.encode() if isinstance(secret, str) else bytes(secret)
            if len(raw) < _MIN_SECRET:
                raise ConfigError(
                    "signing keys",
                    f"the secret of '{key_id}' is shorter than {_MIN_SECRET} bytes",
                )
            self._keys[key_id] = raw
        first = next(iter(self._keys))
        self._first = self._keys[first]
        self._prefix = f"S{first}.".encode()

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of the keys, the signing one first."""
        return tuple(self._keys)

    def __repr__(self) -> str:
        return f"<Signer with keys {', '.join(self._keys)}>"

    def sign(
        self, queue: str, id: str, body: bytes, terms: str = NORMAL_TERMS, age_ms: int = 0
    ) -> bytes:
        """`body` (unsigned JSON) with the signature that ties it to this queue, job id and terms,
        and to now, or to the time `age_ms` ago at which it was enqueued."""
        return self._sign(queue, id, body, terms, clock_ns() // 1_000_000 - age_ms)

    def sign_for(self, queue: str, id: str, body: bytes, terms: str, at_ms: int) -> bytes:
        """The same for a job that will be enqueued later by itself, and then counts as enqueued at
        this instant: that of a tick."""
        return self._sign(queue, id, body, terms, at_ms)

    def _sign(self, queue: str, id: str, body: bytes, terms: str, signed_ms: int) -> bytes:
        stamp = b"%d" % (signed_ms - EPOCH_MS)
        if terms != NORMAL_TERMS:
            stamp = b"%b;%b" % (stamp, terms.encode())
        mac = self._mac(self._first, queue, id, stamp, body)
        return b"%b%b.%b.%b" % (self._prefix, mac, stamp, body)

    def without_due(self, queue: str, id: str, body: bytes) -> bytes:
        """The same job signed for any time: an operator who has the keys lets it run now. When it
        was signed stays as it was. Raises Unsigned or Forged."""
        verified = self.verify(queue, id, body)
        terms = verified.terms._replace(delay_ms=0, at_ms=0)
        return self._sign(queue, id, verified.json, terms.text, verified.signed_ms)

    def with_priority(self, queue: str, id: str, body: bytes, priority: int) -> bytes:
        """The same job signed for another priority. When it was signed stays as it was. Raises
        Unsigned or Forged."""
        verified = self.verify(queue, id, body)
        terms = verified.terms._replace(priority=priority)
        return self._sign(queue, id, verified.json, terms.text, verified.signed_ms)

    def verify(self, queue: str, id: str, body: bytes, header: Header | None = None) -> Verified:
        """What a signed body vouches for.

        `header`: what the queue says of the job; its priority, limits and the time of its enqueue
        must then be those that were signed. Raises Unsigned or Forged.
        """
        if body[:1] != b"S":
            raise Unsigned(id)
        try:
            key_id, mac, stamp, json = split_signature(body)
        except Undecodable:
            raise Forged(id, "it is cut short") from None
        secret = self._keys.get(key_id)
        if secret is None:
            raise Forged(id, f"key '{key_id}' is not known here", key_id)
        if not hmac.compare_digest(mac, self._mac(secret, queue, id, stamp, json)):
            raise Forged(id, f"not made with key '{key_id}' for this job and queue", key_id)
        match = _STAMP.fullmatch(stamp)
        if match is None:
            raise Forged(id, "it does not say when it was made", key_id)
        terms = Terms.parse((match[2] or NORMAL_TERMS.encode()).decode())
        verified = Verified(json, int(match[1]) + EPOCH_MS, terms)
        if header is not None and (problem := _misfit(verified, header)):
            raise Forged(id, problem, key_id)
        return verified

    def sign_steps(self, queue: str, id: str, text: str) -> str:
        """The text of a job's kept steps (`KeptSteps.text`) with a signature that ties them to this
        queue and job; "" stays as it is."""
        if not text:
            return text
        plain = KeptSteps.json_of(text)
        mac = self._mac(self._first, queue, id, _STEPS, plain).decode()
        return KeptSteps.text_of(b"%b,%b]" % (plain[:-1], dumps([self.key_ids[0], mac])[1:-1]))

    def verify_steps(self, queue: str, id: str, value: bytes) -> None:
        """Check the signature of the steps kept in a stored job. Raises Forged."""
        kept = KeptSteps.of(value)
        if not kept:
            return
        secret = self._keys.get(kept.key_id)
        if secret is None:
            raise Forged(id, f"its kept steps: key '{kept.key_id}' is not known here", kept.key_id)
        mac = self._mac(secret, queue, id, _STEPS, KeptSteps.json_of(kept.text()))
        if not hmac.compare_digest(mac, kept.mac.encode()):
            raise Forged(id, "its kept steps were not kept by a worker with our keys", kept.key_id)

    def _mac(self, secret: bytes, queue: str, id: str, stamp: bytes, json: bytes) -> bytes:
        # Unambiguous although an id may hold NULs: names of namespaces and queues, a stamp and JSON
        # hold none.
        place = f"{self._namespace}\0{queue}\0{id}\0".encode()
        digest = hmac.digest(secret, b"%b%b\0%b" % (place, stamp, json), "sha256")
        text = b2a_base64(digest, newline=False).translate(_URL_SAFE)
        return text[:-1]  # 32 bytes: one "=" at the end


def _misfit(verified: Verified, header: Header) -> str:
    """In what a job differs from what was signed; "" = in nothing."""
    terms = verified.terms
    if not 0 <= terms.priority < 10 or header.level not in _LEVELS[terms.priority]:
        return f"it is for priority {terms.priority}, the job has {header.level}"
    if header.max_deliveries != terms.max_deliveries:
        return f"it is for {terms.max_deliveries} attempts, the job has {header.max_deliveries}"
    if header.max_crashes != terms.max_crashes:
        return f"it is for {terms.max_crashes} crashes, the job has {header.max_crashes}"
    if header.group != terms.group:
        return f"it is for group {terms.group!r}, the job has {header.group!r}"
    if header.key != terms.key:
        return f"it is for key {terms.key!r}, the job has {header.key!r}"
    if upright(header.sort) != terms.sort:
        its, has = sort_key_of(terms.sort), sort_key_of(header.sort)
        return f"it is for sort key {its!r}, the job has {has!r}"
    if header.unique != terms.unique:
        return f"it is unique as {terms.unique!r}, the job as {header.unique!r}"
    if (as_signed(header.waits), header.counts) != (terms.waits, terms.counts):
        return f"it waits for {terms.waits!r}, the job for {header.waits!r}"
    if header.limits != terms.limits:
        return f"it is for the limits {terms.limits}, the job has {header.limits}"
    if header.share != terms.share:
        return f"it is for share {terms.share!r}, the job has {header.share!r}"
    apart = header.enqueued_ms - verified.signed_ms
    if abs(apart) > SIGNED_WITHIN_MS:
        when = "before" if apart > 0 else "after"
        return (
            f"it was made {abs(apart) / 1000:.0f} s {when} the job was enqueued, and holds for "
            f"{SIGNED_WITHIN_MS // 1000} s: enqueued again from a copy, or is a clock wrong?"
        )
    return ""
