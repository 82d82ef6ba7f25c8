"""Places at a door: whatever comes and goes, the bounds hold and the counts are right."""

from __future__ import annotations

from random import Random

import pytest

from tailrace.api.admission import Admission, Bounds, Place
from tailrace.api.descriptors import STORE_DESCRIPTORS, DoorBounds, door_bounds
from tailrace.api.refusal import NodeRefused
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.metrics import Metrics

BOUNDS = Bounds(known=12, unknown=8, unknown_per_address=3, kept_for_admins=2)


def nothing() -> None:
    """A connection that does not hear of it."""


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_whatever_happens(seed: int) -> None:
    random = Random(seed)
    metrics = Metrics()
    admission = Admission(BOUNDS, metrics, "door")
    places: list[Place] = []
    for _ in range(500):
        match random.randrange(3):
            case 0:
                places.append(admission.arrive(f"10.0.0.{random.randrange(4)}", nothing))
            case 1 if places:
                user = random.choice(["ada", "eve", "root"])
                try:
                    random.choice(places).known(user, admin=user == "root")
                except SQLError as error:
                    assert error.sqlstate == "53300"
            case 2 if places:
                places.pop(random.randrange(len(places))).leave()
        admission.check_invariants()
        assert metrics.get("door_connections") == admission.count
    for place in places:
        place.leave()
        place.leave()
    assert admission.count == 0


def test_who_has_yielded_is_not_let_in() -> None:
    admission = Admission(BOUNDS, Metrics(), "door")
    yielded: list[str] = []
    first = admission.arrive("10.0.0.1", lambda: yielded.append("first"))
    for _ in range(BOUNDS.unknown_per_address):
        admission.arrive("10.0.0.1", nothing)
    assert yielded == ["first"]
    with pytest.raises(SQLError, match="not authenticated"):
        first.known("ada", admin=False)


@pytest.mark.parametrize("limit", [1024, 1536, 4096, 4768, 65_536])
def test_doors_fit_into_the_open_files(limit: int) -> None:
    bounds = door_bounds(limit)
    taken = bounds.postgres.descriptors + bounds.http.descriptors
    assert taken + STORE_DESCRIPTORS <= limit
    assert bounds.http.known > bounds.http.kept_for_admins > 0
    assert (bounds == DoorBounds()) is (limit >= 4768)


def test_too_few_open_files_are_refused() -> None:
    with pytest.raises(NodeRefused, match="ulimit -n"):
        door_bounds(800)
