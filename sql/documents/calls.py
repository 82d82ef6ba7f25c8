"""Calls of documents' functions, and documents that a query's text says."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.column_types import ColumnType
from ...catalog.type_kinds import TypeKind

JSONB = ColumnType(TypeKind.JSONB)

_CALL = "document_call"


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call; the arguments move into it."""
    made = exp.Anonymous(this=name, expressions=list(arguments))
    made.meta[_CALL] = True
    return made


def is_call(node: exp.Expr) -> bool:
    """Whether a call was made here, and not by a user."""
    return _CALL in node.meta


def is_literal(node: exp.Expr) -> bool:
    inner = node.unnest()
    return isinstance(inner, exp.Literal) and inner.is_string


def literal_document(node: exp.Expr) -> exp.Expr:
    """A text literal as a document. It is read when the statement is planned."""
    return exp.cast(node.copy(), "jsonb", dialect="postgres")
