"""What can be told of a regular expression by reading it: which groups may be left out."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Group:
    """A part in parentheses. `optional`: the whole may match without it; `empty`: it may match ''.

    `numbered` is false for `(?:…)` and for the whole pattern.
    """

    numbered: bool
    alternatives: list[bool] = field(default_factory=lambda: [True])
    parts: list[Group] = field(default_factory=list)
    optional: bool = False

    @property
    def empty(self) -> bool:
        return any(self.alternatives)


def groups(pattern: str) -> tuple[Group, ...]:
    """The numbered groups in their order."""
    return tuple(group for group in _all(_whole(pattern)) if group.numbered)


def may_be_empty(pattern: str) -> bool:
    """Whether the pattern may match no letter at all."""
    return _whole(pattern).empty


def in_all_alphabets(pattern: str) -> str:
    """The pattern with `\\w`, `[[:alpha:]]` and the like of every alphabet: RE2's are of ASCII.

    Escapes that mean something else to RE2 say what they do in PostgreSQL: `\\b` is a backspace,
    `\\B` a backslash, and the text ends at `\\Z`.
    """
    made: list[str] = []
    at = 0
    while at < len(pattern):
        end = _behind_atom(pattern, at)
        atom = pattern[at:end]
        if atom.startswith("["):
            for name, letters in _CLASSES.items():
                atom = atom.replace(name, letters)
        made.append(_ESCAPES.get(atom, atom))
        at = end
    return "".join(made)


_ESCAPES = {
    r"\w": r"[\pL\p{Nd}_]",
    r"\W": r"[^\pL\p{Nd}_]",
    r"\b": r"\x08",
    r"\B": r"\\",
    r"\Z": r"\z",
}
_CLASSES = {
    r"\w": r"\pL\p{Nd}_",
    "[:alpha:]": r"\pL",
    "[:alnum:]": r"\pL\p{Nd}",
    "[:upper:]": r"\p{Lu}",
    "[:lower:]": r"\p{Ll}",
}


def _all(group: Group) -> list[Group]:
    return [each for part in group.parts for each in (part, *_all(part))]


def _whole(pattern: str) -> Group:
    open_groups = [Group(numbered=False)]
    at = 0
    while at < len(pattern):
        group = open_groups[-1]
        letter = pattern[at]
        at += 1
        if letter == "(":
            lookaround = pattern[at : at + 1] == "?"
            opened = Group(numbered=not lookaround)
            group.parts.append(opened)
            open_groups.append(opened)
            at += len("?:") if lookaround else 0
        elif letter == "|":
            group.alternatives.append(True)
        elif letter in "^$":
            pass
        elif letter == ")" and len(open_groups) > 1:
            open_groups.pop()
            may_be_missing = _may_be_missing(pattern, at)
            group.optional = may_be_missing
            if not may_be_missing and not group.empty:
                open_groups[-1].alternatives[-1] = False
        elif letter not in "*+?{":
            at = _behind_atom(pattern, at - 1)
            if not _may_be_missing(pattern, at):
                group.alternatives[-1] = False
        elif letter == "{":
            at = pattern.find("}", at) + 1 or len(pattern)
    whole = open_groups[0]
    _spread(whole, optional=False)
    return whole


def _may_be_missing(pattern: str, at: int) -> bool:
    return pattern[at : at + 1] in ("*", "?") or pattern.startswith(("{0", "{,"), at)


def _behind_atom(pattern: str, at: int) -> int:
    """Where a letter, an escape or a class in brackets ends."""
    if pattern[at] == "\\":
        return at + 2
    if pattern[at] != "[":
        return at + 1
    end = at + 2 if pattern.startswith("^", at + 1) else at + 1
    end += pattern.startswith("]", end)
    while end < len(pattern) and pattern[end] != "]":
        named = pattern[end : end + 2] in ("[:", "[.", "[=")
        closing = pattern.find(pattern[end + 1] + "]", end + 2) if named else -1
        end = closing + 2 if closing >= 0 else end + 2 if pattern[end] == "\\" else end + 1
    return end + 1


def _spread(group: Group, *, optional: bool) -> None:
    """What is in an optional part, or in one of several alternatives, is optional too."""
    group.optional = group.optional or optional
    for part in group.parts:
        _spread(part, optional=group.optional or len(group.alternatives) > 1)
