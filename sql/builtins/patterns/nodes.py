"""The tree of a pattern.

a+(b|)$     Choice((Repeat(a, 1, None), Repeat(Group(1, Choice((b), ()))), LINE_END))
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from .letters import Letters


class Anchor(Enum):
    """What is true of a place between letters, and takes none."""

    TEXT_START = auto()
    TEXT_END = auto()
    LINE_START = auto()  # or the text's
    LINE_END = auto()  # or the text's
    WORD_START = auto()
    WORD_END = auto()
    WORD_EDGE = auto()  # either of the two
    NO_WORD_EDGE = auto()


WORD_ANCHORS = frozenset(
    {Anchor.WORD_START, Anchor.WORD_END, Anchor.WORD_EDGE, Anchor.NO_WORD_EDGE}
)


class Preference(Enum):
    """Which of several matches from one place is taken."""

    NONE = auto()  # there is but one, or nothing says
    LONGER = auto()
    SHORTER = auto()


@dataclass(frozen=True, slots=True)
class Group:
    """A part in parentheses; `number` is None for `(?:…)`."""

    number: int | None
    body: Choice


@dataclass(frozen=True, slots=True)
class Repeat:
    """An atom, as often as its quantifier says: `most` is None where nothing limits it."""

    atom: Letters | Group
    least: int = 1
    most: int | None = 1
    preference: Preference = Preference.NONE


@dataclass(frozen=True, slots=True)
class Around:
    """Whether `body` matches from a place on, or, `behind`, as far as there; or does not."""

    body: Choice
    behind: bool
    negated: bool


Place = Anchor | Around
"""What is asked of a place between letters."""
Item = Place | Repeat
Branch = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Branches, between which there is a `|`; at least one."""

    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole pattern: `groups` is the number of its capturing groups."""

    choice: Choice
    groups: int


def letters_in(choice: Choice) -> set[Letters]:
    """The sets of letters that a part of a pattern asks for."""
    found: set[Letters] = set()
    for item in _items(choice):
        if isinstance(item, Repeat) and isinstance(item.atom, Letters):
            found.add(item.atom)
    return found


def places_in(choice: Choice) -> list[Place]:
    """What a part of a pattern asks of places, but not what that asks of others."""
    return [item for item in _items(choice) if not isinstance(item, Repeat)]


def has_word_anchors(choice: Choice) -> bool:
    return any(item in WORD_ANCHORS for item in _items(choice) if isinstance(item, Anchor))


def _items(choice: Choice) -> list[Item]:
    found: list[Item] = []
    for branch in choice.branches:
        for item in branch:
            found.append(item)
            if isinstance(item, Repeat) and isinstance(item.atom, Group):
                found += _items(item.atom.body)
    return found


def may_be_empty(choice: Choice) -> bool:
    """Whether a part of a pattern may match no letter at all."""
    return any(all(map(item_may_be_empty, branch)) for branch in choice.branches)


def item_may_be_empty(item: Item) -> bool:
    if not isinstance(item, Repeat) or item.least == 0:
        return True
    return isinstance(item.atom, Group) and may_be_empty(item.atom.body)
