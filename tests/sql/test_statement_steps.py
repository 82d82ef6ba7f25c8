"""Plain lists and sets of many rows: they are made in portions, and the work gives way between."""

from __future__ import annotations

import pytest

from tailrace.sql.execute.write import steps
from tailrace.sql.execute.write.mutations import Mutation
from tailrace.sql.execute.write.steps import LISTED_PER_STEP, listed

MANY = 10 * LISTED_PER_STEP


def test_keys_that_move_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """An UPDATE of 200,000 rows that moved them made its sets of keys in one step of 100 ms."""
    given: list[int] = []
    monkeypatch.setattr(steps, "give_way", lambda: given.append(1))
    keys = [b"%d" % number for number in range(MANY)]
    mutation = Mutation(None, keys=keys[1:])  # type: ignore[arg-type]  # of no table
    mutation.move_from(keys[:-1])
    assert (mutation.deletes, mutation.absent) == ([keys[0]], [keys[-1]])
    assert mutation.origins[keys[-1]] == keys[-2]
    assert len(given) >= 5 * MANY // LISTED_PER_STEP


def test_what_is_listed_is_whole() -> None:
    assert list(listed([*range(MANY + 1)], lambda some: [-each for each in some])) == [
        -each for each in range(MANY + 1)
    ]
    assert list(listed([], lambda some: some)) == []
