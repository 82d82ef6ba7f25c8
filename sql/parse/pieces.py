"""A text's pieces: words, quoted texts, signs. What a text's size and depth are known by before
anything of it is parsed, and where it may be cut for the tokenizer.

    SELECT note || 'it''s' FROM t      SELECT, note, ||, 'it''s', FROM, t

Limits on statements are judged here, in one pass that gives way: a parser that has a tree of a
million nodes to refuse has built it.
"""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...kvlayer.process.fibre import give_way
from .constants import SHORTENED, constant_list, further_rows

NESTING_MAX = 256
"""Parentheses, brackets, CASEs and prefix operators within one another."""
OPERATORS_MAX = 500
"""Operators in a row, which are as many nodes within one another. DuckDB evaluates no expression of
more than 1,000, and some operators become two of its."""
PIECES_MAX = 20_000
"""Words and signs of one statement, constants and the commas between them aside."""
PIECES_PER_CUT = 256
"""Pieces that are tokenized in one call."""
SMALL_LENGTH = 256
SMALL_PIECES = 96
"""Up to these a text is parsed and planned in one step, which takes less than 10 ms."""

_PIECE_TEXT = r"""
    (?P<space>\s+|--[^\n]*)
  | (?P<quoted>[eE]'[^'\\]*(?:(?:''|\\.)[^'\\]*)*'|'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")
  | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
  | (?P<comment>/\*)
  | (?P<open>[(\[]) | (?P<close>[)\]])
  | (?P<word>\$?\w+)
  | (?P<quote>['"])
  | (?P<sign>[+*<>=~!@\#%^&|`?:.]+|.)
"""
_PIECE = re.compile(_PIECE_TEXT, re.VERBOSE | re.DOTALL)
_CONSTANT_TEXT = r"(?:\d+(?:\.\d+)?|'[^']*(?:''[^']*)*')"
_PIECE_OR_RUN = re.compile(
    rf"(?P<run>\s*{_CONSTANT_TEXT}(?:\s*,\s*{_CONSTANT_TEXT}){{1,64}}(?=\s*[,)])) | {_PIECE_TEXT}",
    re.VERBOSE | re.DOTALL,
)
"""Numbers and texts with commas between them, as lists and rows have them, are one piece."""
_WORDS = re.compile(r"\w+|[^\w\s]")
_CONSTANT = re.compile(r"[$\d,;]|(?:null|true|false|default)$", re.IGNORECASE)
_COMMENT = re.compile(r"/\*|\*/")
_CUT_BEFORE = frozenset({",", "+", "||", "=", "*", "and", "or"})
"""No token of the tokenizer goes on across one of these."""
COLUMNS_MAX = 1664
"""Items of a SELECT, as in PostgreSQL."""
_ENDS = frozenset(
    {"select", "from", "where", "and", "or", "when", "then", "else", "end", "on", "join", "using",
     "group", "order", "by", "having", "limit", "union", "values", "set", "as"}
)  # fmt: skip
"""Words behind which an expression is another one."""
_BEHIND_ITEMS = frozenset(
    {"from", "where", "group", "having", "order", "limit", "offset", "fetch", "union", "window",
     "except", "intersect", "into", "values", ";"}
)  # fmt: skip
_PREFIXES = frozenset("-+~@")
_OF_INSERTS = frozenset({"insert", "upsert", "select", "with", "table", "values", ";"})
"""Words that begin an INSERT or the source of its rows."""


def lengthy(text: str) -> bool:
    """Whether parsing and planning a text may take longer than one step of the loop may."""
    if len(text) <= SMALL_LENGTH:
        return False
    return len(text) > 4096 or len(_WORDS.findall(text)) > SMALL_PIECES


def pieces(text: str) -> Pieces:
    """Raises SQLError 54000 and 54001 for a text that is too long or too deep."""
    found = Pieces(text)
    at = 0
    while at < len(text):
        at = found.read(at)
    return found


class Pieces:
    """The places where a text may be cut, and the begin of a quoted part that never ends. `skipped`
    are the cuts behind which the tokenizer goes on further on, and where; `quoted` are texts in
    dollars, which stand there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.cuts: list[int] = []
        self.skipped: dict[int, int] = {}
        self.quoted: dict[int, Token] = {}
        self.unterminated: int | None = None
        self._count = 0
        self._since_cut = 0
        self._depth = 0
        self._operators = [0]
        """The operators in a row, counted at each depth of parentheses."""
        self._items = [0]
        """The items of the SELECT at each depth so far; zero outside its list."""
        self._prefixes = 0
        self._inserting: int | None = None
        """The depth of parentheses of an INSERT of which VALUES may follow."""
        self._shortens: bool | None = None
        """Whether lists of the statement at hand are skipped; None before its first word."""

    def read(self, at: int) -> int:
        """The end of the piece, or of the run of constants, that begins at `at`."""
        # Where items are counted, each comma is seen.
        found = (_PIECE if self._items[-1] else _PIECE_OR_RUN).match(self._text, at)
        assert found is not None, at
        kind, end = found.lastgroup, found.end()
        if kind == "space":
            return end
        if kind == "run":
            self._since_cut += found.group().count(",")
            self._operators[-1] = self._prefixes = 0
            give_way()
            return end
        if kind == "comment":
            return self._behind_comment(at)
        self._since_cut += 1
        if not self._since_cut % 32:
            give_way()
        if kind in ("word", "sign") and not _CONSTANT.match(found.group()):
            self._count += 1
        if self._count > PIECES_MAX:
            raise SQLError(
                "54000",
                f"a statement of more than {PIECES_MAX} words and signs is too long",
                position=at + 1,
                hint="Send rows by COPY or as parameters, and lists as one array.",
            )
        match kind:
            case "dollar":
                return self._behind_dollars(at, found.group())
            case "quote":
                self.unterminated = at
                return len(self._text)
            case "open":
                self._deepen(at)
                self._operators.append(0)
                self._items.append(0)
                self._prefixes = 0
            case "close":
                if len(self._operators) > 1:
                    self._operators.pop()
                    self._items.pop()
                self._depth = max(self._depth - 1, 0)
                self._prefixes = 0
            case "word" | "sign":
                piece = found.group().lower()
                self._see(at, piece)
                if self._shortens is None and kind == "word":
                    self._shortens = piece in SHORTENED
                if piece == "in" and self._shortens:
                    return self._behind_list(end)
                if piece in _OF_INSERTS:
                    return self._behind_insert(piece, end)
            case _:
                self._prefixes = 0
        return end

    def _behind_list(self, end: int) -> int:
        """The place where reading goes on: behind the list of constants of an IN."""
        listed = constant_list(self._text, end)
        if listed is None:
            return end
        self._skip(listed.behind_first, listed.end)
        return listed.end + 1

    def _behind_insert(self, piece: str, end: int) -> int:
        """The place where reading goes on: behind the rows of constants of an INSERT."""
        depth, inserting = len(self._operators), self._inserting
        if piece in ("insert", "upsert"):
            self._inserting = depth
            return end
        if depth != inserting:
            return end
        self._inserting = None
        rows = further_rows(self._text, end) if piece == "values" else None
        if rows is None:
            return end
        self._skip(*rows)
        return rows[1]

    def _skip(self, begin: int, end: int) -> None:
        self._cut(begin)
        self.skipped[begin] = end

    def _cut(self, at: int) -> None:
        self.cuts.append(at)
        self._since_cut = 0

    def _see(self, at: int, piece: str) -> None:
        if self._since_cut > PIECES_PER_CUT and piece in _CUT_BEFORE:
            self._cut(at)
        self._count_items(at, piece)
        if piece == ";" and len(self._operators) == 1:
            self._count = 0
            self._shortens = None
        if piece in _ENDS or piece == "," or piece == ";":
            self._operators[-1] = 0
        elif not piece[0].isalnum() and piece[0] not in "_$.":
            self._operators[-1] += 1
            if self._operators[-1] > OPERATORS_MAX:
                raise SQLError(
                    "54001",
                    f"an expression of more than {OPERATORS_MAX} operators is too deep",
                    position=at + 1,
                )
        if piece == "not" or piece[0] in _PREFIXES:
            self._prefixes += 1 if piece == "not" else len(piece)
            self._refuse(at, self._depth + self._prefixes)
            return
        self._prefixes = 0
        if piece == "case":
            self._deepen(at)
        elif piece == "end":
            self._depth = max(self._depth - 1, 0)

    def _count_items(self, at: int, piece: str) -> None:
        if piece == "," and self._items[-1]:
            self._items[-1] += 1
            if self._items[-1] > COLUMNS_MAX:
                raise SQLError(
                    "54011", f"target lists can have at most {COLUMNS_MAX} entries", position=at + 1
                )
        elif piece == "select":
            self._items[-1] = 1
        elif piece in _BEHIND_ITEMS:
            self._items[-1] = 0

    def _deepen(self, at: int) -> None:
        self._depth += 1
        self._refuse(at, self._depth + self._prefixes)

    def _refuse(self, at: int, depth: int) -> None:
        if depth > NESTING_MAX:
            raise SQLError(
                "54001", f"statement is nested more than {NESTING_MAX} deep", position=at + 1
            )

    def _behind_comment(self, at: int) -> int:
        """Comments nest."""
        depth, end = 0, at
        for found in _COMMENT.finditer(self._text, at):
            depth += 1 if found.group() == "/*" else -1
            end = found.end()
            if depth == 0:
                return end
        self.unterminated = at
        return len(self._text)

    def _behind_dollars(self, at: int, tag: str) -> int:
        begin = at + len(tag)
        end = self._text.find(tag, begin)
        if end < 0:
            self.unterminated = at
            return len(self._text)
        behind = end + len(tag)
        quoted = Token(TokenType.STRING, self._text[begin:end], start=at, end=behind - 1)
        self.quoted[at] = quoted
        self._skip(at, behind)
        return behind
