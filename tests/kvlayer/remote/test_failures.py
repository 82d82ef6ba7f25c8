"""Errors on their way to another process arrive as what they were."""

from __future__ import annotations

import pytest

from tailrace.kvlayer.errors import ClockStopped, KVError, StoreClosed, StoreFull, StoreUnreachable
from tailrace.kvlayer.remote.failures import error_of, failure_of


@pytest.mark.parametrize("error", [StoreFull("no room"), ClockStopped("no room")])
def test_full_disk_arrives_as_itself(error: KVError) -> None:
    arrived = error_of(failure_of(error))
    assert type(arrived) is type(error)
    assert str(arrived) == "no room"


def test_closed_store_arrives_as_one_out_of_reach() -> None:
    arrived = error_of(failure_of(StoreClosed("the log has failed")))
    assert isinstance(arrived, StoreUnreachable)
    assert "the log has failed" in str(arrived)
