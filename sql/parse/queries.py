"""Queries and expressions: sqlglot's Postgres parser, behind our errors.

sqlglot parses some things that nothing behind it carries out; what is dropped silently elsewhere
is refused here (`INTO`), so that no clause is ever ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import chain

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...kvlayer.transaction_modes import LockMode, WhenLocked
from ..syntax.statement import AsOf
from ..syntax.statements import Query, RowLock
from ..syntax.trees import CHAINED, balance, find_all, paced, position_of, unsupported, walk
from .constants import keep_lists, lists_in
from .cursor import syntax_error
from .dialect import POSTGRES
from .expansions.catalog_functions import PREFIX, expand, expands, plain_tokens
from .expansions.set_functions import SCALARS, plain_sets
from .known_calls import REFUSED_NODES, known_calls
from .lexer import give_way_for, is_string, like
from .pieces import NESTING_MAX, OPERATORS_MAX
from .repairs import meant_tokens, plain_arrays

ParsedTree = tuple[exp.Expr, frozenset[type[exp.Expr]], list[exp.Select]]
"""A tree, the classes of its nodes, and its SELECTs."""


def _words(tokens: list[Token]) -> frozenset[str]:
    """The words and signs of a text, in small letters."""
    return frozenset([token.text.lower() for token in tokens])


def parse_tree(text: str, tokens: list[Token]) -> exp.Expr:
    """Parses `tokens` into one tree. Raises SQLError 42601 with a position."""
    return _parse_tree(text, tokens, _words(tokens))[0]


def _parse_tree(text: str, tokens: list[Token], words: frozenset[str]) -> ParsedTree:
    give_way_for(tokens)
    lists = lists_in(text, tokens)
    give_way_for(tokens)
    if PREFIX in words:
        tokens = plain_tokens(tokens)
        give_way_for(tokens)
    if "show" in words:
        tokens = _shown_tables(tokens)
        give_way_for(tokens)
    _check_tokens(text, tokens)
    give_way_for(tokens)
    tokens = meant_tokens(tokens)
    # With all of the text as context, the length of what stands before is the offset.
    parser = POSTGRES.parser(error_message_context=len(text) + 1)
    try:
        trees = parser.parse(tokens, text)
    except ParseError as error:
        raise _translated(text, tokens, error) from error
    except RecursionError as error:
        raise SQLError("54001", "statement is nested too deeply") from error
    tree = trees[0] if trees else None
    if tree is None or isinstance(tree, exp.Command):
        raise syntax_error(text, tokens[0].start, tokens[0].end + 1)
    nodes = list(walk(tree))
    if len(tokens) > _SHALLOW:
        _refuse_depth(nodes)
    kinds = frozenset(map(type, nodes))
    due = _passes_for(kinds)
    for place in due:
        plain, _ = _PASSES[place]
        tree = plain(tree)
    for misplaced in keep_lists(tree, lists) if lists else ():
        raise syntax_error(text, misplaced.begin, misplaced.behind_first)
    if due:
        nodes = list(walk(tree))
        kinds = frozenset(map(type, nodes))
    return tree, kinds, [node for node in nodes if isinstance(node, exp.Select)]


DEPTH_MAX = OPERATORS_MAX + 2 * NESTING_MAX
"""Nodes within one another, where chains that are to be balanced count as one."""
_SHALLOW = DEPTH_MAX // 4
"""Tokens of which no tree is deeper."""
_BALANCED = (exp.Connector, exp.SetOperation)


def _refuse_depth(nodes: list[exp.Expr]) -> None:
    """Raises SQLError 54001. Each node of a tree stands behind the one that it is part of."""
    depths: dict[int, int] = {}
    for node in paced(nodes):
        above = node.parent
        chained = isinstance(node, _BALANCED) and type(above) is type(node)
        depth = depths[id(node)] = depths.get(id(above), 0) + (not chained)
        if depth > DEPTH_MAX:
            raise SQLError(
                "54001",
                f"an expression of more than {DEPTH_MAX} nodes within one another is too deep",
                position=position_of(node),
            )


_PASSES: tuple[tuple[Callable[[exp.Expr], exp.Expr], tuple[type[exp.Expr], ...]], ...] = (
    (plain_sets, (exp.Anonymous, exp.Bracket, exp.Unnest, *SCALARS)),
    (plain_arrays, (exp.Any, exp.All)),
    (known_calls, (exp.Anonymous, *REFUSED_NODES)),
    (balance, CHAINED),
)
"""Passes over a parsed tree, in order, each with the kinds of nodes that it rewrites. A pass
runs only if the tree has a node of its kinds: most statements need one walk or two. No pass
makes a node of a kind that only a later pass is for."""


@lru_cache(1024)
def _passes_for(kinds: frozenset[type[exp.Expr]]) -> list[int]:
    """The places of the passes over a tree of nodes of these classes."""
    return [
        place
        for place, (_, rewritten) in enumerate(_PASSES)
        if any(issubclass(kind, rewritten) for kind in kinds)
    ]


def parse_query(text: str, tokens: list[Token]) -> Query:
    """Parses a query with its AS OF SYSTEM TIME and row locks. Raises SQLError 42601 for a syntax
    error, and 0A000 for a form that is not supported."""
    give_way_for(tokens)
    words = _words(tokens)
    tokens, as_of = _cut_as_of(text, tokens) if "system" in words else (tokens, None)
    tree, kinds, selects = _parse_tree(text, tokens, words)
    if expands(kinds, words):
        tree = expand(tree)
    while isinstance(tree, exp.Subquery) and not tree.alias:
        inner = tree.this
        if any(tree.args.get(arg) for arg in ("order", "limit", "offset", "with_")):
            break
        tree = inner
    if not isinstance(tree, exp.Query | exp.Values):
        raise syntax_error(text, tokens[0].start, tokens[0].end + 1)
    if not kinds.isdisjoint((exp.Insert, exp.Update, exp.Delete, exp.Merge)):
        raise SQLError("0A000", "a query cannot contain a statement that writes")
    for select in selects:
        if not select.expressions and isinstance(select.parent, exp.Exists):
            select.set("expressions", [exp.Literal.number(1)])  # nobody looks at them
        elif not select.expressions:
            end = tokens[-1].end + 1
            raise syntax_error(text, end, end, hint="Expected a list of expressions.")
    lock = cut_row_locks(tree, word_at(tokens, "for")) if exp.Lock in kinds else None
    if exp.Into in kinds:
        raise unsupported(
            "SELECT INTO", word_at(tokens, "into"), "CREATE TABLE … AS makes a table of a query."
        )
    if lock is not None and as_of is not None:
        raise SQLError(
            "25006", "cannot execute SELECT FOR UPDATE in the past", position=as_of.position
        )
    return Query(tree=tree, as_of=as_of, lock=lock)


_WHEN = {None: WhenLocked.WAIT, True: WhenLocked.NOWAIT, False: WhenLocked.SKIP}
_NEVER_LOCKED = {
    "distinct": "DISTINCT clause",
    "group": "GROUP BY clause",
    "having": "HAVING clause",
    "windows": "window functions",
}


def cut_row_locks(tree: exp.Expr, position: int | None) -> RowLock | None:
    """Takes the locking clauses off a query. Raises SQLError 0A000 where they mean nothing, and for
    clauses that differ in more than their tables."""
    clauses = tree.args.get("locks") or []
    if sum(1 for _ in find_all(tree, exp.Lock)) > len(clauses):
        raise SQLError(
            "0A000",
            "FOR UPDATE and FOR SHARE are not supported in a subquery",
            position=position,
            hint="Write the clause at the end of the statement.",
        )
    if not clauses:
        return None
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        raise SQLError(
            "0A000",
            "FOR UPDATE is only allowed on the rows of tables, not on UNION, VALUES or the like",
            position=position,
        )
    for argument, what in _NEVER_LOCKED.items():
        if tree.args.get(argument):
            raise SQLError("0A000", f"FOR UPDATE is not allowed with {what}", position=position)
    if any(item.find(exp.AggFunc, exp.Window) is not None for item in tree.expressions):
        raise SQLError(
            "0A000", "FOR UPDATE is not allowed with aggregate functions", position=position
        )
    said = {(bool(clause.args.get("update")), clause.args.get("wait")) for clause in clauses}
    if len(said) > 1:
        raise unsupported("several kinds of row locks", position, "Write FOR UPDATE OF a, b.")
    ((exclusive, wait),) = said
    named = [[table.name for table in clause.expressions] for clause in clauses]
    tree.set("locks", None)
    return RowLock(
        mode=LockMode.EXCLUSIVE if exclusive else LockMode.SHARED,
        when_locked=_WHEN[wait],
        tables=tuple(chain(*named)) if all(named) else (),
    )


def parse_as_of(text: str, tokens: list[Token], index: int) -> tuple[AsOf, int]:
    """The operand of AS OF SYSTEM TIME that begins at `tokens[index]`, and the index behind it."""
    first, second = [*tokens[index : index + 2], None, None][:2]
    if first is not None and (is_string(first) or first.token_type == TokenType.NUMBER):
        return AsOf(first.text, None, first.start + 1), index + 1
    given = first is not None and first.token_type == TokenType.PARAMETER
    if first is not None and second is not None and given and second.text.isdecimal():
        return AsOf(None, int(second.text), first.start + 1), index + 2
    end = first.end + 1 if first is not None else tokens[-1].end + 1
    start = first.start if first is not None else end
    hint = "Write a timestamp, an ISO date and time, or an interval such as '-10s', in quotes."
    raise syntax_error(text, start, end, hint=hint)


def _cut_as_of(text: str, tokens: list[Token]) -> tuple[list[Token], AsOf | None]:
    depth = 0
    for index, token in enumerate(tokens):
        if token.token_type == TokenType.L_PAREN:
            depth += 1
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and token.token_type == TokenType.ALIAS:
            words = [t.text.lower() for t in tokens[index : index + 4]]
            if words == ["as", "of", "system", "time"]:
                as_of, behind = parse_as_of(text, tokens, index + 4)
                return tokens[:index] + tokens[behind:], as_of
    return tokens, None


_SHOWN = {
    ("[", "show", "jobs", "]"): "jobs",
    ("[", "show", "changefeed", "jobs", "]"): "changefeed_jobs",
}
"""Statements in brackets, and the table in `tailrace_internal` for each."""


def _shown_tables(tokens: list[Token]) -> list[Token]:
    """The tokens with the name of a table for each `[SHOW …]`."""
    words = [token.text.lower() for token in tokens]
    made, place = list[Token](), 0
    while place < len(tokens):
        first = tokens[place]
        shown = next((s for s in _SHOWN if words[place : place + len(s)] == [*s]), None)
        if shown is None:
            made.append(first)
        else:
            made += like(first, TokenType.VAR, "tailrace_internal"), like(first, TokenType.DOT, ".")
            made.append(like(first, TokenType.VAR, _SHOWN[shown]))
        place += 1 if shown is None else len(shown)
    return made


def _check_tokens(text: str, tokens: list[Token]) -> None:
    """Refuses what sqlglot reads for the sake of other dialects and Postgres does not know."""
    for index, token in enumerate(paced(tokens)):
        kind = token.token_type
        if kind not in _SUSPECT:
            continue
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if kind == TokenType.PLACEHOLDER:
            behind = following is not None and following.token_type in _KEYS
            if behind or tokens[index - 1].token_type in _OPERANDS:
                continue
        if kind == TokenType.L_PAREN:
            if following is not None and following.token_type == TokenType.R_PAREN:
                _check_empty(text, tokens, index)
        elif kind == TokenType.COMMA:
            if following is None or following.token_type in _NEVER_AFTER_COMMA:
                start = following.start if following is not None else token.end + 1
                end = following.end + 1 if following is not None else start
                raise syntax_error(text, start, end)
        elif kind == TokenType.EQ:
            if token.text != "=":
                raise syntax_error(text, token.start, token.end + 1)
        elif kind == TokenType.NATURAL:
            raise unsupported("NATURAL JOIN", token.start + 1, "JOIN … USING (…) names columns.")
        elif token.text == "@":
            raise unsupported(
                "the operator @", token.start + 1, "abs(x) is the absolute value of a number."
            )
        elif not _numbers_parameter(token, following):
            raise syntax_error(
                text, token.start, token.end + 1, hint="Parameters are written $1, $2, …"
            )


def _check_empty(text: str, tokens: list[Token], index: int) -> None:
    """Refuses `()` as an operand or a list: it is a call without operands, or a grouping set."""
    before = tokens[index - 1].token_type if index else TokenType.SELECT
    sets = index > 1 and tokens[index - 2].token_type == TokenType.GROUPING_SETS
    if before in _NEVER_BEFORE_EMPTY and not sets:
        raise syntax_error(text, tokens[index + 1].start, tokens[index + 1].end + 1)


# fmt: off
_NEVER_BEFORE_EMPTY = frozenset({
    TokenType.IN, TokenType.SELECT, TokenType.L_PAREN, TokenType.WHERE, TokenType.HAVING,
    TokenType.VALUES, TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.WHEN, TokenType.THEN,
    TokenType.ELSE, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT,
    TokenType.GTE,
})
_OPERANDS = frozenset({
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.R_PAREN, TokenType.R_BRACKET,
    TokenType.JSON, TokenType.JSONB, TokenType.END,
})
# fmt: on
"""Tokens that end an operand: a question mark behind one is the operator on documents."""
_KEYS = frozenset({TokenType.STRING, TokenType.PARAMETER})
"""Tokens that a question mark stands before as that operator, whatever is before it: `$1 ? $2`."""
_SUSPECT = frozenset(
    {
        TokenType.COMMA,
        TokenType.EQ,
        TokenType.L_PAREN,
        TokenType.NATURAL,
        TokenType.PARAMETER,
        TokenType.PLACEHOLDER,
    }
)
_NEVER_AFTER_COMMA = frozenset(
    {
        TokenType.FROM,
        TokenType.WHERE,
        TokenType.GROUP_BY,
        TokenType.ORDER_BY,
        TokenType.HAVING,
        TokenType.LIMIT,
        TokenType.RETURNING,
        TokenType.R_PAREN,
        TokenType.COMMA,
    }
)


def _numbers_parameter(token: Token, following: Token | None) -> bool:
    return (
        token.text == "$"
        and following is not None
        and following.token_type == TokenType.NUMBER
        and following.start == token.end + 1
        and following.text.isdecimal()
        and int(following.text) > 0
    )


def _translated(text: str, tokens: list[Token], error: ParseError) -> SQLError:
    details = error.errors[0] if error.errors else {}
    before, near = details.get("start_context"), details.get("highlight")
    if not isinstance(before, str) or not isinstance(near, str):
        return syntax_error(text, tokens[0].start, tokens[0].end + 1)
    start = len(before)
    description = str(details.get("description") or "")
    # sqlglot's sentences about its own classes help nobody; the others name what was expected.
    hint = None if "<" in description or "expression" in description else f"{description}."
    missing = description.startswith(("Expecting", "Required"))
    if start + len(near) > tokens[-1].end and missing:
        end = tokens[-1].end + 1
        return syntax_error(text, end, end, hint=hint)
    return syntax_error(text, start, start + len(near), hint=hint)


def word_at(tokens: list[Token], word: str) -> int | None:
    """The place of the last token that reads `word`."""
    starts = [token.start + 1 for token in tokens if token.text.lower() == word]
    return starts[-1] if starts else None
