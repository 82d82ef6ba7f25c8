"""Relaxed stores under threads and deaths, and readers of logs that were mistreated."""

from collections import Counter

from tests.simulation.relaxed_run import run_relaxed

SEEDS = 60
HAPPENINGS = {
    "batch in a batch",
    "doubled",
    "event lost",
    "gap named",
    "incomplete epoch",
    "inherited batch",
    "killed",
    "killed in the critical section",
    "record lost",
    "shuffled",
    "snapshot",
    "truncated",
    "write outside a batch",
}


def test_every_state_shown_was_there() -> None:
    counts: Counter[str] = Counter()
    states = 0
    for seed in range(SEEDS):
        try:
            outcome = run_relaxed(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        counts += outcome.counts
        states += outcome.states
    assert set(counts) == HAPPENINGS
    assert states > 5 * SEEDS


def test_same_seed_is_the_same_run() -> None:
    assert run_relaxed(11) == run_relaxed(11)
