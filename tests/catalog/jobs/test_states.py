from __future__ import annotations

from itertools import product

import pytest

from tailrace.catalog.jobs.states import (
    TRANSITIONS,
    IllegalTransition,
    JobEvent,
    JobState,
    next_state,
)


@pytest.mark.parametrize(("state", "event"), list(product(JobState, JobEvent)))
def test_what_is_not_in_the_table_is_refused(state: JobState, event: JobEvent) -> None:
    if (state, event) in TRANSITIONS:
        assert next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalTransition, match=state.value):
            next_state(state, event)


def test_nothing_leads_out_of_a_final_state() -> None:
    assert {state for state, _ in TRANSITIONS if state.final} == set()


def test_every_unfinished_job_can_be_canceled() -> None:
    refused = {state for state in JobState if (state, JobEvent.REQUEST_CANCEL) not in TRANSITIONS}
    assert refused == {state for state in JobState if state.final} | {JobState.CANCEL_REQUESTED}


def test_every_state_is_reached_from_pending() -> None:
    reached = {JobState.PENDING}
    while found := {TRANSITIONS[edge] for edge in TRANSITIONS if edge[0] in reached} - reached:
        reached |= found
    assert reached == set(JobState)


def test_exactly_the_claimable_states_take_a_claim() -> None:
    taking = {state for state, event in TRANSITIONS if event is JobEvent.CLAIM}
    assert taking == {state for state in JobState if state.claimable}
