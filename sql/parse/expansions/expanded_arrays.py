"""`information_schema._pg_expandarray(a)`: the elements of an array and their places, as rows.

    (information_schema._pg_expandarray(i.indkey)).n      generate_series(1, len(i.indkey))
    (information_schema._pg_expandarray(i.indkey)).x      unnest(i.indkey)
    information_schema._pg_expandarray(i.indkey) AS k     unnest(structs of x and n), for `(k).x`

PostgreSQL's own views are made with it, and JDBC's driver asks for keys by it.
"""

from __future__ import annotations

from sqlglot import exp

from ...builtins.macros import PREFIX

_SCHEMA = "information_schema"
_NAME = "_pg_expandarray"


def expanded_array(node: exp.Expr) -> exp.Expr | None:
    """Returns the replacement of a call of _pg_expandarray, or of a field of one."""
    if not isinstance(node, exp.Dot):
        return None
    call = _call(node)
    if call is not None:
        arguments = [array.copy() for array in call.expressions]
        return exp.Explode(this=exp.Anonymous(this=f"{PREFIX}{_NAME}", expressions=arguments))
    inner = node.this.unnest()
    call = _call(inner.this if isinstance(inner, exp.Explode) else inner)
    if call is None:
        return None
    (array,) = call.expressions
    match node.expression.name.lower():
        case "x":
            return exp.Explode(this=array.copy())
        case "n":
            length = exp.Anonymous(this="cardinality", expressions=[array.copy()])
            end = exp.cast(length, "BIGINT")
            return exp.ExplodingGenerateSeries(start=exp.Literal.number(1), end=end)
    return None


def _call(node: exp.Expr) -> exp.Anonymous | None:
    if isinstance(node, exp.Dot) and node.this.name.lower() == _SCHEMA:
        node = node.expression
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        return node if node.name.lower().removeprefix(PREFIX) == _NAME else None
    return None
