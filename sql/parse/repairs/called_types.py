"""Names that PostgreSQL reads otherwise than sqlglot: casts in the form of calls, and words that
stand for functions.

    int8('5')               CAST('5' AS INT8), in a column named int8
    "time"('12:00')         CAST('12:00' AS TIME)
    user, current_role      CURRENT_USER: reserved words, unless they are quoted
    nextval('s'::regclass)  nextval('s'): the name is looked for when it is called
    f(((doc)) -> 'a')       f(doc -> 'a'), so written by `meant_tokens`
"""

from __future__ import annotations

from sqlglot import exp

from ...syntax.tree_names import CALLED
from ...syntax.walks import find_all
from ..lexer import POSTGRES

_TYPES = {
    "bool": "BOOLEAN", "bytea": "BYTEA", "date": "DATE", "float4": "FLOAT4", "float8": "FLOAT8",
    "int2": "INT2", "int8": "INT8", "json": "JSON", "jsonb": "JSONB", "text": "TEXT",
    "time": "TIME", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "uuid": "UUID",
    "varchar": "VARCHAR",
}  # fmt: skip
USER_WORDS = frozenset({"user", "current_role"})


def plain_names(tree: exp.Expr) -> exp.Expr:
    """The tree with the others in the form that everything behind it reads."""
    made: exp.Expr = exp.Paren(this=tree)
    kinds = (exp.Anonymous, exp.Timestamp, exp.Time, exp.Column)
    for node in reversed(list(find_all(made, *kinds))):  # inner ones first
        plain = _user(node) if isinstance(node, exp.Column) else _cast(node)
        if plain is not None:
            node.replace(plain)
    found: exp.Expr = made.this
    return found.pop()  # a tree whose parent is nothing of its own is no result any more


def _user(node: exp.Column) -> exp.Expr | None:
    plain = isinstance(node.this, exp.Identifier) and not node.this.quoted
    word = node.name.lower()
    if not plain or node.args.get("table") is not None or word not in USER_WORDS:
        return None
    made = exp.CurrentUser()
    made.meta[CALLED] = word
    return made


def _cast(node: exp.Expr) -> exp.Expr | None:
    if isinstance(node, exp.Anonymous):
        name, given = node.name.lower(), list(node.expressions)
    else:
        name, given = node.key, [part for part in node.args.values() if part]
    target = _target(name)
    if target is None or len(given) != 1 or not isinstance(given[0], exp.Expr):
        return None
    made = exp.Cast(this=given[0], to=target)
    made.meta.update(node.meta)
    made.meta[CALLED] = name
    return made


def _target(name: str) -> exp.DataType | None:
    if name == "int4":
        return exp.DataType(this=exp.DType.MEDIUMINT)
    type = _TYPES.get(name)
    return None if type is None else exp.DataType.build(type, dialect=POSTGRES)


def plain_documents(tree: exp.Expr) -> exp.Expr:
    """Returns the tree with the last two repaired."""
    for node in list(find_all(tree, exp.JSONExtract)):
        if isinstance(node.this, exp.Paren) and isinstance(node.this.unnest(), exp.Column):
            node.set("this", node.this.unnest())
    for call in list(find_all(tree, exp.Anonymous)):
        if call.name.lower() in ("nextval", "currval", "setval") and call.expressions:
            first = call.expressions[0]
            if isinstance(first, exp.Cast) and isinstance(first.this, exp.Literal):
                first.replace(first.this)
    return tree
