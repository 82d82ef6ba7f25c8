"""Ids of write batches."""

from itertools import pairwise

from tailrace.kvlayer.relaxed.ids import (
    ID_MASK,
    before,
    following,
    just_behind,
    random_domain,
    stamped,
    within,
)

SECOND = 10**9


def test_ids_are_near_real_time() -> None:
    assert stamped(100 * SECOND) == 100 << 32
    assert stamped(100 * SECOND + 500_000_000) == (100 << 32) | (1 << 31)
    assert stamped(100 * SECOND + 30) & 127 == 0


def test_ids_never_repeat() -> None:
    """Time that stands still, or goes back, gives the last id plus one."""
    now = 100 * SECOND
    ids = [following(0, now)]
    for time in (now, now, now - SECOND, now + 1, now + 1000):
        ids.append(following(ids[-1], time))
    assert all(before(first, second) for first, second in pairwise(ids))
    assert ids[1:4] == [ids[0] + 1, ids[0] + 2, ids[0] + 3]


def test_zero_is_nobodys_id() -> None:
    assert following(0, 0) == 1
    assert following(ID_MASK, 0) == 1
    assert just_behind(ID_MASK) == 1


def test_comparison_is_modular() -> None:
    """Seconds wrap in 2106: what comes behind is later all the same."""
    late, early = stamped(((1 << 32) - 1) * SECOND), stamped(((1 << 32) + 1) * SECOND)
    assert early < late
    assert before(late, early) and not before(early, late)
    assert following(late, ((1 << 32) + 1) * SECOND) == early
    assert within(early, late, early + 1) and not within(late - 1, late, early + 1)


def test_first_epoch_holds_all_below() -> None:
    assert within(5, 0, 6) and not within(6, 0, 6)


def test_domains_have_63_bits() -> None:
    assert all(0 < random_domain() < 1 << 63 for _ in range(100))
