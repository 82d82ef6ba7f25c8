"""Patterns of which a text has one match from a place, if any, that either engine would take.

Leftmost-first and leftmost-longest take the same match of `b..`, of `[a-z]+@[a-z]+` and of
`foo.*bar`, and another one of `day|daylight` and of `a*(ab)?`. What is proven here is enough for
most patterns, and less than the truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from .alphabets import LAST, Kind, Ranges, kind
from .letters import Letters, merged, other_kinds, others
from .nodes import (
    Branch,
    Choice,
    Group,
    Item,
    Preference,
    Repeat,
    item_may_be_empty,
    may_be_empty,
)

PLACES_MAX = 100
"""Sets of letters in a pattern whose pairs are looked at."""


def unambiguous(choice: Choice) -> bool:
    """Whether RE2's first match is PostgreSQL's, and its groups are, wherever they take part."""
    repeats = list(_repeats(choice))
    wanted = {each.preference for each in repeats} - {Preference.NONE}
    several = any(len(part.branches) > 1 for part in _choices(choice))
    if len(wanted) > 1 or (several and Preference.SHORTER in wanted):
        return False
    if any(_repeats_groups(each) for each in repeats):
        return False
    return _of_one_variable(choice) or _deterministic(choice)


def _repeats_groups(item: Repeat) -> bool:
    """Whether groups are matched many times, or left out altogether."""
    return (
        item.most != 1
        and isinstance(item.atom, Group)
        and (item.atom.number is not None or any(_groups(item.atom.body)))
    )


def _of_one_variable(choice: Choice) -> bool:
    """Whether the length of a match says how often each part of it is repeated: no more than one
    is repeated any number of times, and branches are of one length and without groups."""
    variable = [each for each in _repeats(choice) if each.least != each.most]
    if len(variable) > 1:
        return False
    for part in _choices(choice):
        if len(part.branches) > 1 and (_length(part) is None or any(_groups(part))):
            return False
    return all(
        _atom_length(each.atom) is not None for each in _repeats(choice) if each.most != 1
    ) and all(_atom_length(each.atom) for each in variable)


def _length(choice: Choice) -> int | None:
    """The length of all matches, if it is one."""
    lengths = {_branch_length(branch) for branch in choice.branches}
    return lengths.pop() if len(lengths) == 1 else None


def _branch_length(branch: Branch) -> int | None:
    total = 0
    for item in branch:
        if not isinstance(item, Repeat):
            continue
        length = _atom_length(item.atom)
        if item.least != item.most or length is None:
            return None
        total += length * item.least
    return total


def _atom_length(atom: Letters | Group) -> int | None:
    return 1 if isinstance(atom, Letters) else _length(atom.body)


@dataclass(slots=True)
class _Automaton:
    """Glushkov's: the sets of letters of a pattern, and which may follow which."""

    letters: list[Letters] = field(default_factory=list)
    following: list[set[int]] = field(default_factory=list)

    def choice(self, choice: Choice) -> tuple[set[int], set[int]]:
        """The places with which it begins and ends."""
        found = [self._branch(branch) for branch in choice.branches]
        firsts, lasts = zip(*found, strict=True)
        return set[int]().union(*firsts), set[int]().union(*lasts)

    def _branch(self, branch: Branch) -> tuple[set[int], set[int]]:
        first, last = set[int](), set[int]()
        empty = True
        for item in branch:
            if not isinstance(item, Repeat):
                continue
            begins, ends = self._repeat(item)
            for place in last:
                self.following[place] |= begins
            first |= begins if empty else set()
            skipped = item_may_be_empty(item)
            last = ends | last if skipped else ends
            empty = empty and skipped
        return first, last

    def _repeat(self, item: Repeat) -> tuple[set[int], set[int]]:
        if isinstance(item.atom, Letters):
            self.letters.append(item.atom)
            self.following.append(set())
            first = {len(self.letters) - 1}
            last = set(first)
        else:
            first, last = self.choice(item.atom.body)
        if item.most != 1:
            for place in last:
                self.following[place] |= first
        return first, last


def _deterministic(choice: Choice) -> bool:
    """Whether each letter of a text says which part of the pattern matches it, so that there is
    nothing to choose but whether to go on."""
    for part in _choices(choice):
        if len(part.branches) > 1 and may_be_empty(part):
            return False
    for each in _repeats(choice):
        plain = each.least == each.most == 1
        if not plain and isinstance(each.atom, Group) and may_be_empty(each.atom.body):
            return False
    automaton = _Automaton()
    first, _ = automaton.choice(choice)
    if len(automaton.letters) > PLACES_MAX:
        return False
    return all(_told_apart(automaton.letters, places) for places in [first, *automaton.following])


def _told_apart(letters: list[Letters], places: Iterable[int]) -> bool:
    return all(
        disjoint(letters[one], letters[other]) for one, other in combinations(sorted(places), 2)
    )


def disjoint(one: Letters, other: Letters) -> bool:
    """Whether certainly no letter is of both."""
    if not one.ranges and not other.ranges:
        return not _kinds(one) & _kinds(other)
    return not _overlap(_at_most(one), _at_most(other))


def _kinds(letters: Letters) -> Kind:
    return other_kinds(letters.kinds) if letters.negated else letters.kinds


_ASCII_END = 0x80
_BEYOND = (_ASCII_END, LAST)
_OF_ASCII = Kind.DIGIT | Kind.UNDERSCORE


def _at_most(letters: Letters) -> Ranges:
    """Ranges that have each of the letters. Beyond ASCII a kind may be any of them, or none."""
    ascii_kinds = [
        (code, code) for code in range(_ASCII_END) if kind(chr(code)) & letters.kinds
    ]  # fmt: skip
    known = merged((*letters.ranges, *ascii_kinds))
    if letters.negated:
        return others(known)
    return merged((*known, _BEYOND)) if letters.kinds & ~_OF_ASCII else known


def _overlap(one: Ranges, other: Ranges) -> bool:
    return any(low <= end and begin <= high for low, high in one for begin, end in other)


def _items(choice: Choice) -> Iterator[Item]:
    for branch in choice.branches:
        yield from branch


def _repeats(choice: Choice) -> Iterator[Repeat]:
    for item in _items(choice):
        if isinstance(item, Repeat):
            yield item
            if isinstance(item.atom, Group):
                yield from _repeats(item.atom.body)


def _choices(choice: Choice) -> Iterator[Choice]:
    yield choice
    for item in _items(choice):
        if isinstance(item, Repeat) and isinstance(item.atom, Group):
            yield from _choices(item.atom.body)


def _groups(choice: Choice) -> Iterator[Group]:
    for item in _repeats(choice):
        if isinstance(item.atom, Group) and item.atom.number is not None:
            yield item.atom
