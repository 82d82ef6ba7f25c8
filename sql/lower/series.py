"""generate_series() of decimals, of which DuckDB has none: the elements of a list."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.column_types import array_of
from ...catalog.values.type_kinds import TypeKind
from ..analyze.types.types import Types
from ..builtins.templates import call, cast_to, number
from ..parse import folded

_NAME = "generate_series"


def of_decimals(node: exp.GenerateSeries, types: Types) -> exp.Expr | None:
    """Returns the list for a series of decimals in a list of expressions; None for every other. In
    FROM its table is replaced, and its column has the name of its alias."""
    element = types.of(node)
    if element is None or element.kind is not TypeKind.DECIMAL:
        return None
    step = node.args.get("step")
    bounds = [node.args["start"], node.args["end"], number(1) if step is None else step]
    texts = [exp.cast(bound.copy(), "VARCHAR") for bound in bounds]
    listed = cast_to(call("decimal_series", *texts), array_of(element))
    table = node.parent
    if not isinstance(table, exp.Table):
        return exp.Explode(this=listed)
    alias = table.args.get("alias")
    name = folded(alias.this) if alias is not None and alias.this is not None else _NAME
    columns = list(alias.columns) if alias is not None else []
    columns = columns or [exp.to_identifier(name, quoted=True)]
    made = exp.Unnest(
        expressions=[listed],
        alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns),
    )
    if table.args.get("joins"):
        made.set("joins", table.args["joins"])
    table.replace(made)
    return None
