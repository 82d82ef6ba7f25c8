"""UPSERT and OVERRIDING, which sqlglot does not read: INSERTs without them, and what they said."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token, TokenType

from ...syntax.names import ObjectName
from ...syntax.refusals import unsupported
from ...syntax.statements import InsertMode
from ..cursor import syntax_error
from ..lexer import like


@dataclass(frozen=True, slots=True)
class Inserts:
    """OVERRIDING and UPSERT of a statement's INSERTs, by the positions of their tables' names."""

    upserts: set[int] = field(default_factory=set)
    overriding: set[int] = field(default_factory=set)

    def of(self, table: ObjectName) -> tuple[InsertMode, bool]:
        begin = table.position - 1
        mode = InsertMode.UPSERT if begin in self.upserts else InsertMode.INSERT
        return mode, begin in self.overriding


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
                token = like(token, TokenType.INSERT, "INSERT")
        elif (
            word == "overriding" and place and tokens[place - 1].text in (")", _name(tokens, table))
        ):
            _check_overriding(text, tokens, place)
            found.overriding.add(table)
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


def _check_overriding(text: str, tokens: list[Token], place: int) -> None:
    """Raises SQLError where no `OVERRIDING SYSTEM VALUE` stands at a place of the tokens."""
    token = tokens[place]
    said = [following.text.lower() for following in tokens[place + 1 : place + 3]]
    if said == ["user", "value"]:
        hint = "Leave the identity column out of the list of columns: then its value is drawn."
        raise unsupported("OVERRIDING USER VALUE", token.start + 1, hint)
    if said != ["system", "value"]:
        hint = "Expected OVERRIDING SYSTEM VALUE."
        raise syntax_error(text, token.start, token.end + 1, hint=hint)
