"""A pattern that is ready to be looked for."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from .colours import Colours
from .divisions import AUTOMATA_MAX, divided
from .letters import ANY
from .marks import Marks, Truths, anchored
from .matching import Budget, Matcher, Span, Spans
from .nodes import (
    Anchor,
    Around,
    Choice,
    Group,
    Place,
    Repeat,
    Tree,
    has_word_anchors,
    letters_in,
    places_in,
)
from .options import Options
from .reader import read
from .scanner import TOO_COMPLEX, invalid
from .spelling import Spelling
from .word_edges import with_plain_edges


class Pattern:
    """`groups` is the number of its capturing groups; `automata`, of those that it may come to
    hold. A place is one between letters, from 0.

    Raises SQLError 2201B for what takes too much of anything.
    """

    __slots__ = ("_around", "_colours", "_marks", "_matcher", "automata", "groups")

    def __init__(self, tree: Tree) -> None:
        plain = with_plain_edges(tree.choice)
        choice = tree.choice if plain is None else plain
        part = divided(choice)
        self.groups = tree.groups
        words = plain is not None and has_word_anchors(choice)
        self._colours = Colours(letters_in(choice), words=words)
        self._around = {
            place: Pattern(Tree(_to_ask(place), 0))
            for place in places_in(choice)
            if isinstance(place, Around)
        }
        self.automata: int = part.count() + sum(each.automata for each in self._around.values())
        if self.automata > AUTOMATA_MAX:
            raise invalid(TOO_COMPLEX)
        self._marks = Marks(choice, self._colours.free()) if plain is None else None
        self._matcher = Matcher(part, Spelling(self._colours, self._marks))

    def prepared(self, text: str, budget: Budget) -> bytes:
        """A text in this pattern's colours, to be searched."""
        coloured = self._colours.of(text)
        if self._marks is None:
            return coloured
        truths = [self._asked(place, text, budget) for place in self._marks.places]
        return self._marks.into(coloured, truths)

    def _asked(self, place: Place, text: str, budget: Budget) -> Truths:
        if isinstance(place, Anchor):
            return anchored(place, text)
        pattern = self._around[place]
        prepared = pattern.prepared(text, budget)
        matcher, count = pattern._matcher, len(text) + 1
        if place.behind:
            found = [matcher.matches(prepared, (0, at), budget) for at in range(count)]
        else:
            found = [matcher.begins(prepared, at, len(text), budget) for at in range(count)]
        return [truth is not place.negated for truth in found]

    def search(self, text: bytes, begin: int, budget: Budget) -> Span | None:
        """The first match from a place on, of a text that is prepared."""
        return self._matcher.search(text, begin, budget)

    def matches(self, text: str, budget: Budget) -> bool:
        """Whether it matches anywhere in a text."""
        return self.search(self.prepared(text, budget), 0, budget) is not None

    def divide(self, text: bytes, span: Span, budget: Budget) -> Spans:
        """Where the groups of a match are, but for those that took no part in it."""
        return self._matcher.divide(text, span, budget) if self.groups else {}


def _to_ask(place: Around) -> Choice:
    """What matches from a place on; or else from the beginning of the text as far as there."""
    if not place.behind:
        return place.body
    return Choice(((Repeat(ANY, 0, None), Repeat(Group(None, place.body))),))


class KnownPatterns:
    """The patterns that were asked for last, in that order, with AUTOMATA_MAX automata at most: so
    many times `matching.AUTOMATON_BYTES_MAX` is what they may come to take. Any thread may ask."""

    def __init__(self) -> None:
        self._patterns: OrderedDict[tuple[str, Options], Pattern] = OrderedDict()
        self.automata = 0
        self._lock = Lock()

    def pattern(self, text: str, options: Options) -> Pattern:
        key = (text, options)
        with self._lock:
            known = self._patterns.get(key)
            if known is not None:
                self._patterns.move_to_end(key)
                return known
        made = Pattern(read(text, options))
        with self._lock:
            known = self._patterns.setdefault(key, made)
            self.automata += made.automata if known is made else 0
            while self.automata > AUTOMATA_MAX:
                _, oldest = self._patterns.popitem(last=False)
                self.automata -= oldest.automata
        return known


_known = KnownPatterns()


def pattern_of(text: str, options: Options) -> Pattern:
    """Raises SQLError 2201B for what is no pattern, and 0A000 for what is not supported."""
    return _known.pattern(text, options)
