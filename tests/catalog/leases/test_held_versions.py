from __future__ import annotations

import pytest

from tailrace.catalog.leases.held_versions import HeldVersion, HeldVersions, Miss
from tailrace.catalog.leases.incarnation import Incarnation
from tailrace.kvlayer.clock import Timestamp
from tests.harness.descriptors import table


def session(expiration: int = 900) -> Incarnation:
    return Incarnation("s1", 1, Timestamp(expiration))


def at(number: int) -> Timestamp:
    return Timestamp(number)


def holding(*versions: tuple[int, int], incarnation: Incarnation) -> HeldVersions:
    held = HeldVersions(104)
    for version, modified_at in versions:
        held.note(version)
        held.add_acquired(table(version, modified_at), incarnation, at(modified_at))
    held.check_invariants()
    return held


def found(held: HeldVersions, number: int) -> int | Miss:
    result = held.find(at(number))
    return result.version if isinstance(result, HeldVersion) else result


def test_the_newest_version_that_covers_serves() -> None:
    held = holding((1, 100), (2, 200), incarnation=session())
    assert [found(held, ts) for ts in (100, 199, 200, 899)] == [1, 1, 2, 2]


def test_nothing_is_covered_past_the_session() -> None:
    held = holding((1, 100), incarnation=session(900))
    assert found(held, 900) is Miss.ACQUIRE


def test_coverage_rises_with_the_acknowledged_session() -> None:
    incarnation = session(900)
    held = holding((1, 100), incarnation=incarnation)
    incarnation.extend(at(950))
    assert found(held, 949) == 1


def test_older_than_all_is_history() -> None:
    assert found(holding((2, 200), incarnation=session()), 150) is Miss.HISTORY


def test_unknown_is_acquired() -> None:
    assert HeldVersions(104).find(at(100)) is Miss.ACQUIRE


def test_history_expires_at_its_successor() -> None:
    held = holding((5, 500), incarnation=session())
    held.add_history(table(3, 300), at(400))
    assert [found(held, ts) for ts in (299, 300, 399)] == [Miss.HISTORY, 3, 3]
    assert found(held, 400) is Miss.HISTORY  # version 4, which nobody read


def test_history_is_forgotten_with_its_last_reference() -> None:
    held = holding((5, 500), incarnation=session())
    old = held.add_history(table(3, 300), at(400))
    old.references = 1
    held.release(old)
    assert found(held, 300) is Miss.HISTORY


def test_only_retired_unreferenced_versions_are_doomed() -> None:
    held = holding((1, 100), (2, 200), incarnation=session())
    first, second = held.versions
    first.references = 1
    held.retire(2)
    assert held.take_doomed() == []
    held.release(first)
    assert held.take_doomed() == [first]
    assert held.versions == [second]


def test_the_newest_stays_without_references() -> None:
    held = holding((1, 100), incarnation=session())
    held.retire(1)
    assert held.take_doomed() == []


def test_a_dropped_tables_last_version_serves_nobody_new() -> None:
    held = holding((1, 100), incarnation=session())
    held.versions[0].references = 1
    held.retire(2)
    assert found(held, 300) is Miss.ACQUIRE


def test_coverage_ends_where_the_row_was_deleted() -> None:
    held = holding((1, 100), incarnation=session())
    held.retire(2)
    (doomed,) = held.take_doomed()
    doomed.begin_delete(at(220))
    assert doomed.coverage_end() == 221  # all that is certain while the deletion is under way
    doomed.finish_delete(at(230))
    assert (doomed.covers(at(229)), doomed.covers(at(230))) == (True, False)


def test_a_limit_ends_coverage_for_good() -> None:
    held = holding((1, 100), incarnation=session())
    version = held.versions[0]
    version.limit(at(300))
    held.retire(2)
    held.take_doomed()
    version.begin_delete(at(350))
    version.finish_delete(at(360))
    assert version.coverage_end() == 300


def test_a_second_lease_on_one_version_is_the_first() -> None:
    incarnation = session()
    held = holding((1, 100), incarnation=incarnation)
    assert held.add_acquired(table(1, 100), incarnation, at(150)) is held.versions[0]


def test_version_is_canonical_up_to_where_it_was_read() -> None:
    """And up to its successor, once that is known: what it covers reaches further."""
    incarnation = session(900)
    held = holding((1, 100), incarnation=incarnation)
    [first] = held.versions
    assert first.canonical_until == 100
    held.add_acquired(table(1, 100), incarnation, at(150))
    assert first.canonical_until == 150
    held.note(2)
    held.add_acquired(table(2, 200), incarnation, at(250))
    assert first.canonical_until == 199
    assert first.covers(at(300))


def test_a_lost_session_takes_its_versions_with_it() -> None:
    incarnation = session(900)
    held = holding((1, 100), incarnation=incarnation)
    version = held.versions[0]
    version.references = 1
    incarnation.lost = True
    assert held.take_lost() == [version]
    assert held.find(at(500)) is Miss.ACQUIRE
    assert version.covers(at(500))  # what was acknowledged stays true


def test_notices_repeat_and_skip() -> None:
    held = HeldVersions(104)
    assert [held.note(version) for version in (1, 1, 4, 3)] == [True, False, True, False]


def test_a_third_leased_version_breaks_the_invariant() -> None:
    with pytest.raises(AssertionError, match="two-version"):
        holding((1, 100), (2, 200), (3, 300), incarnation=session())


def test_releasing_more_than_was_taken_is_a_bug() -> None:
    held = holding((1, 100), incarnation=session())
    with pytest.raises(AssertionError):
        held.release(held.versions[0])
