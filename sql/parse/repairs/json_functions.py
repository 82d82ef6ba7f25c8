"""Repairs of `->` in a function's argument, and of functions on documents in FROM.

f(((doc)) -> 'a')                        f(doc -> 'a'), so written by `meant_tokens`
FROM jsonb_array_elements(doc) AS e      FROM UNNEST(JSONB_ELEMENTS(doc)) AS e(value)
FROM jsonb_each(doc) AS e                FROM LATERAL (SELECT … AS key, … AS value) AS e
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...syntax.output_marks import CALLED
from ...syntax.walks import find_all
from ..expansions.set_functions import replace_source, unnested

_ELEMENTS = ("jsonb_array_elements", "jsonb_array_elements_text")
_KEYS = "jsonb_object_keys"
_LISTS = {
    "jsonb_array_elements": "jsonb_elements",
    "jsonb_array_elements_text": "jsonb_element_texts",
    _KEYS: "jsonb_keys",
}
_PARTS = {
    "jsonb_pairs": ("jsonb_pair_key", "jsonb_pair_value"),
    "jsonb_text_pairs": ("jsonb_pair_key", "jsonb_pair_text"),
}
_MEMBERS = {"jsonb_each": "jsonb_pairs", "jsonb_each_text": "jsonb_text_pairs"}


def plain_documents(tree: exp.Expr) -> exp.Expr:
    """Returns the tree with both repaired."""
    for node in list(find_all(tree, exp.JSONExtract)):
        if isinstance(node.this, exp.Paren) and isinstance(node.this.unnest(), exp.Column):
            node.set("this", node.this.unnest())
    for function in list(find_all(tree, exp.Anonymous)):
        _plain_sequence(function)
        _replace_function(function)
    return tree


def _plain_sequence(node: exp.Anonymous) -> None:
    """`nextval('s'::regclass)`: the name is looked for when it is called."""
    if node.name.lower() in ("nextval", "currval", "setval") and node.expressions:
        first = node.expressions[0]
        if isinstance(first, exp.Cast) and isinstance(first.this, exp.Literal):
            first.replace(first.this)


def _replace_function(node: exp.Anonymous) -> None:
    name = node.name.lower()
    name = name if name.startswith("jsonb_") else name.replace("json_", "jsonb_", 1)
    if len(node.expressions) != 1 or name not in {*_ELEMENTS, *_MEMBERS, _KEYS}:
        return
    (document,) = node.expressions
    if not isinstance(node.parent, exp.Table | exp.Lateral):
        if name not in _MEMBERS:
            made = exp.Explode(this=_list_of(name, document))
            made.meta[CALLED] = node.name.lower()
            node.replace(made)
        return
    table = node.parent
    alias = table.args.get("alias")
    named = alias.name if alias is not None and alias.name else node.name.lower()
    given = [column.name for column in alias.columns] if alias is not None else []
    if name in _MEMBERS:
        _replace_table(table, _members(_MEMBERS[name], document, given), named, ())
    else:
        column = "value" if name in _ELEMENTS else None
        listed = _list_of(name, document)
        replace_source(table, unnested(table, listed, node.name.lower(), column=column))


def _list_of(name: str, document: exp.Expr) -> exp.Expr:
    return _call(_LISTS[name], document)


def _members(name: str, document: exp.Expr, given: Sequence[str]) -> exp.Expr:
    names = [*given, *["key", "value"][len(given) :]]
    pairs = exp.select(exp.alias_(exp.Explode(this=_call(name, document)), "pair")).subquery("m")
    return exp.select(
        *(
            exp.alias_(_call(part, exp.column("pair")), called, quoted=True)
            for part, called in zip(_PARTS[name], names, strict=False)
        )
    ).from_(pairs)


def _replace_table(
    table: exp.Expr, query: exp.Expr, name: str, columns: Sequence[exp.Identifier]
) -> None:
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=list(columns))
    replace_source(table, exp.Lateral(this=exp.Subquery(this=query), alias=alias))


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))
