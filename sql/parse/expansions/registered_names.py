"""Casts between names and object ids: `'orders'::regclass`, `oid::regtype`, `to_regclass(…)`; and
the scalar subqueries on pg_catalog that stand for them, as for other calls.

    attrelid = 'orders'::regclass       attrelid = (the id of orders); 42P01 if there is none
    SELECT 'orders'::regclass           SELECT 'orders': what a client is shown is the name
    SELECT oid::regtype FROM pg_type    SELECT (the type's name)
    to_regclass($1)                     the id, or NULL
    SELECT l.tableoid FROM pg_language l    SELECT 'pg_catalog.pg_language'::regclass::oid

So an id is a number wherever something is done with it, and its name where it is only shown.
Functions have no ids of their own: what a column says of them is a name, and `regproc` is text.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.type_kinds import CatalogName, TypeKind
from ...results.client_types import ALL_ROWS
from ...syntax.trees import CAST_TYPE, alias_named, folded, folded_alias
from ..dialect import POSTGRES


def parse_text(text: str) -> exp.Expr:
    tree = POSTGRES.parser().parse(POSTGRES.tokenize(text), text)[0]
    assert tree is not None, text
    return tree


Arguments = list[exp.Expr]
Make = Callable[[Arguments], exp.Expr]


def query(text: str) -> Make:
    """A scalar subquery; `$1` and so on stand for the arguments, NULL for those left out.

    Aliases begin with an underline, so that they hide no name of an argument.
    """
    template = f"({text})"

    def make(arguments: Arguments) -> exp.Expr:
        if any(not c.args.get("table") for a in arguments for c in a.find_all(exp.Column)):
            return _with_given(arguments, make)
        tree = parse_text(template)
        for node in list(tree.find_all(exp.Parameter)):
            number = int(str(node.this.this)) - 1
            node.replace(arguments[number].copy() if number < len(arguments) else exp.Null())
        return tree

    return make


def _with_given(arguments: Arguments, make: Make) -> exp.Expr:
    """The query over arguments computed first: a bare `oid` would be that of the query's tables."""
    names = [f"_{number}" for number in range(1, len(arguments) + 1)]
    given = exp.select(*(exp.alias_(a.copy(), n) for a, n in zip(arguments, names, strict=True)))
    over = exp.select(make([exp.column(name, table="_given") for name in names]))
    return exp.Subquery(this=over.from_(exp.Subquery(this=given, alias=alias_named("_given"))))


OID = ColumnType(TypeKind.INT8, catalog_name=CatalogName.OID)

_WORDS = " ".join(
    f"WHEN '{row.name}' THEN '{row.words}'" for row in ALL_ROWS if row.words != row.name
)
FORMAT_TYPE = f"""
SELECT replace(
    CASE WHEN _s.nspname = 'pg_catalog'
        THEN CASE ltrim(_t.typname, '_') {_WORDS} ELSE ltrim(_t.typname, '_') END
        ELSE CASE WHEN _s.nspname = 'public' THEN '' ELSE quote_ident(_s.nspname) || '.' END
            || quote_ident(ltrim(_t.typname, '_'))
    END,
    ' with',
    CASE WHEN $2 >= 0 AND ltrim(_t.typname, '_') IN ('time', 'timestamp', 'timestamptz')
        THEN '(' || $2 || ')' ELSE '' END || ' with')
    || CASE
        WHEN $2 IS NULL OR $2 < 4 THEN ''
        WHEN _t.typname = 'numeric'
        THEN '(' || (($2 - 4) / 65536) || ',' || (($2 - 4) % 65536) || ')'
        WHEN _t.typname IN ('varchar', 'bpchar') THEN '(' || ($2 - 4) || ')'
        ELSE ''
    END
    || CASE WHEN _t.typelem <> 0 AND _t.typstorage <> 'p' THEN '[]' ELSE '' END
FROM pg_catalog.pg_type AS _t JOIN pg_catalog.pg_namespace AS _s ON _s.oid = _t.typnamespace
WHERE _t.oid = $1
"""
_CLASS_NAME = """
SELECT min(CASE WHEN _w.nspname IN ('public', 'pg_catalog') THEN _n.relname
    ELSE _w.nspname || '.' || _n.relname END)
FROM pg_catalog.pg_class AS _n JOIN pg_catalog.pg_namespace AS _w ON _w.oid = _n.relnamespace
WHERE _n.oid = $1
"""
_NAMES = {
    "regclass": _CLASS_NAME,
    "regtype": FORMAT_TYPE,
    "regnamespace": "SELECT min(_n.nspname) FROM pg_catalog.pg_namespace AS _n WHERE _n.oid = $1",
}
"""The name of an id; the id itself, as text, is what an unknown one is shown as."""

_FOLDED = """
CASE WHEN strpos(CAST($1 AS TEXT), '"') > 0
    THEN replace(replace(CAST($1 AS TEXT), ' . ', '.'), '"', '')
    ELSE lower(CAST($1 AS TEXT)) END
"""
_SPELLED = """
SELECT min(_n.oid) FROM tailrace_internal.spellings AS _n
WHERE _n.kind = '{kind}' AND _n.name = {folded}
"""
_MISSING = {"regclass": "42P01|relation", "regtype": "42704|type", "regnamespace": "3F000|schema"}


def _id_of(name: str) -> str:
    return _SPELLED.format(kind=name.removeprefix("reg"), folded=_FOLDED)


def _checked_id_of(name: str) -> str:
    unknown = f"""error('{_MISSING[name]} "' || CAST($1 AS TEXT) || '" does not exist')"""
    return f"coalesce(({_id_of(name)}), {unknown})"


TO_REGISTERED: dict[str, Make] = {f"to_{name}": query(_id_of(name)) for name in _NAMES}
_CHECKED = {name: query(_checked_id_of(name)) for name in _NAMES}
_NAMED = {name: query(text) for name, text in _NAMES.items()}
REGISTERED = (
    *_NAMES, "regproc", "regprocedure", "regoper", "regoperator", "regconfig", "regdictionary",
    "regcollation",
)  # fmt: skip


def registered_cast(cast: exp.Cast) -> exp.Expr | None:
    """The replacement of a cast to a registered type (regclass …); None for all other casts."""
    name = cast.to.sql("postgres").lower()
    if name not in REGISTERED:
        return None
    operand: exp.Expr = cast.this
    while isinstance(operand, exp.Cast) and operand.to == cast.to:  # SQLAlchemy casts twice
        operand = operand.this
        cast.set("this", operand)
    if name not in _NAMES:
        return _function_name(cast)
    if not _textual(operand):
        return _NAMED[name]([operand])
    if isinstance(operand, exp.Literal) and operand.name.isdecimal():
        made = parse_text(operand.name)
    else:
        made = _CHECKED[name]([operand])
    if _shown(cast):
        return _NAMED[name]([made])
    made = exp.cast(made, "BIGINT")
    made.meta[CAST_TYPE] = OID
    return made


def keep_id(cast: exp.Cast) -> None:
    """`x::regclass::oid` is x, where x is an id: its name need not be looked for."""
    inner = cast.this.unnest()
    if not isinstance(inner, exp.Cast) or cast.to.sql("postgres").lower() != "oid":
        return
    if inner.to.sql("postgres").lower() in _NAMES and isinstance(inner.this.unnest(), exp.Column):
        cast.set("this", inner.this)


def named_relation(arguments: Arguments) -> exp.Expr:
    """An argument that is a relation's id, or its name as text."""
    given = arguments[0].copy()
    if not _textual(given) or isinstance(given.unnest(), exp.Parameter):
        return given
    return _CHECKED["regclass"]([given])


SYSTEM_COLUMN = "tableoid"


def table_id(column: exp.Column) -> exp.Expr | None:
    """Returns the replacement of `tableoid`, the one system column of a table in FROM; None for all
    other columns. `ctid`, `xmin` and their kin say where a row lies in a file of PostgreSQL's."""
    if not isinstance(column.this, exp.Identifier) or column.name.lower() != SYSTEM_COLUMN:
        return None
    select = column.find_ancestor(exp.Select)
    first = None if select is None else select.args.get("from_")
    if select is None or first is None:
        return None
    sources = [first.this, *(join.this for join in select.args.get("joins") or ())]
    qualifier = column.args.get("table")
    if qualifier is not None:
        wanted = folded(qualifier)
        sources = [source for source in sources if folded_alias(source) == wanted]
    if len(sources) != 1 or not isinstance(sources[0], exp.Table):
        return None
    name = exp.Literal.string(exp.table_name(sources[0], identify=True))
    made = exp.cast(_CHECKED["regclass"]([name]), "BIGINT")
    made.meta[CAST_TYPE] = OID
    return made


def _function_name(cast: exp.Cast) -> exp.Expr:
    operand: exp.Expr = cast.this
    outer = cast.parent
    if isinstance(outer, exp.Cast) and outer.to.sql("postgres").lower() == "oid":
        return parse_text("error('0A000|functions are built in, and have no object ids')")
    if isinstance(operand, exp.Literal) and operand.is_string:
        return exp.Literal.string(operand.name.rpartition(".")[2])
    return exp.cast(operand.copy(), "TEXT")


def _textual(operand: exp.Expr) -> bool:
    inner = operand.unnest()
    if isinstance(inner, exp.Parameter | exp.DPipe):  # TypeORM joins a schema and a name
        return True
    if isinstance(inner, exp.Literal):
        return bool(inner.is_string)
    if not isinstance(inner, exp.Cast):
        return False
    return inner.to.sql("postgres").lower() in ("text", "varchar", "name")


def _shown(cast: exp.Cast) -> bool:
    """Whether it is an item of the outermost select list."""
    item = cast.parent if isinstance(cast.parent, exp.Alias) else cast
    select = item.parent
    return item.arg_key == "expressions" and isinstance(select, exp.Select) and not select.parent
