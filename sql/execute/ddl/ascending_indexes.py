"""The notice for indexes in descending order: keys have one order.

No result differs by it: a query is ordered by its ORDER BY, whatever it is read by.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...syntax import schema_statements as s


def ascending(elements: Iterable[object]) -> str | None:
    """A notice that names the columns of indexes that were to be descending; None without one."""
    columns = [
        f'"{column}"'
        for element in elements
        if isinstance(element, s.IndexDefinition)
        for column in element.descending
    ]
    if not columns:
        return None
    return f"ignored, for indexes are ascending, NULLs last: DESC of {', '.join(columns)}"
