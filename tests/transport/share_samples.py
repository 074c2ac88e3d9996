"""Samples of the calls that look at shares and at the sizes of jobs, for `command_samples`."""

from __future__ import annotations

from typing import Any

from rqueue.protocol.commands import share_notes, size_notes
from rqueue.protocol.keys import QueueKeys
from tests.transport.limit_samples import Sample

AT_5 = b"000000000000005"


def fill(client: Any, keys: QueueKeys, odd: bytes) -> None:
    """A strand with a head, and one behind it; another of an odd name; weights; sizes."""
    client.hset(keys.base + "strands", mapping={"4.acme": AT_5 + b"m7", odd: AT_5 + odd})
    client.zadd(keys.group("4.acme"), {"m8": 8})
    client.hset(keys.base + "weights", mapping={"acme": 3, "*": 2})
    client.hset(keys.base + "lined", mapping={"4": 2, "9": "?"})
    client.hset(keys.sizes, mapping={"j1": 12, odd: "?"})


def samples(keys: QueueKeys, empty: QueueKeys, odd: str) -> dict[str, list[Sample]]:
    raw = odd.encode("utf-8", "surrogateescape")
    return {
        "strand_state": [
            Sample(
                share_notes.strand_state(keys, "4.acme", b"m7"),
                share_notes.StrandState(b"m7", 5.0, 0.0, 1, 8.0, False),
            ),
            Sample(
                share_notes.strand_state(empty, "4.acme", b""),
                share_notes.StrandState(None, -1.0, None, 0, None, False),
            ),
        ],
        "strands_page": [
            Sample(
                share_notes.strands_page(keys, count=9),
                share_notes.StrandsPage(0, {"4.acme": b"m7", odd: raw}),
            ),
            Sample(share_notes.strands_page(empty, count=9), share_notes.StrandsPage(0, {})),
        ],
        "strands_of": [
            Sample(share_notes.strands_of(keys, ["4.acme", "9.x", odd]), [b"m7", b"", raw]),
            Sample(share_notes.strands_of(keys, []), []),
        ],
        "heads_there": [
            Sample(share_notes.heads_there(keys, [b"m7", b"no"]), [True, False]),
            Sample(share_notes.heads_there(keys, []), []),
        ],
        "share_turn": [
            Sample(share_notes.share_turn(keys, 9, "acme"), share_notes.ShareTurn(3, 1)),
            Sample(share_notes.share_turn(keys, 4, "b"), share_notes.ShareTurn(2, 0)),
            Sample(share_notes.share_turn(empty, 9, "acme"), share_notes.ShareTurn(1, 0)),
        ],
        "lined_state": [
            Sample(share_notes.lined_state(keys), {"4": 2, "9": -1}),
            Sample(share_notes.lined_state(empty), {}),
        ],
        "size_count": [
            Sample(size_notes.size_count(keys), 2),
            Sample(size_notes.size_count(empty), 0),
        ],
        "size_sum": [
            Sample(size_notes.size_sum(keys), size_notes.SizeSum(0, 12)),
            Sample(size_notes.size_sum(empty), size_notes.SizeSum(0, 0)),
        ],
        "size_page": [
            Sample(
                size_notes.size_page(keys, count=9),
                size_notes.SizePage(0, 0, {"j1": "12", odd: "?"}),
            ),
            Sample(size_notes.size_page(empty, count=9), size_notes.SizePage(0, 0, {})),
        ],
        "sizes_noted": [
            Sample(size_notes.sizes_noted(keys, ["j1", "no", odd]), ["12", "", "?"]),
            Sample(size_notes.sizes_noted(keys, []), []),
        ],
    }
