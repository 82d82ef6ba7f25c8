"""Functions that return rows, as the elements of a list.

string_to_table(t, ',')                 unnest(string_to_array(t, ','))
FROM unnest(a, b) AS t (x, y)           FROM LATERAL (SELECT unnest(a) AS x, …) AS t
FROM generate_subscripts(a, 1) AS i     FROM UNNEST(SUBSCRIPTS(a, 1)) AS i(i)
FROM jsonb_array_elements(doc) AS e     FROM UNNEST(JSONB_ELEMENTS(doc)) AS e(value)
FROM current_schema()                   FROM (SELECT current_schema() AS …) AS current_schema
"""

from __future__ import annotations

from sqlglot import exp

from ...builtins.macros import PREFIX
from ...syntax.trees import CALLED, alias_named, find_all

_LISTS: dict[str, tuple[str, str | None]] = {
    "string_to_table": (f"{PREFIX}string_to_array", None),
    "generate_subscripts": (f"{PREFIX}subscripts", None),
    "jsonb_array_elements": ("jsonb_elements", "value"),
    "jsonb_array_elements_text": ("jsonb_element_texts", "value"),
}
"""By the function that returns rows: the one that returns a list of them, and how a column of such
rows is called where that is not by the function."""
_VECTORS = ("indkey", "indclass", "indoption", "indcollation")
"""Columns of pg_index that are vectors, whose subscripts begin with 0: Peewee and Rails ask so."""
SCALARS = (exp.CurrentSchema, exp.CurrentDatabase)
"""Functions of one value that TypeORM reads as tables, when it connects."""


def plain_sets(tree: exp.Expr) -> exp.Expr:
    """The tree with these in the form that everything behind it reads."""
    for subscript in list(find_all(tree, exp.Bracket)):
        _from_one(subscript)
    for node in list(find_all(tree, exp.Anonymous)):
        name = node.name.lower()
        known = f"jsonb{name[4:]}" if name.startswith("json_") else name
        if known.startswith("jsonb_") and len(node.expressions) != 1:
            continue
        if known in _LISTS and node is not tree:
            made, column = _LISTS[known]
            if known == "generate_subscripts" and node.expressions[0].name.lower() in _VECTORS:
                made = f"{PREFIX}vector_subscripts"
            _replace(node, name, made, column)
    for scalar in list(find_all(tree, *SCALARS)):
        if isinstance(scalar.parent, exp.Table) and not scalar.parent.args.get("alias"):
            named = scalar.sql_name().lower()
            item = exp.alias_(type(scalar)(), named, quoted=True)
            replace_source(scalar.parent, exp.select(item).subquery(named))
    for several in list(find_all(tree, exp.Unnest)):
        if len(several.expressions) > 1:
            replace_source(several, _zipped(several))
    return tree


def _zipped(node: exp.Unnest) -> exp.Lateral:
    """Several arrays beside each other, as Django gives rows: the shorter ones end in NULLs."""
    arrays, (named, given) = list(node.expressions), _called(node, "unnest")
    ordinal = node.args.get("offset")
    if isinstance(ordinal, exp.Expr) and ordinal.name:
        given.append(ordinal.name)
    names = [*given, *["unnest"] * (len(arrays) - len(given)), "ordinality"]
    if ordinal:
        lengths = [exp.Anonymous(this="len", expressions=[each.copy()]) for each in arrays]
        longest = exp.Greatest(this=lengths[0], expressions=lengths[1:])
        arrays.append(exp.Anonymous(this=f"{PREFIX}places_to", expressions=[longest]))
    pairs = zip(arrays, names, strict=False)
    items = [exp.alias_(exp.Explode(this=array), name, quoted=True) for array, name in pairs]
    return exp.Lateral(this=exp.Subquery(this=exp.select(*items)), alias=alias_named(named))


def _from_one(node: exp.Bracket) -> None:
    """`indkey[i]` as the subscript of an array, whose elements are counted from 1."""
    place = node.expressions[0]
    if node.this.name.lower() in _VECTORS and not isinstance(place, exp.Slice):
        number = exp.Literal.number(place.to_py() + 1) if place.is_int else exp.paren(place) + 1
        node.set("expressions", [number])


def _replace(node: exp.Anonymous, name: str, made: str, column: str | None) -> None:
    listed = exp.Anonymous(this=made, expressions=list(node.expressions))
    if isinstance(node.parent, exp.Table | exp.Lateral):
        replace_source(node.parent, unnested(node.parent, listed, name, column=column))
        return
    rows = exp.Explode(this=listed)
    rows.meta[CALLED] = name
    node.replace(rows)


def unnested(table: exp.Expr, listed: exp.Expr, name: str, *, column: str | None) -> exp.Unnest:
    """A list as the source that stands for `table`: its one column has the alias's own name, or
    `column` where the function names it."""
    named, given = _called(table, name)
    numbered = bool(table.args.get("ordinality"))
    columns = [given[0] if given else column or named]
    if numbered:
        columns.append(given[1] if given[1:] else "ordinality")
    return exp.Unnest(expressions=[listed], offset=numbered, alias=alias_named(named, columns))


def _called(table: exp.Expr, name: str) -> tuple[str, list[str]]:
    """The alias of a source, or the name that it has without one, and the names of its columns."""
    alias = table.args.get("alias")
    if alias is None:
        return name, []
    return alias.name or name, [column.name for column in alias.columns]


def replace_source(table: exp.Expr, made: exp.Expr) -> None:
    """Puts `made` in the place of what FROM has, with what is joined to it."""
    if table.args.get("joins"):
        made.set("joins", table.args["joins"])
    if isinstance(table.parent, exp.Lateral):
        table.parent.replace(made)
    else:
        table.replace(made)
