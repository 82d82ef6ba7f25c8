"""Functions and casts of `pg_catalog`, as queries on its tables.

    pg_get_userbyid(c.relowner)     (SELECT rolname FROM pg_catalog.pg_roles WHERE oid = c.relowner)
    'orders'::regclass              (SELECT oid FROM pg_catalog.pg_class WHERE relname = 'orders')
    c.oid::regclass                 (SELECT relname FROM pg_catalog.pg_class WHERE oid = c.oid)

So they know what those tables know, as of the same time, and nothing is looked up row by row. What
PostgreSQL writes only with the schema's name (`OPERATOR(pg_catalog.~)`) is written plainly before
the statement is parsed: functions, types and operators have no other schema here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.column_types import ColumnType, array_of
from ...catalog.type_kinds import CatalogName, TypeKind
from .lexer import POSTGRES
from .tree_names import CAST_TYPE

PREFIX = "pg_catalog"
_OID = ColumnType(TypeKind.INT8, catalog_name=CatalogName.OID)
_TEXT = ColumnType(TypeKind.STRING)
_CATALOG_TYPES = {
    "oid": _OID,
    "oid[]": array_of(_OID),
    "name": _TEXT,
    "name[]": array_of(_TEXT),
    '"char"': ColumnType(TypeKind.STRING, catalog_name=CatalogName.CHAR),
}
_REGISTERED = ("regclass", "regtype", "regnamespace", "regrole", "regproc")


def plain_tokens(tokens: list[Token]) -> list[Token]:
    """The tokens without the schema before functions, types, operators and collations."""
    if not any(token.text.lower() == PREFIX for token in tokens):
        return tokens
    words = [token.text.lower() for token in tokens] + [""] * 5
    kept: list[Token] = []
    place = 0
    while place < len(tokens):
        if words[place] == "operator" and words[place + 1 : place + 4] == ["(", PREFIX, "."]:
            kept.append(tokens[place + 4])
            place += 6
        elif words[place] == "collate" and words[place + 1 : place + 4] == [PREFIX, ".", "default"]:
            place += 4
        elif _qualifies(tokens, words, place):
            place += 2
        else:
            kept.append(tokens[place])
            place += 1
    return kept


def _qualifies(tokens: Sequence[Token], words: Sequence[str], place: int) -> bool:
    """Whether the schema stands before a function's or a type's name here."""
    if words[place] != PREFIX or words[place + 1] != ".":
        return False
    behind = tokens[place - 1].token_type if place else None
    return words[place + 3] == "(" or behind in (TokenType.DCOLON, TokenType.ALIAS)


def expand(tree: exp.Expr) -> exp.Expr:
    """The tree with these functions and casts replaced, inner ones first."""
    for cast in list(tree.find_all(exp.Cast)):
        _keep_oid(cast)
    found = [
        node
        for node in tree.find_all(exp.Anonymous, exp.Cast, exp.Table, exp.Func)
        if _replacement(node) is not None
    ]
    for node in reversed(found):
        made = _replacement(node)
        assert made is not None, node
        if node is tree:
            tree = made
        else:
            node.replace(_named(node, made))
    return tree


def _named(node: exp.Expr, made: exp.Expr) -> exp.Expr:
    """What takes the place of a node, which as an item of a select list keeps its name."""
    if node.arg_key != "expressions" or not isinstance(node.parent, exp.Select):
        return made
    name = node.name.lower() if isinstance(node, exp.Anonymous) else _cast_name(node)
    return exp.Alias(this=made, alias=exp.to_identifier(name, quoted=True)) if name else made


def _cast_name(node: exp.Expr) -> str:
    """A cast has the name of the column that it casts, or else of its type."""
    if not isinstance(node, exp.Cast):
        return ""
    column = node.this.unnest()
    if isinstance(column, exp.Column):
        return column.name
    name: str = node.to.sql("postgres").lower()
    return name.strip('"').removesuffix("[]")


def _keep_oid(cast: exp.Cast) -> None:
    """`x::regclass::oid` is x, where x is an id: its name need not be looked for."""
    inner = cast.this.unnest()
    if not isinstance(inner, exp.Cast) or cast.to.sql("postgres").lower() != "oid":
        return
    named = inner.to.sql("postgres").lower() in _REGISTERED
    if named and isinstance(inner.this.unnest(), exp.Column):
        cast.set("this", inner.this)


def _replacement(node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.Cast():
            return _cast(node)
        case exp.CurrentSchemas():
            implicit = isinstance(node.this, exp.Boolean) and bool(node.this.this)
            return _parse("ARRAY['pg_catalog', 'public']" if implicit else "ARRAY['public']")
        case exp.Table(this=exp.Anonymous() as function):
            name = function.name.lower()
            return _no_rows(node) if name == "pg_partition_ancestors" else None
        case exp.Anonymous() if not isinstance(node.parent, exp.Table):
            make = FUNCTIONS.get(node.name.lower())
            return None if make is None else make(list(node.expressions))
    return None


def _no_rows(table: exp.Table) -> exp.Expr:
    empty = _parse("SELECT NULL::INT8 AS relid, NULL::INT8 AS depth WHERE FALSE")
    return exp.Subquery(this=empty, alias=table.args.get("alias"))


def _parse(text: str) -> exp.Expr:
    tree = POSTGRES.parser().parse(POSTGRES.tokenize(text), text)[0]
    assert tree is not None, text
    return tree


Arguments = list[exp.Expr]
Make = Callable[[Arguments], exp.Expr]


def _query(text: str) -> Make:
    """A scalar subquery; `$1` and so on stand for the arguments, NULL for those left out.

    Aliases begin with an underline, so that they hide no name of an argument.
    """
    template = f"({text})"

    def make(arguments: Arguments) -> exp.Expr:
        if any(not c.args.get("table") for a in arguments for c in a.find_all(exp.Column)):
            return _with_given(arguments, make)
        tree = _parse(template)
        for node in list(tree.find_all(exp.Parameter)):
            number = int(str(node.this.this)) - 1
            node.replace(arguments[number].copy() if number < len(arguments) else exp.Null())
        return tree

    return make


def _with_given(arguments: Arguments, make: Make) -> exp.Expr:
    """The query over arguments computed first: a bare `oid` would be that of the query's tables."""
    names = [f"_{number}" for number in range(1, len(arguments) + 1)]
    given = exp.select(*(exp.alias_(a.copy(), n) for a, n in zip(arguments, names, strict=True)))
    query = exp.select(make([exp.column(name, table="_given") for name in names]))
    return exp.Subquery(this=query.from_(exp.Subquery(this=given, alias=_alias("_given"))))


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name))


def _constant(text: str) -> Make:
    return lambda arguments: _parse(text)


def _first(arguments: Arguments) -> exp.Expr:
    return arguments[0].copy()


def _function(name: str) -> Make:
    return lambda arguments: exp.Anonymous(this=name, expressions=[a.copy() for a in arguments])


_HELD = """
SELECT count(*) > 0 FROM tailrace_internal.grants AS _g
JOIN tailrace_internal.role_closure AS _m ON _m.role = _g.grantee OR _m.role = 'admin'
WHERE (_m.member = CAST($1 AS TEXT) OR CAST(_m.member_oid AS TEXT) = CAST($1 AS TEXT))
    AND _g.kind = '{kind}'
    AND CAST($2 AS TEXT) IN (CAST(_g.object_id AS TEXT), _g.name, _g.full_name)
    AND (_g.privilege = upper(CAST($3 AS TEXT))
        OR _g.grantable AND _g.privilege || ' WITH GRANT OPTION' = upper(CAST($3 AS TEXT)))
"""
_MEMBER = """
SELECT count(*) > 0 FROM tailrace_internal.role_closure AS _m
WHERE (_m.member = CAST($1 AS TEXT) OR CAST(_m.member_oid AS TEXT) = CAST($1 AS TEXT))
    AND (_m.role = CAST($2 AS TEXT)
        OR _m.role IN (SELECT _r.rolname FROM pg_catalog.pg_roles AS _r
                       WHERE CAST(_r.oid AS TEXT) = CAST($2 AS TEXT)))
"""


def _has(kind: str, *, of_column: bool = False) -> Make:
    """`has_table_privilege([user,] table, privilege)` and its kin; a column is as its table."""
    held = _query(_HELD.format(kind=kind))

    def make(arguments: Arguments) -> exp.Expr:
        if of_column and len(arguments) >= 3:
            arguments = [*arguments[:-2], arguments[-1]]
        given = arguments if len(arguments) == 3 else [exp.CurrentUser(), *arguments]
        return held(given)

    return make


def _has_role(arguments: Arguments) -> exp.Expr:
    """`pg_has_role([user,] role, privilege)`"""
    given = arguments if len(arguments) == 3 else [exp.CurrentUser(), *arguments]
    return _query(_MEMBER)(given)


_TYPE_WORDS = (
    ("bool", "boolean"), ("int2", "smallint"), ("int4", "integer"), ("int8", "bigint"),
    ("float4", "real"), ("float8", "double precision"), ("bpchar", "character"),
    ("varchar", "character varying"), ("time", "time without time zone"),
    ("timestamp", "timestamp without time zone"), ("timestamptz", "timestamp with time zone"),
    ("char", '"char"'),
)  # fmt: skip
_WORDS = " ".join(f"WHEN '{name}' THEN '{words}'" for name, words in _TYPE_WORDS)
_FORMAT_TYPE = f"""
SELECT CASE ltrim(_t.typname, '_') {_WORDS} ELSE ltrim(_t.typname, '_') END
    || CASE
        WHEN $2 IS NULL OR $2 < 4 THEN ''
        WHEN _t.typname = 'numeric'
        THEN '(' || (($2 - 4) / 65536) || ',' || (($2 - 4) % 65536) || ')'
        WHEN _t.typname IN ('varchar', 'bpchar') THEN '(' || ($2 - 4) || ')'
        ELSE ''
    END
    || CASE WHEN _t.typelem <> 0 THEN '[]' ELSE '' END
FROM pg_catalog.pg_type AS _t WHERE _t.oid = $1
"""
_VISIBLE = """
$1 IN (SELECT _v.oid FROM pg_catalog.pg_class AS _v
       JOIN pg_catalog.pg_namespace AS _w ON _w.oid = _v.relnamespace
       WHERE _w.nspname IN ('public', 'pg_catalog'))
"""
_OWNED_SEQUENCE = """
SELECT min(_m.nspname || '.' || _s.relname)
FROM pg_catalog.pg_depend AS _d
JOIN pg_catalog.pg_class AS _s ON _s.oid = _d.objid AND _s.relkind = 'S'
JOIN pg_catalog.pg_namespace AS _m ON _m.oid = _s.relnamespace
JOIN pg_catalog.pg_class AS _t ON _t.oid = _d.refobjid
JOIN pg_catalog.pg_namespace AS _n ON _n.oid = _t.relnamespace
JOIN pg_catalog.pg_attribute AS _a ON _a.attrelid = _t.oid AND _a.attnum = _d.refobjsubid
WHERE _a.attname = CAST($2 AS TEXT) AND (
    lower(CAST($1 AS TEXT)) IN (_t.relname, _n.nspname || '.' || _t.relname)
    OR replace(CAST($1 AS TEXT), '"', '') IN (_t.relname, _n.nspname || '.' || _t.relname)
        AND CAST($1 AS TEXT) LIKE '%"%')
"""
_TRUE = _constant("TRUE")
_NULL_TEXT = _constant("CAST(NULL AS TEXT)")

_NAMES = {
    "regclass": "SELECT min(_n.relname) FROM pg_catalog.pg_class AS _n WHERE _n.oid = $1",
    "regtype": _FORMAT_TYPE,
    "regnamespace": "SELECT min(_n.nspname) FROM pg_catalog.pg_namespace AS _n WHERE _n.oid = $1",
    "regrole": "SELECT min(_n.rolname) FROM pg_catalog.pg_roles AS _n WHERE _n.oid = $1",
    "regproc": "SELECT min(_n.proname) FROM pg_catalog.pg_proc AS _n WHERE _n.oid = $1",
}
_OIDS = {
    "regclass": "SELECT min(_n.oid) FROM pg_catalog.pg_class AS _n WHERE _n.relname = $1",
    "regtype": "SELECT min(_n.oid) FROM pg_catalog.pg_type AS _n WHERE _n.typname = $1",
    "regnamespace": "SELECT min(_n.oid) FROM pg_catalog.pg_namespace AS _n WHERE _n.nspname = $1",
    "regrole": "SELECT min(_n.oid) FROM pg_catalog.pg_roles AS _n WHERE _n.rolname = $1",
    "regproc": "SELECT min(_n.oid) FROM pg_catalog.pg_proc AS _n WHERE _n.proname = $1",
}

_VIEW_DEFINITION = _query(
    "SELECT min(_d.ev_action) FROM pg_catalog.pg_rewrite AS _d WHERE _d.ev_class = $1"
)


def _view_definition(arguments: Arguments) -> exp.Expr:
    """`pg_get_viewdef(view [, pretty])`: an object id, or a name as text."""
    view = arguments[0]
    if (isinstance(view, exp.Literal) and view.is_string) or _textual(view):
        view = _cast(exp.cast(view.copy(), "regclass", dialect="postgres")) or view
    return _VIEW_DEFINITION([view])


FUNCTIONS: dict[str, Make] = {
    "pg_table_is_visible": _query(_VISIBLE),
    "pg_type_is_visible": _TRUE,
    "pg_function_is_visible": _TRUE,
    "pg_operator_is_visible": _TRUE,
    "pg_collation_is_visible": _TRUE,
    "pg_relation_is_publishable": _TRUE,
    "has_table_privilege": _has("table"),
    "has_any_column_privilege": _has("table"),
    "has_column_privilege": _has("table", of_column=True),
    "has_schema_privilege": _has("schema"),
    "has_database_privilege": _has("database"),
    "pg_has_role": _has_role,
    "pg_is_in_recovery": _constant("FALSE"),
    "pg_get_userbyid": _query("SELECT _u.rolname FROM pg_catalog.pg_roles AS _u WHERE _u.oid = $1"),
    "pg_get_expr": _first,
    "pg_get_constraintdef": _query(
        "SELECT _d.definition FROM tailrace_internal.definitions AS _d WHERE _d.oid = $1"
    ),
    "pg_get_indexdef": _query(
        "CASE WHEN coalesce($2, 0) = 0 "
        "THEN (SELECT _d.definition FROM tailrace_internal.definitions AS _d WHERE _d.oid = $1) "
        "ELSE (SELECT _d.attname FROM pg_catalog.pg_attribute AS _d "
        "WHERE _d.attrelid = $1 AND _d.attnum = $2) END"
    ),
    "format_type": _query(_FORMAT_TYPE),
    "obj_description": _query(
        "SELECT min(_d.description) FROM pg_catalog.pg_description AS _d "
        "WHERE _d.objoid = $1 AND _d.objsubid = 0"
    ),
    "col_description": _query(
        "SELECT min(_d.description) FROM pg_catalog.pg_description AS _d "
        "WHERE _d.objoid = $1 AND _d.objsubid = $2"
    ),
    "pg_encoding_to_char": _query("CASE WHEN $1 = 6 THEN 'UTF8' ELSE '' END"),
    **{f"to_{name}": _query(text) for name, text in _OIDS.items()},
    "shobj_description": _NULL_TEXT,
    "pg_get_triggerdef": _NULL_TEXT,
    "pg_get_viewdef": _view_definition,
    "pg_get_ruledef": _query(
        "SELECT min('CREATE RULE \"_RETURN\" AS ON SELECT TO ' || _r.relname || ' DO INSTEAD ' "
        "|| ltrim(_d.ev_action)) FROM pg_catalog.pg_rewrite AS _d "
        "JOIN pg_catalog.pg_class AS _r ON _r.oid = _d.ev_class WHERE _d.oid = $1"
    ),
    "pg_get_serial_sequence": _query(_OWNED_SEQUENCE),
    "pg_get_partkeydef": _NULL_TEXT,
    "pg_get_statisticsobjdef_columns": _NULL_TEXT,
    "pg_get_function_result": _NULL_TEXT,
    "pg_get_function_arguments": _NULL_TEXT,
    "pg_get_function_identity_arguments": _NULL_TEXT,
    "pg_table_size": _constant("CAST(NULL AS INT8)"),
    "pg_relation_size": _constant("CAST(NULL AS INT8)"),
    "pg_total_relation_size": _constant("CAST(NULL AS INT8)"),
    "pg_database_size": _constant("CAST(NULL AS INT8)"),
    "pg_size_pretty": _NULL_TEXT,
    "pg_partition_ancestors": lambda arguments: exp.cast(arguments[0].copy(), "INT8"),
    "array_upper": lambda arguments: exp.Anonymous(this="len", expressions=[arguments[0].copy()]),
    "json_build_object": _function("json_object"),
}


def _cast(tree: exp.Cast) -> exp.Expr | None:
    """A cast to a type of `pg_catalog` that columns cannot have; None for all others."""
    name = tree.to.sql("postgres").lower()
    operand: exp.Expr = tree.this
    elements = tree.to.expressions
    if tree.to.this == exp.DType.ARRAY and elements[0].this == exp.DType.UINT:
        name = "oid[]"  # as `meant_tokens` has it read
    known = _CATALOG_TYPES.get(name)
    if known is not None:
        made = exp.cast(operand.copy(), known.broad.duckdb_name)
        made.meta[CAST_TYPE] = known
        return made
    if name not in _REGISTERED:
        return None
    if isinstance(operand, exp.Literal) and operand.is_string:
        text: str = operand.this
        if text.isdecimal():
            return exp.Literal.number(text)
        last = text.rpartition(".")[2].strip('"')
        return _query(_OIDS[name])([exp.Literal.string(last)])
    if isinstance(operand, exp.Parameter) or _textual(operand):
        return _query(_OIDS[name])([operand])
    return _query(_NAMES[name])([operand])


def _textual(operand: exp.Expr) -> bool:
    inner = operand.unnest()
    if not isinstance(inner, exp.Cast):
        return False
    return inner.to.sql("postgres").lower() in ("text", "varchar")
