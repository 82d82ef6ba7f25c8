"""The checker sees what it is there to see."""

from __future__ import annotations

import pytest

from tests.harness.list_append import History, Status, check

Operation = tuple[str, int | list[int]]


def transaction(name: str, *operations: Operation, status: Status = Status.COMMITTED) -> History:
    history = History(name, status=status)
    for key, operation in operations:
        if isinstance(operation, int):
            history.append(key, operation)
        else:
            history.read(key, operation)
    return history


HISTORIES = {
    "": [
        transaction("a", ("x", []), ("x", 1), ("y", 1)),
        transaction("b", ("x", [1]), ("x", 2), ("x", [1, 2])),
        transaction("c", ("x", [1, 2]), ("y", [1])),
    ],
    "G0": [
        transaction("a", ("x", 1), ("y", 2)),
        transaction("b", ("x", 2), ("y", 1)),
        transaction("c", ("x", [1, 2]), ("y", [1, 2])),
    ],
    "G1a": [
        transaction("a", ("x", 1), status=Status.ABORTED),
        transaction("b", ("x", [1])),
    ],
    "G1b": [
        transaction("a", ("x", 1), ("x", 2)),
        transaction("b", ("x", [1])),
    ],
    "G1c": [
        transaction("a", ("x", 1), ("y", [1])),
        transaction("b", ("y", 1), ("x", [1])),
    ],
    "G-single": [
        transaction("a", ("x", []), ("y", [1])),
        transaction("b", ("x", 1), ("y", 1)),
        transaction("c", ("x", [1])),
    ],
    "G2": [
        transaction("a", ("x", []), ("y", 1)),
        transaction("b", ("y", []), ("x", 1)),
        transaction("c", ("x", [1]), ("y", [1])),
    ],
    "internal": [transaction("a", ("x", 1), ("x", []))],
    "incompatible order": [
        transaction("a", ("x", 1)),
        transaction("b", ("x", 2)),
        transaction("c", ("x", [1, 2])),
        transaction("d", ("x", [2])),
    ],
}


@pytest.mark.parametrize("kind", HISTORIES)
def test_checker_names_the_anomaly(kind: str) -> None:
    found = {anomaly.kind for anomaly in check(HISTORIES[kind])}
    assert kind in found if kind else not found, found


def test_unknown_outcome_counts_once_seen() -> None:
    maybe = transaction("a", ("x", 1), status=Status.UNKNOWN)
    assert check([maybe, transaction("b", ("x", [1]))]) == []
    assert check([maybe, transaction("b", ("x", []))]) == []
