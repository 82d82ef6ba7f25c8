"""What a document shows a reader to do, in its order.

Commands stand in fences that name their language: `sql`, `sh`, `python`, `http`. Behind `sql` may
stand the database (```sql mirror:shop). A fence without a language, or in `json`, right behind a
command is its reply; between the two may stand a line with the status and the type of an answer of
the HTTP door.

A comment `<!-- sql … -->` is a command that readers do not see: what the text takes for granted.
And `<!-- walked by tests/… -->` names the test that runs the next command, because that needs more
than a server.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

LANGUAGES = frozenset({"sql", "sh", "python", "http"})
COMMANDS = frozenset({*LANGUAGES, "console", "bash", "shell", "psql"})
PIECE = re.compile(
    r"^```(?P<language>\w*) ?(?P<rest>[^\n]*)\n(?P<text>.*?)^```$"
    r"|^<!-- (?P<hidden>sql|sh|python|http)\n(?P<unseen>.*?)^-->$"
    r"|^<!-- walked by (?P<walker>[\w./]+) -->$"
    r"|^`(?P<status>\d{3}) [^`\n]+`, `(?P<type>[^`\n]+)`$"
    r"|\n\n(?P<indented>    \S[^\n]*)"
    r"|^(?P<other>[^\n]+)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Command:
    """`reply` is what the document shows behind it, `answer` the status and the type of an answer
    of the HTTP door, `line` where the command stands."""

    language: str
    database: str
    text: str
    line: int
    reply: str | None = None
    answer: tuple[str, str] | None = None


class BadDocument(Exception):
    """A command of a document that nobody would run."""


def commands(document: Path, root: Path) -> list[Command]:
    """The commands of a document that are not walked by a test of their own. Raises BadDocument."""
    text = document.read_text()
    found: list[Command] = []
    replied, walked = True, False  # whether the last command can have no reply any more; the marker
    for piece in PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if piece["indented"]:
            raise BadDocument(f"{document.name}:{line}: put {piece['indented']!r} into a fence")
        if piece["walker"]:
            walked = _walks(root / piece["walker"], document, line)
        elif piece["hidden"]:
            found.append(Command(piece["hidden"], "", piece["unseen"], line))
            replied = True
        elif piece["language"] in COMMANDS:
            if not walked:
                if piece["language"] not in LANGUAGES:
                    raise BadDocument(f"{document.name}:{line}: nobody runs {piece['language']}")
                found.append(Command(piece["language"], piece["rest"], piece["text"], line))
            replied, walked = walked, False
        elif piece["text"] is not None and piece["language"] in {"", "json"} and not replied:
            found[-1] = replace(found[-1], reply=piece["text"])
            replied = True
        elif piece["status"] and not replied:
            found[-1] = replace(found[-1], answer=(piece["status"], piece["type"]))
        elif piece["other"] or piece["text"] is not None:
            replied = True
    return found


def _walks(test: Path, document: Path, line: int) -> bool:
    if not test.exists() or document.name not in test.read_text():
        raise BadDocument(f"{document.name}:{line}: {test} does not read the document")
    return True
