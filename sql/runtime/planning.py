"""Whether planning is a step of the loop, or slices of it.

Most statements are parsed and planned in less time than a slice takes. What may take longer is
known by the length of its text, and by the relations that it names: a view is as long as its
query, a star as wide as its table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...kvlayer.fibre import in_slices
from ..analyze.binder import Relations
from ..parse.pieces import SMALL_LENGTH

T = TypeVar("T")

_COLUMNS_SMALL = 200
"""Columns of all the tables of a statement that is planned in one step."""


async def planned(work: Callable[[], T], *, lengthy: bool) -> T:
    """Returns the result of `work`, run in slices of the loop where it is lengthy."""
    return await in_slices(work) if lengthy else work()


def lengthy_relations(relations: Relations) -> bool:
    """Whether what is named makes the plan of a short text long."""
    tables = relations.values()
    if any(table.view is not None and len(table.view.text) > SMALL_LENGTH for table in tables):
        return True
    return sum(len(table.visible_columns) for table in tables) > _COLUMNS_SMALL
