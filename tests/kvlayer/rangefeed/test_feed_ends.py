"""Why range feeds end: the reasons of the anchor's table, and what a client does about each."""

from __future__ import annotations

import pytest

from tailrace.kvlayer.errors import FeedEnd, FeedReaction, RangeFeedEnded

REACTIONS = {
    FeedReaction.RETRY: {
        "REPLICA_REMOVED",
        "RAFT_SNAPSHOT",
        "LOGICAL_OPS_MISSING",
        "SLOW_CONSUMER",
        "RANGEFEED_CLOSED",
        "STORE_NOT_FOUND",
        "NODE_UNAVAILABLE",
    },
    FeedReaction.DIVIDE: {
        "RANGE_SPLIT",
        "MANUAL_RANGE_SPLIT",
        "RANGE_MERGED",
        "NO_LEASEHOLDER",
        "RANGE_KEY_MISMATCH",
        "RANGE_NOT_FOUND",
    },
    FeedReaction.WAIT: {"UNRESOLVED_INTENTS"},
    FeedReaction.FAIL: {"BATCH_TIMESTAMP_BEFORE_GC", "MVCC_HISTORY_MUTATION"},
}


@pytest.mark.parametrize("reaction", FeedReaction)
def test_every_reason_has_the_reaction_of_the_table(reaction: FeedReaction) -> None:
    assert {end.name for end in FeedEnd if end.reaction is reaction} == REACTIONS[reaction]


def test_message_says_the_reason_and_the_detail() -> None:
    end = RangeFeedEnded(FeedEnd.SLOW_CONSUMER, "12 bytes waited")
    assert str(end) == "slow consumer: 12 bytes waited"
