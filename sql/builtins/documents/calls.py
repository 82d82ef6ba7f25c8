"""Calls of documents' functions, what each takes, and documents that a query's text says."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import ColumnType
from ....catalog.values.type_kinds import TypeKind

JSONB = ColumnType(TypeKind.JSONB)

_CALL = "document_call"

FUNCTIONS: dict[str, tuple[str, str, int]] = {
    "jsonb_typeof": ("jsonb_typeof", "d", 1),
    "jsonb_array_length": ("jsonb_array_length", "d", 1),
    "jsonb_strip_nulls": ("jsonb_strip_nulls", "d", 1),
    "jsonb_pretty": ("jsonb_pretty", "d", 1),
    "jsonb_set": ("jsonb_set", "dsdt", 3),
    "jsonb_extract_path": ("jsonb_at_path", "ds", 2),
    "jsonb_extract_path_text": ("jsonb_text_at_path", "ds", 2),
    "jsonb_elements": ("jsonb_elements", "d", 1),
    "jsonb_element_texts": ("jsonb_element_texts", "d", 1),
    "jsonb_keys": ("jsonb_keys", "d", 1),
    "jsonb_pairs": ("jsonb_pairs", "d", 1),
    "jsonb_text_pairs": ("jsonb_text_pairs", "d", 1),
}
"""By name: the function, what it takes (documents, sets of texts, anything), how many at least."""


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
