"""How PostgreSQL divides what matched among the parts of a pattern.

The tree of a pattern is made another one, which knows of each part that must be looked into whether
its longest or its shortest match is taken first (after H. Spencer's regcomp.c, whose `parseqatom`
builds the same in one go with its automata):

- an atom without a quantifier, or with `{m}`, prefers what is in it; with another, what that says;
- a branch prefers what its first atom with a preference does;
- several branches prefer the longest, whatever is in them.

A part without groups in it, whose atoms agree, is PLAIN: nobody asks how it is divided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntFlag, auto

from .nodes import Branch, Choice, Group, Preference, Repeat
from .scanner import TOO_COMPLEX, invalid

PARTS_MAX = 100
"""Parts that are looked into, one behind or within the other: each takes a few frames of Python's
stack."""
AUTOMATA_MAX = 256
"""Parts of a whole pattern: each has an automaton."""


class Trait(IntFlag):
    """What is known of a part. Both preferences together, below one, make it MIXED."""

    NONE = 0
    LONGER = 1
    SHORTER = 2
    MIXED = 4
    GROUPS = 8


_PREFERENCES = Trait.LONGER | Trait.SHORTER
_MESSY = Trait.MIXED | Trait.GROUPS
_OF = {
    Preference.NONE: Trait.NONE,
    Preference.LONGER: Trait.LONGER,
    Preference.SHORTER: Trait.SHORTER,
}


class Shape(Enum):
    PLAIN = auto()
    PAIR = auto()  # two parts, one behind the other
    CHOICE = auto()  # any number of parts, one of which matches
    ITERATION = auto()  # one part, any number of times
    WRAPPED = auto()  # one part that has a group's number already


@dataclass(frozen=True, slots=True)
class Part:
    """`tree` is what of the pattern it matches; `group`, the number of the group that it is."""

    shape: Shape
    tree: Choice
    traits: Trait
    parts: tuple[Part, ...] = ()
    group: int | None = None
    least: int = 1
    most: int | None = 1

    @property
    def shortest(self) -> bool:
        """Whether the shortest match is taken first."""
        return bool(self.traits & Trait.SHORTER)

    def count(self) -> int:
        """How many parts it is, with all that it is divided into."""
        return 1 + sum(part.count() for part in self.parts)


def divided(choice: Choice, parts_left: int = PARTS_MAX) -> Part:
    """Raises SQLError 2201B for more parts than PARTS_MAX."""
    branches = [_branch(branch, parts_left) for branch in choice.branches]
    if len(branches) == 1:
        return branches[0]
    traits = Trait.LONGER
    for branch in branches:
        traits |= _above(traits | branch.traits)
    if not traits & _MESSY:
        return Part(Shape.PLAIN, choice, traits)
    return Part(Shape.CHOICE, choice, traits, tuple(branches))


def _above(traits: Trait) -> Trait:
    """What is true of a part that contains parts of these traits."""
    mixed = traits & _PREFERENCES == _PREFERENCES
    return (traits & ~_PREFERENCES) | (Trait.MIXED if mixed else Trait.NONE)


def _together(first: Trait, second: Trait) -> Trait:
    preference = first & _PREFERENCES or second & _PREFERENCES
    return _above(first | second) | preference


def _branch(items: Branch, parts_left: int) -> Part:
    """A branch, or what is left of one."""
    traits = Trait.NONE
    for place, item in enumerate(items):
        if not isinstance(item, Repeat) or item.most == 0:
            continue
        atom = _atom(item, parts_left)
        below = traits | _OF[item.preference] | (atom.traits if atom is not None else Trait.NONE)
        if _above(below) & _MESSY:
            if parts_left <= 0:
                raise invalid(TOO_COMPLEX)
            behind = items[place + 1 :]
            rest = _branch(behind, parts_left - 1) if behind else None
            return _looked_into(items, place, traits, _repeated(item, atom), rest)
        traits = below
    return _plain(items, traits)


def _looked_into(
    items: Branch, place: int, before: Trait, middle: tuple[Part, Trait], rest: Part | None
) -> Part:
    """A branch with an item that is looked into: what is before it, it, and what is behind it."""
    item, traits = middle
    prefix = _plain(items[:place], before)
    if rest is None:
        return item if place == 0 else _pair(prefix, item, items)
    if place == 0:
        return _pair(item, rest, items, traits)
    both = _pair(item, rest, items[place:], traits)
    united = _above(item.traits | rest.traits)
    if item.shape is rest.shape is Shape.PLAIN and not united & _MESSY:
        both = Part(Shape.PLAIN, both.tree, _together(item.traits, rest.traits))
    return _pair(prefix, both, items)


def _pair(first: Part, second: Part, items: Branch, of_first: Trait | None = None) -> Part:
    """`of_first` where the first part's own traits are not all that is to be known of it."""
    traits = _together(first.traits if of_first is None else of_first, second.traits)
    return Part(Shape.PAIR, Choice((items,)), traits, (first, second))


def _plain(items: Branch, traits: Trait) -> Part:
    return Part(Shape.PLAIN, Choice((items,)), traits)


def _atom(item: Repeat, parts_left: int) -> Part | None:
    """What is in parentheses; None for a set of letters."""
    if not isinstance(item.atom, Group):
        return None
    inner = divided(item.atom.body, parts_left - 1)
    number = item.atom.number
    if number is None:
        return inner
    traits = inner.traits | Trait.GROUPS
    if inner.group is not None:
        return Part(Shape.WRAPPED, inner.tree, traits, (inner,), number)
    return replace(inner, traits=traits, group=number)


def _repeated(item: Repeat, atom: Part | None) -> tuple[Part, Trait]:
    """An item as a part, with what its quantifier makes of it, and the traits of the two."""
    wanted = _OF[item.preference]
    if atom is None:
        atom = _plain((Repeat(item.atom),), Trait.NONE)
    known = atom.traits & (_PREFERENCES | Trait.MIXED)
    traits = _together(wanted, atom.traits)
    if item.least == item.most == 1 and (not wanted or not known or wanted == known):
        return atom, traits
    whole = Choice(((item,),))
    if not atom.traits & Trait.GROUPS:
        return Part(Shape.PLAIN, whole, traits), traits
    if item.least == 0:
        made = Part(Shape.ITERATION, whole, traits, (atom,), None, item.least, item.most)
        return made, traits
    # The groups are those of the last time, so what comes before it is plain.
    most = None if item.most is None else item.most - 1
    earlier = Repeat(item.atom, item.least - 1, most, item.preference)
    before = _plain((earlier,), traits & _PREFERENCES)
    return Part(Shape.PAIR, whole, traits, (before, atom)), traits
