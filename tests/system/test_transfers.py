"""TRANSFER between two real servers, and kill -9. `make transfers` does more of it: at random
moments, and with `ARGS=--steps` before and behind each of the steps of both sides."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.system.transfers import STEPS, Transfers, transfer_at_moments, transfer_at_steps

pytestmark = pytest.mark.system


def test_one_server_leads_whoever_is_killed(tmp_path: Path) -> None:
    transfer_at_moments(tmp_path, moments=1, seed=1)


def test_a_step_may_be_the_last(tmp_path: Path) -> None:
    """Four of the twelve moments before and behind the steps of both sides."""
    assert len(STEPS) == 12
    transfer_at_steps(tmp_path, STEPS[:4])


def test_the_old_leaders_replication_is_over(tmp_path: Path) -> None:
    """Its lag would grow for ever: there is nothing that it could send."""
    with ExitStack() as stack:
        transfers = Transfers(tmp_path, stack)
        old = transfers.servers[transfers.settled()]
        assert transfers.transfer()
        transfers.replicate()
        [replication] = old.rows("SHOW REPLICATIONS")
        assert replication[4] in ("cancel-requested", "canceled", "failed")
