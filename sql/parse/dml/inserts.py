"""What sqlglot does not read of an INSERT within other statements: UPSERT, and OVERRIDING.

    WITH a AS (UPSERT INTO t …), b AS (INSERT INTO u (k) OVERRIDING SYSTEM VALUE VALUES …) SELECT …

is read as if both were plain INSERTs; what they said is known by the place of their tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...syntax.conflict_clause import Overriding
from ...syntax.statements import InsertMode
from ...syntax.tree_names import position_of
from ..ddl.identity import overriding_at


@dataclass(frozen=True, slots=True)
class Inserts:
    """What the INSERTs of a statement said, by where the names of their tables begin."""

    upserts: set[int] = field(default_factory=set)
    overriding: dict[int, Overriding] = field(default_factory=dict)

    def of(self, tree: exp.Insert) -> tuple[InsertMode, Overriding | None]:
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        first = position_of(target.args.get("catalog") or target.args.get("db") or target.this)
        assert first is not None, tree
        mode = InsertMode.UPSERT if first - 1 in self.upserts else InsertMode.INSERT
        return mode, self.overriding.get(first - 1)


def plain_inserts(text: str, tokens: list[Token]) -> tuple[list[Token], Inserts]:
    """The tokens with INSERT for UPSERT and without OVERRIDING, and what was said so."""
    found = Inserts()
    kept: list[Token] = []
    table, skipped = -1, 0
    for place, token in enumerate(tokens):
        if skipped:
            skipped -= 1
            continue
        word = token.text.lower()
        into = place + 2 < len(tokens) and tokens[place + 1].token_type == TokenType.INTO
        if into and word in ("insert", "upsert"):
            table = tokens[place + 2].start
            if word == "upsert":
                found.upserts.add(table)
                token = Token(
                    TokenType.INSERT, "INSERT", token.line, token.col, token.start, token.end
                )
        elif (
            word == "overriding" and place and tokens[place - 1].text in (")", _name(tokens, table))
        ):
            found.overriding[table] = overriding_at(text, tokens, place)
            skipped = 2
            continue
        kept.append(token)
    return kept, found


def _name(tokens: list[Token], start: int) -> str:
    """The last part of the table's name that begins there, which OVERRIDING may stand behind."""
    place = next((n for n, token in enumerate(tokens) if token.start == start), None)
    if place is None:
        return ""
    while place + 2 < len(tokens) and tokens[place + 1].text == ".":
        place += 2
    return tokens[place].text
