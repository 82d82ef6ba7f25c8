"""Constants that are kept as they are written: rows of VALUES, and lists of IN, that are long.

    INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)
    DELETE FROM t WHERE id IN (1, 2, 3)

are tokenized and parsed as `INSERT INTO t VALUES (1, 'a')` and `DELETE FROM t WHERE id IN (1)`: no
token and no node is made of each constant. The tree's VALUES has the other rows in its meta: they
are of the same columns, so that all that is asked of a tree is asked of the first one. The tree's
IN has the whole list in its meta, where it is a conjunct of the statement's own WHERE, which plans
by key read. Everywhere else, and for DuckDB, the constants of lists are made nodes of again by
`written_out`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...kvlayer.process.fibre import give_way
from ..syntax.trees import E, copied, find_all

# Rows.

ROWS = "constant_rows"
"""The key, in the meta of VALUES, of the rows behind the first one."""
_PIECES_MIN = 4
"""Shorter lists, of less than 50 rows, are worth no second way; and among them are those that plans
by shape are for."""


_NUMBER = r"[0-9]{1,100}(?:\.[0-9]{1,100})?"
_TEXT = r"'[^']*+(?:''[^']*+)*+'"
_WORD = r"(?i:null|true|false)"
_BLANKS = r"[ \t\r\n]*+"
_CONSTANT = rf"{_BLANKS}(?:-?{_NUMBER}|{_TEXT}|{_WORD}){_BLANKS}"
_ROW = re.compile(rf"{_BLANKS}\({_CONSTANT}(?:,{_CONSTANT})*+\)")
_NEXT_ROW = re.compile(rf"{_BLANKS},{_ROW.pattern}")
_ROWS_PER_STEP = 16
_NEXT_ROWS = re.compile(rf"(?:{_NEXT_ROW.pattern}){{1,{_ROWS_PER_STEP}}}+")
_CHARACTERS_PER_STEP = 512
"""Characters of rows that are looked at in a step of a slice."""
_BEHIND_ROWS = re.compile(rf"{_BLANKS}(?:[;)]|\Z|(?i:on|returning)\b)")
_ITEM = re.compile(rf"-?{_NUMBER}|{_TEXT}|{_WORD}")
_ROW_OR_ITEM = re.compile(rf"\(|{_ITEM.pattern}")


@dataclass(frozen=True, slots=True)
class ConstantRows:
    """Rows as they are written: `statement[begin:end]`, which begins with a comma. `columns` are
    their constants by column, each as it is written."""

    statement: str
    begin: int
    end: int
    columns: tuple[list[str], ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def rows(self) -> Iterator[list[exp.Expr]]:
        """The rows as trees, with the places of their constants."""
        at = self.begin
        while (found := _NEXT_ROW.match(self.statement, at, self.end)) is not None:
            give_way()
            at = found.end()
            items = _ITEM.finditer(self.statement, found.start(), at)
            yield [constant_tree(item.group(), item.start()) for item in items]


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter in a list."""

    number: int


Constant = int | Decimal | str | bool | None
"""An INT8, a DECIMAL, a text that has no type yet, a truth, or NULL."""
Item = Constant | Given

INT8_LENGTH = 19
"""A number of fewer digits is an INT8 whatever they are."""


def read_constant(written: str) -> Item:
    """The value of a constant as it is written, or the parameter. Raises ArithmeticError."""
    match written[0]:
        case "'":
            return written[1:-1].replace("''", "'")
        case "$":
            return Given(int(written[1:]))
        case "n" | "N":
            return None
        case "t" | "T" | "f" | "F" as first:
            return first in "tT"
    if len(written) - (written[0] == "-") < INT8_LENGTH and "." not in written:
        return int(written)
    number = Decimal(written)
    return number or abs(number)  # there is no negative zero


def constant_tree(written: str, start: int) -> exp.Expr:
    """The tree that the parser would have made of what is written at a place of the statement."""
    if written[0] == "$":
        number = exp.Literal.number(int(written[1:]))
        number.meta["start"] = start + 1
        return exp.Parameter(this=number)
    match written.lower():
        case "null":
            return exp.null()
        case "true" | "false" as truth:
            return exp.Boolean(this=truth == "true")
    negative, text = written[0] == "-", written[0] == "'"
    read = written[1:-1].replace("''", "'") if text else written[negative:]
    literal = exp.Literal(this=read, is_string=text)
    literal.meta["start"] = start + negative
    return exp.Neg(this=literal) if negative else literal


def further_rows(text: str, at: int) -> tuple[int, int] | None:
    """The begin and end of the rows behind the first one, in a text that has VALUES before `at`.
    None where a row is of more than constants, there are few, or they are part of something."""
    first = _ROW.match(text, at)
    if first is None:
        return None
    pieces = list(_pieces(text, first.end()))
    if len(pieces) < _PIECES_MIN or _BEHIND_ROWS.match(text, pieces[-1][1]) is None:
        return None
    return first.end(), pieces[-1][1]


def _pieces(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The begin and end of each `_ROWS_PER_STEP` further rows, or of the rest."""
    while (found := _NEXT_ROWS.match(text, at)) is not None:
        give_way(1 + (found.end() - at) // _CHARACTERS_PER_STEP)
        yield at, found.end()
        at = found.end()


def rows_behind(text: str, tokens: list[Token]) -> ConstantRows | None:
    """The rows of an INSERT's VALUES for which there are no tokens. Raises SQLError 42601."""
    place = _behind_values(tokens)
    if place is None:
        return None
    count = 1
    while place < len(tokens) and tokens[place].token_type != TokenType.R_PAREN:
        count += tokens[place].token_type == TokenType.COMMA
        place += 1
    behind = tokens[place + 1].token_type if place + 1 < len(tokens) else None
    if place == len(tokens) or behind == TokenType.COMMA:
        return None
    return _rows(text, tokens[place].end + 1, count)


def _rows(text: str, begin: int, width: int) -> ConstantRows | None:
    columns: tuple[list[str], ...] = tuple([] for _ in range(width))
    end = begin
    for start, end in _pieces(text, begin):
        give_way((end - start) // _CHARACTERS_PER_STEP)
        found = _ROW_OR_ITEM.findall(text, start, end)
        if len(found) % (width + 1) or set(found[:: width + 1]) != {"("}:
            _refuse_ragged(text, start, width)
        for number, column in enumerate(columns, start=1):
            column += found[number :: width + 1]
    return ConstantRows(text, begin, end, columns) if columns[0] else None


def _refuse_ragged(text: str, at: int, width: int) -> None:
    """Raises SQLError 42601 for the first row that is of another width."""
    while (found := _NEXT_ROW.match(text, at)) is not None:
        items = list(_ITEM.finditer(text, at, found.end()))
        if len(items) != width:
            raise ragged(items[0].start() + (items[0].group()[0] == "-") + 1)
        at = found.end()


def ragged(position: int | None) -> SQLError:
    return SQLError("42601", "VALUES lists must all be the same length", position=position)


def _behind_values(tokens: list[Token]) -> int | None:
    depth = 0
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            depth += 1
        elif kind == TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and kind == TokenType.VALUES:
            return place + 1
        elif depth == 0 and kind in (TokenType.SELECT, TokenType.WITH):
            return None
    return None


# Lists.

LIST = "constant_list"
"""The argument of an IN with its list, of which its tree has the first constant alone."""
LENGTH_MIN = 1000
"""Shorter lists are worth no second way; plans by shape are for texts that are not as long."""

SHORTENED = frozenset({"select", "update", "delete"})
"""The first words of the statements whose lists are read here."""

_INTEGER = r"-?[0-9]{1,18}(?![\w.$])"
_PARAMETER = r"\$[0-9]{1,5}(?![\w.$])"
_NULL = r"(?i:null)(?![\w.$])"
_FIRST = rf"(?:{_INTEGER}|{_TEXT}|{_PARAMETER})"
_LISTED = rf"(?:{_INTEGER}|{_TEXT}|{_PARAMETER}|{_NULL})"
_ITEMS_PER_STEP = 64
_BEGINNING = re.compile(rf"{_BLANKS}\({_BLANKS}({_FIRST})")
_CHUNK = re.compile(rf"(?:{_BLANKS},{_BLANKS}{_LISTED}){{1,{_ITEMS_PER_STEP}}}+")
_ITEMS = re.compile(_LISTED)
_NUMBERS = re.compile(rf"(?:[ \t\r\n,]|{_INTEGER})*+")
_END = re.compile(rf"{_BLANKS}\)")


@dataclass(frozen=True, slots=True)
class ConstantList:
    """A list as it is written. `statement[begin:]` begins with the first constant; the closing
    parenthesis stands at `end`."""

    statement: str
    begin: int
    behind_first: int
    end: int

    def items(self) -> list[Item]:
        """The constants and parameters in their order."""
        found: list[Item] = []
        for start, end in self._parts():
            part = self.statement[start:end]
            if _NUMBERS.fullmatch(part):
                found += map(int, part.strip(" \t\r\n,").split(","))
            else:
                found += map(read_constant, _ITEMS.findall(part))
            give_way()
        return found

    @property
    def parameters(self) -> list[int]:
        """The numbers of the parameters in their order."""
        if self.statement.find("$", self.begin, self.end) < 0:
            return []
        return [item.number for item in self.items() if isinstance(item, Given)]

    def trees(self) -> Iterator[exp.Expr]:
        """The trees that the parser would have made of the constants."""
        for start, end in self._parts():
            for found in _ITEMS.finditer(self.statement, start, end):
                give_way()
                yield constant_tree(found.group(), found.start())

    def _parts(self) -> Iterator[tuple[int, int]]:
        yield self.begin, self.behind_first
        at = self.behind_first
        while (found := _CHUNK.match(self.statement, at)) is not None:
            yield at, found.end()
            at = found.end()


def constant_list(text: str, at: int) -> ConstantList | None:
    """The list behind an IN that ends at `at`, if it is a long one of constants and parameters."""
    first = _BEGINNING.match(text, at)
    if first is None:
        return None
    end = first.end()
    while (found := _CHUNK.match(text, end)) is not None:
        give_way()
        end = found.end()
    behind = _END.match(text, end)
    if behind is None or behind.end() - first.end() < LENGTH_MIN:
        return None
    return ConstantList(text, first.start(1), first.end(), behind.end() - 1)


def lists_in(text: str, tokens: list[Token]) -> dict[int, ConstantList]:
    """The lists of a statement for which there are no tokens, by where they begin."""
    if len(text) < LENGTH_MIN:
        return {}
    found: dict[int, ConstantList] = {}
    for place, token in enumerate(tokens):
        if token.token_type is not TokenType.IN:
            continue
        listed = constant_list(text, token.end + 1)
        # IN, a parenthesis, the first item of one token or two, and what ends the list
        if listed is not None and any(
            behind.start == listed.end for behind in tokens[place + 3 : place + 5]
        ):
            found[listed.begin] = listed
    return found


def keep_lists(tree: exp.Expr, lists: dict[int, ConstantList]) -> list[ConstantList]:
    """Gives the INs of a tree the lists that they are of: kept, or written out. Returns the lists
    that are no operand of an IN."""
    left = dict(lists)
    for node in list(find_all(tree, exp.In)):
        listed = left.pop(_begin(node), None)
        if listed is None:
            continue
        node.meta[LIST] = listed
        if not (_of_where(node, tree) and _without_blanks(listed)):
            write_out(node)
    return list(left.values())


def _begin(node: exp.In) -> int:
    if len(node.expressions) != 1:
        return -1
    (item,) = node.expressions
    sign = isinstance(item, exp.Neg | exp.Parameter)
    start: int = (item.this if sign else item).meta.get("start", -1)
    return start - sign


def _of_where(node: exp.Expr, tree: exp.Expr) -> bool:
    """Whether a node is a conjunct of the WHERE of the tree's own statement."""
    above = node.parent
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where) and above.parent is tree


def _without_blanks(listed: ConstantList) -> bool:
    """Whether the list means the same beside a CHAR."""
    return listed.statement.find("'", listed.begin, listed.end) < 0 or not any(
        isinstance(item, str) and item.endswith(" ") for item in listed.items()
    )


def write_out(node: exp.Expr) -> None:
    """Makes a node of each constant and parameter of an IN's list."""
    listed = node.meta.pop(LIST)
    assert isinstance(listed, ConstantList), listed
    node.set("expressions", list(listed.trees()))


def keeps_lists(where: exp.Expr | None) -> bool:
    """Whether a condition has an IN whose list is not in the tree."""
    return any(True for _ in _kept(where))


def _kept(where: exp.Expr | None) -> Iterator[exp.In]:
    waiting = [] if where is None else [where]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.And | exp.Paren | exp.Where):
            waiting += node.iter_expressions()
        elif isinstance(node, exp.In) and LIST in node.meta:
            yield node


def written_out(tree: E) -> E:
    """A statement's query, or its condition, with a node for each constant; itself if it has."""
    where = tree.args.get("where") if isinstance(tree, exp.Query) else tree
    if not keeps_lists(where):
        return tree
    made = copied(tree)
    for node in list(_kept(made.args["where"] if isinstance(made, exp.Query) else made)):
        write_out(node)
    return made
