"""Which owner a key belongs to: the same in every client, one by one and many at once."""

import random

import pytest

from rqueue.model.rendezvous import KEYS_KNOWN, KeyOwners, hash_of, score

KEYS = [*(f"customer-{n}" for n in range(500)), "", "é", "x" * 600]


def owners(weights: dict[int, int]) -> KeyOwners:
    """Owners with so many parts each."""
    return KeyOwners(
        (hash_of(f"{owner} {part}"), owner)
        for owner, weight in weights.items()
        for part in range(weight)
    )


def highest(weights: dict[int, int], key: str) -> int:
    """The owner of a key, as it is defined: of the part that scores highest."""
    parts = [(owner, part) for owner, weight in weights.items() for part in range(weight)]
    return max(parts, key=lambda its: score(hash_of(key), hash_of(f"{its[0]} {its[1]}")))[0]


def test_keys_have_the_owners_that_every_version_of_the_library_gives_them() -> None:
    """Clients of two versions would put jobs of one key into two shards."""
    found = owners({0: 1, 1: 1, 3: 3, 17: 1}).of_all(KEYS)
    assert found[:12] == [3, 3, 0, 3, 3, 3, 0, 3, 1, 3, 1, 3]
    assert found[12:24] == [3, 3, 3, 3, 1, 3, 0, 3, 17, 3, 3, 0]
    assert hash_of("customer-0") == 0xA9A5920C1039C468
    assert score(1, 2) == 0xB5181C509F8D8CE


@pytest.mark.parametrize(
    "weights",
    [{5: 1}, {0: 4}, {0: 1, 1: 1}, {0: 2, 7: 1, 9: 3}, dict.fromkeys(range(64), 1)],
    ids=["one", "one-of-four-parts", "two", "weights", "64"],
)
def test_many_at_once_have_the_owners_that_each_has_alone(weights: dict[int, int]) -> None:
    keys = KEYS[::3] if len(weights) > 9 else KEYS
    want = [highest(weights, key) for key in keys]
    assert owners(weights).of_all(keys) == want
    alone = owners(weights)
    assert [alone.of(key) for key in keys] == want
    both = owners(weights)
    for size in (1, 3, 9, 100):  # some are known, some come twice
        assert both.of_all([*keys[:size], *keys[:size]]) == [*want[:size], *want[:size]]
    assert both.of_all(keys) == want == both.of_all(keys)


def test_no_more_keys_are_remembered_than_there_is_room_for() -> None:
    its, chance = owners({0: 1, 1: 1}), random.Random(1)
    other = owners({0: 1, 1: 1})
    for _ in range(40):
        keys = [f"k{chance.randrange(10 * KEYS_KNOWN)}" for _ in range(1000)]
        assert its.of_all(keys) == other.of_all(keys[:500]) + other.of_all(keys[500:])
        assert its.of(keys[0]) == its.of_all(keys[:1])[0]
        assert len(its._known) <= KEYS_KNOWN
    for number in range(KEYS_KNOWN + 10):
        its.of(f"other-{number}")
        assert len(its._known) <= KEYS_KNOWN


def test_where_nobody_is_no_key_has_an_owner() -> None:
    with pytest.raises(ValueError, match="nobody"):
        KeyOwners([])
