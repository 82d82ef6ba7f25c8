"""Rules of statements: a line of grammar, and what is made of the fields that it names.

    Rules(("DROP VIEW if_exists:[IF EXISTS] names:view,… [cascade:CASCADE | RESTRICT]", DropView))

    WORD  WORD/WORD  =  '('     words and symbols as they stand, or one of several
    field:kind                  an operand of a kind of `kinds.KINDS`, which the field holds
    field:kind,…  field:(kind,…)    one or more of them with commas between; and in parentheses
    field:WORDS  field:[…]      true where that stands
    [a | b]  (a | b)            one of the alternatives or none; one of them
    {a | b}                     any number of them in any order, each once
    ^                           the field `position` is where this stands
    _:kind                      read, and kept nowhere

Alternatives and rules are tried in order, and the first one that reads all it names is taken; where
the words stand that one begins with, no alternative, and no rule without words, is tried behind it.
An error is told of the furthest place that any of them reached, with all that was expected there;
what might have been left out is not told. Fields of operands that are left out are None, or empty
where they are lists, or what their kind says. A row may give more fields: `{"revoke": True}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .cursor import Cursor, Unmatched

Fields = dict[str, object]
Make = Callable[..., object]
Row = tuple[str, Make] | tuple[str, Make, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of operand. `read` raises Unmatched, having told the cursor what it missed, and
    SQLError; `begins` may be true before what it does not accept. `absent` is the field's value
    where the operand is left out."""

    read: Callable[[Cursor], object]
    begins: Callable[[Cursor], bool]
    absent: object = None


KINDS: dict[str, Kind] = {}
"""Operands by their names in rules."""


class _Words:
    """Words and symbols, one behind the other."""

    def __init__(self, field: str | None = None) -> None:
        self.words: list[tuple[str, ...]] = []
        self._field = field

    def _matched(self, cursor: Cursor) -> int:
        at = cursor.index
        for count, choice in enumerate(self.words):
            if cursor.keys[at + count] not in choice:
                return count
        return len(self.words)

    def _miss(self, cursor: Cursor, count: int) -> None:
        for word in self.words[count]:
            said = [word, *(choice[0] for choice in self.words[count + 1 :])]
            shown = " ".join(said).upper() if word[0].isalpha() else f'"{word}"'
            cursor.miss(cursor.index + count, shown)

    def stands(self, cursor: Cursor) -> bool:
        return self._matched(cursor) == len(self.words)

    def note(self, cursor: Cursor, *, begun: bool) -> None:
        """Tells the cursor what is missed, with `begun` only where the first word stands."""
        count = self._matched(cursor)
        if count < len(self.words) and (count or not begun):
            self._miss(cursor, count)

    def begins(self, cursor: Cursor) -> bool:
        self.note(cursor, begun=True)
        return self.stands(cursor)

    def match(self, cursor: Cursor, fields: Fields) -> None:
        count = self._matched(cursor)
        if count < len(self.words):
            self._miss(cursor, count)
            raise Unmatched
        cursor.index += count
        if self._field is not None:
            fields[self._field] = True

    def defaults(self) -> Iterable[tuple[str, object]]:
        return () if self._field is None else ((self._field, False),)


class _Operand:
    def __init__(self, field: str, kind: Kind, form: str = "") -> None:
        self._field, self._kind, self._form = field, kind, form

    def begins(self, cursor: Cursor) -> bool:
        if self._form == "()":
            return cursor.keys[cursor.index] == "("
        return self._kind.begins(cursor)

    def match(self, cursor: Cursor, fields: Fields) -> None:
        read = self._kind.read
        if not self._form:
            value = read(cursor)
        else:
            value = cursor.listed(read) if self._form == "," else cursor.enclosed(read)
        if self._field != "_":
            fields[self._field] = value

    def defaults(self) -> Iterable[tuple[str, object]]:
        absent = () if self._form else self._kind.absent
        return () if self._field == "_" else ((self._field, absent),)


def _end(cursor: Cursor) -> None:
    if not cursor.finished:
        cursor.fail("the end of the statement")


_HERE = _Operand("position", Kind(lambda cursor: cursor.position, lambda cursor: True))
_END = _Operand("_", Kind(_end, lambda cursor: cursor.finished))


class _Group:
    """Alternatives, of which one stands (`(`), one or none (`[`), or any number (`{`)."""

    def __init__(self, sign: str, alternatives: list[list[_Item]], field: str | None) -> None:
        self._alternatives = alternatives
        self.optional, self._repeated = sign != "(", sign == "{"
        self._field = field

    def begins(self, cursor: Cursor) -> bool:
        return self.optional or any(items[0].begins(cursor) for items in self._alternatives)

    def match(self, cursor: Cursor, fields: Fields) -> None:
        while self._alternative(cursor, fields):
            if self._field is not None:
                fields[self._field] = True
            if not self._repeated:
                return
        if not self.optional:
            raise Unmatched

    def _alternative(self, cursor: Cursor, fields: Fields) -> bool:
        mark = cursor.index
        for items in self._alternatives:
            if self.optional and not items[0].begins(cursor):
                continue
            if self._repeated and _said(items, fields):
                continue
            before = fields.copy()
            try:
                for item in items:
                    item.match(cursor, fields)
                return True
            except Unmatched:
                cursor.index = mark
                fields.clear()
                fields.update(before)
                if isinstance(items[0], _Words) and items[0].stands(cursor):
                    return False
        return False

    def defaults(self) -> Iterable[tuple[str, object]]:
        if self._field is not None:
            yield self._field, False
        for items in self._alternatives:
            for item in items:
                yield from item.defaults()


def _said(items: list[_Item], fields: Fields) -> bool:
    """Whether a field of these has a value already."""
    return any(fields[field] != absent for item in items for field, absent in item.defaults())


_Item = _Words | _Operand | _Group


class Rule:
    """One row: its items in order, and what makes a value of their fields."""

    def __init__(self, row: Row, *, whole: bool) -> None:
        notation, self.make, *given = row
        self.items = _Notation(notation).items()
        if whole:
            self.items.append(_END)
        self._defaults = dict(pair for item in self.items for pair in item.defaults())
        for constants in given:
            self._defaults.update(constants)
        self.fields = self._defaults.keys()
        """The names of what `make` is given."""
        first = next((item for item in self.items if item is not _HERE), None)
        self.first = first if isinstance(first, _Words) else None
        """The words that it begins with."""

    def read(self, cursor: Cursor) -> object:
        fields = self._defaults.copy()
        for item in self.items:
            item.match(cursor, fields)
        return self.make(**fields)


class Rules:
    """Rules of which one applies, by the word that stands at the cursor: a kind of operand too.
    `whole` ones are read to the end of the statement."""

    def __init__(self, *rows: Row, whole: bool = False) -> None:
        self.rules = [Rule(row, whole=whole) for row in rows]
        self._others = [rule for rule in self.rules if rule.first is None]
        self._by_word = {
            word: [rule for rule in self.rules if rule.first is None or word in rule.first.words[0]]
            for rule in self.rules
            for word in (rule.first.words[0] if rule.first is not None else ())
        }

    def begins(self, cursor: Cursor) -> bool:
        return cursor.keys[cursor.index] in self._by_word or any(
            rule.items[0].begins(cursor) for rule in self._others
        )

    def read(self, cursor: Cursor) -> object:
        mark = cursor.index
        tried = self._by_word.get(cursor.keys[mark], self._others)
        stood = False
        for rule in tried:
            if rule.first.stands(cursor) if rule.first is not None else not stood:
                try:
                    return rule.read(cursor)
                except Unmatched:
                    cursor.index = mark
                    stood = stood or rule.first is not None
        for rule in tried if tried is not self._others else self.rules:
            if rule.first is not None:
                rule.first.note(cursor, begun=False)
        raise Unmatched


_PIECE = re.compile(
    r"\s+|(\w+):(?=[\[(A-Z])(?!\(\w+,…)|(\w+):(\(\w+,…\)|\w+,…|\w+)|'(.)'|([^\s'()\[\]{}|]+)|(.)"
)


class _Notation:
    """Reads the notation of a rule."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._end: str | None = None
        """The piece that ended the alternative that was read last."""

    def items(self) -> list[_Item]:
        found: list[_Item] = []
        field: str | None = None
        self._end = None
        while self._at < len(self._text):
            piece = _PIECE.match(self._text, self._at)
            assert piece is not None, self._text
            self._at = piece.end()
            flag, operand, kind, quoted, words, sign = piece.groups()
            if flag is not None:
                field = flag
            elif operand is not None:
                form = "()" if kind[0] == "(" else "," if kind.endswith("…") else ""
                found.append(_Operand(operand, KINDS[kind.strip("(),…")], form))
            elif sign in ("[", "(", "{"):
                found.append(_Group(sign, self._alternatives(), field))
                field = None
            elif sign is not None:
                self._end = sign
                return found
            elif words == "^":
                found.append(_HERE)
            elif quoted is not None or words is not None:
                self._add_words(found, field, quoted or words)
                field = None
        return found

    def _alternatives(self) -> list[list[_Item]]:
        found = [self.items()]
        while self._end == "|":
            found.append(self.items())
        assert self._end in ("]", ")", "}"), self._text
        return found

    def _add_words(self, found: list[_Item], field: str | None, written: str) -> None:
        last = found[-1] if found else None
        if field is not None or not isinstance(last, _Words):
            last = _Words(field)
            found.append(last)
        last.words.append(tuple(written.lower().split("/")))
