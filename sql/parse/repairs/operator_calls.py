"""Functions that are operators by another name, for drivers that take `?` for a parameter.

jsonb_exists_any(doc, keys)     doc ?| keys
jsonb_concat(a, b)              a || b
"""

from __future__ import annotations

from sqlglot import exp

from ...syntax.output_marks import CALLED
from ...syntax.walks import find_all

_OPERATORS: dict[str, type[exp.Binary]] = {
    "jsonb_exists_any": exp.JSONBContainsAnyTopKeys,
    "jsonb_exists_all": exp.JSONBContainsAllTopKeys,
    "jsonb_contains": exp.ArrayContainsAll,
    "jsonb_contained": exp.ArrayContainedBy,
    "jsonb_concat": exp.DPipe,
    "jsonb_delete": exp.Sub,
    "jsonb_delete_path": exp.JSONBDeleteAtPath,
}
_OF_DOCUMENTS = ("jsonb_contains", "jsonb_contained", "jsonb_concat")
"""Operators whose second operand is a document, too."""


def plain_calls(tree: exp.Expr) -> exp.Expr:
    """The tree with every such call as its operator."""
    # Inner ones first.
    for call in reversed(list(find_all(tree, exp.Anonymous, exp.JSONBContains))):
        known = isinstance(call, exp.JSONBContains)
        name = "jsonb_contains" if known else call.name.lower()
        operands = [call.this, call.expression] if known else call.expressions
        operator = _OPERATORS.get(name)
        if operator is None or len(operands) != 2 or call is tree:
            continue
        left, right = operands
        if name in _OF_DOCUMENTS:
            right = _document(right)
        made = exp.Paren(this=operator(this=_document(left), expression=right))
        made.meta[CALLED] = name
        call.replace(made)
    return tree


def _document(operand: exp.Expr) -> exp.Expr:
    """Returns the operand; a text literal becomes a document."""
    literal = isinstance(operand, exp.Literal) and operand.is_string
    return exp.cast(operand, "jsonb", dialect="postgres") if literal else operand
