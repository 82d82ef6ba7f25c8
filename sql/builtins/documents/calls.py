"""Calls of documents' functions, what each takes, and documents that a query's text says."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.column_types import INT8, JSONB, STRING, ColumnType, array_of

_CALL = "document_call"

FUNCTIONS: dict[str, tuple[str, str, int]] = {
    "jsonb_typeof": ("jsonb_typeof", "d", 1),
    "jsonb_array_length": ("jsonb_array_length", "d", 1),
    "jsonb_set": ("jsonb_set", "dsdt", 3),
    "jsonb_extract_path": ("jsonb_at_path", "ds", 2),
    "jsonb_extract_path_text": ("jsonb_text_at_path", "ds", 2),
    "jsonb_elements": ("jsonb_elements", "d", 1),
    "jsonb_element_texts": ("jsonb_element_texts", "d", 1),
}
"""By name: the function, what it takes (documents, sets of texts, anything), how many at least."""


BUILDERS = (
    "to_jsonb", "to_json", "row_to_json", "array_to_json", "jsonb_build_object",
    "json_build_object", "jsonb_build_array", "json_build_array", "jsonb_agg", "json_agg",
)  # fmt: skip
"""Functions that make documents of values of any type."""
_PATHS = ("jsonb_extract_path", "json_extract_path")
RESULTS: dict[str, ColumnType] = {
    **dict.fromkeys((*BUILDERS, *_PATHS, "jsonb_set"), JSONB),
    **dict.fromkeys(("jsonb_typeof", "json_typeof", *(f"{path}_text" for path in _PATHS)), STRING),
    **dict.fromkeys(("jsonb_array_length", "json_array_length"), INT8),
    "jsonb_element_texts": array_of(STRING),
    "jsonb_elements": array_of(JSONB),
}
"""The types that functions of a query's text return."""


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
