"""The parser: SQL text to statements.

What lives here: tokens (sqlglot's Postgres tokenizer), rules that read our own statements by the
grammar in their classes and by the rows of `statements`, and the hand-over of queries, expressions
and plain DML to sqlglot's Postgres parser.
It promises that no clause is silently ignored and that every syntax error has a position. It must
never know whether a table exists.
"""

from .expressions import cast_text, columns_in, parse_expression, renamed, text_of, uses_any
from .grammar import ParsedText, parse

__all__ = [
    "ParsedText",
    "cast_text",
    "columns_in",
    "parse",
    "parse_expression",
    "renamed",
    "text_of",
    "uses_any",
]
