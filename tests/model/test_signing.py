"""Signatures: what they cover, and what does not get through."""

import base64
import hashlib
import hmac
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import ConfigError, Forged, Unsigned
from rqueue.model.envelope import unpack
from rqueue.model.job import EPOCH_MS, Header
from rqueue.model.parents import Dependant, Parents
from rqueue.model.signing import SIGNED_WITHIN_MS, Signer, key_id_of, split_signature
from rqueue.model.steps import KeptSteps
from rqueue.model.terms import NORMAL_TERMS, TAGS, Terms
from rqueue.protocol.job_packer import JobPacker
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.put_buffer import PutBuffer
from rqueue.settings import Settings
from rqueue.tasks.options import NO_OPTIONS
from rqueue.tasks.request import JobRequest

OLD = "an old secret of enough bytes"
NEW = "a new secret of enough bytes!"
BODY = b'["t",["a.b"]]'
SIGNER = Signer({"k1": OLD})


def header(**more: int) -> Header:
    return Header(**{"position": 1, "enqueued_ms": time.time_ns() // 1_000_000, **more})


def test_a_signed_body_is_verified_and_readable() -> None:
    signed = SIGNER.sign("q", "j", BODY)
    assert signed.startswith(b"Sk1.")
    assert signed.endswith(b"." + BODY)
    assert SIGNER.verify("q", "j", signed).json == BODY
    assert unpack(signed) == ("t", ["a.b"], {}, {})
    assert key_id_of(signed) == "k1"
    assert key_id_of(BODY) == ""


def test_the_mac_is_what_the_format_says() -> None:
    terms = Terms(priority=9, at_ms=5, max_deliveries=2).text
    before = time.time_ns() // 1_000_000
    signed = SIGNER.sign("q", "j", BODY, terms)
    _, mac, stamp, json = split_signature(signed)
    ms, _, said = stamp.partition(b";")
    assert before <= int(ms) + EPOCH_MS <= time.time_ns() // 1_000_000
    assert (said, json) == (b"9,@5,2,", BODY)
    digest = hmac.new(
        OLD.encode(), b"rqueue\0q\0j\0" + stamp + b"\0" + BODY, hashlib.sha256
    ).digest()
    assert mac == base64.urlsafe_b64encode(digest).rstrip(b"=")


TERMS = {
    "priority": 9,
    "delay_ms": 3,
    "at_ms": 5,
    "max_deliveries": 2,
    "max_crashes": 1,
    "ttl_ms": 900,
    "group": "a.b,c",
    "key": "k|l",
    "hold": True,
    "sort": "t61",
    "unique": "ex:ab",
    "waits": Parents(2, "nothing", "stop", ("a/b", "c.d")).text,
    "counts": True,
    "limits": ("crm=acme:5", "b:1"),
    "front": True,
    "dependants": (Dependant("mail,|", True).text, Dependant("q", False, "a.b", 3).text),
    "share": "acme,|",
}


def test_a_table_names_the_tag_of_each_field_that_is_a_policy_s() -> None:
    assert tuple(tag.field for tag in TAGS) == Terms._fields[-len(TAGS) :]
    assert len({tag.letter for tag in TAGS}) == len(TAGS)
    everything = Terms(**TERMS)
    assert Terms.parse(everything.text) == everything._replace(delay_ms=0)


@pytest.mark.parametrize("name", Terms._fields)
def test_all_that_terms_may_say_is_signed_and_read_back(name: str) -> None:
    terms = Terms(**{"at_ms": 7 if name == "hold" else 0, name: TERMS[name]})
    signed = SIGNER.sign("q", "j", BODY, terms.text)
    assert SIGNER.verify("q", "j", signed).terms == terms


def test_keys_rotate() -> None:
    between = Signer({"k1": OLD, "k2": NEW})
    after = Signer({"k2": NEW, "k1": OLD})
    for signer in (SIGNER, between, after):
        signed = signer.sign("q", "j", BODY)
        assert between.verify("q", "j", signed).json == BODY
        assert after.verify("q", "j", signed).json == BODY
    assert key_id_of(after.sign("q", "j", BODY)) == "k2"
    with pytest.raises(Forged, match="key 'k2' is not known here"):
        SIGNER.verify("q", "j", after.sign("q", "j", BODY))


def test_a_signature_holds_for_one_queue_and_job_only() -> None:
    signed = SIGNER.sign("q", "j", BODY)
    for queue, id in (("p", "j"), ("q", "i"), ("q\0j", ""), ("", "q\0j")):
        with pytest.raises(Forged):
            SIGNER.verify(queue, id, signed)
    with pytest.raises(Unsigned):
        SIGNER.verify("q", "j", BODY)
    for broken in (b"S", b"Sk1.", b"Sk1.x", b"Sk1.x." + BODY, b"S.x.1." + BODY, b"S\xff.x.1."):
        with pytest.raises(Forged):
            SIGNER.verify("q", "j", broken)


def test_a_signature_holds_in_one_namespace() -> None:
    signed = Signer({"k1": OLD}, "staging").sign("q", "j", BODY)
    with pytest.raises(Forged):
        SIGNER.verify("q", "j", signed)


def test_a_priority_may_be_any_level_that_a_queue_maps_it_to_and_no_higher_one() -> None:
    """Q-11: queues have 1 to 10 levels."""
    for priority in range(10):
        signed = SIGNER.sign("q", "j", BODY, Terms(priority=priority).text)
        for levels in range(1, 11):
            level = max(0, min(levels - 1, priority - max(0, 5 - math.ceil(levels / 2))))
            SIGNER.verify("q", "j", signed, header(level=level))
        for higher in range(priority + 1, 10):
            with pytest.raises(Forged, match="priority"):
                SIGNER.verify("q", "j", signed, header(level=higher))


@pytest.mark.parametrize(
    "terms",
    [
        Terms(),
        Terms(priority=9),
        Terms(delay_ms=5),
        Terms(at_ms=1),
        Terms(max_deliveries=3),
        Terms(max_crashes=2),
    ],
    ids=str,
)
def test_a_signature_holds_for_the_terms_of_the_job(terms: Terms) -> None:
    signed = SIGNER.sign("q", "j", BODY, terms.text)
    asked = header(
        level=terms.priority, max_deliveries=terms.max_deliveries, max_crashes=terms.max_crashes
    )
    assert SIGNER.verify("q", "j", signed, asked).terms == terms
    for changed in (
        asked._replace(level=terms.priority + 1),
        asked._replace(max_deliveries=terms.max_deliveries + 1),
        asked._replace(max_crashes=terms.max_crashes + 1),
    ):
        with pytest.raises(Forged, match="the job has"):
            SIGNER.verify("q", "j", signed, changed)


def test_the_due_time_is_signed() -> None:
    def not_before(terms: Terms) -> int:
        return SIGNER.verify("q", "j", SIGNER.sign("q", "j", BODY, terms.text)).not_before_ms(1000)

    assert not_before(Terms()) == 0
    assert not_before(Terms(delay_ms=5)) == 1005
    assert not_before(Terms(at_ms=7)) == 7
    signed = SIGNER.sign("q", "j", BODY, Terms(9, at_ms=7, max_deliveries=3).text)
    now = SIGNER.without_due("q", "j", signed)
    first, second = SIGNER.verify("q", "j", signed), SIGNER.verify("q", "j", now)
    assert second == first._replace(terms=Terms(9, max_deliveries=3))
    with pytest.raises(Forged):
        SIGNER.without_due("q", "i", signed)


@pytest.mark.parametrize("ms", [-SIGNED_WITHIN_MS - 5000, SIGNED_WITHIN_MS + 5000])
def test_a_signature_holds_for_an_enqueue_soon_after_it(ms: int) -> None:
    signed = SIGNER.sign("q", "j", BODY)
    now = header()
    for near in (0, ms // 2):
        SIGNER.verify("q", "j", signed, now._replace(enqueued_ms=now.enqueued_ms + near))
    with pytest.raises(Forged, match=r"60\d s (before|after) the job was enqueued"):
        SIGNER.verify("q", "j", signed, now._replace(enqueued_ms=now.enqueued_ms + ms))


@given(st.data())
def test_no_changed_byte_gets_through(data: st.DataObject) -> None:
    terms = data.draw(st.sampled_from([NORMAL_TERMS, Terms(1, delay_ms=3).text]))
    signed = bytearray(SIGNER.sign("q", "j", BODY, terms))
    at = data.draw(st.integers(0, len(signed) - 1))
    signed[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises((Forged, Unsigned)):
        SIGNER.verify("q", "j", bytes(signed))


@given(st.integers(0, 9), st.integers(0, 2**53), st.integers(0, 2**53), st.integers(0, 10**6))
def test_terms_survive_as_text(priority: int, delay: int, at: int, most: int) -> None:
    terms = Terms(priority, 0 if at else delay, at, most)
    assert Terms.parse(terms.text) == terms
    signed = SIGNER.sign("q", "j", BODY, terms.text)
    assert SIGNER.verify("q", "j", signed).terms == terms


@pytest.mark.parametrize("keys", [{}, {"a.b": OLD}, {"": OLD}, {"k": "short"}, {"k" * 65: OLD}])
def test_bad_keys_are_refused(keys: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        Signer(keys)
    assert "short'" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    assert OLD not in repr(SIGNER)


def test_a_put_that_waited_is_signed_when_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage longer than a signature holds does not make the puts that waited for its end
    forged ones, nor does a batch that is sent again."""

    class Handle:
        id, created, error, number = "", True, None, 0

    keys = QueueKeys("q")
    settings = Settings(signing_keys={"k1": OLD})
    box = PutBuffer(keys, JobPacker(keys, settings), batch=10, limit=10, limit_bytes=1000)
    box.add(box.item(Handle(), JobRequest("t", (1,), {}, NO_OPTIONS)))
    assert box.next_batch()
    now = time.time_ns()
    for minutes in (20, 40):
        later = now + minutes * 60 * 10**9
        monkeypatch.setattr("rqueue.model.signing.clock_ns", lambda later=later: later)
        *_, id_, envelope = box.call().args
        verified = SIGNER.verify("q", id_, envelope)
        assert verified.signed_ms == later // 10**6
        assert verified.json == b'["t",[1]]'


@pytest.mark.parametrize("tag", ["group", "key"])
def test_what_a_policy_knows_of_a_job_is_signed(tag: str) -> None:
    terms = Terms(**{tag: "a b"})  # type: ignore[arg-type]
    signed = SIGNER.sign("q", "i", b'["t"]', terms.text)
    head = Header(1, SIGNER.verify("q", "i", signed).signed_ms)
    assert SIGNER.verify("q", "i", signed, head._replace(**{tag: "a b"})).terms == terms
    with pytest.raises(Forged, match=f"it is for {tag} 'a b', the job has 'c'"):
        SIGNER.verify("q", "i", signed, head._replace(**{tag: "c"}))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
NAMED = st.dictionaries(st.text(), JSON, min_size=1, max_size=3)


@given(NAMED, st.dictionaries(st.text(), JSON, max_size=2))
def test_kept_steps_are_signed_for_one_job(results: dict, positions: dict) -> None:
    text = KeptSteps(results, positions).text()
    signed = SIGNER.sign_steps("q", "j", text)
    value = f"1,2|n{signed};[]".encode()
    kept = KeptSteps.of(value)
    assert (kept.results, kept.positions, kept.key_id) == (results, positions, "k1")
    SIGNER.verify_steps("q", "j", value)
    Signer({"k2": NEW, "k1": OLD}).verify_steps("q", "j", value)
    for queue, id in (("q", "other"), ("other", "j")):
        with pytest.raises(Forged, match="kept steps"):
            SIGNER.verify_steps(queue, id, value)
    with pytest.raises(Forged, match="not known here"):
        Signer({"k2": NEW}).verify_steps("q", "j", value)
    forged = KeptSteps(results | {"pay": 9999}, positions).text()
    for text_ in (forged, KeptSteps(results, {"rows": 7}).text()):
        with pytest.raises(Forged):
            SIGNER.verify_steps("q", "j", f"1,2|n{text_};[]".encode())


def test_nothing_kept_needs_no_signature() -> None:
    assert SIGNER.sign_steps("q", "j", "") == ""
    SIGNER.verify_steps("q", "j", b"1,2|gG;[]")
