"""The grammar of identity columns, and of INSERT's OVERRIDING."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token

from ....catalog.descriptors.elements import Identity
from ...syntax.conflict_clause import Overriding
from ...syntax.schema_statements import AddIdentity, DropIdentity, IdentityClause, SetIdentity
from ...syntax.type_statements import SequenceChange
from ..cursor import Cursor, syntax_error
from .sequences import sequence_option, sequence_options


def identity_mode(cursor: Cursor) -> Identity | None:
    """`GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY`, or None before anything else."""
    if cursor.accept_words("generated", "always", "as", "identity"):
        return Identity.ALWAYS
    if cursor.accept_words("generated", "by"):
        cursor.expect_words("default", "as", "identity")
        return Identity.BY_DEFAULT
    return None


def identity_options(cursor: Cursor) -> SequenceChange:
    """`[(option …)]`, those of CREATE SEQUENCE."""
    if not cursor.accept_symbol("("):
        return SequenceChange(position=cursor.position)
    options = sequence_options(cursor)
    cursor.expect_symbol(")")
    return options


def alter_identity(
    cursor: Cursor, name: str, position: int
) -> AddIdentity | SetIdentity | DropIdentity | None:
    """Reads ALTER COLUMN's commands about an identity; None at any other command.

    ADD GENERATED … AS IDENTITY [(option …)]
    {SET GENERATED … | SET option | RESTART [[WITH] n]} …
    DROP IDENTITY [IF EXISTS]
    """
    if cursor.accept_words("add"):
        mode = identity_mode(cursor)
        if mode is None:
            cursor.fail(expected="GENERATED")
        clause = IdentityClause(mode, identity_options(cursor))
        return AddIdentity(name=name, clause=clause, position=position)
    if cursor.accept_words("drop", "identity"):
        if_exists = cursor.accept_words("if", "exists")
        return DropIdentity(name=name, if_exists=if_exists, position=position)
    if cursor.at_words("restart") or (
        cursor.at_words("set") and not cursor.at_words("set", "data")
    ):
        return _set_identity(cursor, name, position)
    return None


def _set_identity(cursor: Cursor, name: str, position: int) -> SetIdentity:
    identity = None
    found: dict[str, object] = {}
    while True:
        if cursor.accept_words("set", "generated", "always"):
            identity = Identity.ALWAYS
        elif cursor.accept_words("set", "generated", "by", "default"):
            identity = Identity.BY_DEFAULT
        elif cursor.at_words("restart") or cursor.accept_words("set"):
            sequence_option(cursor, found)
        else:
            break
    options = SequenceChange(position=position, **found) if found else None  # type: ignore[arg-type]
    return SetIdentity(name=name, identity=identity, options=options, position=position)


def without_overriding(text: str, tokens: list[Token]) -> tuple[list[Token], Overriding | None]:
    """The tokens of an INSERT without `OVERRIDING {SYSTEM | USER} VALUE`, which stands behind the
    list of columns, and what it said."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        word = token.text.lower()
        if depth == 0 and word in ("values", "select", "with", "default", "table", "returning"):
            break
        if depth or place < 3 or word != "overriding":
            continue
        said = overriding_at(text, tokens, place)
        return [*tokens[:place], *tokens[place + 3 :]], said
    return tokens, None


def overriding_at(text: str, tokens: list[Token], place: int) -> Overriding:
    """Reads `OVERRIDING … VALUE` at a place of the tokens. Raises SQLError 42601."""
    token = tokens[place]
    said = [following.text.lower() for following in tokens[place + 1 : place + 3]]
    if said not in (["system", "value"], ["user", "value"]):
        raise syntax_error(
            text,
            token.start,
            token.end + 1,
            hint="Expected OVERRIDING SYSTEM VALUE or OVERRIDING USER VALUE.",
        )
    return Overriding(said[0])
