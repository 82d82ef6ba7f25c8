"""Functions and casts of `pg_catalog`, as queries on its tables.

    pg_get_userbyid(c.relowner)     (SELECT rolname FROM pg_catalog.pg_roles WHERE oid = c.relowner)
    'orders'::regclass              (SELECT oid FROM pg_catalog.pg_class WHERE relname = 'orders')
    c.oid::regclass                 (SELECT relname FROM pg_catalog.pg_class WHERE oid = c.oid)

So they know what those tables know, as of the same time, and nothing is looked up row by row. What
PostgreSQL writes only with the schema's name (`OPERATOR(pg_catalog.~)`) is written plainly before
the statement is parsed: functions, types and operators have no other schema here.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ....catalog.values.column_types import STRING, ColumnType, array_of
from ....catalog.values.type_kinds import CatalogName, TypeKind
from ...builtins.macros import PREFIX as MACRO
from ...syntax.trees import CAST_TYPE, alias_named, find_all
from . import registered_names

PREFIX = "pg_catalog"
_CATALOG_TYPES = {
    "oid": registered_names.OID,
    "oid[]": array_of(registered_names.OID),
    "name": STRING,
    "name[]": array_of(STRING),
    '"char"': ColumnType(TypeKind.STRING, catalog_name=CatalogName.CHAR),
}


def plain_tokens(tokens: list[Token]) -> list[Token]:
    """The tokens without the schema before functions, types, operators and collations."""
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
    if behind == TokenType.INTO:  # columns stand in the parentheses
        return False
    return words[place + 3] == "(" or behind in (TokenType.DCOLON, TokenType.ALIAS)


_REPLACED = (exp.Anonymous, exp.Cast, exp.CurrentSchemas, exp.Dot, exp.Bracket)


def expands(kinds: Iterable[type[exp.Expr]], words: Container[str]) -> bool:
    """Whether a tree of nodes of these classes, of a text with these words, may have some of these
    functions and casts."""
    named = any(word in words for word in (registered_names.SYSTEM_COLUMN, *_PROCEDURES))
    return named or any(issubclass(kind, _REPLACED) for kind in kinds)


def expand(tree: exp.Expr) -> exp.Expr:
    """The tree with these functions and casts replaced, inner ones first."""
    for cast in list(find_all(tree, exp.Cast)):
        registered_names.keep_id(cast)
    found = [
        node
        for node in find_all(tree, *_REPLACED, exp.Column, exp.Table)
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
    """Returns a node's replacement; an item of a select list keeps its name."""
    if node.arg_key != "expressions" or not isinstance(node.parent, exp.Select):
        return made
    name = _cast_name(node) if isinstance(node, exp.Cast) else node.name.lower()
    if isinstance(node, exp.CurrentSchemas):
        name = "current_schemas"
    return exp.Alias(this=made, alias=exp.to_identifier(name, quoted=True)) if name else made


def _cast_name(node: exp.Cast) -> str:
    """A cast has the name of the column that it casts, or else of its type."""
    column = node.this.unnest()
    if isinstance(column, exp.Column):
        return column.name
    name: str = node.to.sql("postgres").lower()
    return name.strip('"').removesuffix("[]")


def _replacement(node: exp.Expr) -> exp.Expr | None:
    match node:
        case exp.Cast():
            return _cast(node)
        case exp.Dot():
            return _expanded_array(node)
        case exp.CurrentSchemas():
            implicit = isinstance(node.this, exp.Boolean) and bool(node.this.this)
            return registered_names.parse_text(
                "ARRAY['pg_catalog', 'public']" if implicit else "ARRAY['public']"
            )
        case exp.Table(this=exp.Anonymous() as function):
            return _rows(node, function.name.lower())
        case exp.Anonymous() if not isinstance(node.parent, exp.Table):
            make = FUNCTIONS.get(node.name.lower()) or _of_rows(node)
            return None if make is None else make(list(node.expressions))
        case exp.Column():
            return registered_names.table_id(node) or _number_of_procedure(node)
        case exp.Bracket(this=exp.Column() as column) if column.name.lower() == "typname":
            return _letter(column, node.expressions)
    return None


_PROCEDURES = ("typreceive", "typsend")


def _number_of_procedure(column: exp.Column) -> exp.Expr | None:
    """`typreceive != 0`, by which ADBC asks whether there is one: here it is a name, or `-`."""
    other = column.parent.expression if isinstance(column.parent, exp.EQ | exp.NEQ) else None
    if column.name.lower() not in _PROCEDURES or not isinstance(other, exp.Literal):
        return None
    if other.is_string or other.name != "0":
        return None
    there = exp.NEQ(this=column.copy(), expression=exp.Literal.string("-"))
    return exp.cast(there, "INT8")


def _letter(name: exp.Column, subscripts: list[exp.Expr]) -> exp.Expr | None:
    """`typname[0]`: a `name` is an array of letters, the first of which has the subscript 0."""
    if [each.sql() for each in subscripts] != ["0"]:
        return None
    return exp.Substring(
        this=name.copy(), start=exp.Literal.number(1), length=exp.Literal.number(1)
    )


_SETTING_OF_ROW = registered_names.query(
    "coalesce((SELECT min(_s.setting) FROM pg_catalog.pg_settings AS _s "
    "WHERE lower(_s.name) = lower($1)), CASE WHEN $2 THEN NULL "
    """ELSE error('42704|unrecognized configuration parameter "' || $1 || '"') END)"""
)


_SET_OF_ROW = registered_names.query(
    "CASE WHEN $1 IS NULL THEN NULL "
    "ELSE error('0A000|set_config takes constants and parameters, no columns') END"
)
"""pg_dump sets a variable so where `pg_settings` lists it: no row is none to set."""


def _of_rows(call: exp.Anonymous) -> registered_names.Make | None:
    """`current_setting(s.name)` and `set_config(s.name, …)`, which are of constants elsewhere."""
    made = {"current_setting": _SETTING_OF_ROW, "set_config": _SET_OF_ROW}.get(call.name.lower())
    return None if made is None or call.find(exp.Column) is None else made


def _rows(table: exp.Table, function: str) -> exp.Expr | None:
    """Returns the subquery that replaces a function in FROM."""
    if function in _TABLES:
        made = exp.table_(_TABLES[function], db=PREFIX)
        made.set("alias", table.args.get("alias") or alias_named(function))
        return made
    columns = _EMPTY_FUNCTIONS.get(function)
    if columns is None:
        return None
    empty = registered_names.parse_text(f"SELECT {columns} WHERE FALSE")
    return exp.Subquery(this=empty, alias=table.args.get("alias"))


_TABLES = {"pg_get_keywords": "pg_get_keywords", "pg_show_all_settings": "pg_settings"}
"""Functions that return what a table has."""

_EMPTY_FUNCTIONS = {
    "pg_partition_ancestors": "NULL::INT8 AS relid, NULL::INT8 AS depth",
    "pg_partition_tree": "NULL::INT8 AS relid, NULL::INT8 AS parentrelid, "
    "NULL::BOOL AS isleaf, NULL::INT8 AS level",
    "pg_options_to_table": "NULL::TEXT AS option_name, NULL::TEXT AS option_value",
}
"""Functions that return no rows, because there are no partitions and no foreign tables: their
columns."""


def _constant(text: str) -> registered_names.Make:
    return lambda arguments: registered_names.parse_text(text)


_HELD = """
SELECT count(*) > 0 FROM tailrace_internal.grants AS _g
JOIN tailrace_internal.role_closure AS _m ON _m.role = _g.grantee OR _m.role = 'admin'
WHERE (_m.member = CAST($1 AS TEXT) OR CAST(_m.member_oid AS TEXT) = CAST($1 AS TEXT))
    AND _g.kind = '{kind}'
    AND CAST($2 AS TEXT) IN (CAST(_g.object_id AS TEXT), _g.name, _g.full_name)
    AND (_g.privilege = upper(CAST($3 AS TEXT))
        OR _g.grantable AND _g.privilege || ' WITH GRANT OPTION' = upper(CAST($3 AS TEXT)))
"""


def _has(text: str) -> registered_names.Make:
    """`has_table_privilege([user,] table, privilege)` and its kin."""
    held = registered_names.query(text)
    return lambda given: held(given if len(given) == 3 else [exp.CurrentUser(), *given])


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
_DEFINITION = "SELECT _d.definition FROM tailrace_internal.definitions AS _d WHERE _d.oid = $1"
_DESCRIPTION = (
    "SELECT min(_d.description) FROM pg_catalog.pg_description AS _d "
    "WHERE _d.objoid = $1 AND _d.objsubid = {number}"
)
_FUNCTION = "SELECT min(_f.{column}) FROM tailrace_internal.functions AS _f WHERE _f.oid = $1"
_ALL_VISIBLE = (
    "type", "function", "operator", "collation", "conversion", "opclass", "opfamily",
    "statistics_obj", "ts_config", "ts_dict", "ts_parser", "ts_template",
)  # fmt: skip
_NOT_THERE = (
    "pg_get_function_sqlbody", "pg_get_functiondef", "pg_get_statisticsobjdef",
    "pg_get_function_arg_default", "shobj_description", "pg_get_triggerdef", "pg_get_partkeydef",
    "pg_get_statisticsobjdef_columns", "oidvectortypes", "pg_get_ruledef",
)  # fmt: skip
"""Functions that tell of what there is none of."""

_OWNERS_LETTERS = {
    "r": "arwdDxt", "s": "rwU", "d": "CTc", "f": "X", "l": "U", "L": "rw", "n": "UC", "p": "sA",
    "t": "C", "F": "U", "S": "U", "T": "U",
}  # fmt: skip
_PUBLIC_LETTERS = {"d": "Tc", "f": "X", "l": "U", "T": "U"}


def _default_acl() -> str:
    """`acldefault(kind, owner)`: what PostgreSQL gives the owner of a new object, and everybody."""
    cases = " ".join(
        f"WHEN '{kind}' THEN ARRAY[{everybody}_o.rolname || '={letters}/' || _o.rolname]"
        for kind, letters in _OWNERS_LETTERS.items()
        for everybody in (
            f"'={_PUBLIC_LETTERS[kind]}/' || _o.rolname, " if kind in _PUBLIC_LETTERS else "",
        )
    )
    none = "ARRAY[]::TEXT[]"
    return (
        f"SELECT CASE CAST($1 AS TEXT) {cases} ELSE {none} END FROM pg_catalog.pg_roles AS _o "
        "WHERE _o.oid = $2"
    )


def _owned_sequence(arguments: registered_names.Arguments) -> exp.Expr:
    """A text, and plainly so: drivers cast it to `regclass`."""
    return exp.cast(registered_names.query(_OWNED_SEQUENCE)(arguments), "text", dialect="postgres")


# Sizes: queries on what the store says of them.

_SIZE = "SELECT min({column}) FROM tailrace_internal.sizes AS _z WHERE _z.oid = $1"


def _of_relation(make: registered_names.Make) -> registered_names.Make:
    """The first argument is a relation's object id, or its name as text."""
    return lambda given: make([registered_names.named_relation(given), *given[1:]])


_TEXTS = {
    "pg_table_is_visible": _VISIBLE,
    "pg_get_userbyid": "SELECT _u.rolname FROM pg_catalog.pg_roles AS _u WHERE _u.oid = $1",
    "acldefault": _default_acl(),
    # How pretty a definition is to be changes nothing; a parameter there is a BOOL all the same.
    "pg_get_constraintdef": "CASE WHEN coalesce(CAST($2 AS BOOLEAN), TRUE) IS NOT NULL "
    f"THEN ({_DEFINITION}) END",
    "pg_get_indexdef": "CASE WHEN coalesce(CAST($3 AS BOOLEAN), TRUE) IS NOT NULL "
    f"AND coalesce($2, 0) = 0 THEN ({_DEFINITION}) "
    "ELSE (SELECT _d.attname FROM pg_catalog.pg_attribute AS _d "
    "WHERE _d.attrelid = $1 AND _d.attnum = $2) END",
    "format_type": registered_names.FORMAT_TYPE,
    "obj_description": _DESCRIPTION.format(number=0),
    "col_description": _DESCRIPTION.format(number="$2"),
    "pg_describe_object": "coalesce((SELECT min('schema ' || _d.nspname) "
    "FROM pg_catalog.pg_namespace AS _d WHERE _d.oid = $2), "
    "(SELECT min('table ' || _d.relname) FROM pg_catalog.pg_class AS _d WHERE _d.oid = $2))",
    "pg_char_to_encoding": "CASE WHEN lower($1) IN ('utf8', 'utf-8', 'unicode') THEN 6 ELSE -1 END",
    "pg_encoding_to_char": "CASE WHEN $1 = 6 THEN 'UTF8' ELSE '' END",
    "pg_get_function_result": _FUNCTION.format(column="result"),
    "pg_get_function_arguments": _FUNCTION.format(column="arguments"),
    "pg_get_function_identity_arguments": _FUNCTION.format(column="arguments"),
    "pg_tablespace_size": "SELECT CAST(sum(_z.bytes) AS INT8) "
    "FROM tailrace_internal.database_sizes AS _z "
    "WHERE CAST($1 AS TEXT) IN ('pg_default', '1663')",
    "pg_database_size": "SELECT min(_z.bytes) FROM tailrace_internal.database_sizes AS _z "
    "WHERE CAST($1 AS TEXT) IN (_z.name, CAST(_z.oid AS TEXT))",
}
"""Functions as the queries that say what they say of their arguments."""

_OF_RELATION = {
    # The forks beside the main one are PostgreSQL's.
    "pg_relation_size": "CASE WHEN coalesce(CAST($2 AS TEXT), 'main') = 'main' "
    f"THEN ({_SIZE.format(column='_z.main_bytes')}) ELSE 0 END",
    "pg_table_size": _SIZE.format(column="_z.main_bytes"),
    "pg_indexes_size": _SIZE.format(column="_z.total_bytes - _z.main_bytes"),
    "pg_total_relation_size": _SIZE.format(column="_z.total_bytes"),
    "pg_get_viewdef": "SELECT min(_d.ev_action) FROM pg_catalog.pg_rewrite AS _d "
    "WHERE _d.ev_class = $1",
}
"""Likewise, of a relation's object id or its name as text."""

_CONSTANTS = {
    **{f"pg_{kind}_is_visible": "TRUE" for kind in _ALL_VISIBLE},
    "pg_relation_is_publishable": "TRUE",
    **dict.fromkeys(_NOT_THERE, "CAST(NULL AS TEXT)"),
    "pg_blocking_pids": "CAST(NULL AS INT8[])",
    "pg_is_in_recovery": "FALSE",
    "pg_last_xact_replay_timestamp": "CAST(NULL AS TIMESTAMPTZ)",
    "getdatabaseencoding": "'UTF8'",
    "pg_tablespace_location": "''",
    "pg_stat_get_numscans": "CAST(NULL AS INT8)",
}

FUNCTIONS: dict[str, registered_names.Make] = {
    **{name: registered_names.query(text) for name, text in _TEXTS.items()},
    **{name: _of_relation(registered_names.query(text)) for name, text in _OF_RELATION.items()},
    **{name: _constant(text) for name, text in _CONSTANTS.items()},
    **{
        f"has_{kind}_privilege": _has(_HELD.format(kind=kind))
        for kind in ("table", "schema", "database", "sequence", "type")
    },
    "pg_get_expr": lambda arguments: arguments[0].copy(),
    **registered_names.TO_REGISTERED,
    "pg_get_serial_sequence": _owned_sequence,
    "pg_partition_ancestors": lambda arguments: exp.cast(arguments[0].copy(), "INT8"),
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
    return registered_names.registered_cast(tree)


_EXPANDED = "_pg_expandarray"


def _expanded_array(node: exp.Dot) -> exp.Expr | None:
    """Returns the replacement of a call of _pg_expandarray, by which JDBC asks for keys, or
    of a field of one: the elements of an array and their places, as rows.

        (information_schema._pg_expandarray(i.indkey)).n     generate_series(1, len(i.indkey))
        (information_schema._pg_expandarray(i.indkey)).x     unnest(i.indkey)
        information_schema._pg_expandarray(i.indkey) AS k    unnest(structs of x and n), for (k).x
    """
    call = _expanding(node)
    if call is not None:
        arguments = [array.copy() for array in call.expressions]
        return exp.Explode(this=exp.Anonymous(this=f"{MACRO}{_EXPANDED}", expressions=arguments))
    inner = node.this.unnest()
    call = _expanding(inner.this if isinstance(inner, exp.Explode) else inner)
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


def _expanding(node: exp.Expr) -> exp.Anonymous | None:
    if isinstance(node, exp.Dot) and node.this.name.lower() == "information_schema":
        node = node.expression
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1:
        return node if node.name.lower().removeprefix(MACRO) == _EXPANDED else None
    return None


CATALOG_CALLS = frozenset((*FUNCTIONS, *_TABLES, *_EMPTY_FUNCTIONS))
"""The names of all functions that are queries of the catalogs."""
