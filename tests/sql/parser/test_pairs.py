"""Pairs of statement and tree, one file a rule.

A file holds cases: the statement, `----`, what is expected, a blank line. Set TAILRACE_REWRITE=1
to write what the parser says now, and review the difference.
"""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path

import pytest
from sqlglot import exp

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.parse import parse

FOLDER = Path(__file__).parent


def shown(value: object) -> str:
    match value:
        case exp.Expr():
            return f"‹{value.sql('postgres')}›"
        case Enum():
            return value.name
        case tuple():
            return "(" + ", ".join(shown(item) for item in value) + ")"
        case _ if is_dataclass(value):
            parts = [f"{f.name}={shown(getattr(value, f.name))}" for f in fields(value)]
            return f"{type(value).__name__}({', '.join(parts)})"
    return repr(value)


def outcome(text: str) -> str:
    try:
        return "\n".join(shown(statement) for statement in parse(text).statements)
    except SQLError as error:
        return f"position {error.position}: {error}"


def cases(path: Path) -> list[tuple[str, str]]:
    found = []
    for block in path.read_text().split("\n\n"):
        text, _, expected = block.partition("\n----")
        if text.strip():
            found.append((text.strip("\n"), expected.strip("\n")))
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.sql")), ids=lambda path: path.stem)
def test_statements_parse_as_written(path: Path) -> None:
    pairs = [(text, outcome(text)) for text, _ in cases(path)]
    if os.environ.get("TAILRACE_REWRITE"):
        blocks = [f"{text}\n----\n{result}\n" for text, result in pairs]
        path.write_text("\n".join(blocks))
    assert pairs == cases(path)


@pytest.mark.parametrize("text", ["", " ;; ", "-- nothing", "/* nothing */;"])
def test_blank_text_holds_no_statement(text: str) -> None:
    assert parse(text).statements == ()
