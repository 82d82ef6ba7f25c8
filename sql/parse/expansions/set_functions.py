"""Functions that return rows, as the elements of a list.

string_to_table(t, ',')                 unnest(string_to_array(t, ','))
FROM generate_subscripts(a, 1) AS i     FROM UNNEST(SUBSCRIPTS(a, 1)) AS i(i)
FROM unnest(a, b) AS t (x, y)           FROM LATERAL (SELECT unnest(a) AS x, …) AS t
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...builtins.macros import PREFIX
from ...syntax.output_marks import CALLED
from ...syntax.walks import find_all

LISTS = {
    "string_to_table": f"{PREFIX}string_to_array",
    "generate_subscripts": f"{PREFIX}subscripts",
}
"""By the function that returns rows, the one that returns a list of them."""


def plain_sets(tree: exp.Expr) -> exp.Expr:
    """The tree with these in the form that everything behind it reads."""
    for node in list(find_all(tree, exp.Anonymous)):
        made = LISTS.get(node.name.lower())
        if made is not None and node is not tree:
            listed = exp.Anonymous(this=made, expressions=list(node.expressions))
            _replace(node, listed, node.name.lower())
    for several in list(find_all(tree, exp.Unnest)):
        if len(several.expressions) > 1 and isinstance(several.parent, exp.From | exp.Join):
            several.replace(_zipped(several))
    return tree


def _replace(node: exp.Expr, listed: exp.Expr, name: str) -> None:
    if isinstance(node.parent, exp.Table | exp.Lateral):
        replace_source(node.parent, unnested(node.parent, listed, name, column=None))
        return
    made = exp.Explode(this=listed)
    made.meta[CALLED] = name
    node.replace(made)


def unnested(table: exp.Expr, listed: exp.Expr, name: str, *, column: str | None) -> exp.Unnest:
    """A list as the source that stands for `table`: its one column has the alias's own name, or
    `column` where the function names it."""
    alias = table.args.get("alias")
    named = alias.name if alias is not None and alias.name else name
    given = [each.name for each in alias.columns] if alias is not None else []
    numbered = bool(table.args.get("ordinality"))
    columns = [given[0] if given else column or named]
    if numbered:
        columns.append(given[1] if given[1:] else "ordinality")
    return exp.Unnest(
        expressions=[listed],
        offset=numbered,
        alias=exp.TableAlias(
            this=exp.to_identifier(named, quoted=True),
            columns=[exp.to_identifier(each, quoted=True) for each in columns],
        ),
    )


def replace_source(table: exp.Expr, made: exp.Expr) -> None:
    """Puts `made` in the place of what FROM has, with what is joined to it."""
    if table.args.get("joins"):
        made.set("joins", table.args["joins"])
    if isinstance(table.parent, exp.Lateral):
        table.parent.replace(made)
    else:
        table.replace(made)


def _zipped(node: exp.Unnest) -> exp.Expr:
    """Several arrays beside each other: the shorter ones end in NULLs."""
    alias, arrays = node.args.get("alias"), list(node.expressions)
    given = [each.name for each in alias.columns] if alias is not None else []
    offset = node.args.get("offset")
    if isinstance(offset, exp.Expr) and offset.name:
        given.append(offset.name)
    names = [*given, *_unnamed(len(arrays))[len(given) :]]
    items = [
        exp.alias_(exp.Explode(this=array), name, quoted=True)
        for array, name in zip(arrays, names, strict=False)
    ]
    if offset:
        lengths = [exp.Anonymous(this="len", expressions=[each.copy()]) for each in arrays]
        longest = exp.Greatest(this=lengths[0], expressions=lengths[1:])
        places = exp.Explode(this=exp.Anonymous(this=f"{PREFIX}places_to", expressions=[longest]))
        ordinal = given[len(arrays)] if given[len(arrays) :] else "ordinality"
        items.append(exp.alias_(places, ordinal, quoted=True))
    source = exp.Lateral(
        this=exp.Subquery(this=exp.select(*items)),
        alias=exp.TableAlias(
            this=exp.to_identifier(alias.name if alias and alias.name else "unnest", quoted=True)
        ),
    )
    if node.args.get("joins"):
        source.set("joins", node.args["joins"])
    return source


def _unnamed(count: int) -> Sequence[str]:
    return ["unnest"] * count
