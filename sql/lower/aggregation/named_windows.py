"""Named windows in ORDER BY, where DuckDB knows none: their definitions stand in for the names.

SELECT … FROM t WINDOW w AS (PARTITION BY a) ORDER BY rank() OVER (w ORDER BY b)
                                             ORDER BY rank() OVER (PARTITION BY a ORDER BY b)
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ...parse import folded
from ...syntax.walks import find_all

_PARTS = ("partition_by", "order", "spec")


def spell_out_windows(query: exp.Expr) -> None:
    """Puts the definitions in place. A name that nobody defined is left to DuckDB."""
    for select in find_all(query, exp.Select):
        order, defined = select.args.get("order"), select.args.get("windows")
        if order is None or not defined:
            continue
        definitions = {folded(window.this): window for window in defined}
        for window in find_all(order, exp.Window):
            if window.find_ancestor(exp.Select) is select:
                _spell_out(window, definitions)


def _spell_out(window: exp.Window, definitions: Mapping[str, exp.Window]) -> None:
    name = window.args.get("alias")
    definition = definitions.get(folded(name)) if name is not None else None
    if definition is None:
        return
    whole = definition.copy()
    _spell_out(whole, {key: one for key, one in definitions.items() if one is not definition})
    window.set("alias", None)
    for part in _PARTS:
        if not window.args.get(part) and whole.args.get(part):
            window.set(part, whole.args[part])
