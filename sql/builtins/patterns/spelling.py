"""Parts of a pattern as RE2 writes them, for texts in colours."""

from __future__ import annotations

from .colours import Colours
from .letters import Letters
from .marks import Marks
from .nodes import Anchor, Choice, Item, Place, Repeat

_ANCHORS = {
    Anchor.TEXT_START: r"\A",
    Anchor.TEXT_END: r"\z",
    Anchor.LINE_START: "(?m:^)",
    Anchor.LINE_END: "(?m:$)",
    Anchor.WORD_EDGE: r"\b",
    Anchor.NO_WORD_EDGE: r"\B",
}


class Spelling:
    """Without `marks`, RE2 knows all the places that a pattern speaks of. `stride` is the number of
    bytes for each letter of a text."""

    __slots__ = ("_colours", "_marks", "stride")

    def __init__(self, colours: Colours, marks: Marks | None) -> None:
        self._colours = colours
        self._marks = marks
        self.stride = 1 if marks is None else marks.copies + 1

    def choice(self, choice: Choice) -> str:
        """Preferences are no matter of what matches."""
        branches = ("".join(map(self._item, branch)) for branch in choice.branches)
        return f"(?:{'|'.join(branches)})"

    def _item(self, item: Item) -> str:
        if not isinstance(item, Repeat):
            return self._place(item)
        if item.most == 0:
            return ""
        atom = item.atom
        written = self._letters(atom) if isinstance(atom, Letters) else self.choice(atom.body)
        return f"{written}{quantifier(item.least, item.most)}"

    def _letters(self, letters: Letters) -> str:
        written = self._colours.written(letters)
        return written if self._marks is None else f"(?:{self._marks.any}*{written})"

    def _place(self, place: Place) -> str:
        if self._marks is not None:
            return self._marks.written(place)
        assert isinstance(place, Anchor), place
        return _ANCHORS[place]


def quantifier(least: int, most: int | None) -> str:
    match least, most:
        case 1, 1:
            return ""
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
    return f"{{{least},{'' if most is None else most}}}"
