"""Small patterns and texts by a seed, made so that they often match and have several ways to."""

from __future__ import annotations

from random import Random

DEPTH_MAX = 3
_ATOMS = ["a", "b", "c", "a", "b", ".", "[ab]", "[^a]", r"\w", "é"]
_QUANTIFIERS = ["", "", "*", "+", "?", "{2}", "{1,2}", "{0}"]
_ANCHORS = ["^", "$", r"\A", r"\Z", "()", "(|a)", "(a|)"]
_LETTERS = "aaabbcé \n_A"


def random_pattern(draw: Random, depth: int = 0) -> str:
    chance = draw.random()
    if depth > DEPTH_MAX or chance < 0.35:
        return draw.choice(_ATOMS)
    inner = random_pattern(draw, depth + 1)
    if chance < 0.55:
        return inner + random_pattern(draw, depth + 1)
    if chance < 0.68:
        return f"{inner}|{random_pattern(draw, depth + 1)}"
    if chance < 0.85:
        return f"{draw.choice(['(', '(', '(?:'])}{inner}){draw.choice(_QUANTIFIERS)}"
    if chance < 0.93:
        return draw.choice("abc.") + draw.choice(_QUANTIFIERS)
    return draw.choice(_ANCHORS) if chance < 0.96 else f"({inner})"


def random_text(draw: Random) -> str:
    return "".join(draw.choice(_LETTERS) for _ in range(draw.randrange(9)))
