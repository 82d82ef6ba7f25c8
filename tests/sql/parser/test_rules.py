"""Rows of grammar name the fields of what they make."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass

from tailrace.sql.parse.grammar import STATEMENTS
from tailrace.sql.parse.rules import KINDS, Rules


def test_rows_give_the_fields_of_their_dataclasses() -> None:
    operands = [getattr(kind.read, "__self__", None) for kind in KINDS.values()]
    grammars = [STATEMENTS, *(rules for rules in operands if isinstance(rules, Rules))]
    looked_at = 0
    for rule in (rule for grammar in grammars for rule in grammar.rules):
        if not isinstance(rule.make, type) or not is_dataclass(rule.make):
            continue
        known = {field.name for field in fields(rule.make)}
        needed = {
            field.name
            for field in fields(rule.make)
            if field.default is MISSING and field.default_factory is MISSING
        }
        assert needed <= rule.fields <= known, (rule.make, rule.fields ^ known)
        looked_at += 1
    assert looked_at > 150
