"""Errors on their way to another process arrive as what they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.engine import EngineFailed
from tailrace.kvlayer.errors import ClockStopped, KVError, StoreClosed, StoreFull, StoreUnreachable
from tailrace.kvlayer.protected_timestamp import ProtectionRefused
from tailrace.kvlayer.remote.failures import error_of, failure_of
from tailrace.sql.results.errors import from_kv


def made_of_text(kind: type[KVError]) -> Iterator[type[KVError]]:
    """The errors of the KV layer that hold nothing but their text, but for one that is closed: that
    says something else to a distant node."""
    if kind.__init__ is Exception.__init__ and kind not in (StoreClosed, StoreUnreachable):
        yield kind
    for each in kind.__subclasses__():
        yield from made_of_text(each)


TEXTS = sorted(set(made_of_text(KVError)), key=lambda kind: kind.__name__)


def test_errors_of_text_are_found() -> None:
    assert {StoreFull, ClockStopped, EngineFailed, KVError} < set(TEXTS)


@pytest.mark.parametrize("kind", TEXTS)
def test_an_error_says_the_same_at_another_node(kind: type[KVError]) -> None:
    error = kind("no room")
    arrived = error_of(failure_of(error))
    assert str(arrived) == "no room"
    assert from_kv(arrived).sqlstate == from_kv(error).sqlstate


def test_an_error_arrives_with_its_fields() -> None:
    arrived = error_of(failure_of(ProtectionRefused(Timestamp(7), Timestamp(9))))
    assert isinstance(arrived, ProtectionRefused)
    assert (arrived.timestamp, arrived.threshold) == (7, 9)


def test_closed_store_arrives_as_one_out_of_reach() -> None:
    arrived = error_of(failure_of(StoreClosed("the log has failed")))
    assert isinstance(arrived, StoreUnreachable)
    assert "the log has failed" in str(arrived)
