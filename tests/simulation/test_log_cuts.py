"""A crash at every byte of the log: prefixes of the history, and a mirror that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.kvlayer.clock import Timestamp
from tests.simulation.log_cuts import CrashPoint, Recording, Recovery, longest_explicit

STRIDE = 23
MIRRORED_POINTS = 12


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return Recording(1, tmp_path_factory.mktemp("recording"))


def cuts(recording: Recording) -> Iterator[tuple[CrashPoint, int]]:
    """Every byte while an explicit transaction had most in flight, and some of every group."""
    whole = longest_explicit(recording.points)
    for point in recording.points:
        step = 1 if point is whole else STRIDE
        for cut in sorted({*range(0, point.cuts, step), *point.edges()}):
            yield point, cut


def test_every_cut_leaves_a_prefix(recording: Recording) -> None:
    found: frozenset[Timestamp] = frozenset()
    for point, cut in cuts(recording):
        longer = Recovery(recording, point, cut).check()
        assert found <= longer, (cut, point.seconds, found - longer)
        found = longer
    assert found == recording.commits.keys()


def test_mirror_goes_on_after_any_cut(recording: Recording, tmp_path: Path) -> None:
    """Points all over the history, each with the last group lost and with all of it there."""
    points = recording.points[:: len(recording.points) // MIRRORED_POINTS]
    for number, point in enumerate(points):
        for cut in (0, point.cuts // 2, point.cuts):
            folder = tmp_path / f"{number}-{cut}"
            Recovery(recording, point, cut).check_with_mirror(folder)
