"""MERGE: sqlglot's tree, behind our errors."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ....catalog.values.errors import SQLError
from ...syntax.conflict_clause import Overriding
from ...syntax.merge_statements import Merge, MergeAction, MergeWhen
from ...syntax.tree_names import folded, position_of, table_name
from ..cursor import syntax_error
from ..ddl.identity import overriding_at
from ..queries import parse_tree
from .assignments import assignments
from .writes import ctes_of


def parse_merge(text: str, tokens: list[Token]) -> Merge:
    """A statement that begins with MERGE, or with WITH before it. Raises SQLError."""
    tokens, overriding = _without_overriding(text, tokens)
    tree = parse_tree(text, _with_wrapped_source(tokens))
    if not isinstance(tree, exp.Merge) and tree.find(exp.Merge) is not None:
        raise SQLError(
            "0A000",
            "MERGE is not supported within WITH",
            position=position_of(tree.find(exp.Merge)),
        )
    if not isinstance(tree, exp.Merge):
        raise syntax_error(text, tokens[0].start, tokens[0].end + 1)
    if tree.args.get("returning") is not None:
        place = next(t.start for t in tokens if t.text.lower() == "returning")
        raise syntax_error(text, place, place + len("returning"))
    return merge_of(tree, overriding)


def merge_of(tree: exp.Merge, overriding: list[Overriding | None]) -> Merge:
    """`overriding` tells it of each INSERT among the actions."""
    target = tree.this
    alias = target.args.get("alias")
    whens: list[MergeWhen] = []
    inserts = iter(overriding)
    for when in tree.args["whens"].expressions:
        made = _when(when, inserts)
        closed = [w for w in whens if w.matched is made.matched and w.condition is None]
        if closed:
            raise SQLError(
                "42601",
                "unreachable WHEN clause specified after unconditional WHEN clause",
                position=made.position,
            )
        whens.append(made)
    return Merge(
        table=table_name(target),
        alias=None if alias is None else folded(alias.this),
        source=tree.args["using"],
        condition=tree.args["on"],
        whens=tuple(whens),
        ctes=ctes_of(tree),
    )


def _when(when: exp.When, inserts: object) -> MergeWhen:
    matched = bool(when.args.get("matched"))
    condition = when.args.get("condition")
    then = when.args["then"]
    position = position_of(when) or 1
    if when.args.get("source"):
        raise SQLError("0A000", "WHEN NOT MATCHED BY SOURCE is not supported", position=position)
    match then:
        case exp.Update() if matched:
            return MergeWhen(
                matched=True,
                condition=condition,
                action=MergeAction.UPDATE,
                assignments=assignments(then.expressions),
                position=position,
            )
        case exp.Insert() if not matched:
            columns, values = _inserted(then)
            said = next(inserts, None)  # type: ignore[call-overload]
            return MergeWhen(
                matched=False,
                condition=condition,
                action=MergeAction.INSERT,
                columns=columns,
                values=values,
                overriding=said,
                position=position,
            )
        case exp.Var() if then.name.upper() == "DELETE" and matched:
            action = MergeAction.DELETE
        case exp.Var() if then.name.upper() == "DO NOTHING":
            action = MergeAction.NOTHING
        case _:
            verb = then.name if isinstance(then, exp.Var) else then.key
            kind = "MATCHED" if matched else "NOT MATCHED"
            raise SQLError("42601", f"WHEN {kind} cannot {verb.upper()} a row", position=position)
    return MergeWhen(matched=matched, condition=condition, action=action, position=position)


def _inserted(
    then: exp.Insert,
) -> tuple[tuple[exp.Identifier, ...] | None, tuple[exp.Expr, ...] | None]:
    """The columns and values of an INSERT. DEFAULT VALUES looks like a column of that name."""
    names, values = then.this, then.args.get("expression")
    if values is None:
        return None, None
    columns = None
    if isinstance(names, exp.Tuple | exp.Paren):
        given = names.expressions if isinstance(names, exp.Tuple) else [names.this]
        columns = tuple(column.this for column in given)
    elif names is not None:
        columns = (names.this,)
    items = values.expressions if isinstance(values, exp.Tuple) else [values.unnest()]
    return columns, tuple(items)


def _with_wrapped_source(tokens: list[Token]) -> list[Token]:
    """The tokens with brackets around a source that is a join, whose end sqlglot does not find:
    `USING (a JOIN b ON a.k = b.k) ON t.k = a.k WHEN MATCHED …`."""
    depth, using, join, condition = 0, None, False, None
    for place, token in enumerate(tokens):
        word = token.text.lower()
        depth += (word == "(") - (word == ")")
        if depth or word == ")":
            continue
        if word == "using" and using is None:
            using = token
        elif word == "when" and _word(tokens, place + 1) in ("matched", "not"):
            break
        join |= word == "join"
        if word == "on":
            condition = token
    if using is None or condition is None or not join:
        return tokens
    made: list[Token] = []
    for token in tokens:
        if token is condition:
            made.append(_bracket(TokenType.R_PAREN, ")", token))
        made.append(token)
        if token is using:
            made.append(_bracket(TokenType.L_PAREN, "(", token))
    return made


def _word(tokens: list[Token], place: int) -> str:
    return tokens[place].text.lower() if place < len(tokens) else ""


def _bracket(kind: TokenType, text: str, at: Token) -> Token:
    return Token(kind, text, at.line, at.col, at.start, at.end)


def _without_overriding(
    text: str, tokens: list[Token]
) -> tuple[list[Token], list[Overriding | None]]:
    """The tokens without OVERRIDING, and what each INSERT said."""
    kept: list[Token] = []
    found: list[Overriding | None] = []
    skipped = 0
    for place, token in enumerate(tokens):
        word = token.text.lower()
        if skipped:
            skipped -= 1
        elif word == "overriding" and found and tokens[place - 1].text.lower() in (")", "insert"):
            found[-1] = overriding_at(text, tokens, place)
            skipped = 2
        else:
            if word == "insert":
                found.append(None)
            kept.append(token)
    return kept, found
