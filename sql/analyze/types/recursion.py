"""The columns of WITH RECURSIVE, which are of the types that their first rows have.

SELECT 1 UNION ALL SELECT n * 1.5 FROM t            42804: DuckDB would round each row
SELECT 1::NUMERIC UNION ALL SELECT n * 1.5 FROM t   of 16 fractional digits, not of none
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...builtins.type_names import type_name
from ...parse import folded, position_of
from ...syntax.walks import find_all
from .common_types import have_one_scale
from .derived_types import of_recursion
from .types import Types


def check_recursion(node: exp.SetOperation, types: Types) -> None:
    """Raises SQLError 42804 where the recursive side is of another type, and gives decimals room
    for digits that the first rows do not have."""
    name = _recursive_name(node)
    if name is None:
        return
    _, first = types.parts_of(node.this)
    _, further = types.parts_of(node.args["expression"])
    for place, (seeds, others) in enumerate(zip(first, further, strict=False), 1):
        seed, whole = types.common(seeds), types.common([*seeds, *others])
        other = types.common(others)
        if seed is None or whole is None or other is None:
            continue
        if seed.kind is not whole.kind:
            raise SQLError(
                "42804",
                f'recursive query "{name}" column {place} has type {type_name(seed)} '
                f"in non-recursive term but type {type_name(whole)} overall",
                position=position_of(seeds[0]),
                hint="Cast the output of the non-recursive term to the correct type.",
            )
        made = of_recursion(seed, others)
        if made is not None and made != seed:
            have_one_scale([*seeds, *others], types, least=made.decimal[1])


def _recursive_name(node: exp.SetOperation) -> str | None:
    """Returns the name of the common table expression whose UNION reads its own rows."""
    table = node.parent
    if not isinstance(table, exp.CTE) or not isinstance(table.parent, exp.With):
        return None
    if not table.parent.args.get("recursive"):
        return None
    name = folded(table.args["alias"].this)
    named = find_all(node.args["expression"], exp.Table)
    return name if any(folded(found.this) == name for found in named if found.name) else None
