"""What was said, and what the document says: clocks, ids and durations aside."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

NAMED = (
    (r"\d{19}\.\d{10}", "<timestamp>"),
    (r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00)", "<time>"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>"),
    (r"\b\d{16,19}\b", "<id>"),
    (r"[\d.]+ m?s behind", "<behind>"),
)
"""What is another at each run, and how it is read."""

CHANGING = frozenset({"durable_index"})
REPLY = re.compile(r"[^\S\n]*--> (.*?)(?:\s{2,}.*)?$", re.MULTILINE)


def same(said: str, shown: str, plain: Callable[[str], str]) -> bool:
    """Whether a text is the one that is shown, where `…` stands for anything."""
    try:
        if named(json.loads(said), plain) == named(json.loads(shown), plain):
            return True
    except ValueError:
        pass
    said, shown = (_lines(str(named(text, plain))) for text in (said, shown))
    pattern = re.escape(shown).replace("\\\n…", "(\n.*)?").replace("…", ".*?")
    return re.fullmatch(pattern, said, re.DOTALL) is not None


def named(value: object, plain: Callable[[str], str]) -> object:
    """A document of JSON, or a text, with names for what is another at each run."""
    match value:
        case dict():
            return {key: named(each, plain) for key, each in value.items() if key not in CHANGING}
        case list():
            return [named(each, plain) for each in value]
        case str():
            for pattern, name in NAMED:
                value = re.sub(pattern, name, value)
            return plain(value)
        case int() if value > 10**15:
            return "<id>"
    return value


def _lines(text: str) -> str:
    """One blank between words, and none at the ends of lines."""
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def table(text: str) -> list[list[str]]:
    """The cells of rows as psql shows them, the names of the columns among them where a line is
    below them."""
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [
        [cell.strip() for cell in line.split("|")]
        for line in lines
        if not re.fullmatch(r"[-+ ]+|\(\d+ rows?\)", line.strip())
    ]
    headed = any(re.fullmatch(r"[-+ ]*-[-+ ]*", line) for line in lines[1:2])
    return rows if headed else [[], *rows]
