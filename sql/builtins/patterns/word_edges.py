"""`\\m` and `\\M`, the beginnings and the ends of words, as edges of words, which RE2 has.

An edge of a word before a letter of a word is the beginning of one: `\\mfoo` is `\\yfoo`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .alphabets import WORD
from .letters import Letters
from .nodes import Anchor, Around, Branch, Choice, Group, Item, Repeat


def with_plain_edges(choice: Choice) -> Choice | None:
    """The tree with edges alone; None where something else may be beside a word's edge."""
    branches = [_branch(branch) for branch in choice.branches]
    found = tuple(branch for branch in branches if branch is not None)
    return Choice(found) if len(found) == len(branches) else None


def _branch(items: Branch) -> Branch | None:
    made: list[Item] = []
    for place, item in enumerate(items):
        if isinstance(item, Repeat) and isinstance(item.atom, Group):
            body = with_plain_edges(item.atom.body)
            if body is None:
                return None
            made.append(replace(item, atom=replace(item.atom, body=body)))
            continue
        if isinstance(item, Around):
            return None
        start, end = item is Anchor.WORD_START, item is Anchor.WORD_END
        if (start and not _beside_word(items[place + 1 :], at_end=False)) or (
            end and not _beside_word(items[:place][::-1], at_end=True)
        ):
            return None
        made.append(Anchor.WORD_EDGE if start or end else item)
    return tuple(made)


def _beside_word(items: Sequence[Item], *, at_end: bool) -> bool:
    """Whether what items match begins with a letter of a word, or ends with one. `items` are in
    the order in which they are met."""
    for item in items:
        if not isinstance(item, Repeat) or item.most == 0:
            continue
        if item.least == 0:
            return False
        if isinstance(item.atom, Letters):
            return item.atom.only_of(WORD)
        return all(
            _beside_word(branch[::-1] if at_end else branch, at_end=at_end)
            for branch in item.atom.body.branches
        )
    return False
