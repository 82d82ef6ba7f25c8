"""The grammar of ranges: where they are, and where they shall begin.

ALTER TABLE t SPLIT AT VALUES (10), (20)
ALTER INDEX t@i UNSPLIT ALL
SHOW RANGES FROM TABLE t
SHOW RANGES FROM KEYSPACE ks
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...syntax.keyspace_statements import ShowKeyspaceRanges
from ...syntax.refusals import unsupported
from ...syntax.statements import RangesOf, ShowRanges, SplitAt, UnsplitAt
from ..cursor import Cursor
from ..queries import parse_tree


def change_of_ranges(cursor: Cursor, of: RangesOf) -> SplitAt | UnsplitAt | None:
    """Reads SPLIT AT and UNSPLIT behind the name in ALTER TABLE or ALTER INDEX; None at other
    commands."""
    position = cursor.position
    if cursor.accept_words("split"):
        cursor.expect_words("at")
        rows = _values(cursor)
        if cursor.at_words("with"):
            raise unsupported("WITH EXPIRATION", cursor.position, "UNSPLIT gives a border up.")
        return SplitAt(of=of, rows=rows, position=position)
    if cursor.accept_words("unsplit"):
        if cursor.accept_words("all"):
            return UnsplitAt(of=of, rows=None, position=position)
        cursor.expect_words("at")
        rows = _values(cursor)
        return UnsplitAt(of=of, rows=rows, position=position)
    return None


def show_ranges(cursor: Cursor) -> ShowRanges | ShowKeyspaceRanges:
    """`FROM TABLE table` or `FROM INDEX table@index`, `[WITH DETAILS]`, or `FROM KEYSPACE name`"""
    cursor.expect_words("from")
    if cursor.accept_words("keyspace"):
        return ShowKeyspaceRanges(cursor.object_name("a keyspace's name"))
    if cursor.accept_words("index"):
        table = cursor.object_name("a table's name")
        cursor.expect_symbol("@")
        of = RangesOf(table=table, index=cursor.identifier("an index's name"))
    else:
        cursor.expect_words("table")
        of = RangesOf(table=cursor.object_name("a table's name"), index=None)
    details = cursor.accept_words("with")
    if details:
        cursor.expect_words("details")
    return ShowRanges(of=of, details=details)


def _values(cursor: Cursor) -> tuple[tuple[exp.Expr, ...], ...]:
    if cursor.at_words("select"):
        raise unsupported("SPLIT AT SELECT", cursor.position, "Write SPLIT AT VALUES (…), (…).")
    if not cursor.at_words("values"):
        cursor.fail(expected="VALUES")
    position = cursor.position
    tree = parse_tree(cursor.text, cursor.until(lambda: cursor.at_words("with")))
    assert isinstance(tree, exp.Values), tree
    rows = tuple(
        tuple(row.expressions) if isinstance(row, exp.Tuple) else (row.unnest(),)
        for row in tree.expressions
    )
    if not all(rows):
        raise SQLError("42601", "a border needs a value", position=position)
    return rows
