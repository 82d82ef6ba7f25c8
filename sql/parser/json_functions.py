"""What PostgreSQL means by `->` in a function's argument, and by a function on documents in FROM.

f(doc -> 'a')                            sqlglot reads a lambda; it is a member of a document
FROM jsonb_array_elements(doc) AS e      FROM UNNEST(JSONB_ELEMENTS(doc)) AS e(value)
FROM jsonb_each(doc) AS e                FROM LATERAL (SELECT … AS key, … AS value) AS e
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

_ELEMENTS = ("jsonb_array_elements", "jsonb_array_elements_text")
_KEYS = "jsonb_object_keys"
CALLED = "called"
"""Where what stands for a function keeps the function's name, which its column has."""
_LISTS = {
    "jsonb_array_elements": "jsonb_elements",
    "jsonb_array_elements_text": "jsonb_element_texts",
    _KEYS: "jsonb_keys",
}
_MEMBERS = {"jsonb_each": "jsonb_pairs", "jsonb_each_text": "jsonb_text_pairs"}


def plain_documents(tree: exp.Expr) -> exp.Expr:
    """The tree with both in the form that everything behind it reads."""
    for node in list(tree.find_all(exp.Lambda)):
        made = _member(node)
        if node is tree:
            tree = made
        else:
            node.replace(made)
    for function in list(tree.find_all(exp.Anonymous)):
        _plain_sequence(function)
        _replace_function(function)
    return tree


def _plain_sequence(node: exp.Anonymous) -> None:
    """`nextval('s'::regclass)`: the name is looked for when it is called."""
    if node.name.lower() in ("nextval", "currval", "setval") and node.expressions:
        first = node.expressions[0]
        if isinstance(first, exp.Cast) and isinstance(first.this, exp.Literal):
            first.replace(first.this)


def _member(node: exp.Lambda) -> exp.Expr:
    """`doc -> 'a' = 'b'` read as `lambda doc: 'a' = 'b'`: what comes first behind the arrow is the
    member's name."""
    body: exp.Expr = node.this
    leaf = body
    while isinstance(leaf.this, exp.Expr) and not isinstance(leaf, exp.Column | exp.Func):
        leaf = leaf.this
    while isinstance(leaf, exp.JSONExtract | exp.JSONExtractScalar):
        leaf = leaf.this
    document = exp.Column(this=node.expressions[0].copy())
    name = leaf.this if isinstance(leaf, exp.Literal) else None
    path: exp.Expr = leaf.copy()
    if isinstance(leaf, exp.Literal):
        step: exp.Expr = (
            exp.JSONPathKey(this=name)
            if leaf.is_string
            else exp.JSONPathSubscript(this=int(str(name)))
        )
        path = exp.JSONPath(expressions=[exp.JSONPathRoot(), step])
    member = exp.JSONExtract(this=document, expression=path, only_json_types=True)
    if leaf is body:
        return member
    leaf.replace(member)
    return body


def _replace_function(node: exp.Anonymous) -> None:
    name = node.name.lower()
    name = name if name.startswith("jsonb_") else name.replace("json_", "jsonb_", 1)
    if len(node.expressions) != 1 or name not in {*_ELEMENTS, *_MEMBERS, _KEYS}:
        return
    (document,) = node.expressions
    if not isinstance(node.parent, exp.Table):
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
        default = "value" if name in _ELEMENTS else named
        # A function of one column gives it the alias's own name, but for those that name theirs.
        unnest = exp.Unnest(
            expressions=[_list_of(name, document)],
            alias=exp.TableAlias(
                this=exp.to_identifier(named, quoted=True),
                columns=[exp.to_identifier(given[0] if given else default, quoted=True)],
            ),
        )
        _keep(table, unnest)


def _list_of(name: str, document: exp.Expr) -> exp.Expr:
    return _call(_LISTS[name], document)


def _members(list: str, document: exp.Expr, given: Sequence[str]) -> exp.Expr:
    names = [*given, *["key", "value"][len(given) :]]
    pairs = exp.select(exp.alias_(exp.Explode(this=_call(list, document)), "pair")).subquery("m")
    return exp.select(
        *(
            exp.alias_(
                _call("struct_extract", exp.column("pair"), exp.Literal.string(part)),
                name,
                quoted=True,
            )
            for part, name in zip(("key", "value"), names, strict=False)
        )
    ).from_(pairs)


def _replace_table(
    table: exp.Table, query: exp.Expr, name: str, columns: Sequence[exp.Identifier]
) -> None:
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=list(columns))
    _keep(table, exp.Lateral(this=exp.Subquery(this=query), alias=alias))


def _keep(table: exp.Table, made: exp.Expr) -> None:
    """Puts `made` in the place of a table, with what is joined to it."""
    if table.args.get("joins"):
        made.set("joins", table.args["joins"])
    if isinstance(table.parent, exp.Lateral):
        table.parent.replace(made)
    else:
        table.replace(made)


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))
